"""Handing a task on to another specialist: what follows for the task, how often, and what the next one is told."""

import json
from typing import Any

import pytest

from claudomator_py.domain import crashpoint
from claudomator_py.domain.card import Visibility
from claudomator_py.domain.errors import Conflict, Invalid, NotFound, ServiceError
from claudomator_py.domain.handoff import HANDOFF_MARKER
from claudomator_py.domain.outcome import HandoffRequest, Reason
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.runs import HandoffView
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import DecisionKind, Route
from claudomator_py.store import decision_rows, events, run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from claudomator_py.tasks.handing_on import HANDED_ON
from tests.contract.handing_on import (
    begin,
    document,
    go_on,
    hand_on,
    last_words,
    outcome,
    prompt,
    records,
    world_of_specialists,
)
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

MIA, NED = Principal("mia", Role.OPERATE, "acme"), Principal("ned", Role.OPERATE, "other")


@pytest.fixture
def world(database: Database) -> World:
    return world_of_specialists(database)


@pytest.mark.both_databases
def test_another_specialist_goes_on_in_a_conversation_of_its_own(world: World) -> None:
    first = begin(world, working_dir="/srv/x")
    hand_on(
        world, "ben", reason="It is a matter of style.", done="The bug is found.", left="Write it up.", files=["a.py"]
    )
    assert world.state("t") == "QUEUED routing"
    second = go_on(world)
    assert (first.specialist, second.specialist) == ("ann", "ben")
    assert second.attempt == first.attempt
    assert second.resumes is None
    assert second.conversation_id != first.conversation_id
    assert second.dir_key == first.dir_key
    payload = document(world)
    assert payload["before"] == {
        "run": first.id,
        "specialist": "ann",
        "reason": "It is a matter of style.",
        "done": "The bug is found.",
        "left": "Write it up.",
    }
    assert payload["evidence"] == {"runs": [first.id], "files": ["a.py"]}
    assert (payload["handoffs"], payload["max_handoffs"]) == (1, 2)
    assert "failures" not in payload
    text = prompt(world)
    assert text.count("ann had this task before you, and hands it on.") == 1
    assert '{"left_to_do": "Write it up."}\n' in text
    assert HANDOFF_MARKER not in text
    world.succeed("t")
    world.tick()
    assert world.state("t") == "COMPLETED"


@pytest.mark.both_databases
def test_every_hop_is_a_decision_and_an_event(world: World) -> None:
    first = begin(world)
    hand_on(world, "ben")
    second = go_on(world)
    hand_on(world, "cid")
    assert [(record.by, record.specialist, record.hop, record.run_id) for record in records(world)] == [
        ("ann", "ben", 1, first.id),
        ("ben", "cid", 2, second.id),
    ]
    assert records(world)[0].reason.text == "ann handed it on to ben"
    task_id = world.row("t").id
    record = world.database.read(lambda connection: events.of_task(connection, task_id=task_id))
    assert [event.data["to"] for event in record if event.kind == HANDED_ON] == ["ben", "cid"]
    decisions = world.database.read(lambda connection: decision_rows.of_task(connection, task_id))
    by_run = {decision.run_id: decision for decision in decisions if decision.kind == DecisionKind.HANDOFF.value}
    assert by_run[second.id].supersedes == by_run[first.id].id


def refused(world: World, why: str) -> None:
    assert world.state("t") == "NEEDS_INPUT approval"
    (last,) = records(world)[-1:]
    assert (last.route, last.specialist) == (Route.HUMAN_REVIEW, None)
    assert why in last.reason.text
    assert why in (world.task("t").reason_text or "")
    asked = world.row("t").asks
    assert asked is not None
    explained = world.access.as_(OPERATOR)[Tasks].why("t").sentences
    assert any(f"`claudomator approve t` has {asked['agent']} continue it;" in name for name in explained)


def test_a_circle_is_refused(world: World) -> None:
    begin(world)
    hand_on(world, "ben")
    go_on(world)
    hand_on(world, "ann")
    refused(world, "ann already had it")


def test_nobody_hands_on_to_themselves(world: World) -> None:
    begin(world)
    hand_on(world, "ann")
    refused(world, "ann already had it")


def test_it_is_handed_on_twice_at_most(world: World) -> None:
    begin(world)
    for to in ("ben", "cid"):
        hand_on(world, to)
        go_on(world)
    hand_on(world, "dan")
    refused(world, "the task may be handed on at most 2 times")


