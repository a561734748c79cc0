"""Which demands an agent might meet: what is left out could not start, whatever else it asks for."""

import pytest

from claudomator_py.domain.routing import Constraints
from claudomator_py.scheduler.lanes import Demand, hint_of, may_be_met
from tests.unit.scheduler.situations import agent

AGENTS = (
    agent("claude"),
    agent("codex"),
    agent("lint", kind="command", auto_select=False),
    agent("hub:barn", kind="hub", auto_select=False, specialist="barn"),
)
OPEN = Constraints()
NAMED = Constraints(agents=("lint", "hub:barn"))


@pytest.mark.parametrize(
    ("agent_type", "strict", "constraints", "by"),
    [
        (None, False, OPEN, "claude codex"),
        ("claude", False, OPEN, "claude codex"),
        ("claude", True, OPEN, "claude"),
        ("lint", False, OPEN, "lint"),
        ("command", False, OPEN, "lint"),
        ("hub", False, OPEN, ""),
        ("hub:barn", True, OPEN, ""),
        ("hub:barn", False, OPEN, "claude codex"),
        ("gone", False, OPEN, "claude codex"),
        ("gone", True, OPEN, ""),
        (None, False, NAMED, "lint hub:barn"),
        ("claude", False, NAMED, "lint hub:barn"),
        ("hub:barn", True, NAMED, "hub:barn"),
        (None, False, Constraints(excluded_agents=("codex",)), "claude"),
        (None, False, Constraints(one_of=(("codex", "lint"),)), "codex lint"),
        ("claude", True, Constraints(excluded_agents=("claude",)), ""),
    ],
)
def test_who_might_meet_it(agent_type: str | None, strict: bool, constraints: Constraints, by: str) -> None:
    demand = Demand(hint_of(agent_type, strict=strict), constraints.text)
    assert [entry.name for entry in AGENTS if may_be_met(demand, [entry], AGENTS)] == by.split()


@pytest.mark.parametrize("demand", [Demand("", ""), Demand("[", ""), Demand(hint_of("gone", strict=True), "-")])
def test_any_agent_might_meet_one_that_says_too_little(demand: Demand) -> None:
    assert all(may_be_met(demand, [agent_state], AGENTS) for agent_state in AGENTS)
    assert not may_be_met(demand, [], AGENTS)


def test_a_kind_means_those_of_it_that_are_open_to_balancing_if_there_are_any() -> None:
    shy = agent("shy", kind="claude", auto_select=False)
    demand = Demand(hint_of("claude", strict=True), "")
    opened = agent("opened", kind="claude")
    assert may_be_met(demand, [shy], [shy])
    assert not may_be_met(demand, [shy], [shy, opened])
    assert may_be_met(demand, [opened], [shy, opened])


def test_tasks_that_are_not_routed_have_no_constraints() -> None:
    assert may_be_met(Demand(hint_of(None, strict=False), ""), [AGENTS[0]], AGENTS)
