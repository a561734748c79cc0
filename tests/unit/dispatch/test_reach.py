"""How far a started run may act: as its task or a rule says, else as the configuration, where the agent can be held."""

from typing import Any

import pytest

from claudomator_py.acts import Reach
from claudomator_py.acts.tool_calls import rule_for
from claudomator_py.domain.errors import Forbidden, Invalid
from claudomator_py.domain.outcome import Denied, OutcomeStatus
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.policy.rule import Approval, Rule
from claudomator_py.resources.tasks import ApproveRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World

DIGEST = f"{'0' * 16}.{'f' * 16}"
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
    task = world.task("sink")
    assert task.reach is reach
    assert task.reach_source == (None if reach is None else "task" if "reach" in fields else "default")


def test_a_rule_holds_whatever_the_task_says(database: Database) -> None:
    world = world_of(database, Rule(name="inside", reach=Reach.TREE))
    assert started(world, reach="any", permissions={"mode": "bypassPermissions"}) is Reach.TREE
    task = world.task("sink")
    assert task.reach is Reach.TREE
    assert task.reach_origin is not None
    assert task.reach_origin.text == "tree (rule inside)"
    assert "It may reach no further than tree, by rule inside." in world.service.why("sink").sentences


def test_without_a_default_there_is_no_fence(database: Database) -> None:
    assert started(world_of(database, default=None)) is None


def test_an_agent_that_cannot_be_held_runs_on_where_nobody_asked_for_a_reach(database: Database) -> None:
    world = world_of(database)
    for kind in world.kinds.values():
        kind.without_fence = NO_FENCE
    assert started(world) is None
    why = world.service.why("sink")
    assert f"Not fenced: {NO_FENCE}." in why.sentences
    assert not any("reach" in sentence for sentence in why.sentences if NO_FENCE not in sentence)
    assert world.task("sink").reach is None


def test_why_says_how_far_a_run_may_act(database: Database) -> None:
    world = world_of(database)
    started(world)
    assert "It may reach no further than network, by default." in world.service.why("sink").sentences


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
    denied = Denied(tool="Bash", input="npm publish", rule=rule_for("Bash", given, DIGEST), beyond="it publishes")
    world.end("sink", status=OutcomeStatus.SUCCEEDED, text="Left.", denied=(denied,), denials=1)
    world.tick()
    assert world.state("sink") == "NEEDS_INPUT approval"
    world.service.approve("sink", ApproveRequest())
    world.tick()
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert request.granted_acts == (DIGEST,)
    assert request.task.permissions.allowed_tools == ()
    assert "npm publish" in request.prompt


DENIED = {
    "Bash(npm publish)": Denied(
        tool="Bash", input="npm publish", rule=f"beyond-reach:{DIGEST} Bash(npm publish)", beyond="x"
    ),
    "Bash(git push -f)": Denied(
        tool="Bash", input="git\npush -f", rule=f"beyond-reach:{'1' * 16}.{'2' * 16} Bash(git push -f)", beyond="y"
    ),
}


def denied_both(database: Database, *more: Denied) -> World:
    """A task that asks for two calls which went beyond its reach, and for these."""
    world = world_of(database)
    started(world)
    calls = (*DENIED.values(), *more)
    world.end("sink", status=OutcomeStatus.SUCCEEDED, text="Left.", denied=calls, denials=len(calls))
    world.tick()
    return world


@pytest.mark.parametrize("name", list(DENIED))
@pytest.mark.parametrize("how", ["shown", "rule", "digest"])
def test_one_of_several_calls_can_be_allowed_as_it_is_shown(database: Database, name: str, how: str) -> None:
    rule = str(DENIED[name].rule)
    world = denied_both(database)
    tool = {"shown": name, "rule": rule, "digest": rule.split()[0]}[how]
    world.service.approve("sink", ApproveRequest(tools=(tool,)))
    world.tick()
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert request.granted_acts == (rule.split()[0].removeprefix("beyond-reach:"),)
    assert f"- {name}" in request.prompt
    assert "beyond-reach" not in request.prompt
    assert f"The operator approved {name}." in world.service.why("sink").sentences


