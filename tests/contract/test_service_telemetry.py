"""Which spans come of what happens to tasks, that each is sent once, and what a collector's faults do to that."""

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from claudomator_py.domain import crashpoint
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.requests import SubtaskRequest
from claudomator_py.domain.trace import Span, own_span, task_span
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import ExportFault
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest
from claudomator_py.store import pruning, trace_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import DECISION, RUN
from claudomator_py.workers import tracing
from claudomator_py.workers.spans import spans_of
from claudomator_py.workers.tracing import SpanSender
from tests.contract.handing_on import begin, go_on, hand_on
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.patience import PATIENCE_S

ASKS: dict[str, Any] = {"status": "needs_input", "question": "Red or blue?"}


class Collected:
    """Keeps what it is sent. faults: raised by the next requests, one each."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.requests = 0
        self.faults: list[ExportFault] = []
        self.closed = False
        self.arrived: Callable[[], None] = lambda: None

    def send(self, spans: Sequence[Span]) -> None:
        self.requests += 1
        if self.faults:
            raise self.faults.pop(0)
        self.spans += spans
        self.arrived()

    def close(self) -> None:
        self.closed = True

    def titled(self, title: str) -> list[Span]:
        return sorted((span for span in self.spans if span.title == title), key=lambda span: span.end_ms)

    def the(self, title: str) -> Span:
        (span,) = self.titled(title)
        return span


class Traced:
    """A world whose spans are collected."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.collected = Collected()
        self.secrets = Secrets()
        self.restart()
        self.sender.send_all()

    def restart(self) -> None:
        """The daemon was killed, and another one is there."""
        self.sender = SpanSender(self.world.database, self.collected, self.world.clock, self.secrets)

    def sent(self) -> Collected:
        self.sender.send_all()
        return self.collected


@pytest.fixture
def world(database: Database) -> World:
    world = World(database, routing=True)
    for name in ("ann", "ben"):
        world.specialists.register(card(name, description=f"Does what {name} does."))
    return world


@pytest.fixture
def traced(world: World) -> Traced:
    return Traced(world)


def all_spans(world: World, *names: str) -> list[Span]:
    ids = [world.row(name).id for name in names]
    histories = world.database.read(lambda connection: trace_rows.histories(connection, ids))
    return [span for history in histories for span in spans_of(history)]


def by_name(spans: Sequence[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.name.trace_id, span.name.span_id))


# What happens to a task named t, step by step.
Step = Callable[[World], object]


LIMITED_THEN_CHECKED: Sequence[Step] = (
    lambda world: begin(world, check=["make test"]),
    lambda world: world.limit("t", reset_at=world.now_ms + HOUR_MS),
    lambda world: world.tick(MINUTE_MS),
    lambda world: world.tick(2 * HOUR_MS),
    lambda world: world.succeed("t"),
    lambda world: world.host.end(world.live("t").id, 0, step=1),
    lambda world: world.tick(MINUTE_MS),
)


HANDED_ON_ASKED_AND_RESTARTED: Sequence[Step] = (
    lambda world: begin(world),
    lambda world: hand_on(world, "ben", left="Write it up."),
    lambda world: world.tick(MINUTE_MS),
    lambda world: go_on(world),
    lambda world: world.end("t", **ASKS),
    lambda world: world.tick(MINUTE_MS),
    lambda world: world.service.answer("t", AnswerRequest(text="Blue.")),
    lambda world: world.tick(MINUTE_MS),
    lambda world: world.fail("t", "agent_error"),
    lambda world: world.tick(HOUR_MS),
    lambda world: world.fail("t"),
    lambda world: world.restart("t"),
    lambda world: go_on(world),
    lambda world: world.succeed("t"),
)


REJECTED_RESTARTED_AND_CANCELLED: Sequence[Step] = (
    lambda world: world.submit("t", approval=True),
    lambda world: world.router.route(),
    lambda world: world.tick(MINUTE_MS),
    lambda world: world.service.reject("t", RejectRequest(reason="Not tonight.")),
    lambda world: world.restart("t"),
    lambda world: world.router.route(),
    lambda world: world.tick(MINUTE_MS),
    lambda world: world.service.cancel("t"),
)


