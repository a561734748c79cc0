"""The generated pages of the reference say what the code says."""

import runpy
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = runpy.run_path(str(REFERENCE / "generate.py"))["PAGES"]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](), "run `python docs/reference/generate.py`"
