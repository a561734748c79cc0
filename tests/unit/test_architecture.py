"""The architecture page names what there is: classes and functions of its picture, and files of its text."""

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "claudomator_py"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()
NOT_OURS = {"POST", "JSON", "API"}


def _defined() -> set[str]:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
    return found


def test_the_picture_names_classes_and_functions_that_exist() -> None:
    picture = PAGE.partition("```text\n")[2].partition("```")[0]
    classes = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", picture)) - NOT_OURS
    functions = set(re.findall(r"\b([a-z_]+)\(\)", picture))
    assert len(classes) > 20
    assert functions
    assert classes | functions <= _defined(), (classes | functions) - _defined()


def test_the_page_names_files_that_exist() -> None:
    named = {name for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", PAGE) if "/" in name}
    missing = {name for name in named if not (PACKAGE / name).exists() and not (REPOSITORY / name).exists()}
    assert len(named) > 20
    assert not missing
