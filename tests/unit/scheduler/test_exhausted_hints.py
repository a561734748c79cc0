"""Hints by which nothing can start now, so that whole lanes are left out."""

import pytest

from claudomator_py.scheduler.admission import exhausted_hints
from claudomator_py.scheduler.lanes import hint_of
from claudomator_py.scheduler.snapshot import AgentState
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import HOLD, LOGIN, agent


def shut(*agents: AgentState, **changes: object) -> set[tuple[str, bool]]:
    """The hints that nobody can take, each with whether it is strict."""
    names = {name for known in agents for name in (known.name, known.kind)}
    result = exhausted_hints(agents, rules(**changes))
    known = {hint_of(name, strict=strict): (name, strict) for name in names for strict in (True, False)}
    return {known[text] for text in result}


@pytest.mark.parametrize(
    "state", [{"active": 2}, {"hold": HOLD}, {"problem": "not on PATH"}], ids=lambda entry: next(iter(entry))
)
def test_a_strict_hint_is_shut_while_its_agent_can_take_nothing(state: dict[str, object]) -> None:
    assert shut(agent("claude"), agent("codex")) == set()
    assert shut(agent("claude"), agent("codex", **state)) == {("codex", True)}, "who is not strict can go elsewhere"
    named_only = agent("lint", kind="command", auto_select=False, **state)
    assert shut(agent("claude"), named_only) == {
        (name, strict) for name in ("lint", "command") for strict in (True, False)
    }


def test_a_hint_for_a_kind_is_shut_only_when_all_of_that_kind_are() -> None:
    full = agent("a", kind="claude", active=2)
    assert shut(full, agent("b", kind="claude")) == {("a", True)}
    assert shut(full, agent("b", kind="claude", hold=HOLD)) == {("a", True), ("b", True), ("claude", True)}


def test_a_hint_for_a_limited_agent_is_open_where_limited_agents_are_tried_and_this_one_can_be() -> None:
    assert shut(agent("claude", hold=HOLD), when_all_limited="try") == set()
    assert shut(agent("claude", hold=HOLD), when_all_limited="wait") == {("claude", True)}
    assert shut(agent("claude", hold=LOGIN), when_all_limited="try") == {("claude", True)}, "a person has to act"
    assert shut(agent("claude", hold=HOLD, active=2), when_all_limited="try") == {("claude", True)}
