"""The list of mutated modules stays true: what it names is there, and what changes nothing still could be changed."""

import gc
from functools import cache
from types import CodeType

import pytest

from tests.mutants import PACKAGE, ROOT
from tests.mutants.changes import control, names
from tests.mutants.modules import EQUIVALENT, MODULES
from tests.mutants.trial import exchange, forget, loaded


@pytest.mark.parametrize("module", MODULES)
def test_each_module_and_its_tests_are_there(module: str) -> None:
    assert (ROOT / PACKAGE / module).is_file()
    assert [path for path in MODULES[module] if not (ROOT / path).exists()] == []


def test_each_change_that_is_said_to_matter_to_nobody_can_be_made() -> None:
    modules = {name.partition(":")[0] for name in EQUIVALENT}
    assert set(EQUIVALENT) <= {name for module in modules for name in names(module)}


def test_what_is_awaited_is_left_out_and_the_flags_of_a_coroutine_are_turned_round() -> None:
    results = names("protocols/hub/__init__.py")
    assert any(": left out: await self._mailboxes.put(" in name for name in results)
    assert any(": durable=False -> True: await self._mailboxes.put(" in name for name in results)


def test_the_control_raises_in_coroutines_too() -> None:
    assert "AssertionError" in _of(control("protocols/hub/mailbox.py"), "Mailboxes", "put").co_names


def _of(code: CodeType, *path: str) -> CodeType:
    """The code of what has that name inside of it, and so on."""
    for name in path:
        code = next(part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == name)
    return code


def _known() -> str:
    return "as it was"


def _other() -> str:
    return "changed"


@cache
def _answers() -> list[str]:
    """What a test may have asked for while it was collected."""
    return []


def test_what_was_asked_before_is_asked_of_each_mutant_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_answers, "__module__", "asked.before")
    was = _answers()
    forget("elsewhere")
    assert _answers() is was
    gc.freeze()
    forget("asked")
    assert _answers() is not was


def test_a_function_is_changed_though_the_collector_has_it_frozen() -> None:
    gc.freeze()
    was = _known.__code__
    place = was.co_qualname, was.co_firstlineno
    try:
        exchange(loaded(__file__), {place: _other.__code__})
        assert _known() == "changed"
    finally:
        _known.__code__ = was
