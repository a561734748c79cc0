"""Instances that are made of rows."""

import subprocess
import sys
from typing import Any

import pytest

from claudomator_py.store.loading import loader, maker, writer
from claudomator_py.store.tables import SWITCH, TASK, Switch, Task

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


PROGRAM = """
from claudomator_py.store import run_rows
from claudomator_py.store.tables import RUN
values = [column.name for column in RUN.columns]
print(run_rows.run_from(values).task_id)
"""


def test_the_first_row_that_a_program_reads_has_its_attributes() -> None:
    """A daemon reads the runs that it adopts before it does anything else."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("task_id\n", "")


def test_what_is_made_has_the_defaults_of_its_class() -> None:
    given: dict[str, Any] = {
        "id": "t",
        "name": "t",
        "state": "QUEUED",
        "priority": 1,
        "rank_ms": 1,
        "eligibility": "",
        "dir_key": "",
    }
    given |= {"tags": [], "source": "api", "created_ms": 1, "updated_ms": 1}
    made, constructed = maker(Task)(**given), Task(**given)
    assert made.model_dump() == constructed.model_dump()


@pytest.mark.parametrize("values", [{"since_ms": 5}, {"name": "drain", "since_ms": 5, "since": 6}])
def test_what_is_made_has_the_columns_of_its_table(values: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="has other columns"):
        maker(Switch)(**values)


def test_what_is_written_of_an_instance_is_all_that_the_database_does_not_compute() -> None:
    row = maker(Task)(
        id="t",
        name="t",
        state="QUEUED",
        priority=1,
        rank_ms=1,
        eligibility="",
        dir_key="",
        tags=["x"],
        source="api",
        created_ms=1,
        updated_ms=1,
    )
    written = writer(TASK)(row)
    assert "lane" not in written
    assert written == {name: value for name, value in row.model_dump().items() if name != "lane"}
