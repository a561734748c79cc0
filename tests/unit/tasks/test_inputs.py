"""What a person says to a task that asks something: which words fit which question, what is written, and who may."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Update

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Conflict, Forbidden, Invalid
from claudomator_py.domain.inputs import MARKER, InputRequest
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import RefusedHandoff
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.prompts.conversations import GIVEN_UP
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import decision_rows, events
from claudomator_py.store.tables import RUN, TASK
from claudomator_py.tasks.inputs import GO_ON_YOURSELF, expire, may_approve, specialist_meant
from tests.databases import open_migrated
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.cards import card
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE)
LOOP = RefusedHandoff(to="ben", why=rationale(RationaleCode.HANDOFF_LOOP, specialist="ben"))
PUBLISH = {"tool": "Bash", "input": "npm publish", "rule": "Bash(npm publish)"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path) as database:
        world = World(database)
        world.specialists.register(card("ben"))
        yield world


def ask(world: World, kind: str, *, begun: bool, **changes: Any) -> None:
    """Have the task t ask that. begun: after its first run, which was claude's; else before it."""
    world.submit("t", agent={"type": "claude"}, approval=kind == "approval" and not begun)
    if begun:
        world.tick()
        world.end("t", text=f"{MARKER} Red or blue?")
        world.tick()
    of_run = {"agent": "claude", "run_id": world.row("t").last_run_id} if begun else {}
    asked = InputRequest(kind=InputKind(kind), since_ms=1, **{"text": "Which?", **of_run, **changes})
    values = {"state": "NEEDS_INPUT", "phase": None, "reason": kind, "asks": asked.model_dump(mode="json")}
    write(world, TASK.update().where(TASK.c.name == "t").values(**values))


def write(world: World, change: Update) -> None:
    world.database.write(lambda connection: connection.execute(change))


def answer(world: World, text: str = "Blue.") -> None:
    world.service.answer("t", AnswerRequest(text=text))


def approve(world: World, by: Principal = OPERATOR, **fields: Any) -> None:
    world.access.as_(by)[Tasks].approve("t", ApproveRequest(**fields))


def told(world: World, kind: str) -> list[tuple[bool, dict[str, Any]]]:
    """Of each such event, whether it is of a run, and what it tells."""
    result = world.database.read(lambda connection: events.following(connection, 0, 10_000))
    return [(event.run_id is not None, event.data) for event in result if event.kind == kind]


def prompt(world: World) -> str:
    """What the next run is told."""
    world.tick()
    return world.kinds["claude"].requests[-1].prompt


VERBS: dict[str, Callable[[World], object]] = {
    "answered": answer,
    "approved": approve,
    "rejected": lambda world: world.service.reject("t", RejectRequest()),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_task_that_asks_nothing_is_told_nothing(world: World, verb: str) -> None:
    world.submit("t")
    with pytest.raises(Conflict, match=f"t is QUEUED: nothing waits to be {verb}"):
        VERBS[verb](world)


@pytest.mark.parametrize(
    ("verb", "kind", "begun", "refused", "remedy"),
    [
        ("answered", "login", True, "t needs a login, not an answer", "claudomator release claude"),
        ("answered", "approval", False, "there is no agent to answer", "claudomator approve t"),
        ("approved", "login", True, "t needs a login, not approval", "claudomator release claude"),
        ("approved", "question", True, "t needs an answer, not approval", "claudomator answer t TEXT"),
        ("approved", "clarification", False, "t needs an answer, not approval", "claudomator answer t TEXT"),
    ],
)
def test_what_is_said_has_to_fit_what_is_asked(
    world: World, verb: str, kind: str, begun: bool, refused: str, remedy: str
) -> None:
    ask(world, kind, begun=begun)
    with pytest.raises(Conflict, match=refused) as error:
        VERBS[verb](world)
    assert remedy in error.value.remedy
    assert world.row("t").state == "NEEDS_INPUT"


@pytest.mark.parametrize(
    ("begun", "asked", "fields", "refused"),
    [
        (False, {}, {"tools": ("Bash",)}, "tools: were not requested: it needs approval before its first run"),
        (True, {"refused_handoff": LOOP}, {"tools": ("Bash",)}, "tools: were not requested: it asks whether to"),
        (True, {"tools": (PUBLISH,)}, {"specialist": "ben"}, "specialist: cannot be chosen any more"),
        (False, {}, {"specialist": "bem"}, "specialist: there is no specialist `bem`; did you mean `ben`"),
    ],
)
def test_only_what_was_asked_for_is_approved(
    world: World, begun: bool, asked: dict[str, Any], fields: dict[str, Any], refused: str
) -> None:
    ask(world, "approval", begun=begun, **asked)
    with pytest.raises(Invalid, match=refused):
        approve(world, **fields)
    assert (world.row("t").state, told(world, "approved")) == ("NEEDS_INPUT", [])


# --- before the first run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "data", "meant"),
    [
        ({}, {}, None),
        ({"reason": "Go."}, {"why": "Go."}, None),
        ({"specialist": "ben"}, {"meant": "ben"}, "ben"),
    ],
)
def test_a_task_that_is_approved_begins_and_its_specialist_is_the_one_who_was_named(
    world: World, fields: dict[str, Any], data: dict[str, Any], meant: str | None
) -> None:
    ask(world, "approval", begun=False)
    approve(world, **fields)
    row = world.row("t")
    assert (row.state, row.approved_ms, (row.asks or {})["answer"]) == ("QUEUED", world.now_ms, meant)
    assert told(world, "approved") == [(False, data)]


