"""Instances that are made of rows."""

from claudomator_py.store.loading import loader
from claudomator_py.store.tables import SWITCH, Switch

load = loader(Switch)


def test_a_loaded_instance_is_like_one_that_was_constructed() -> None:
    assert [column.name for column in SWITCH.columns] == ["name", "since_ms", "reason"]
    loaded, made = load(("drain", 5, None)), Switch(name="drain", since_ms=5, reason=None)
    assert loaded == made
    assert loaded.model_dump() == made.model_dump()


def test_a_loaded_instance_can_be_changed() -> None:
    loaded = load(("drain", 5, None))
    loaded.reason = "by hand"
    assert (loaded.reason, loaded.since_ms) == ("by hand", 5)
    assert loaded.model_dump() == {"name": "drain", "since_ms": 5, "reason": "by hand"}