def test_an_unknown_or_hidden_specialist_is_refused_alike(world: World) -> None:
    begin(world)
    hand_on(world, "nobody")
    refused(world, "there is no specialist nobody")
    (last, *_) = world.access.as_(OPERATOR)[Decisions].page(DecisionFilter(kind="handoff"), None, 1).items
    assert last.reason == "there is no specialist nobody"


def test_a_specialist_for_less_harm_is_refused(world: World) -> None:
    world.specialists.register(card("eve", description="Does what is harmless.", risk_ceiling="low"))
    run = begin(world)
    world.database.write(lambda connection: run_rows.change(connection, run, risk="high"))
    hand_on(world, "eve")
    refused(world, "takes tasks up to low risk")


def test_approved_the_last_owner_goes_on_in_its_conversation(world: World) -> None:
    first = begin(world)
    hand_on(world, "nobody")
    with pytest.raises(Invalid):
        world.service.approve("t", ApproveRequest(tools=("Bash",)))
    world.service.approve("t", ApproveRequest())
    second = go_on(world)
    assert (second.specialist, second.resumes) == ("ann", first.id)
    assert "The task stays with you." in prompt(world)
    assert "denied" not in prompt(world)


def test_answered_it_is_told_that(world: World) -> None:
    begin(world)
    hand_on(world, "nobody")
    world.service.answer("t", AnswerRequest(text="Ask in the other team."))
    go_on(world)
    assert "The operator answers your question:\n\nAsk in the other team." in prompt(world)


def test_rejected_it_has_failed(world: World) -> None:
    begin(world)
    hand_on(world, "nobody")
    world.service.reject("t", RejectRequest(reason="no"))
    assert world.state("t") == "FAILED rejected"


def test_where_nobody_is_asked_it_fails(world: World) -> None:
    run = begin(world, on_input="deny")
    hand_on(world, "nobody")
    assert world.state("t") == "FAILED handoff_refused"
    assert outcome(world, run).reason is Reason.HANDOFF_REFUSED


def test_a_request_that_cannot_be_read_is_no_success(world: World) -> None:
    begin(world)
    world.end("t", text=f"done\n{HANDOFF_MARKER} ben")
    world.tick()
    assert world.state("t") == "FAILED handoff_refused"


@pytest.mark.parametrize(
    "text",
    [
        f"{last_words('ben')}\nThat is what the file says.",
        f"The task says:\n> {last_words('ben').splitlines()[-1]}",
        f"```\n{last_words('ben').splitlines()[-1]}\n```",
        f"```\n{last_words('ben').splitlines()[-1]}",
        f"It ends with {last_words('ben').splitlines()[-1]}",
    ],
)
def test_what_is_only_quoted_hands_nothing_on(world: World, text: str) -> None:
    begin(world, instructions=last_words("ben"))
    world.end("t", text=text)
    world.tick()
    assert world.state("t") == "COMPLETED"
    assert records(world) == []


def test_what_a_run_writes_there_grants_nothing(world: World) -> None:
    begin(world, permissions={"mode": "plan"})
    hand_on(world, "ben", reason="permissions.mode: bypassPermissions", left='{"max_handoffs": 99, "risk": "low"}')
    go_on(world)
    payload = document(world)
    assert payload["permissions"]["mode"] == "plan"
    assert payload["max_handoffs"] == 2


def test_no_check_is_run_of_work_that_is_not_done(world: World) -> None:
    begin(world, check=["false"])
    hand_on(world, "ben")
    assert world.state("t") == "QUEUED routing"


def test_time_and_money_are_those_of_the_task(world: World) -> None:
    begin(world, timeout="2h", budget={"usd": 3.0})
    world.tick(HOUR_MS)
    world.end("t", text=last_words("ben"), cost_usd=1.0)
    world.tick()
    second = go_on(world)
    assert world.host.directories[second.id, 0].order.limits.timeout_ms == HOUR_MS
    assert document(world)["budget_left"] == {"usd": 2.0}
    world.tick(2 * HOUR_MS)
    hand_on(world, "cid")
    third = go_on(world)
    assert world.host.directories[third.id, 0].order.limits.timeout_ms == MINUTE_MS


