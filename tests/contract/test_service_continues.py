"""``continues``: a task goes on in the conversation of another, in its place, one at a time; or afresh, with a note."""

from typing import Any

import pytest

from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.prompts.conversations import still_needed_by
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.steps import spec
from tests.fakes.world import World

HOUR_MS = 3_600_000
THREAD = "01a1ffd5-6378-7872-b1e0-348ec1720a85"
LOST: dict[str, Any] = {"conversation_lost": True, "detail": "No conversation found"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def last(world: World, name: str) -> RunView:
    return world.service.runs(name)[-1]


def asked(world: World, kind: str = "claude") -> LaunchRequest:
    """How the last run of that kind was started."""
    return world.kinds[kind].requests[-1]


def why(world: World, name: str) -> str:
    return "\n".join(world.service.why(name).sentences)


def done(world: World, name: str = "first", agent: str | None = "claude", **outcome: Any) -> RunView:
    """A task that has completed."""
    world.submit(name, **({} if agent is None else {"agent": {"type": agent}}))
    world.tick()
    world.end(name, **outcome)
    world.tick()
    return last(world, name)


def begun(world: World, name: str = "second", continues: str = "first", **fields: Any) -> RunView:
    """A task that continues it, and has started."""
    world.submit(name, continues=continues, **fields)
    world.tick()
    return last(world, name)


def test_it_goes_on_in_the_conversation_of_the_other_with_its_own_instructions(world: World) -> None:
    first = done(world, tokens={"input": 100, "output": 10}, cost_usd=0.5)
    before = asked(world)
    second = begun(world, expected_output="a summary")
    after = asked(world)
    assert (second.resumes, second.agent, second.tier) == (first.id, "claude", first.tier)
    assert (after.resume, after.conversation_id) == (True, before.conversation_id)
    assert after.prompt == "do second\n\nHand back: a summary\n", "a further turn, and nothing else"
    assert after.prior_tokens.input == 100
    assert world.host.directories[second.id, 0].order.scratch_of == first.id
    view = world.task("second")
    assert view.continues is not None
    assert (view.continues.name, view.continues.state) == ("first", "COMPLETED")
    assert view.thread == world.task("first").id
    assert "It continues first (COMPLETED)." in why(world, "second")
    assert f"resumes the conversation of run {first.id[:8]} of first on claude" in why(world, "second")


def test_it_waits_for_the_other_and_for_a_name_not_seen_yet(world: World) -> None:
    world.submit("second", continues="first")
    assert world.state("second") == "WAITING dependency"
    assert "first (not seen yet)" in (world.task("second").reason_text or "")
    first = done(world)
    assert last(world, "second").resumes == first.id


def test_it_fails_with_the_other_and_is_revived_with_it(world: World) -> None:
    world.submit("first", agent={"type": "claude"})
    world.submit("second", continues="first")
    world.tick()
    world.fail("first")
    assert world.state("second") == "FAILED dependency_failed"
    world.restart("first")
    world.tick()
    world.succeed("first")
    assert last(world, "second").resumes == last(world, "first").id


def test_cycles_are_refused(world: World) -> None:
    world.submit("a", continues="b")
    with pytest.raises(Invalid, match="forever: b -> a -> b") as refused:
        world.submit("b", continues="a")
    assert refused.value.problems[0].field == "continues"
    problems = parse_task({"name": "a", "instructions": "x", "continues": "a"})
    assert not isinstance(problems, TaskSpec)
    assert problems[0].field == "continues"


def test_it_works_where_the_other_worked(world: World) -> None:
    world.submit("first", working_dir="/srv/shop", agent={"type": "claude"})
    world.tick()
    world.succeed("first")
    second = begun(world)
    assert world.task("second").working_dir == "/srv/shop"
    assert world.host.directories[second.id, 0].order.cwd == "/srv/shop"
    world.submit("third", working_dir="/srv/shop")
    world.tick()
    assert world.state("third") == "QUEUED workdir", "it takes the place of the other, too"
    world.succeed("second")
    world.restart("second")
    world.tick()
    world.succeed("third")
    assert last(world, "second").resumes == second.id, "a restart goes on in the thread as its first run did"


@pytest.mark.both_databases
def test_two_that_continue_the_same_go_one_after_the_other(world: World) -> None:
    first = done(world)
    second = begun(world, "second")
    world.submit("third", continues="first")
    world.submit("other", agent={"type": "claude"})
    world.tick()
    assert set(world.running()) == {"second", "other"}
    assert world.state("third") == "QUEUED conversation"
    world.restarted_daemon()
    world.tick()
    assert world.state("third") == "QUEUED conversation", "which is read from rows"
    world.end("second", tokens={"input": 7, "output": 1})
    world.tick()
    third = last(world, "third")
    assert (second.resumes, third.resumes) == (first.id, second.id), "each goes on after the turn before it"
    assert asked(world).prior_tokens.input == 7
    assert asked(world).prompt == "do third\n"


def test_one_that_continues_is_of_the_same_thread(world: World) -> None:
    done(world)
    begun(world, "second")
    world.succeed("second")
    begun(world, "third", continues="second")
    assert world.task("third").thread == world.task("first").id
    assert "in the thread that task" in why(world, "third")
    world.restart("first", resume=True)
    world.tick()
    assert world.state("first") == "QUEUED conversation"
    world.succeed("third")
    assert set(world.running()) == {"first"}


def test_many_in_a_busy_conversation_hide_nobody(world: World) -> None:
    done(world)
    begun(world, "second")
    world.submit("root", agent={"type": "claude", "strict": True})
    world.now_ms += 1
    for number in range(80):
        world.submit(f"more-{number}", continues="first", agent={"type": "claude"})
    world.submit("other", agent={"type": "claude", "strict": True})
    world.tick()
    assert set(world.running()) == {"second", "root"}
    world.succeed("root")
    assert set(world.running()) == {"second", "other"}


@pytest.mark.both_databases
def test_nobody_speaks_between_a_question_and_its_answer(world: World) -> None:
    done(world)
    begun(world, "second")
    world.submit("third", continues="first")
    world.end("second", status="needs_input", question="Which hole?")
    world.tick()
    assert (world.task("second").state, world.state("third")) == ("NEEDS_INPUT", "QUEUED conversation")
    text = "waiting for its turn after second (NEEDS_INPUT) in the same thread"
    assert world.task("third").reason_text == text
    world.service.answer("second", AnswerRequest(text="The left one."))
    world.tick()
    assert set(world.running()) == {"second"}
    assert "The left one." in asked(world).prompt
    world.succeed("second")
    assert last(world, "third").resumes == last(world, "second").id


def test_a_turn_that_waits_for_a_reset_is_not_interrupted(world: World) -> None:
    done(world)
    begun(world, "second", on_limit="wait")
    world.submit("third", continues="first", priority="urgent", on_limit="wait")
    world.limit("second", reset_at=world.now_ms + HOUR_MS)
    world.tick(HOUR_MS + 1)
    assert set(world.running()) == {"second"}, "though another one is more urgent"


def test_it_waits_for_a_busy_holder_though_another_is_free(world: World) -> None:
    done(world)
    for name in ("x", "y"):
        world.submit(name, agent={"type": "claude", "strict": True})
    world.tick()
    world.submit("second", continues="first")
    world.tick()
    assert set(world.running().values()) == {"claude"}
    assert world.state("second") == "QUEUED slots"
    world.succeed("x")
    assert world.running()["second"] == "claude"


def limited_holder(world: World, **fields: Any) -> RunView:
    first = done(world, text="I made the hole.")
    world.submit("x", agent={"type": "claude"})
    world.tick()
    world.limit("x", reset_at=world.now_ms + HOUR_MS)
    world.submit("second", continues="first", **fields)
    world.tick()
    return first


def test_a_limited_holder_is_left_for_another_agent_with_a_note(world: World) -> None:
    first = limited_holder(world)
    second = last(world, "second")
    assert (second.agent, second.resumes) == ("codex", None)
    prompt = asked(world, "codex").prompt
    assert prompt.startswith("do second\n")
    assert "continues another one, first, which claude has done." in prompt
    assert '{"instructions": "do first"}\n' in prompt
    assert "I made the hole." in prompt
    assert world.host.directories[second.id, 0].order.scratch_of == first.id, "and where it was"
    text = why(world, "second")
    assert f"The conversation of run {first.id[:8]} was given up: claude, which has it, could not take the task" in text
    world.fail("second", "agent_error")
    world.tick(HOUR_MS * 2)
    assert last(world, "second").resumes is None
    assert "do first" in world.kinds[last(world, "second").agent].requests[-1].prompt


def test_with_on_limit_wait_it_waits_for_a_limited_holder(world: World) -> None:
    first = limited_holder(world, on_limit="wait")
    assert world.state("second") == "QUEUED limited"
    world.tick(HOUR_MS + 1)
    assert last(world, "second").resumes == first.id


def test_a_limit_of_its_own_leaves_it_in_the_conversation_or_hands_it_on(world: World) -> None:
    done(world)
    begun(world, "second", on_limit="wait")
    world.limit("second", reset_at=world.now_ms + HOUR_MS)
    world.tick(HOUR_MS + 1)
    again = last(world, "second")
    assert (again.resumes, again.attempt, again.agent) == (world.service.runs("second")[0].id, 1, "claude")
    assert asked(world).prompt.startswith("Continue the task where you left off.")
    assert asked(world).prompt.endswith("This is the task:\n\ndo second\n")
    world.succeed("second")

    begun(world, "third")
    world.limit("third", reset_at=world.now_ms + HOUR_MS)
    world.tick()
    assert (last(world, "third").agent, last(world, "third").resumes) == ("codex", None)
    assert "Another agent, claude, had this task before you and stopped" in asked(world, "codex").prompt


@pytest.mark.parametrize("gone", ["configuration", "program"])
def test_a_holder_that_is_gone_is_waited_for_by_nobody(world: World, gone: str) -> None:
    first = done(world)
    if gone == "configuration":
        world.agents = (CODEX,)
    else:
        world.kinds["claude"].problems["claude"] = "it is not installed"
    world.restarted_daemon()
    second = begun(world, on_limit="wait")
    assert (second.agent, second.resumes) == ("codex", None)
    expected = "is no longer configured" if gone == "configuration" else "cannot run: it is not installed"
    assert f"run {first.id[:8]} was given up: claude, which has it, {expected}" in why(world, "second")


def test_a_conversation_that_the_agent_has_lost_is_replaced_once(world: World) -> None:
    done(world)
    begun(world)
    world.fail("second", "bad_invocation", **LOST)
    again = last(world, "second")
    assert (again.resumes, again.attempt, again.state) == (None, 1, "starting")
    assert asked(world).resume is False
    assert "continues another one, first" in asked(world).prompt


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"working_dir": "/srv/other"}, "it belongs to a scratch folder, and second works in /srv/other"),
        ({"agent": {"type": "codex"}}, "second asks for codex, and claude has it"),
    ],
)
def test_another_place_or_agent_means_a_fresh_conversation(world: World, fields: dict[str, Any], because: str) -> None:
    done(world)
    second = begun(world, **fields)
    assert second.resumes is None
    assert because in why(world, "second")
    assert "continues another one, first" in world.kinds[second.agent].requests[-1].prompt


