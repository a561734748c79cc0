"""The list of mutated modules stays true: what it names is there, and what changes nothing still could be changed."""

import pytest

from tests.mutants import EQUIVALENT, MODULES, PACKAGE, ROOT, names


@pytest.mark.parametrize("module", MODULES)
def test_each_module_and_its_tests_are_there(module: str) -> None:
    assert (ROOT / PACKAGE / module).is_file()
    assert [path for path in MODULES[module] if not (ROOT / path).exists()] == []


def test_each_change_that_is_said_to_matter_to_nobody_can_be_made() -> None:
    modules = {name.partition(":")[0] for name in EQUIVALENT}
    assert set(EQUIVALENT) <= {name for module in modules for name in names(module)}
