"""How far a started run may act: as its task or a rule says, else as the configuration, where the agent can be held."""

from typing import Any

import pytest

from claudomator_py.acts.reach import Reach
from claudomator_py.acts.tool_calls import digest_of, rule_for
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.outcome import Denied, OutcomeStatus
from claudomator_py.domain.views import ApproveRequest
from claudomator_py.policy.rule import Rule
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World

NO_FENCE = "there is no fence for agents of kind x"


def world_of(database: Database, *rules: Rule, default: Reach | None = Reach.NETWORK) -> World:
    world = World(database, routes=True, default_reach=default)
    world.policy_rules = rules
    world.restarted_daemon()
    world.specialists.register(card("plumber"))
    return world


def started(world: World, **fields: Any) -> Reach | None:
    """How far the run of such a task may act."""
    world.submit("sink", specialist="plumber", **fields)
    world.tick()
    assert world.state("sink").startswith("RUNNING"), world.task("sink").reason_text
    return next(request for kind in world.kinds.values() for request in kind.requests).reach


@pytest.mark.parametrize(
    ("fields", "reach"),
    [
        ({}, Reach.NETWORK),
        ({"reach": "publish"}, Reach.PUBLISH),
        ({"reach": "any"}, Reach.ANY),
        ({"permissions": {"mode": "acceptEdits"}}, None),
        ({"permissions": {"mode": "acceptEdits"}, "reach": "tree"}, Reach.TREE),
    ],
)
def test_the_default_is_for_tasks_that_say_nothing(
    database: Database, fields: dict[str, Any], reach: Reach | None
) -> None:
    world = world_of(database)
    assert started(world, **fields) is reach
    assert world.task("sink").reach is reach


def test_a_rule_holds_whatever_the_task_says(database: Database) -> None:
    world = world_of(database, Rule(name="inside", reach=Reach.TREE))
    assert started(world, reach="any", permissions={"mode": "bypassPermissions"}) is Reach.TREE
    assert world.task("sink").reach is Reach.TREE


def test_without_a_default_there_is_no_fence(database: Database) -> None:
    assert started(world_of(database, default=None)) is None


def test_an_agent_that_cannot_be_held_runs_on_where_nobody_asked_for_a_reach(database: Database) -> None:
    world = world_of(database)
    for kind in world.kinds.values():
        kind.without_fence = NO_FENCE
    assert started(world) is None
    said = world.queries.why("sink")
    assert f"Not fenced: {NO_FENCE}." in said.sentences
    assert not any("reach" in one for one in said.sentences if NO_FENCE not in one)


def test_why_says_how_far_a_run_may_act(database: Database) -> None:
    world = world_of(database)
    started(world)
    assert "It may reach no further than network, by default." in world.queries.why("sink").sentences


def test_a_reach_that_is_asked_for_keeps_the_task_from_such_an_agent(database: Database) -> None:
    world = world_of(database)
    for kind in world.kinds.values():
        kind.without_fence = NO_FENCE
    world.submit("sink", specialist="plumber", reach="network")
    world.tick()
    assert world.state("sink").startswith("QUEUED")
    assert "cannot be kept within reach network" in str(world.task("sink").reason_text)
    with pytest.raises(Invalid, match="cannot be kept within reach tree"):
        world.submit("strict", agent={"type": "claude", "strict": True}, reach="tree")


def test_what_a_person_allows_passes_in_the_next_run_and_is_no_tool(database: Database) -> None:
    world = world_of(database)
    started(world)
    given = {"command": "npm publish"}
    denied = Denied(tool="Bash", input="npm publish", rule=rule_for("Bash", given))
    world.end("sink", status=OutcomeStatus.SUCCEEDED, text="Left.", denied=(denied,), denials=1)
    world.tick()
    assert world.state("sink") == "NEEDS_INPUT approval"
    world.service.approve("sink", ApproveRequest())
    world.tick()
    request = [one for kind in world.kinds.values() for one in kind.requests][-1]
    assert request.granted_acts == (digest_of("Bash", "npm publish"),)
    assert request.task.permissions.allowed_tools == ()
    assert "npm publish" in request.prompt