def test_an_agent_of_the_holders_kind_is_no_other_agent(world: World) -> None:
    done(world, agent="codex", conversation_id=THREAD)
    begun(world, agent={"type": "codex", "tier": "powerful"})
    assert (asked(world, "codex").conversation_id, asked(world, "codex").resume) == (THREAD, True)
    assert last(world, "second").tier == "powerful"


def test_a_program_leaves_no_conversation_but_its_place(world: World) -> None:
    first = done(world, agent="lint")
    second = begun(world)
    assert second.resumes is None
    assert world.host.directories[second.id, 0].order.scratch_of == first.id
    assert "lint left none behind" in why(world, "second")


def test_a_failure_of_its_own_is_tried_again_afresh_with_the_note(world: World) -> None:
    done(world)
    begun(world, retry={"max_attempts": 2, "backoff": "1s"})
    world.fail("second", "agent_error")
    world.tick(60_000)
    assert (last(world, "second").resumes, last(world, "second").attempt) == (None, 2)
    assert "continues another one, first" in asked(world).prompt


def test_it_waits_again_for_a_restarted_other_and_goes_on_from_its_new_run(world: World) -> None:
    done(world)
    world.submit("second", continues="first", not_before="2030-01-01T00:00:00Z")
    assert world.state("second") == "WAITING time"
    world.restart("first")
    assert world.state("second") == "WAITING dependency"
    world.tick()
    world.succeed("first")
    world.tick(10 * 365 * 24 * HOUR_MS)
    assert last(world, "second").resumes == last(world, "first").id
    assert len(world.service.runs("first")) == 2


