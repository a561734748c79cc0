"""What a public function does is said by a verb: the first word of its docstring, which ``docstrings.toml`` has."""

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "claudomator_py"
KNOWN = tomllib.loads((Path(__file__).parent / "docstrings.toml").read_text(encoding="utf-8"))
VERBS = frozenset(KNOWN["verbs"].split())
DESCRIBES_ITSELF = ("property", "validator", "operation", "setter")
"""In the name of a decorator: what is read like a value, or whose text is a description in the API."""


def without_a_verb(source: str) -> Iterator[str]:
    """Lines and names of public functions and methods whose docstring begins with anything else."""
    yield from _faults(ast.parse(source).body)


def _faults(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _faults(node.body)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from _faults(node.body)
            elif (docstring := ast.get_docstring(node)) and docstring.split()[0].rstrip(".,:;") not in VERBS:
                decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
                if not any(name in decorators for name in DESCRIBES_ITSELF):
                    yield f"{node.lineno} {node.name}: {docstring.splitlines()[0]}"


def test_every_public_function_is_described_with_a_verb() -> None:
    assert not [
        f"{file.relative_to(PACKAGE)}:{fault}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for fault in without_a_verb(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ('def f():\n    """Return it."""\n', 0),
        ('def f():\n    """The value."""\n', 1),
        ('def _f():\n    """The value."""\n', 0),
        ('class C:\n    @property\n    def f(self):\n        """The value."""\n', 0),
        ('class C:\n    def f(self):\n        """Whether it is."""\n', 1),
        ('async def f():\n    """It waits."""\n', 1),
        ('class _C:\n    def f(self):\n        """The value."""\n', 0),
        ("def f():\n    pass\n", 0),
    ],
)
def test_what_counts_as_a_description_without_a_verb(source: str, number: int) -> None:
    assert len(list(without_a_verb(source))) == number


def _named_in_vain(source: str) -> list[str]:
    """Names such as ``domain.limits.in_family`` that their module, two folders deep or more, does not have."""
    absent = []
    for path, name in re.findall(r"``((?:\w+\.){2,})(\w+)``", source):
        module = PACKAGE.joinpath(*path.split("."))
        files = [file for file in (module.with_suffix(".py"), module / "__init__.py") if file.exists()]
        if files and not re.search(rf"\b{name}\b", files[0].read_text(encoding="utf-8")):
            absent.append(path + name)
    return absent


def test_what_a_docstring_names_in_another_module_is_there() -> None:
    assert not [
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for name in _named_in_vain(file.read_text(encoding="utf-8"))
    ]
    assert _named_in_vain("``domain.limits.in_family``, ``domain.limits.of_no_kind``") == ["domain.limits.of_no_kind"]
