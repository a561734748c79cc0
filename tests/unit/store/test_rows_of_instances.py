"""Rows, and the instances that are made of them."""

from typing import Any

import pytest

from claudomator_py.store.tables import SWITCH, SwitchRow, Task

_NEW: dict[str, Any] = {
    "id": "t",
    "name": "t",
    "state": "QUEUED",
    "priority": 1,
    "rank_ms": 1,
    "eligibility": "",
    "dir_key": "",
    "tags": ["x"],
    "source": "api",
    "created_ms": 1,
    "updated_ms": 1,
}


def test_a_loaded_instance_is_like_one_that_was_constructed() -> None:
    assert [column.name for column in SWITCH.columns] == ["name", "since_ms", "reason"]
    loaded, made = SwitchRow.load(("drain", 5, None)), SwitchRow(name="drain", since_ms=5, reason=None)
    assert loaded == made
    assert loaded.model_dump() == made.model_dump()


def test_a_loaded_instance_can_be_changed() -> None:
    loaded = SwitchRow.load(("drain", 5, None))
    loaded.reason = "by hand"
    assert (loaded.reason, loaded.since_ms) == ("by hand", 5)
    assert loaded.model_dump() == {"name": "drain", "since_ms": 5, "reason": "by hand"}


def test_what_is_made_has_the_defaults_of_its_class() -> None:
    made = Task(**_NEW)
    assert made == Task.model_validate(_NEW)
    assert (made.version, made.creator, made.lane) == (1, "operator", None)


@pytest.mark.parametrize("values", [{"since_ms": 5}, {"name": "drain", "since_ms": 5, "since": 6}])
def test_what_is_made_has_the_columns_of_its_table(values: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="SwitchRow has other columns"):
        SwitchRow(**values)


def test_what_is_written_of_an_instance_is_all_that_the_database_does_not_compute() -> None:
    written, row = Task(**_NEW).stored(), Task(**_NEW).model_dump()
    assert written == {name: value for name, value in row.items() if name not in ("lane", "tenant", "demand")}


def test_no_class_is_mapped_for_what_nothing_here_uses() -> None:
    assert not hasattr(Task, "__mapper__")