@pytest.mark.parametrize("rules", [(), ("late", "late-too")])
def test_what_rules_demanded_is_a_decision_of_whoever_approved_it(world: World, rules: tuple[str, ...]) -> None:
    ask(world, "approval", begun=False, rules=rules)
    approve(world, ANN, reason="Go.")
    assert told(world, "approved") == [(False, {"why": "Go.", "rules": list(rules)} if rules else {"why": "Go."})]
    task_id = world.row("t").id
    decided = world.database.read(lambda connection: decision_rows.of_task(connection, task_id))
    assert [(entry.data["approved_by"], entry.data["rules"]) for entry in decided] == (
        [("ann", list(rules))] if rules else []
    )


@pytest.mark.parametrize("text", ["ben", " ben\n"])
def test_whoever_is_named_is_meant(world: World, text: str) -> None:
    ask(world, "clarification", begun=False)
    answer(world, text)
    row = world.row("t")
    assert (row.state, row.revision, specialist_meant(row)) == ("QUEUED", 1, "ben")
    assert told(world, "answered") == [(False, {"meant": "ben"})]


@pytest.mark.parametrize("text", ["ask ben", "Paint it\nblue."])
def test_whatever_else_is_said_becomes_part_of_the_task(world: World, text: str) -> None:
    ask(world, "clarification", begun=False)
    answer(world, text)
    assert (world.task("t").spec or {})["instructions"] == f"do t\n\n{text}"
    assert told(world, "answered") == [(False, {"answer": " ".join(text.split())})]


def test_a_single_word_that_names_nobody_is_a_mistake(world: World) -> None:
    ask(world, "clarification", begun=False)
    with pytest.raises(Invalid, match="text: there is no specialist `bem`"):
        answer(world, "bem")
    assert told(world, "answered") == []


# --- after a run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["question", "clarification"])
def test_the_agent_that_asked_is_told_the_answer(world: World, kind: str) -> None:
    ask(world, kind, begun=True)
    answer(world)
    assert told(world, "answered") == [(True, {"answer": "Blue."})]
    assert "Blue." in prompt(world)


def test_a_second_answer_leaves_the_first_known(world: World) -> None:
    ask(world, "question", begun=True)
    answer(world, "Red.")
    world.tick()
    world.end("t", text=f"{MARKER} Really?")
    world.tick()
    answer(world, "No, blue.")
    assert [entry["answer"] for entry in (world.row("t").resume or {})["heard"]] == ["Red.", "No, blue."]