@pytest.mark.parametrize(
    "tool", ["Bash", "Bash(npm *)", "Bash(npm publish --tag x)", f"beyond-reach:{'3' * 16}.{'2' * 16}"]
)
def test_what_was_not_shown_is_refused(database: Database, tool: str) -> None:
    world = denied_both(database)
    with pytest.raises(Invalid, match="was denied"):
        world.service.approve("sink", ApproveRequest(tools=(tool,)))
    assert world.state("sink") == "NEEDS_INPUT approval"


def test_beside_them_a_tool_can_be_allowed_as_ever(database: Database) -> None:
    world = denied_both(database, Denied(tool="Write", input="a", rule="Write(a)"))
    world.service.approve("sink", ApproveRequest(tools=("Write(a)", "Bash(npm publish)")))
    world.tick()
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert request.granted_acts == (DIGEST,)
    assert request.task.permissions.allowed_tools == ("Write(a)",)


def test_why_and_show_say_what_was_denied(database: Database) -> None:
    world = denied_both(database)
    sentences = world.service.why("sink").sentences
    assert any(
        "Beyond its reach, and denied: Bash(npm publish), Bash(git push -f)." in sentence for sentence in sentences
    )
    assert any("allows exactly Bash(npm publish), as x" in sentence for sentence in sentences)
    asks = world.task("sink").asks
    assert asks is not None
    assert [tool.beyond for tool in asks.tools] == ["x", "y"]


def test_nothing_is_left_of_a_permission_after_a_restart(database: Database) -> None:
    world = denied_both(database)
    world.service.approve("sink", ApproveRequest())
    world.tick()
    world.end("sink", status=OutcomeStatus.SUCCEEDED, text="Done.")
    world.tick()
    world.service.restart("sink", RestartRequest())
    world.tick()
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert request.granted_acts == ()


def test_one_approval_before_the_first_run_covers_what_it_says_that_it_runs(database: Database) -> None:
    world = world_of(database, Rule(name="ask", approve=Approval()))
    world.submit("sink", instructions="Publish it with make publish.", approval=True, specialist="plumber")
    world.tick()
    asks = world.task("sink").asks
    assert asks is not None
    assert asks.commands == ("make publish",)
    text = "lets plumber start it and run `make publish` in its directory"
    assert any(text in sentence for sentence in world.service.why("sink").sentences)
    world.service.approve("sink", ApproveRequest())
    world.tick()
    world.tick()
    assert world.state("sink").startswith("RUNNING"), "the rule asks no second time"
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert request.granted_commands == ("make publish",)
    assert "The operator approved its first run, and `make publish`." in world.service.why("sink").sentences


def test_a_rule_that_says_who_approves_asks_them_in_the_same_question(database: Database) -> None:
    world = world_of(database, Rule(name="ask", approve=Approval(by=("admin",))))
    world.submit("sink", approval=True, specialist="plumber")
    world.tick()
    asks = world.task("sink").asks
    assert asks is not None
    assert asks.text == "asks for approval before its first run, and needs it by policy (ask)"
    joe, mara = (world.access.as_(Principal(*who))[Tasks] for who in (("joe", Role.OPERATE), ("mara", Role.ADMIN)))
    with pytest.raises(Forbidden, match="approval by admin, and joe is operate"):
        joe.approve("sink", ApproveRequest())
    mara.approve("sink", ApproveRequest())
    world.tick()
    assert world.state("sink").startswith("RUNNING")


def test_what_was_allowed_before_stays_beside_what_is_allowed_later(database: Database) -> None:
    world = world_of(database, Rule(name="ask", approve=Approval()))
    world.submit("sink", instructions="Publish it with make publish.", specialist="plumber")
    world.tick()
    world.service.approve("sink", ApproveRequest())
    world.tick()
    world.end("sink", status=OutcomeStatus.SUCCEEDED, text="Left.", denied=(DENIED["Bash(npm publish)"],), denials=1)
    world.tick()
    world.service.approve("sink", ApproveRequest())
    world.tick()
    request = [entry for kind in world.kinds.values() for entry in kind.requests][-1]
    assert (request.granted_commands, request.granted_acts) == (("make publish",), (DIGEST,))


def test_a_task_that_only_plans_is_allowed_nothing(database: Database) -> None:
    world = world_of(database)
    world.submit("sink", instructions="Plan: make publish.", approval=True, permissions={"mode": "plan"})
    world.tick()
    asks = world.task("sink").asks
    assert asks is not None
    assert asks.commands == ()
