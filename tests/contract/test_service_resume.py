"""Restart with ``resume``: which conversation goes on, on whom, with what, and what happens when it cannot."""

from typing import Any

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Conflict, Invalid
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.resources.runs import RunView
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.steps import spec
from tests.fakes.world import World

THREAD = "01a1ffd5-6378-7872-b1e0-348ec1720a85"
LOST: dict[str, Any] = {"conversation_lost": True, "detail": "No conversation found"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def run_of(world: World, name: str, number: int = -1) -> RunView:
    return world.service.runs(name)[number]


def asked(world: World, kind: str) -> LaunchRequest:
    """How the last run of that kind was started."""
    return world.kinds[kind].requests[-1]


def why(world: World, name: str) -> str:
    return "\n".join(world.service.why(name).sentences)


def failed_once(world: World, name: str = "t", **fields: Any) -> RunView:
    """A task whose first run was refused by its agent. agent: None for any."""
    given = {"agent": {"type": "claude"}, **fields}
    world.submit(name, **{key: value for key, value in given.items() if value is not None})
    world.tick()
    world.fail(name)
    return run_of(world, name)


def resumed(world: World, name: str = "t", **fields: Any) -> RunView:
    """Restart it so, and let its run start."""
    world.restart(name, resume=True, **fields)
    world.tick()
    return run_of(world, name)


@pytest.mark.both_databases
def test_the_last_conversation_goes_on_on_the_agent_that_has_it(world: World) -> None:
    first = failed_once(world)
    before = asked(world, "claude")
    second = resumed(world)
    after = asked(world, "claude")
    assert (second.resumes, second.agent, second.tier) == (first.id, "claude", first.tier)
    assert (after.resume, after.conversation_id) == (True, before.conversation_id)
    assert world.host.directories[second.id, 0].order.scratch_of == first.id
    assert f"resumes the conversation of run {first.id[:8]} on claude" in why(world, "t")
    assert f"Run 2 on claude, in the conversation of run {first.id[:8]}, is" in why(world, "t")


def test_an_agent_that_names_its_conversations_is_asked_for_the_name_it_gave(world: World) -> None:
    world.submit("t", agent={"type": "codex"})
    world.tick()
    assert asked(world, "codex").conversation_id == ""
    world.fail("t", conversation_id=THREAD)
    resumed(world)
    assert (asked(world, "codex").resume, asked(world, "codex").conversation_id) == (True, THREAD)
    world.fail("t")
    resumed(world)
    assert asked(world, "codex").conversation_id == THREAD, "a run that says nothing is still in that conversation"


def test_nothing_but_the_own_share_is_new_over_several_resumptions(world: World) -> None:
    world.submit("t", agent={"type": "claude"}, retry={"max_attempts": 1})
    world.tick()
    world.fail("t", tokens={"input": 100, "output": 10}, cost_usd=0.5)
    resumed(world)
    assert asked(world, "claude").prior_tokens == Tokens(input=100, output=10)
    assert asked(world, "claude").prior_cost_usd == 0.5
    world.fail("t")  # says nothing of what it used
    resumed(world)
    world.fail("t", tokens={"input": 7, "output": 3}, cost_usd=0.25)
    resumed(world)
    assert asked(world, "claude").prior_tokens == Tokens(input=107, output=13)
    assert asked(world, "claude").prior_cost_usd == 0.75
    world.succeed("t")
    world.restart("t")
    world.tick()
    assert asked(world, "claude").prior_tokens == Tokens(input=0, output=0)


def test_a_fourth_run_still_works_in_the_first_ones_scratch_folder(world: World) -> None:
    first = failed_once(world)
    for _ in range(3):
        last = resumed(world)
        assert world.host.directories[last.id, 0].order.scratch_of == first.id
        world.fail("t")


def test_its_check_runs_in_the_same_scratch_folder(world: World) -> None:
    first = failed_once(world, check=["make test"])
    second = resumed(world)
    world.succeed("t")
    assert world.host.directories[second.id, 1].order.scratch_of == first.id


def test_it_waits_for_its_agent_and_says_so_while_others_are_free(world: World) -> None:
    first = failed_once(world)
    world.submit("other", agent={"type": "claude"})
    world.tick()
    world.limit("other", reset_at=world.now_ms + 3_600_000)
    world.restart("t", resume=True)
    world.tick()
    text = world.task("t").reason_text or ""
    assert text.startswith(f"resumes the conversation of run {first.id[:8]} on claude: claude is limited (5h window, ")
    world.tick(3_600_001)
    assert run_of(world, "t").resumes == first.id


def test_it_blocks_no_other_task(world: World) -> None:
    """Tasks that any agent may run are in another lane."""
    failed_once(world, agent=None)
    world.submit("other", agent={"type": "claude"})
    world.tick()
    world.limit("other")
    world.restart("t", resume=True)
    world.submit("next")
    world.tick()
    assert world.task("t").state == "QUEUED"
    assert world.task("next").state == "RUNNING"


def test_an_agent_that_is_gone_is_waited_for_with_a_remedy(world: World) -> None:
    failed_once(world)
    world.restart("t", resume=True)
    world.agents = (CODEX,)
    world.restarted_daemon()
    world.tick()
    assert "which is no longer configured; configure it again, or cancel" in (world.task("t").reason_text or "")


def test_the_prompt_is_short_and_tells_what_is_new(world: World) -> None:
    world.take("/in/t.yaml", spec("t", instructions="Dig a hole.", agent={"type": "claude"}))
    world.tick()
    world.fail("t")
    resumed(world, reason="Use the red spade.\nsimulate: text=red")
    prompt = asked(world, "claude").prompt
    assert "Dig a hole." not in prompt
    assert prompt.endswith("The operator adds:\n\nUse the red spade.\nsimulate: text=red\n")
    world.fail("t")
    world.take("/in/t.yaml", spec("t", instructions="Dig two holes.", agent={"type": "claude"}), mtime_ns=2)
    assert asked(world, "claude").resume is True
    world.service.cancel("t")
    resumed(world)
    assert "The task has changed since then. It now reads:\n\nDig two holes." in asked(world, "claude").prompt


def test_tier_and_model_may_change_on_the_way(world: World) -> None:
    first = failed_once(world, agent=None)
    assert (first.agent, first.model) == ("claude", "sonnet")
    requests: list[tuple[dict[str, Any], tuple[str, str]]] = [
        ({}, ("balanced", "sonnet")),
        ({"tier": "fast"}, ("fast", "haiku")),
        ({}, ("fast", "haiku")),
        ({"model": "opus"}, ("powerful", "opus")),
        ({"agent": "claude", "tier": "balanced"}, ("balanced", "sonnet")),
    ]
    for request, expected in requests:
        run = resumed(world, **request)
        assert (run.tier, run.model) == expected, request
        world.fail("t")


def test_a_plain_restart_and_new_content_begin_afresh(world: World) -> None:
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}))
    world.tick()
    world.fail("t")
    world.restart("t")
    world.tick()
    assert run_of(world, "t").resumes is None
    world.fail("t")
    world.restart("t", resume=True)
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}, tags=["new"]), mtime_ns=2)
    world.tick()
    assert run_of(world, "t").resumes is None
    assert asked(world, "claude").resume is False


