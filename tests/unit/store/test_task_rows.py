"""How a state is written in columns."""

from typing import Any

from hypothesis import given

from claudomator_py.domain.lifecycle import STATE_NAMES, State
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import columns_of, state_of
from tests.unit.domain.states import STATES


@given(STATES)
def test_a_state_comes_back_from_its_columns(state: State) -> None:
    columns = columns_of(state)
    assert columns["state"] == STATE_NAMES[type(state)]
    others: dict[str, Any] = {"id": "t", "name": "t", "priority": 1, "rank_ms": 1, "eligibility": "", "dir_key": ""}
    task = Task(**columns, **others, tags=[], source="api", created_ms=1, updated_ms=1)
    assert state_of(task) == state
