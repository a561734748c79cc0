"""Questions, answers and allowed tools: when a task waits for a person, what it is told, and what others may not do."""

from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, Invalid, StaleVersion
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.principal import RequestKey
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK
from tests.fakes.agents import CODEX
from tests.fakes.cards import card
from tests.fakes.world import World

PUBLISH = {"tool": "Bash", "input": "npm publish", "rule": "Bash(npm publish)"}
QUESTION = "Red or blue?"
ASKS = {"text": f"I looked.\n\n{MARKER} {QUESTION}\n"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def begun(world: World, name: str = "t", **fields: Any) -> None:
    """A task whose run goes on at claude."""
    world.submit(name, **{"agent": {"type": "claude"}, **fields})
    world.tick()


def asked(world: World, name: str = "t", **fields: Any) -> TaskView:
    """A task whose agent has asked a question."""
    begun(world, name, **fields)
    ended(world, name, **ASKS)
    return world.task(name)


def denied(world: World, name: str = "t", *tools: dict[str, Any], **fields: Any) -> TaskView:
    """A task whose agent was denied a tool, and has ended well all the same."""
    begun(world, name, **fields)
    ended(world, name, denied=list(tools) or [PUBLISH])
    return world.task(name)


def ended(world: World, name: str, **outcome: Any) -> None:
    world.end(name, **outcome)
    world.tick()


def answer(world: World, text: str = "Blue.", name: str = "t", **more: Any) -> TaskView:
    return world.service.answer(name, AnswerRequest(text=text), **more)


def approve(world: World, *tools: str, name: str = "t", **more: Any) -> TaskView:
    return world.service.approve(name, ApproveRequest(tools=tools), **more)


def reject(world: World, reason: str | None = None, name: str = "t") -> TaskView:
    return world.service.reject(name, RejectRequest(reason=reason))


def launched(world: World, kind: str = "claude") -> LaunchRequest:
    """How the last run of that kind was started."""
    return world.kinds[kind].requests[-1]


def why(world: World, name: str = "t") -> str:
    return "\n".join(world.service.why(name).sentences)


# --- a question -------------------------------------------------------------------------------------------------------


def test_an_agent_is_told_how_to_ask_and_its_question_waits_for_a_person(world: World) -> None:
    task = asked(world)
    assert MARKER in launched(world).prompt
    assert (task.state, task.reason, task.reason_text) == ("NEEDS_INPUT", "question", QUESTION)
    assert task.asks is not None
    assert (task.asks.agent, task.asks.run_id) == ("claude", world.service.runs("t")[0].id)
    assert task.available_actions == ("answer", "reject", "cancel", "restart")
    assert "t is NEEDS_INPUT: Red or blue?\n" in why(world)
    assert world.overview.status().needs_you[0].reason_text == QUESTION


@pytest.mark.both_databases
def test_the_answer_goes_on_in_the_same_conversation_and_costs_no_attempt(world: World) -> None:
    asked(world)
    before = launched(world)
    task = answer(world)
    assert (task.state, task.generation, task.attempts, task.asks) == ("QUEUED", 1, 0, None)
    world.tick()
    after, (first, second) = launched(world), world.service.runs("t")
    assert (after.resume, after.conversation_id) == (True, before.conversation_id)
    assert (second.resumes, second.generation, second.attempt) == (first.id, 1, 1)
    assert after.prompt == "The operator answers your question:\n\nBlue.\n"
    assert world.host.directories[second.id, 0].order.scratch_of == first.id
    world.succeed("t")
    assert world.task("t").state == "COMPLETED"
    assert "The operator answered: Blue." in why(world)


def test_it_may_ask_again_and_again(world: World) -> None:
    asked(world)
    for number in range(3):
        answer(world, f"Answer {number}.")
        world.tick()
        assert launched(world).prompt.endswith(f"\n\nAnswer {number}.\n")
        ended(world, "t", **ASKS)
    assert (world.state("t"), world.task("t").attempts) == ("NEEDS_INPUT question", 0)


def test_an_answer_that_met_a_limit_is_told_again(world: World) -> None:
    asked(world, on_limit="wait")
    answer(world)
    world.tick()
    world.limit("t", reset_at=world.now_ms + MINUTE_MS)
    world.tick(MINUTE_MS + 1)
    assert launched(world).resume
    assert launched(world).prompt == "The operator answers your question:\n\nBlue.\n"


def test_a_fresh_conversation_is_told_all_that_was_asked_and_answered(world: World) -> None:
    asked(world)
    answer(world, "Red.")
    world.tick()
    ended(world, "t", **ASKS)
    answer(world, "No, blue.")
    world.tick()
    world.fail("t", "bad_invocation", conversation_lost=True, detail="No conversation found")
    world.tick()
    fresh = launched(world)
    assert not fresh.resume
    assert fresh.prompt.startswith("do t\n\nThe operator was asked about this task before")
    assert fresh.prompt.index("The operator said: Red.") < fresh.prompt.index("The operator said: No, blue.")
    assert fresh.prompt.count("> Red or blue?") == 2
    assert world.task("t").attempts == 0


def test_an_agent_that_is_gone_is_not_waited_for(world: World) -> None:
    asked(world)
    world.agents = (CODEX,)
    world.restarted_daemon()
    answer(world)
    world.tick()
    assert world.running() == {"t": "codex"}
    assert "The operator said: Blue." in launched(world, "codex").prompt
    assert "claude, which has it, is no longer configured" in why(world)


def test_its_question_comes_before_its_check(world: World) -> None:
    task = asked(world, check=["make test"])
    assert (task.state, task.reason) == ("NEEDS_INPUT", "question")


def test_what_only_looks_like_a_question_is_none(world: World) -> None:
    texts = (f"I would write `{MARKER} what?`.", f"> {MARKER} what?", f"```\n{MARKER} what?\n```", f"{MARKER}\n")
    for number, text in enumerate(texts):
        begun(world, f"t{number}")
        ended(world, f"t{number}", text=text)
        assert world.task(f"t{number}").state == "COMPLETED", text


def test_a_task_that_is_not_to_wait_goes_on_and_says_so(world: World) -> None:
    begun(world, on_input="deny")
    assert MARKER not in launched(world).prompt
    ended(world, "t", **ASKS)
    assert world.task("t").state == "COMPLETED"
    (run,) = world.service.runs("t")
    assert run.outcome is not None
    assert run.outcome.question == QUESTION
    assert "which nobody gets because on_input is deny: Red or blue?" in (run.outcome.detail or "")


def test_agents_without_conversations_are_not_told_to_ask(world: World) -> None:
    begun(world, agent={"type": "lint"})
    assert MARKER not in launched(world, "command").prompt
    ended(world, "t", **ASKS)
    assert world.task("t").state == "COMPLETED"


def test_an_answer_is_given_once(world: World) -> None:
    seen = asked(world)
    key = RequestKey("k", "f")
    first = answer(world, versions=seen.version, key=key)
    assert answer(world, versions=seen.version, key=key) == first
    with pytest.raises(StaleVersion):
        answer(world, versions=seen.version)
    with pytest.raises(Conflict, match=r"t is QUEUED: nothing waits to be answered\."):
        answer(world)


def test_a_cancelled_or_restarted_question_is_over(world: World) -> None:
    asked(world)
    task = world.restart("t")
    assert (task.state, task.generation, task.asks) == ("QUEUED", 2, None)
    world.tick()
    assert launched(world).prompt.startswith("do t\n\nIf you need a decision")
    ended(world, "t", **ASKS)
    world.service.cancel("t")
    assert (world.task("t").state, world.task("t").asks) == ("CANCELLED", None)


# --- leave for tools --------------------------------------------------------------------------------------------------


def test_a_denied_tool_asks_for_leave_which_the_next_run_has(world: World) -> None:
    task = denied(world)
    assert (task.state, task.reason) == ("NEEDS_INPUT", "approval")
    assert task.reason_text == "claude asks to use Bash(npm publish)"
    assert task.available_actions == ("approve", "answer", "reject", "cancel", "restart")
    assert "`claudomator approve t` allows Bash(npm publish); " in why(world)
    approve(world)
    world.tick()
    request = launched(world)
    assert request.resume
    assert request.task.permissions.allowed_tools == ("Bash(npm publish)",)
    assert request.prompt.startswith("The operator allows you to use: Bash(npm publish). Continue")
    ended(world, "t", denied=[{**PUBLISH, "input": "npm tag", "rule": "Bash(npm tag)"}])
    approve(world)
    world.tick()
    assert launched(world).task.permissions.allowed_tools == ("Bash(npm publish)", "Bash(npm tag)")
    assert "The operator approved Bash(npm tag)." in why(world)


def test_leave_lasts_for_the_generation_and_is_asked_for_anew_after_it(world: World) -> None:
    denied(world)
    approve(world)
    world.tick()
    world.succeed("t")
    world.restart("t")
    world.tick()
    assert launched(world).task.permissions.allowed_tools == ()


def test_leave_is_for_agents_that_name_tools_so(world: World) -> None:
    denied(world)
    world.agents = (CODEX,)
    world.restarted_daemon()
    approve(world)
    world.tick()
    assert launched(world, "codex").task.permissions.allowed_tools == ()


def test_a_person_may_allow_something_else(world: World) -> None:
    denied(world, "t", {"tool": "Bash", "input": "cat <<EOF..."})
    with pytest.raises(Conflict, match="`--tool Bash`"):
        approve(world)
    assert "`claudomator approve t --tool Bash` allows Bash" in why(world)
    approve(world, "Bash(cat:*)", "Write")
    world.tick()
    assert launched(world).task.permissions.allowed_tools == ("Bash(cat:*)", "Write")


def test_what_the_agent_cannot_be_told_to_allow_is_refused_with_the_reason(world: World) -> None:
    denied(world)
    world.kinds["claude"].lacking_of = lambda task: (
        ["claude has no such list"] if task.permissions.allowed_tools else []
    )
    with pytest.raises(Invalid, match="tools: claude has no such list; name different tools, or answer the agent"):
        approve(world)
    assert world.state("t") == "NEEDS_INPUT approval"


def test_a_person_may_tell_it_to_do_without(world: World) -> None:
    denied(world)
    answer(world, "Do not publish.")
    world.tick()
    assert launched(world).prompt == "You may not use what you were denied. The operator says:\n\nDo not publish.\n"
    assert launched(world).task.permissions.allowed_tools == ()


def test_a_check_that_passes_needs_no_leave_and_one_that_fails_asks(world: World) -> None:
    for name, exit_code, state in (("good", 0, "COMPLETED"), ("bad", 1, "NEEDS_INPUT approval")):
        begun(world, name, check=["make test"])
        ended(world, name, denied=[PUBLISH])
        assert world.task(name).phase == "checking"
        world.host.end(world.live(name).id, exit_code, step=1)
        world.tick()
        assert world.state(name) == state
    (run,) = world.service.runs("good")
    assert run.outcome is not None
    assert [tool.input for tool in run.outcome.denied] == ["npm publish"]


@pytest.mark.parametrize("fields", [{"on_input": "deny"}, {"permissions": {"mode": "plan"}}])
def test_a_task_that_forbids_it_itself_does_not_ask(world: World, fields: dict[str, Any]) -> None:
    assert denied(world, **fields).state == "COMPLETED"


def test_a_run_that_ended_for_lack_of_leave_asks_for_it(world: World) -> None:
    begun(world)
    ended(world, "t", status="failed", reason="permission_denied", denied=[PUBLISH])
    assert world.state("t") == "NEEDS_INPUT approval"
    begun(world, "no", on_input="deny")
    ended(world, "no", status="failed", reason="permission_denied", denied=[PUBLISH])
    assert world.state("no") == "FAILED permission_denied"


def test_secrets_are_neither_shown_nor_put_into_a_command_line(world: World) -> None:
    secret = "sk-" + "a1b2" * 6
    task = denied(world, "t", {"tool": "Bash", "input": f"login {secret}", "rule": f"Bash(login {secret})"})
    assert task.reason_text == "claude asks to use Bash(login [redacted])"
    assert secret not in why(world)
    with pytest.raises(Conflict):
        approve(world)


# --- which specialist is meant ----------------------------------------------------------------------------------------


def test_who_asks_for_a_specialist_can_be_answered_and_rejected(world: World) -> None:
    for text in ("painter", "plumber"):
        world.specialists.register(card(text))
    for name in ("t", "other"):
        world.submit(name, specialist="painter")
    world.specialists.remove("painter")
    world.router.route()
    task = world.task("t")
    assert (task.state, task.reason) == ("NEEDS_INPUT", "clarification")
    assert task.available_actions == ("answer", "reject", "cancel", "restart")
    gives = "`claudomator answer t SPECIALIST` gives it to that one, and a sentence adds to the task"
    assert f"{gives}; `claudomator reject t` ends it." in why(world)
    with pytest.raises(
        Invalid, match="text: there is no specialist `plumbr`; say more about the task, or did you mean `plumber`"
    ):
        answer(world, "plumbr")
    assert world.task("t").state == "NEEDS_INPUT"
    answer(world, "plumber")
    world.router.route()
    assert world.task("t").specialist == "plumber"
    reject(world, name="other")
    assert world.state("other") == "FAILED rejected"


def test_nobody_is_proposed_who_may_not_take_it(world: World) -> None:
    world.specialists.register(card("painter", capabilities=("ladder",)))
    world.specialists.register(card("plumber"))
    world.submit("t", instructions="Fix it, please.", requires=["ladder"])
    world.submit("any", instructions="Fix it, please.")
    world.router.route()
    asked = {name: world.task(name).asks for name in ("t", "any")}
    assert {name: result.text.partition("Candidates: ")[2] for name, result in asked.items() if result is not None} == {
        "t": "painter.",
        "any": "painter, plumber.",
    }


def test_what_is_said_about_a_vague_task_becomes_part_of_it(world: World) -> None:
    """It was taken for an answer, and neither routing nor the agent heard of it."""
    world.specialists.register(card("plumber", description="Mends dripping taps and leaking pipes."))
    world.submit("t", instructions="fix it please")
    world.router.route()
    assert world.task("t").reason == "clarification"
    answer(world, "Mend the dripping taps and the leaking pipes.")
    world.router.route()
    task = world.task("t")
    assert (task.state, task.specialist) == ("QUEUED", "plumber")
    world.tick()
    assert "fix it please\n\nMend the dripping taps and the leaking pipes." in launched(world).prompt


# --- the directory ----------------------------------------------------------------------------------------------------


def placed(database: Database, **changes: Any) -> World:
    return World(database, workdirs=Workdirs((), ()), **changes)


def test_its_directory_is_kept_for_half_an_hour_and_others_are_told(database: Database) -> None:
    world = placed(database)
    asked(world, working_dir="/srv/x")
    world.submit("other", working_dir="/srv/x")
    world.submit("elsewhere", working_dir="/srv/y")
    report = world.tick()
    assert set(world.running()) == {"elsewhere"}
    text = world.task("other").reason_text or ""
    assert text.startswith("/srv/x is reserved for t (NEEDS_INPUT), until input arrives or ")
    assert report.wake_ms is not None
    assert report.wake_ms <= world.now_ms + 30 * MINUTE_MS
    view = world.task("t").asks
    assert view is not None
    assert view.kept_until is not None
    world.tick(30 * MINUTE_MS)
    assert set(world.running()) == {"elsewhere", "other"}
    answer(world)
    world.tick()
    assert world.task("t").state == "QUEUED", "others may use it by now"


def test_nobody_comes_between_the_answer_and_the_next_run(database: Database) -> None:
    world = placed(database, total=1)
    asked(world, working_dir="/srv/x")
    world.submit("urgent", working_dir="/srv/x", priority="urgent")
    answer(world)
    world.tick()
    assert set(world.running()) == {"t"}
    world.succeed("t")
    world.tick()
    assert set(world.running()) == {"urgent"}


@pytest.mark.both_databases
def test_it_is_found_behind_others_of_its_lane_that_wait_for_its_directory(database: Database) -> None:
    world = placed(database)
    begun(world, "urgent", working_dir="/srv/x", priority="urgent")
    world.fail("urgent")
    asked(world, working_dir="/srv/x")
    world.restart("urgent", resume=True)
    answer(world)
    assert world.row("urgent").lane == world.row("t").lane
    world.tick()
    assert set(world.running()) == {"t"}


def test_a_task_that_an_older_version_left_asking_is_answered(world: World) -> None:
    asked(world)
    forget = TASK.update().values(asks=None, kept_until_ms=None)
    world.database.write(lambda connection: connection.execute(forget))
    assert world.task("t").available_actions[0] == "answer"
    answer(world)
    world.tick()
    assert launched(world).resume


def test_a_directory_is_free_once_the_task_is_cancelled_or_restarted(database: Database) -> None:
    world = placed(database)
    asked(world, working_dir="/srv/x")
    world.submit("other", working_dir="/srv/x")
    world.tick()
    assert world.task("other").state == "QUEUED"
    reject(world)
    world.tick()
    assert set(world.running()) == {"other"}


def test_a_directory_for_two_has_room_for_one_more(database: Database) -> None:
    world = placed(database, per_workdir=2)
    asked(world, working_dir="/srv/x")
    world.submit("second", working_dir="/srv/x")
    world.submit("third", working_dir="/srv/x")
    world.tick()
    assert len(world.running()) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, ASKS),
        ({}, {"status": "needs_input", "denied": [{"tool": "Bash", "input": "make", "rule": "Bash(make)"}]}),
        ({"approval": True}, None),
    ],
)
def test_a_task_waits_for_a_person_as_long_as_it_says(
    world: World, fields: dict[str, Any], outcome: dict[str, Any] | None
) -> None:
    world.submit("t", expires="12h", **fields)
    world.submit("after", depends_on=["t"])
    world.tick()
    if outcome is not None:
        ended(world, "t", **outcome)
    asked_ms = world.now_ms
    view = world.task("t")
    assert (view.state, view.waiting_until) == ("NEEDS_INPUT", format_instant(asked_ms + 12 * HOUR_MS))
    assert view.asks is not None
    assert view.asks.until == view.waiting_until
    assert "it fails: expired" in str(world.service.why("t").sentences)
    world.restarted_daemon()
    world.tick(12 * HOUR_MS - 1)
    assert world.task("t").state == "NEEDS_INPUT"
    world.tick(1)
    assert (world.state("t"), world.state("after")) == ("FAILED expired", "FAILED dependency_failed")
    assert world.restart("t").state in ("QUEUED", "NEEDS_INPUT")
