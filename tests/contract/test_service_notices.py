"""Who is told of what: in order, once after any crash of the daemon, and again until it arrives."""

import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, NotFound, Unavailable
from claudomator_py.domain.notice import (
    DeliveryFault,
    DeliveryState,
    EventContext,
    Notice,
    NoticeKind,
    NotifyTarget,
    notice_of,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.tasks import RejectRequest
from claudomator_py.store import outbox_rows
from claudomator_py.store.database import Database
from claudomator_py.workers.notifications import ATTEMPTS, NotificationDispatcher
from tests.fakes.world import World
from tests.patience import PATIENCE_S

ALL = tuple(kind for kind in NoticeKind if kind is not NoticeKind.TEST)


class Mailbox:
    """Keeps what is delivered. faults: raised by the next deliveries, one each. gate: closed while it must wait."""

    def __init__(self) -> None:
        self.notices: queue.Queue[Notice] = queue.Queue()
        self.tried = 0
        self.faults: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()

    def send(self, notice: Notice) -> None:
        self.tried += 1
        self.gate.wait(PATIENCE_S)
        if self.faults:
            raise self.faults.pop(0)
        self.notices.put(notice)

    def close(self) -> None:
        self.gate.set()

    def next(self) -> Notice:
        return self.notices.get(timeout=PATIENCE_S)


class Post:
    """A world with targets that are told, and a daemon that can be started again."""

    def __init__(self, world: World, **targets: Any) -> None:
        self.world = world
        self.targets = {name: NotifyTarget(url=f"https://{name}/", events=on) for name, on in targets.items()}
        self.mail = {name: Mailbox() for name in targets}
        self.dispatcher = NotificationDispatcher(world.database, self._messenger, world.clock)
        world.database.on_commit(lambda: self.dispatcher.wake())

    def start(self) -> None:
        self.dispatcher.follow(self.targets)
        for name in self.targets:
            self.until(partial(self._has_begun, name))

    def stop(self) -> None:
        self.dispatcher.close()
        self.dispatcher = NotificationDispatcher(self.world.database, self._messenger, self.world.clock)

    def _messenger(self, target: NotifyTarget) -> Mailbox:
        return next(self.mail[name] for name, known in self.targets.items() if known == target)

    def _has_begun(self, name: str) -> bool:
        return self.cursor(name) is not None

    def until(self, condition: Callable[[], bool]) -> None:
        tick = threading.Event()
        for _ in range(int(PATIENCE_S / 0.01)):
            if condition():
                return
            tick.wait(0.01)
        raise AssertionError("it did not come to that in time")

    def cursor(self, name: str) -> int | None:
        return self.world.database.read(lambda connection: outbox_rows.cursor(connection, name))

    @property
    def notices(self) -> Notices:
        return Notices(self.world.database, self.dispatcher, self.world.clock).as_(OPERATOR)

    def states(self) -> list[DeliveryState]:
        return [view.state for view in self.notices.deliveries(None, None, 100).items]

    def tried(self, attempts: int) -> bool:
        return [view.attempts for view in self.notices.deliveries(None, None, 1).items] == [attempts]


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


@pytest.fixture
def post(world: World) -> Iterator[Post]:
    made = Post(world, phone=ALL)
    made.start()
    yield made
    for mailbox in made.mail.values():
        mailbox.gate.set()
    made.stop()


def test_the_end_of_a_task_is_told_in_words(world: World, post: Post) -> None:
    world.submit("good")
    world.tick()
    world.succeed("good")
    notice = post.mail["phone"].next()
    assert (notice.kind, notice.title, notice.task_name) == (NoticeKind.COMPLETED, "good: completed", "good")
    assert notice.task_id == world.task("good").id


@pytest.mark.parametrize(
    ("changes", "text", "expected"),
    [
        ({"file_count": 1, "head": "b" * 40, "added": 3}, "Fixed it.", "Changed: 1 file (+3 -0)"),
        ({}, "It works already.", "No changes.\nIt works already."),
        ({}, "Fixed it.", "No changes (its result says otherwise).\nFixed it."),
        (
            {"file_count": 1},
            "I couldn't finish it.",
            "Changed: 1 file (its result admits a failure).\nI couldn't",
        ),
    ],
)
def test_the_end_of_a_task_tells_what_it_changed(
    world: World, post: Post, changes: dict[str, object], text: str, expected: str
) -> None:
    world.submit("good")
    world.tick()
    world.end("good", text=text, changes={"place": "/srv/shop", "head_before": "a" * 40, "head": "a" * 40, **changes})
    world.tick()
    notice = post.mail["phone"].next()
    assert notice.text.startswith(expected)


def test_a_failure_is_told_with_its_meaning_and_without_secrets(world: World, post: Post) -> None:
    world.submit("bad")
    world.tick()
    world.fail("bad", detail="no, and the key is sk-0123456789abcdefghij")
    notice = post.mail["phone"].next()
    assert (notice.kind, notice.reason, notice.agent) == (NoticeKind.FAILED, Reason.REFUSED, "claude")
    assert notice.title == "bad: failed (refused)"
    assert notice.text == "The model declined to do the task.\nno, and the key is [redacted]"


def test_a_task_that_failed_for_its_dependencies_names_them(world: World, post: Post) -> None:
    for name in ("one", "two"):
        world.submit(name, approval=True)
    world.submit("after", depends_on=["one", "two"])
    world.tick()
    for name in ("one", "two"):
        post.mail["phone"].next()
        world.service.reject(name, RejectRequest(reason="No."))
    notices = {notice.task_name: notice for notice in (post.mail["phone"].next() for _ in range(3))}
    assert notices["after"].text == "A task that it depends on did not complete: one."


def test_a_question_is_told_as_it_was_asked_and_without_secrets(world: World, post: Post) -> None:
    world.submit("t")
    world.tick()
    world.end("t", text=f"I looked.\nCLAUDOMATOR QUESTION: May I use sk-{'a1b2' * 6}?")
    world.tick()
    notice = post.mail["phone"].next()
    assert (notice.kind, notice.title) == (NoticeKind.NEEDS_INPUT, "t: needs input (question)")
    assert notice.text == "May I use [redacted]?\nHow to answer: claudomator why t"


def test_a_rejection_is_told_as_one(world: World, post: Post) -> None:
    world.submit("t", approval=True)
    world.tick()
    assert post.mail["phone"].next().text.startswith("asks for approval before its first run\n")
    world.service.reject("t", RejectRequest(reason="Not on a Friday."))
    notice = post.mail["phone"].next()
    assert (notice.kind, notice.reason) == (NoticeKind.FAILED, Reason.REJECTED)
    assert notice.text == "A rule or a person rejected it. Not on a Friday."


def test_an_agent_that_waits_for_an_operator_is_told_of_with_the_remedy(world: World, post: Post) -> None:
    world.submit("login")
    world.tick()
    world.fail("login", "auth", detail="401")
    notice = post.mail["phone"].next()
    assert notice.kind is NoticeKind.AGENT_HELD
    assert notice.title == "agent claude is held (auth)"
    assert "claudomator release claude" in notice.text


def test_a_target_is_told_only_of_what_it_asks_for(world: World) -> None:
    post = Post(world, phone=(NoticeKind.FAILED,))
    post.start()
    world.submit("good")
    world.submit("bad")
    world.tick()
    world.succeed("good")
    world.fail("bad")
    assert post.mail["phone"].next().task_name == "bad"
    assert post.mail["phone"].notices.empty()
    post.stop()


def test_a_new_target_is_not_told_of_the_past(world: World) -> None:
    world.submit("old")
    world.tick()
    world.succeed("old")
    post = Post(world, phone=ALL)
    post.start()
    world.submit("new")
    world.tick()
    world.succeed("new")
    assert post.mail["phone"].next().task_name == "new"
    post.stop()


@pytest.mark.both_databases
def test_what_happened_while_nobody_told_is_told_later_in_order(world: World, post: Post) -> None:
    post.stop()
    names = [f"task-{number}" for number in range(5)]
    for name in names:
        world.submit(name)
        world.tick()
        world.succeed(name)
    post.start()
    assert [post.mail["phone"].next().task_name for _ in names] == names


def test_what_could_not_be_delivered_is_tried_again_with_growing_pauses(world: World, post: Post) -> None:
    post.mail["phone"].faults = [DeliveryFault("HTTP 500"), DeliveryFault("HTTP 429", after_s=3_600)]
    world.submit("good")
    world.tick()
    world.succeed("good")
    post.until(partial(post.tried, 1))
    waiting = post.notices.deliveries(DeliveryState.PENDING, None, 1).items[0]
    assert (waiting.error, waiting.next_at is not None) == ("HTTP 500", True)
    world.now_ms += 10_000
    post.dispatcher.wake()
    post.until(partial(post.tried, 2))
    world.now_ms += HOUR_MS - 1
    post.dispatcher.wake()
    world.submit("other", not_before="2099-01-01T00:00:00Z")
    assert post.mail["phone"].tried == 2, "what the server asks for is respected"
    world.now_ms += HOUR_MS
    post.dispatcher.wake()
    assert post.mail["phone"].next().task_name == "good"
    post.until(lambda: post.states() == [DeliveryState.DELIVERED])


def test_what_lastingly_fails_is_kept_as_dead_and_can_be_sent_again(world: World, post: Post) -> None:
    post.mail["phone"].faults = [DeliveryFault("HTTP 404", lasting=True)]
    world.submit("good")
    world.tick()
    world.succeed("good")
    post.until(lambda: post.states() == [DeliveryState.DEAD])
    dead = post.notices.deliveries(DeliveryState.DEAD, None, 10).items[0]
    assert (dead.error, dead.target, dead.notice.task_name) == ("HTTP 404", "phone", "good")
    assert post.notices.again(dead.id).state is DeliveryState.PENDING
    assert post.mail["phone"].next().task_name == "good"
    post.until(lambda: post.states() == [DeliveryState.DELIVERED])
    with pytest.raises(Conflict, match="is delivered"):
        post.notices.again(dead.id)
    with pytest.raises(NotFound):
        post.notices.again(dead.id + 1_000)


def test_after_many_attempts_it_is_given_up(world: World, post: Post) -> None:
    post.mail["phone"].faults = [DeliveryFault("HTTP 500")] * ATTEMPTS
    world.submit("good")
    world.tick()
    world.succeed("good")
    for attempt in range(1, ATTEMPTS + 1):
        post.until(partial(post.tried, attempt))
        world.now_ms += DAY_MS
        post.dispatcher.wake()
    post.until(lambda: post.states() == [DeliveryState.DEAD])


def test_one_that_does_not_answer_delays_no_other(world: World) -> None:
    post = Post(world, stuck=ALL, quick=ALL)
    post.start()
    post.mail["stuck"].gate.clear()
    world.submit("good")
    world.tick()
    world.succeed("good")
    assert post.mail["quick"].next().task_name == "good"
    assert post.mail["stuck"].notices.empty()
    post.mail["stuck"].gate.set()
    assert post.mail["stuck"].next().task_name == "good"
    post.stop()


def test_a_test_notice_says_how_it_went(post: Post) -> None:
    assert post.notices.test("phone").state is DeliveryState.DELIVERED
    assert post.mail["phone"].next().kind is NoticeKind.TEST
    post.mail["phone"].faults = [DeliveryFault("HTTP 403", lasting=True)]
    refused = post.notices.test("phone")
    assert (refused.state, refused.error) == (DeliveryState.DEAD, "HTTP 403")
    with pytest.raises(NotFound, match="phnoe") as caught:
        post.notices.test("phnoe")
    assert "phone" in caught.value.remedy
    assert post.notices.deliveries(None, None, 10).items == ()


def test_who_is_told_can_change_while_the_daemon_runs(world: World, post: Post) -> None:
    post.targets["desk"] = NotifyTarget(url="https://desk/", events=(NoticeKind.COMPLETED,))
    post.mail["desk"] = Mailbox()
    before = post.dispatcher.messengers["phone"]
    post.start()
    assert post.dispatcher.messengers["phone"] is before
    world.submit("good")
    world.tick()
    world.succeed("good")
    assert post.mail["phone"].next().task_name == post.mail["desk"].next().task_name == "good"
    post.dispatcher.follow({"desk": post.targets["desk"]})
    world.submit("other")
    world.tick()
    world.succeed("other")
    assert post.mail["desk"].next().task_name == "other"
    assert post.mail["phone"].notices.empty()


def test_a_limit_is_told_once_however_many_runs_and_probes_meet_it(world: World, post: Post) -> None:
    for name in ("a", "b", "c"):
        world.submit(name, agent={"type": "claude", "strict": True})
    world.tick()
    for name in world.running():
        world.limit(name)
    for _ in range(3):
        world.tick(HOUR_MS // 100)
        for name in world.running():
            world.limit(name)
    world.roster.release("claude")
    world.tick()
    probe = next(iter(world.running()))
    world.succeed(probe)
    messages = [post.mail["phone"].next() for _ in range(2)]
    assert [notice.kind for notice in messages] == [NoticeKind.LIMITED, NoticeKind.COMPLETED]


def test_an_event_that_cannot_be_read_and_a_notice_that_cannot_be_sent_hold_up_no_other(
    world: World, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(happened: EventContext) -> Notice | None:
        if happened.task_name == "unreadable":
            raise KeyError("reason")
        return notice_of(happened)

    monkeypatch.setattr("claudomator_py.workers.notifications.notice_of", broken)
    post.mail["phone"].faults.append(ZeroDivisionError("a bug of the messenger"))
    post.start()
    for name in ("unreadable", "unsendable", "good"):
        world.submit(name)
    world.tick()
    for name in ("unreadable", "unsendable", "good"):
        world.succeed(name)
    assert post.mail["phone"].next().task_name == "good"
    world.now_ms += HOUR_MS
    post.dispatcher.wake()
    assert post.mail["phone"].next().task_name == "unsendable"


def test_a_store_that_cannot_be_used_is_a_refusal(world: World) -> None:
    notices = Post(world, phone=ALL).notices
    world.database.close()
    with pytest.raises(Unavailable):
        notices.deliveries(None, None, 1)
    with pytest.raises(Unavailable):
        notices.again(1)