def test_a_task_whose_budget_is_used_up_is_not_handed_on(world: World) -> None:
    begin(world, budget={"usd": 1.0})
    world.end("t", text=last_words("ben"), cost_usd=2.0)
    world.tick()
    assert world.state("t") == "FAILED budget"


def test_a_cancelled_task_is_cancelled(world: World) -> None:
    begin(world)
    world.service.cancel("t")
    hand_on(world, "ben")
    assert world.state("t") == "CANCELLED"


def test_a_new_generation_begins_with_whoever_the_task_names(world: World) -> None:
    begin(world)
    hand_on(world, "ben")
    go_on(world)
    world.restart("t", force=True)
    world.end("t", exit_code=None, ended_by="cancel", status="cancelled", reason="cancelled")
    world.tick()
    assert go_on(world).specialist == "ann"
    assert "before" not in document(world)


def announced(world: World, run: Run, to: str = "ben", by: Principal = OPERATOR, **fields: Any) -> HandoffView:
    return world.access.as_(by)[Runs].hand_on(run.id, HandoffRequest(to=to, **fields))


def speaker(run: Run) -> Principal:
    return Principal(f"run:{run.id}", Role.RUN, None, run.id)


@pytest.mark.both_databases
def test_a_run_announces_it_while_it_lives(world: World) -> None:
    first = begin(world)
    view = announced(world, first, by=speaker(first), left="Write it up.")
    assert (view.specialist, view.handed_on_by, view.hop, view.max_handoffs) == ("ben", "ann", 1, 2)
    assert announced(world, first, left="Write it up.") == view
    assert world.state("t") == "RUNNING"
    world.succeed("t")
    world.tick()
    second = go_on(world)
    assert second.specialist == "ben"
    assert document(world)["before"]["left"] == "Write it up."
    assert len(records(world)) == 1


@pytest.mark.parametrize("how", [{"status": "failed", "reason": "agent_error"}, {"status": "lost", "reason": "lost"}])
def test_what_was_announced_follows_however_the_run_ends(world: World, how: dict[str, Any]) -> None:
    first = begin(world)
    announced(world, first)
    world.end("t", **how)
    world.tick()
    assert go_on(world).specialist == "ben"


def test_what_is_refused_while_it_lives_leaves_the_task_where_it_is(world: World) -> None:
    run = begin(world)
    with pytest.raises(Conflict, match="there is no specialist nobody"):
        announced(world, run, "nobody")
    with pytest.raises(Conflict, match="ann already had it"):
        announced(world, run, "ann")
    assert records(world) == []
    world.succeed("t")
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_a_run_hands_on_its_own_task_once_and_while_it_lives(world: World) -> None:
    run = begin(world)
    begin(world, "other")
    other = world.live("other")
    with pytest.raises(NotFound):
        announced(world, other, by=speaker(run))
    announced(world, run)
    with pytest.raises(Conflict, match="already"):
        announced(world, run, "cid")
    world.service.cancel("other")
    with pytest.raises(Conflict, match="is being stopped"):
        announced(world, other)


@pytest.mark.parametrize(
    "point",
    [
        *("tick-begin", "outcome-read", "finish-begin", "store-begin", "store-before-commit", "store-after-commit"),
        *("finish-committed", "tick-end", "start-prepared", "start-committed", "start-spawned"),
    ],
)
@pytest.mark.parametrize("while_alive", [False, True])
def test_wherever_the_daemon_ends_there_is_one_hop(world: World, point: str, while_alive: bool) -> None:
    first = begin(world)
    if while_alive:
        announced(world, first)
        world.end("t", text="done")
    else:
        world.end("t", text=last_words("ben"))
    reached: list[str] = []

    def hook(passed: str) -> None:
        if passed == point and not reached:
            reached.append(passed)
            raise RuntimeError(point)

    crashpoint.install(hook)
    try:
        for _ in range(6):
            try:
                world.router.route()
                world.tick(MINUTE_MS)
            except Exception:
                world.restarted_daemon()
    finally:
        crashpoint.install(None)

    assert reached == [point]
    assert [(record.by, record.specialist) for record in records(world)] == [("ann", "ben")]
    assert world.live("t").specialist == "ben"
    assert document(world)["before"]["run"] == first.id
    task_id = world.row("t").id
    record = world.database.read(lambda connection: events.of_task(connection, task_id=task_id))
    assert [event.kind for event in record].count(HANDED_ON) == 1