@pytest.mark.parametrize("reason", ["network", "overloaded", "disk_full"])
def test_trouble_from_outside_leaves_it_in_the_conversation(world: World, reason: str) -> None:
    failed_once(world, retry={"max_attempts": 3, "backoff": "1s"})
    second = resumed(world, reason="Hurry.")
    world.fail("t", reason)
    assert world.state("t") == "WAITING backoff"
    assert f"Its next run resumes the conversation of run {second.id[:8]} on claude." in why(world, "t")
    world.tick(3_600_000)
    third = run_of(world, "t")
    assert (third.resumes, third.attempt) == (second.id, 2 if reason == "disk_full" else 1)
    assert "Hurry." in asked(world, "claude").prompt, "it may not have been heard"


def test_a_limit_is_waited_out_in_the_conversation_and_costs_no_attempt(world: World) -> None:
    failed_once(world)
    second = resumed(world)
    world.limit("t", reset_at=world.now_ms + 60_000)
    world.tick()
    assert world.task("t").state == "QUEUED"
    world.tick(60_001)
    third = run_of(world, "t")
    assert (third.resumes, third.attempt, third.agent) == (second.id, 1, "claude")


def test_a_failure_of_its_own_is_tried_again_in_a_fresh_conversation(world: World) -> None:
    first = failed_once(world, retry={"max_attempts": 3, "backoff": "1s"})
    resumed(world, reason="Hurry.")
    world.fail("t", "agent_error")
    world.tick(60_000)
    assert (run_of(world, "t").resumes, asked(world, "claude").resume) == (None, False)
    assert "\n\nThe operator adds:\n\nHurry.\n" in asked(world, "claude").prompt
    assert f"The conversation of run {first.id[:8]} was given up: it ended in agent_error." in why(world, "t")