@pytest.mark.parametrize(
    "story",
    [
        LIMITED_THEN_CHECKED,
        pytest.param(HANDED_ON_ASKED_AND_RESTARTED, marks=pytest.mark.both_databases),
        REJECTED_RESTARTED_AND_CANCELLED,
    ],
)
def test_each_span_is_sent_once_however_often_it_is_looked(world: World, traced: Traced, story: Sequence[Step]) -> None:
    for step in story:
        step(world)
        traced.sent()
    assert world.task("t").state in ("COMPLETED", "CANCELLED")
    everything = all_spans(world, "t")
    assert by_name(traced.collected.spans) == by_name(everything)
    assert len({span.name for span in everything}) == len(everything), "two spans have one name"
    assert all(span.start_ms <= span.end_ms for span in everything)
    known = {span.name for span in everything}
    assert all(span.parent in known for span in everything if span.parent is not None)
    assert {link.to for span in everything for link in span.links} <= known
    # And the same at once, by a daemon that comes late.
    world.database.write(lambda connection: trace_rows.move_cursor(connection, 0))
    late = traced.collected = Collected()
    traced.restart()
    assert by_name(traced.sent().spans) == by_name(everything)
    assert late.requests == 1


def test_a_run_says_what_it_used_and_where(world: World, traced: Traced) -> None:
    world.submit("t", agent={"type": "claude", "tier": "fast"}, priority="high")
    world.router.route()
    world.tick()
    run = world.live("t")
    world.end("t", tokens={"input": 1200, "output": 25}, cost_usd=0.25, text="the answer")
    world.tick(MINUTE_MS)
    invoked = traced.sent().the("invoke_agent claude")
    assert invoked.name == own_span(run.task_id, run.id)
    assert invoked.calls_agent
    attributes = invoked.attributes
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["gen_ai.request.model"] == "haiku"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (1200, 25)
    assert attributes["claudomator.run.cost_usd"] == 0.25
    assert attributes["claudomator.run.tier"] == "fast"
    assert attributes["gen_ai.conversation.id"] == run.conversation_id
    root = traced.collected.the("task")
    assert root.attributes["claudomator.task.priority"] == "high"
    assert root.parent is None
    assert not any("the answer" in repr(span) or "do t" in repr(span) for span in traced.collected.spans)


def test_a_run_ends_within_its_task(world: World, traced: Traced) -> None:
    """Though the clock by which its supervisor noted the end was read after the one by which that was seen."""
    begin(world, "t")
    world.succeed("t")
    world.database.write(lambda connection: connection.execute(update(RUN).values(ended_ms=world.now_ms + 5)))
    sent = traced.sent()
    assert sent.the("invoke_agent claude").end_ms == sent.the("task").end_ms == world.now_ms


def test_a_decision_says_what_was_chosen_and_why_nobody_else(world: World, traced: Traced) -> None:
    begin(world)
    world.succeed("t")
    collected = traced.sent()
    placed, routed = collected.the("decide placement").attributes, collected.the("decide specialist").attributes
    assert (placed["claudomator.decision.agent"], placed["claudomator.decision.model"]) == ("claude", "sonnet")
    assert placed["claudomator.decision.reason"] == "least_active"
    assert placed["claudomator.decision.rejected"] == ("codex: tie", "lint: not_selectable")
    assert placed["claudomator.decision.tier_source"] == "default"
    assert (routed["claudomator.decision.specialist"], routed["claudomator.decision.reason"]) == ("ann", "named")
    assert routed["claudomator.decision.route"] == "specialist"


def test_waits_say_why_and_for_how_long(world: World, traced: Traced) -> None:
    world.submit("first")
    world.submit("t", depends_on=["first"], approval=True, specialist="ann")
    world.router.route()
    world.tick()
    world.tick(MINUTE_MS)
    world.succeed("first")
    world.router.route()
    world.tick(HOUR_MS)
    world.service.approve("t", ApproveRequest())
    go_on(world)
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    collected = traced.sent()
    ours = [span for span in collected.spans if span.name.trace_id == task_span(world.row("t").id, 1).trace_id]
    waits = {
        span.attributes["claudomator.wait.reason"]: span for span in ours if "claudomator.wait.state" in span.attributes
    }
    assert waits["dependency"].title == "waiting"
    assert waits["dependency"].end_ms - waits["dependency"].start_ms == MINUTE_MS
    assert waits["approval"].title == "needs_input"
    assert waits["approval"].end_ms - waits["approval"].start_ms == HOUR_MS
    assert "limited" not in waits, "it is not over"
    assert not any(span.title == "task" for span in ours)