@pytest.mark.parametrize(
    ("agents", "conversation", "why"),
    [
        ((CLAUDE,), True, None),
        ((CLAUDE,), False, "claude left none behind"),
        ((CODEX,), True, "claude, which has it, is no longer configured"),
        ((CODEX.model_copy(update={"name": "claude"}),), True, "claude, which has it, is no longer configured"),
    ],
)
def test_where_the_conversation_is_gone_a_fresh_one_is_told_and_that_is_said(
    world: World, agents: tuple[AgentSpec, ...], conversation: bool, why: str | None
) -> None:
    ask(world, "question", begun=True)
    write(world, TASK.update().values(kept_until_ms=world.now_ms + HOUR_MS))
    run_id = world.row("t").last_run_id
    if not conversation:
        write(world, RUN.update().values(conversation_id=None))
    world.agents = agents
    world.restarted_daemon()
    answer(world)
    row = world.row("t")
    assert row.resume is not None
    assert (row.resume["answering"], row.resume["given_up"]) == (why is None, why is not None)
    assert row.kept_until_ms == (world.now_ms + HOUR_MS if why is None else None)
    assert told(world, GIVEN_UP) == ([] if why is None else [(False, {"resumes": run_id, "why": why})])


@pytest.mark.parametrize(
    ("begin", "known"),
    [
        (lambda world: world.restart("root", resume=True, reason="Use tabs."), "Use tabs."),
        (lambda world: world.submit("t", continues="root"), "do root"),
    ],
    ids=["said at the restart", "the task that it continues"],
)
def test_and_is_told_what_the_one_that_is_gone_knew_besides(
    world: World, begin: Callable[[World], TaskView], known: str
) -> None:
    world.submit("root")
    world.tick()
    world.succeed("root")
    name = begin(world).name
    world.tick()
    world.end(name, text=f"{MARKER} Red or blue?")
    world.tick()
    write(world, RUN.update().values(conversation_id=None))
    world.service.answer(name, AnswerRequest(text="Blue."))
    text = prompt(world)
    assert "Blue." in text
    assert known in text


@pytest.mark.parametrize("length", [300, 301])
def test_an_event_tells_the_beginning_of_a_long_answer(world: World, length: int) -> None:
    ask(world, "question", begun=True)
    answer(world, "x" * length)
    assert told(world, "answered") == [(True, {"answer": "x" * 300 if length == 300 else "x" * 297 + "..."})]


@pytest.mark.parametrize("asked", [{"refused_handoff": LOOP}, {"handoff": "human_review"}])
def test_whoever_would_have_handed_it_on_goes_on_when_that_is_approved(world: World, asked: dict[str, Any]) -> None:
    ask(world, "approval", begun=True, **asked)
    approve(world)
    assert told(world, "approved") == [(True, {})]
    assert world.row("t").granted_tools is None
    assert GO_ON_YOURSELF in prompt(world)


def test_and_does_what_else_it_is_told(world: World) -> None:
    ask(world, "approval", begun=True, refused_handoff=LOOP)
    answer(world, "Ask cid.")
    text = prompt(world)
    assert "Ask cid." in text
    assert "denied" not in text, "it was denied no tool"


def test_an_agent_that_was_denied_a_tool_does_without_where_it_is_told_something_else(world: World) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH,))
    answer(world, "Do not publish.")
    assert prompt(world).startswith("You may not use what you were denied.")


@pytest.mark.parametrize(
    ("tools", "allowed"), [((), ("Bash(npm publish)",)), (("Write", "Read", "Write"), ("Write", "Read"))]
)
def test_the_agent_may_use_what_it_asked_for_or_what_is_named_instead(
    world: World, tools: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH, PUBLISH))
    approve(world, tools=tools, reason="Go.")
    assert world.row("t").granted_tools == {"kind": "claude", "tools": list(allowed)}
    assert told(world, "approved") == [(True, {"why": "Go.", "tools": list(allowed)})]
    world.tick()
    assert world.kinds["claude"].requests[-1].task.permissions.allowed_tools == allowed


def test_what_was_allowed_before_stays_allowed(world: World) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH,))
    approve(world)
    world.tick()
    world.end("t", denied=[{"tool": "Bash", "input": "npm tag", "rule": "Bash(npm tag)"}])
    world.tick()
    approve(world)
    assert world.row("t").granted_tools == {"kind": "claude", "tools": ["Bash(npm publish)", "Bash(npm tag)"]}