def test_a_conversation_that_the_agent_has_lost_is_replaced_once(world: World) -> None:
    first = failed_once(world, retry={"max_attempts": 1})
    second = resumed(world, reason="Hurry.")
    world.fail("t", "bad_invocation", **LOST)
    third = run_of(world, "t")
    assert (second.resumes, third.resumes, third.state) == (first.id, None, "starting")
    assert world.task("t").attempts == 0, "it cost no attempt"
    request = asked(world, "claude")
    assert not request.resume
    assert request.prompt.startswith("do t\n\nThe operator adds:\n\nHurry.\n")
    assert f"The conversation of run {first.id[:8]} was given up: claude no longer knows it." in why(world, "t")
    events = [event for event in world.service.why("t").events if event.kind == "conversation_given_up"]
    assert [(event.run_id, event.data["resumes"]) for event in events] == [(second.id, first.id)]
    world.fail("t", "bad_invocation", **LOST)
    assert world.state("t") == "FAILED bad_invocation", "a fresh one cannot be lost"


def test_once_lost_any_agent_may_take_it(world: World) -> None:
    world.submit("other", agent={"type": "claude"})
    failed_once(world, agent={"type": "claude", "strict": False})
    resumed(world)
    world.end("other", exit_code=1, status="limited", reason="rate_limited")
    world.fail("t", "bad_invocation", **LOST)
    world.tick()
    assert run_of(world, "t").agent == "codex"


def test_a_running_task_is_ended_first_and_then_its_own_conversation_goes_on(world: World) -> None:
    world.submit("t", agent={"type": "codex"})
    world.tick()
    world.host.stubborn = True
    first = run_of(world, "t")
    world.restart("t", resume=True, force=True, reason="Stop that.")
    world.restarted_daemon()
    world.end("t", status="cancelled", reason="cancelled", conversation_id=THREAD)
    world.tick()
    assert (run_of(world, "t").resumes, run_of(world, "t").generation) == (first.id, 2)
    assert asked(world, "codex").conversation_id == THREAD
    assert "Stop that." in asked(world, "codex").prompt


def test_a_running_task_without_a_conversation_yet_begins_afresh_and_says_so(world: World) -> None:
    world.submit("t", agent={"type": "codex"})
    world.tick()
    first = run_of(world, "t")
    world.restart("t", resume=True, force=True)
    world.tick()
    world.tick()
    assert (run_of(world, "t").resumes, run_of(world, "t").generation) == (None, 2)
    assert f"The conversation of run {first.id[:8]} was given up: codex had not begun it." in why(world, "t")


def test_a_resumed_run_that_never_started_leaves_its_conversation_to_the_next(world: World) -> None:
    first = failed_once(world)
    world.host.no_processes = OSError("no processes")
    resumed(world)
    world.restart("t", resume=True, force=True)
    world.host.no_processes = None
    for _ in range(3):
        world.tick(2_000)
    runs = [run for run in world.service.runs("t") if run.state != "revoked"]
    assert [run.resumes for run in runs] == [None, first.id]


def test_content_that_arrives_after_a_forced_resumption_begins_afresh(world: World) -> None:
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}))
    world.tick()
    world.host.stubborn = True
    world.restart("t", resume=True, force=True)
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}, tags=["new"]), mtime_ns=2)
    world.host.end(world.live("t").id, None, ended_by="cancel")
    world.tick()
    assert run_of(world, "t").resumes is None
    assert "was given up: the content has changed since." in why(world, "t")