def test_what_belongs_together_is_linked(world: World, traced: Traced) -> None:
    first = begin(world)
    hand_on(world, "ben")
    second = go_on(world)
    world.end("t", **ASKS)
    world.tick()
    world.service.answer("t", AnswerRequest(text="Blue."))
    third = go_on(world)
    world.succeed("t")
    runs = {span.name: span for span in traced.sent().titled("invoke_agent claude")}
    names = [own_span(run.task_id, run.id) for run in (first, second, third)]
    assert [[(link.to, link.why) for link in runs[name].links] for name in names] == [
        [],
        [(names[0], "handoff")],
        [(names[1], "resumes")],
    ]


def test_a_restart_takes_nothing_over_from_the_run_that_handed_on(world: World, traced: Traced) -> None:
    begin(world)
    hand_on(world, "ben")
    world.restart("t", specialist="ann")
    go_on(world)
    world.succeed("t")
    assert [span.links for span in traced.sent().titled("invoke_agent claude")] == [(), ()]


def test_a_task_that_a_run_made_is_linked_to_that_run(world: World, traced: Traced) -> None:
    world.launch_rules = replace(world.launch_rules, max_subtasks=1)
    run = begin(world)
    asked = world.access.as_(Principal(f"run:{run.id}", Role.RUN, None, run.id))[Runs]
    asked.create_subtask(run.id, SubtaskRequest(name="docs", instructions="Write it up.", specialist="ben"))
    world.service.cancel("docs")
    (link,) = traced.sent().the("task").links
    assert (link.to, link.why) == (own_span(run.task_id, run.id), "subtask")


def test_each_generation_is_a_part_of_one_trace(world: World, traced: Traced) -> None:
    begin(world)
    world.fail("t")
    world.restart("t")
    go_on(world)
    world.restart("t", force=True)
    world.end("t", status="cancelled", reason="cancelled")
    world.tick()
    go_on(world)
    world.succeed("t")
    first, second, third = traced.sent().titled("task")
    task_id = world.row("t").id
    assert [span.name for span in (first, second, third)] == [task_span(task_id, number) for number in (1, 2, 3)]
    assert [span.parent for span in (first, second, third)] == [None, first.name, first.name]
    assert [span.failed for span in (first, second, third)] == [True, False, False]
    assert [span.attributes.get("claudomator.task.state") for span in (first, second, third)] == [
        "FAILED",
        "CANCELLED",
        "COMPLETED",
    ]


def test_new_content_ends_a_generation_that_had_no_outcome(world: World, traced: Traced) -> None:
    world.take("t.yaml", spec("t"))
    go_on(world)
    world.fail("t", "agent_error")
    assert world.state("t") == "WAITING backoff"
    world.take("t.yaml", spec("t", priority="high"), mtime_ns=2)
    root = traced.sent().the("task")
    assert root.attributes["claudomator.task.superseded"] is True
    assert "claudomator.task.state" not in root.attributes


def test_what_was_taken_is_not_sent_again_and_what_was_not_is(
    world: World, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "BATCH_SIZE", 2)
    begin(world)
    world.succeed("t")
    send = traced.collected.send

    def fails_at_the_second(spans: Sequence[Span]) -> None:
        if traced.collected.requests == 1:
            traced.collected.faults.append(ExportFault("it is down"))
        send(spans)

    monkeypatch.setattr(traced.collected, "send", fails_at_the_second)
    with pytest.raises(ExportFault):
        traced.sender.send_all()
    assert len(traced.collected.spans) == 2
    traced.sender.send_all()
    assert by_name(traced.collected.spans) == by_name(all_spans(world, "t"))