def test_a_call_without_a_rule_of_its_own_is_allowed_by_name_alone(world: World) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH, {"tool": "Write", "input": "x"}))
    with pytest.raises(Conflict, match="Write has no rule that narrow"):
        approve(world)


def test_only_what_the_agent_can_be_told_to_allow_is_allowed(world: World) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH,))
    known = ["it has no plan"]
    claude = world.kinds["claude"]
    claude.lacking_of = lambda task: [*known, "it has no list"] if task.permissions.allowed_tools else known
    with pytest.raises(Invalid, match=r"\Atools: it has no list; name different tools"):
        approve(world)
    claude.lacking_of = lambda _: known
    approve(world)
    assert world.row("t").state == "QUEUED", "what it lacks anyway is no matter of tools"


def test_what_was_asked_by_an_agent_that_is_gone_is_allowed(world: World) -> None:
    ask(world, "approval", begun=True, tools=(PUBLISH,))
    world.agents = (CODEX,)
    world.restarted_daemon()
    approve(world)
    assert world.row("t").granted_tools == {"kind": "claude", "tools": ["Bash(npm publish)"]}


@pytest.mark.parametrize("reason", [None, "Not today."])
def test_a_rejected_task_has_failed_and_says_why(world: World, reason: str | None) -> None:
    ask(world, "question", begun=True)
    world.submit("after", depends_on=["t"])
    world.service.reject("t", RejectRequest(reason=reason))
    row = world.row("t")
    assert (row.state, row.reason, (row.asks or {})["rejected"]) == ("FAILED", "rejected", reason)
    assert told(world, "rejected") == [(True, {} if reason is None else {"reason": reason})]
    (ended,) = [data for _, data in told(world, "state") if data.get("reason") == "rejected"]
    assert {name: value for name, value in ended.items() if name == "why"} == (
        {} if reason is None else {"why": reason}
    )
    assert world.state("after") == "FAILED dependency_failed"


def test_a_task_that_nobody_answered_in_time_has_failed_and_still_says_what_it_asked(world: World) -> None:
    ask(world, "question", begun=True)
    world.submit("after", depends_on=["t"])
    row = world.row("t")
    world.database.write(lambda connection: expire(connection, row, world.now_ms))
    assert (world.state("t"), world.row("t").asks) == ("FAILED expired", row.asks)
    assert world.state("after") == "FAILED dependency_failed"


def test_one_that_an_older_version_asked_fails_in_time_as_well(world: World) -> None:
    ask(world, "question", begun=True)
    write(world, TASK.update().values(asks=None))
    row = world.row("t")
    world.database.write(lambda connection: expire(connection, row, world.now_ms))
    assert (world.state("t"), world.row("t").asks) == ("FAILED expired", None)


# --- who may --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approvers", "by", "may"),
    [
        ((), Principal("eve", Role.OPERATE), True),
        ((("ann", "ben"),), ANN, True),
        ((("ann", "ben"),), Principal("eve", Role.ADMIN), False),
        ((("operate",),), ANN, True),
        ((("operate",),), Principal("eve", Role.ADMIN), True),
        ((("operate",),), Principal("eve", Role.READ), False),
        ((("admin",),), ANN, False),
        ((("ann",), ("admin",)), ANN, False),
        ((("ann",), ("operate",)), ANN, True),
    ],
)
def test_each_rule_that_says_who_has_to_name_whoever_approves(
    world: World, approvers: tuple[tuple[str, ...], ...], by: Principal, may: bool
) -> None:
    ask(world, "approval", begun=False, approvers=approvers)
    asked = InputRequest(kind=InputKind.APPROVAL, since_ms=1, approvers=approvers)
    assert may_approve(asked, by) is may
    if may:
        approve(world, by)
    else:
        with pytest.raises(Forbidden, match=f"requires approval by .*, and {by.id} is {by.role}"):
            approve(world, by)
    assert world.row("t").state == ("QUEUED" if may else "NEEDS_INPUT")