def test_a_scratch_folder_that_vanishes_before_the_start_means_a_fresh_conversation(world: World) -> None:
    first = failed_once(world)
    world.restart("t", resume=True)
    world.host.lose(first.id)
    world.tick()
    assert (run_of(world, "t").resumes, run_of(world, "t").state) == (None, "starting")
    assert world.host.directories[run_of(world, "t").id, 0].order.scratch_of is None
    assert "was given up: its scratch folder is gone." in why(world, "t")


def test_what_was_planned_before_a_crash_is_planned_again(world: World) -> None:
    """The same run, in the same conversation, read by the same difference."""
    world.submit("t", agent={"type": "claude"})
    world.tick()
    world.fail("t", tokens={"input": 100, "output": 10}, cost_usd=0.5)
    world.restart("t", resume=True)
    world.host.no_processes = OSError("crashed before the spawn")
    world.tick()
    before = asked(world, "claude")
    world.host.no_processes = None
    world.restarted_daemon()
    world.tick()
    after = asked(world, "claude")
    assert (after.resume, after.conversation_id, after.prior_tokens, after.prior_cost_usd) == (
        before.resume,
        before.conversation_id,
        before.prior_tokens,
        before.prior_cost_usd,
    )


def test_what_cannot_be_resumed_is_refused_with_a_remedy(world: World) -> None:
    world.submit("new", depends_on=["nobody"])
    with pytest.raises(Conflict, match=r"No run of new has begun") as refusal:
        world.restart("new", resume=True)
    assert refusal.value.remedy == "Restart it without `resume`."

    world.submit("plain", agent={"type": "lint"})
    world.tick()
    world.fail("plain")
    with pytest.raises(Conflict, match="on lint, a command, which holds no conversations"):
        world.restart("plain", resume=True)

    failed_once(world, "t")
    with pytest.raises(Invalid, match="codex cannot continue a conversation that claude has"):
        world.restart("t", resume=True, agent="codex")
    with pytest.raises(Invalid, match="there is no specialist `x`"):
        world.restart("t", resume=True, specialist="x")

    world.submit("silent", agent={"type": "codex"})
    world.tick()
    world.fail("silent")
    with pytest.raises(Conflict, match="left no conversation behind"):
        world.restart("silent", resume=True)

    world.host.lose(run_of(world, "t").id)
    with pytest.raises(Conflict, match=r"scratch folder of run \w+ is gone"):
        world.restart("t", resume=True)

    world.agents = (AgentSpec(name="claude", kind="gemini"), CODEX)
    world.restarted_daemon()
    with pytest.raises(Conflict, match="was on claude, which is no longer configured") as refusal:
        world.restart("t", resume=True)
    assert refusal.value.remedy == "Configure claude as kind claude again, or restart it without `resume`."
    assert world.task("t").state == "FAILED"


def test_another_working_directory_has_another_conversation(world: World) -> None:
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}, working_dir="/one"))
    world.tick()
    world.fail("t")
    world.restart("t", resume=True)
    world.tick()
    world.fail("t")
    world.take("/in/t.yaml", spec("t", agent={"type": "claude"}, working_dir="/two"), mtime_ns=2)
    world.service.cancel("t")
    with pytest.raises(Conflict, match="belongs to /one, and t now works in /two"):
        world.restart("t", resume=True)


def test_what_the_agent_cannot_enforce_is_refused_as_nobody_else_may_take_it(world: World) -> None:
    failed_once(world)
    world.kinds["claude"].lacking = ["claude cannot count turns"]
    with pytest.raises(Invalid, match="claude cannot count turns"):
        world.restart("t", resume=True)


def test_two_agents_of_a_kind_have_conversations_of_their_own(database: Database) -> None:
    twin = CLAUDE.model_copy(update={"name": "claude-2"})
    world = World(database, agents=(CLAUDE, twin))
    world.submit("t", agent={"type": "claude-2"})
    world.tick()
    world.fail("t")
    assert resumed(world, agent="claude-2").agent == "claude-2"
    world.fail("t")
    with pytest.raises(Invalid, match="claude-2 has"):
        world.restart("t", resume=True, agent="gemini")
