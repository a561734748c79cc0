"""Pages on the code name what there is: classes and functions of the picture, files and functions of the text."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "claudomator_py"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()
ON_CODE = (
    "explanation/a-limit-in-the-code.md",
    "how-to/add-a-field.md",
    "how-to/add-a-reason-code.md",
    "how-to/add-an-endpoint.md",
)
NOT_OURS = {"POST", "JSON", "API"}


@cache
def _defined_in(file: Path) -> set[str]:
    """Classes, what is defined in them with and without the class before it, functions, and names that are assigned."""
    results = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            results.add(node.name)
        if isinstance(node, ast.ClassDef):
            results |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            results.add(node.id)
    return results


def _undefined(names: set[str]) -> set[str]:
    """Those that are defined nowhere. Only files that may define one are parsed: all take a second."""
    last = "|".join(name.rpartition(".")[2] for name in names)
    defines = re.compile(rf"\b(?:class|def) (?:{last})\b|^(?:{last})\b[^=\n]*=", re.MULTILINE)
    files = [file for file in PACKAGE.rglob("*.py") if defines.search(file.read_text())]
    return names - {name for file in files for name in _defined_in(file)}


def test_the_picture_names_classes_and_functions_that_exist() -> None:
    picture = PAGE.partition("```text\n")[2].partition("```")[0]
    classes = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", picture)) - NOT_OURS
    functions = set(re.findall(r"\b([a-z_]+)\(\)", picture))
    assert len(classes) > 20
    assert functions
    assert not _undefined(classes | functions)


def test_the_page_names_files_that_exist() -> None:
    named = {name for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", PAGE) if "/" in name}
    missing = {name for name in named if not (PACKAGE / name).exists() and not (REPOSITORY / name).exists()}
    assert len(named) > 20
    assert not missing


def _file(name: str) -> Path:
    return next(folder / name for folder in (PACKAGE, REPOSITORY) if (folder / name).exists())


@pytest.mark.parametrize("page", ON_CODE)
def test_a_page_on_the_code_names_what_is_in_the_files_that_it_names(page: str) -> None:
    text = " ".join((REPOSITORY / "docs" / page).read_text().split())
    texts = re.findall(r"`([A-Za-z_.]+)(?:\(\))?` (?:\(|in )`([a-z_]+(?:/[a-z_]+)*\.py)`", text)
    rows = re.findall(r"\| `([a-z_]+(?:/[a-z_]+)+\.py)` \|[^|]*\| `([A-Za-z_.]+)\(\)` \|", text)
    texts += [(name, file) for file, name in rows]
    assert len(texts) > 4
    missing = [(name, file) for name, file in texts if name not in _defined_in(_file(file))]
    assert not missing
    functions = set(re.findall(r"`([A-Za-z_.]+)\(\)`", text))
    assert not _undefined(functions)
    assert all(_file(name) for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", text))


def test_statements_of_sql_are_made_in_the_store_alone() -> None:
    statements = {"delete", "exists", "insert", "select", "text", "update"}
    files = [file for file in PACKAGE.rglob("*.py") if PACKAGE / "store" not in file.parents]
    results = {
        file.relative_to(PACKAGE).as_posix(): names
        for file in files
        if "sqlalchemy" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "sqlalchemy"
        if (names := statements & {name.name for name in node.names})
    }
    assert len(files) > 300
    assert not results