def test_its_own_conversation_can_be_resumed(world: World) -> None:
    world.submit("first", working_dir="/srv/shop", agent={"type": "claude"})
    world.tick()
    world.succeed("first")
    second = begun(world)
    world.fail("second")
    world.restart("second", resume=True)
    world.tick()
    assert last(world, "second").resumes == second.id
    assert world.host.directories[last(world, "second").id, 0].order.cwd == "/srv/shop"
    assert "Continue the task where you left off." in asked(world).prompt


def test_changed_content_follows_anew(world: World) -> None:
    first = done(world)
    world.take("/in/s.yaml", spec("second", continues="first"))
    world.tick()
    world.fail("second")
    failed = last(world, "second")
    world.take("/in/s.yaml", spec("second", continues="first", instructions="Dig."), mtime_ns=2)
    world.tick()
    assert (failed.resumes, last(world, "second").resumes) == (first.id, failed.id), "the newest turn in it"
    assert asked(world).prompt == "Dig.\n"


def test_a_kind_that_changed_under_a_name_is_another_agent(world: World) -> None:
    done(world)
    world.agents = (CLAUDE.model_copy(update={"kind": "gemini", "models": {}}), CODEX)
    world.restarted_daemon()
    assert begun(world).resumes is None


def test_where_a_task_worked_is_kept_while_one_that_continues_it_has_not_ended(world: World) -> None:
    def needed_by(name: str) -> str | None:
        row = world.row(name)
        other = world.database.read(lambda connection: still_needed_by(connection, row))
        return None if other is None else other.name

    world.submit("second", continues="first", not_before="2030-01-01T00:00:00Z")
    world.submit("after", depends_on=["first"], not_before="2030-01-01T00:00:00Z")
    world.submit("third", continues="second")
    done(world)
    assert (needed_by("first"), needed_by("second")) == ("second", "third")
    world.tick(10 * 365 * 24 * HOUR_MS)
    world.succeed("second")
    assert needed_by("first") == "third", "which works there, too"
    world.succeed("third")
    assert needed_by("first") is None