def test_what_was_not_noted_before_a_crash_is_sent_again_and_is_the_same(world: World, traced: Traced) -> None:
    begin(world)
    world.succeed("t")

    def die(point: str) -> None:
        if point == "spans-sent":
            raise RuntimeError(point)

    crashpoint.install(die)
    try:
        with pytest.raises(RuntimeError):
            traced.sender.send_all()
    finally:
        crashpoint.install(None)
    first = by_name(traced.collected.spans)
    traced.collected = Collected()
    traced.restart()
    assert by_name(traced.sent().spans) == first != []
    traced.collected = Collected()
    traced.restart()
    assert traced.sent().spans == []


def test_what_a_collector_will_never_take_holds_up_nothing(world: World, traced: Traced) -> None:
    begin(world)
    world.succeed("t")
    traced.collected.faults.append(ExportFault("HTTP 400", lasting=True))
    traced.sender.send_all()
    begin(world, "other")
    world.succeed("other")
    traced.sender.send_all()
    assert by_name(traced.collected.spans) == by_name(all_spans(world, "other"))
    check = traced.sender.check()
    assert check.ok
    assert f"{len(all_spans(world, 't'))} spans were refused" in check.detail


def test_a_backlog_is_sent_page_after_page(world: World, traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "PAGE", 3)
    names = [f"t{number}" for number in range(6)]
    for name in names:
        begin(world, name)
        world.succeed(name)
    assert by_name(traced.sent().spans) == by_name(all_spans(world, *names))
    assert traced.collected.requests > 2


def test_a_task_that_cannot_be_read_keeps_no_other(world: World, traced: Traced) -> None:
    for name in ("bad", "good"):
        begin(world, name)
        world.succeed(name)
    damaged = DECISION.update().where(DECISION.c.task_id == world.row("bad").id).values(kind="unheard-of")
    world.database.write(lambda connection: connection.execute(damaged))
    assert by_name(traced.sent().spans) == by_name(all_spans(world, "good"))


def test_a_task_that_is_gone_is_left_out(world: World, traced: Traced) -> None:
    for name in ("gone", "good"):
        begin(world, name)
        world.succeed(name)
    gone = world.row("gone").id
    world.now_ms += HOUR_MS
    removed = world.database.write(lambda connection: pruning.tasks(connection, [gone], world.now_ms))
    assert removed == 1
    assert by_name(traced.sent().spans) == by_name(all_spans(world, "good"))


def test_of_the_past_nothing_is_sent(world: World) -> None:
    begin(world, "before")
    world.succeed("before")
    begin(world, "meanwhile")
    traced = Traced(world)
    world.succeed("meanwhile")
    assert {span.attributes["claudomator.task.name"] for span in traced.sent().spans} == {"meanwhile"}
    assert traced.collected.the("task").start_ms == world.row("meanwhile").created_ms


def test_no_secret_is_in_a_span(world: World, traced: Traced) -> None:
    traced.secrets.add(["hunter2-hunter2"])
    world.submit("t", tags=["x"], agent={"type": "claude", "model": "hunter2-hunter2"})
    world.router.route()
    world.tick()
    world.succeed("t")
    invoked = traced.sent().the("invoke_agent claude")
    assert invoked.attributes["gen_ai.request.model"] == "[redacted]"
    assert "hunter2" not in repr(traced.collected.spans)


def test_what_a_shadow_says_is_no_part_of_a_trace(world: World, traced: Traced) -> None:
    run = begin(world)
    world.succeed("t")
    before = len(all_spans(world, "t"))
    shadow = DECISION.insert().values(
        id=str(uuid.uuid4()), kind="shadow", task_id=run.task_id, generation=1, at_ms=world.now_ms, data={}
    )
    world.database.write(lambda connection: connection.execute(shadow))
    assert len(traced.sent().spans) == before


def test_the_thread_sends_when_it_is_woken_and_ends_when_it_is_told(world: World, traced: Traced) -> None:
    arrived = threading.Event()
    traced.collected.arrived = arrived.set
    world.database.on_commit(traced.sender.wake)
    traced.sender.start()
    begin(world)
    world.succeed("t")
    assert arrived.wait(PATIENCE_S)
    traced.sender.close()
    assert traced.collected.closed
    assert traced.sender.check().detail == "spans are accepted"