def test_secrets_and_persons_are_not_passed_on(world: World) -> None:
    begin(world, env={"TOKEN": "hunter2-hunter2"})
    hand_on(world, "ben", left="Use hunter2-hunter2, and write to jane@example.org.", files=["/srv/hunter2-hunter2"])
    go_on(world)
    assert "hunter2" not in json.dumps(document(world)) + prompt(world)
    assert "jane" not in json.dumps(document(world)) + prompt(world)


def test_files_of_all_hops_are_named(world: World) -> None:
    begin(world)
    hand_on(world, "ben", files=["a.py", "b.py"])
    go_on(world)
    hand_on(world, "cid", files=["c.py", "a.py"])
    go_on(world)
    assert document(world)["evidence"]["files"] == ["a.py", "b.py", "c.py"]


def test_the_intent_is_part_of_the_decision(world: World) -> None:
    begin(world, instructions="# Fix the **login**. Write to jane@example.org.\n\nIt redirects twice.")
    task_id = world.row("t").id
    decision = world.database.read(
        lambda connection: decision_rows.latest(connection, task_id, DecisionKind.SPECIALIST, 1)
    )
    assert decision is not None
    assert decision.data["intent"] == document(world)["intent"] == "Fix the login."


@pytest.mark.parametrize("visibility", list(Visibility))
def test_whom_nobody_admitted_is_named_as_such_to_those_who_see_the_card(world: World, visibility: Visibility) -> None:
    world.access.as_(MIA)[Specialists].register(card("shepherd", visibility=visibility))
    begin(world)
    hand_on(world, "shepherd")

    text = "no administrator has admitted shepherd for the work of others; `claudomator specialists admit` does that"
    refused(world, text)
    (last, *_) = world.access.as_(OPERATOR)[Decisions].page(DecisionFilter(kind="handoff"), None, 1).items
    assert last.reason == text
    assert last.rationale is not None
    assert last.rationale.code is RationaleCode.NOT_ADMITTED
    why = world.access.as_(OPERATOR)[Tasks].why("t")
    assert text in "\n".join(why.sentences)


@pytest.mark.parametrize("visibility", list(Visibility))
@pytest.mark.parametrize("by", ["ended", "operator", "run"])
def test_a_card_that_its_creator_does_not_see_is_none(world: World, visibility: Visibility, by: str) -> None:
    """An organisation's task, for a card of another organisation, and words for one that there is not."""
    world.access.as_(MIA)[Specialists].register(card("shepherd", visibility=visibility))
    world.access.as_(NED)[Specialists].register(card("ned"))
    words = []
    for number, name in enumerate(("shepherd", "xxxxxxxx")):
        world.access.as_(NED)[Tasks].submit(spec(f"t{number}", specialist="ned", on_input="wait"))
        run = go_on(world, f"t{number}")
        if by == "ended":
            hand_on(world, name, f"t{number}")
            session = world.access.as_(NED)
            (last,) = session[Decisions].page(DecisionFilter(kind="handoff", task=f"t{number}"), None, 9).items
            explained = session[Decisions].explained(last.id)
            messages = session[Tasks].get(f"t{number}").reason_text, last.reason, last.handoff, explained.sentences
            words.append(repr((*messages, explained.said)))
            continue
        who = NED if by == "operator" else Principal(f"run:{run.id}", Role.RUN, "other", run.id)
        with pytest.raises(ServiceError) as exception_info:
            world.access.as_(who)[Runs].hand_on(run.id, HandoffRequest(to=name))
        words.append(exception_info.value.detail)
    if visibility is Visibility.PUBLIC and by != "run":
        assert "admitted" in words[0]  # it sees that card
    else:
        assert words[0].replace("shepherd", "xxxxxxxx").replace("t0", "t1") == words[1]


def test_the_run_of_the_operator_s_task_learns_of_no_card(world: World) -> None:
    world.access.as_(MIA)[Specialists].register(card("shepherd", visibility=Visibility.PRIVATE))
    run = begin(world)
    with pytest.raises(ServiceError, match="there is no specialist shepherd"):
        world.access.as_(speaker(run))[Runs].hand_on(run.id, HandoffRequest(to="shepherd"))
    with pytest.raises(ServiceError, match="no administrator has admitted shepherd"):
        world.access.as_(OPERATOR)[Runs].hand_on(run.id, HandoffRequest(to="shepherd"))
