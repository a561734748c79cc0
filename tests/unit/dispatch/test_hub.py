"""The hub between runs and connections, with time that passes at once."""

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from claudomator_py.dispatch.hub import (
    AGAIN_S,
    GRACE_S,
    LEASE_S,
    MOST_REFUSALS,
    WAKE_S,
    Gone,
    Hub,
    Link,
    Refused,
)
from claudomator_py.dispatch.waking import NotWoken
from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.store.database import Database, StoreUnavailable
from tests.fakes.cards import card
from tests.fakes.quick_time import run_quickly
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
DONE = {"type": "end", "outcome": "completed", "text": "42 sheep"}


class Peer:
    """A connection whose agent says what it is told to. asked: every request; at_s: when each of them came; tasks: who
    asked; waiting: of how many the answer is awaited; closed: why it was closed."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.at_s: list[float] = []
        self.tasks: list[weakref.ref[Any]] = []
        self.waiting = 0
        self.closed: list[tuple[int, str]] = []

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        self.asked.append((method, params))
        self.at_s.append(asyncio.get_running_loop().time())
        self.tasks.append(weakref.ref(asyncio.current_task()))
        answer = self.answers.pop(0) if self.answers else {"accepted": True}
        self.waiting += 1
        try:
            answer = await answer if isinstance(answer, asyncio.Future) else await asyncio.sleep(0, answer)
        finally:
            self.waiting -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def offered(self) -> list[str]:
        """The assignments that it was asked to take."""
        return [str(params["assignment_id"]) for method, params in self.asked if method == "task.assign"]

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))


class Met:
    """A world with an agent of the hub, its hub, and what that knocked at."""

    def __init__(self, database: Database, **fields: Any) -> None:
        self.world = World(database)
        by = fields.pop("by", None)
        specialists = self.world.specialists if by is None else self.world.access.as_(by).specialists
        specialists.register_itself(card("shepherd", url="ws-agent://shepherd", **fields))
        self.knocked: list[str] = []
        self.deaf: Exception | None = None

    def hub(self) -> Hub:
        return Hub(self.world.database, self.world.host, self.world.registry, self._knock)

    def _knock(self, url: str, _: Mapping[str, Any]) -> None:
        self.knocked.append(url)
        if self.deaf is not None:
            raise self.deaf

    def run(self, name: str) -> str:
        """A run of the agent whose process has started."""
        self.world.submit(name, specialist="shepherd", instructions="Count the sheep.")
        self.world.router.route()
        self.world.tick()
        self.world.tick()
        return self.world.live(name).id

    def told(self, run_id: str) -> list[Any]:
        return [json.loads(line) for line in self.world.host.told(run_id).splitlines()]

    def end(self, run_id: str) -> Any:
        return next((one for one in self.told(run_id) if one["type"] == "end"), None)


def link(peer: Peer, instance: str = "one", agent_id: str = "shepherd", most: int = 1) -> Link:
    return Link(agent_id, instance, most, peer)


class Held:
    """A call that returns what it found only once it is let go, the first time."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._first = True
        self.found = threading.Event()
        self._free = threading.Event()

    def __call__(self, *args: Any) -> Any:
        first, self._first = self._first, False
        found = self._call(*args)
        if first:
            self.found.set()
            self._free.wait()
        return found

    async def has_found(self) -> None:
        """Return while it is held: by this task, at the longest."""
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self.let_go())
        await asyncio.to_thread(self.found.wait)

    def let_go(self) -> None:
        self._free.set()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(2 * LEASE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is told to nobody
            await asyncio.sleep(0.05)


def hubbed(met: Met, scenario: Callable[[Hub], Awaitable[None]]) -> None:
    async def play() -> None:
        hub = met.hub()
        hub.start()
        try:
            await scenario(hub)
        finally:
            await hub.close()

    run_quickly(play())


def test_a_run_is_given_to_who_is_connected_and_ends_with_the_result(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        assert await hub.join(agent, []) == []
        await until(lambda: peer.asked)
        await until(lambda: met.told(run_id))
        await hub.progress("shepherd", run_id, {"text": "seven"})
        await hub.progress("wolf", run_id, {"text": "ate one"})
        assert await hub.result(agent, run_id, DONE) is False
        assert await hub.result(agent, run_id, DONE) is True
        with pytest.raises(Conflict, match="Another result"):
            await hub.result(agent, run_id, DONE | {"text": "43 sheep"})

    hubbed(met, scenario)

    method, params = peer.asked[0]
    assert (method, params["assignment_id"]) == ("task.assign", run_id)
    assert "Count the sheep." in params["instructions"]
    assert [one["type"] for one in met.told(run_id)] == ["accepted", "progress", "end"]


def test_an_assignment_is_lost_when_its_lease_is_over(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.told(run_id))
        await asyncio.sleep(2 * LEASE_S)
        hub.leave(agent)
        await asyncio.sleep(LEASE_S - 1)
        assert met.end(run_id) is None
        await until(lambda: met.end(run_id))
        late = link(Peer())
        assert await hub.join(late, [run_id]) == []
        with pytest.raises(Conflict):
            await hub.result(late, run_id, DONE)

    hubbed(met, scenario)

    assert met.end(run_id)["outcome"] == "lost"


def test_a_lease_begins_again_with_the_daemon(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def assigned(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))

    async def back(hub: Hub) -> None:
        await asyncio.sleep(LEASE_S - 1)
        again = link(Peer())
        assert await hub.join(again, [run_id]) == [run_id]
        assert await hub.result(again, run_id, DONE) is False

    hubbed(met, assigned)
    hubbed(met, back)

    assert [one["type"] for one in met.told(run_id)] == ["accepted", "end"]


def test_what_the_agent_took_and_the_daemon_forgot_goes_on(database: Database) -> None:
    """The daemon was killed before it wrote down that the agent had accepted."""
    met, peer = Met(database, max_concurrent=2), Peer()
    taken, other = met.run("sheep"), met.run("more-sheep")

    async def scenario(hub: Hub) -> None:
        assert await hub.join(link(peer, most=2), [taken]) == [taken]
        await until(lambda: met.told(other))

    hubbed(met, scenario)

    assert [params["assignment_id"] for _, params in peer.asked] == [other], "it is asked only for what it has not"
    assert [one["type"] for one in met.told(taken)] == ["accepted"]


def test_what_an_agent_has_is_not_offered_to_it_while_it_connects(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, peer = Met(database, wake_url="http://127.0.0.1:9/wake"), Peer()
    held = Held(database.read)

    async def scenario(hub: Hub) -> None:
        await asyncio.sleep(GRACE_S)
        taken = met.run("sheep")
        monkeypatch.setattr(database, "read", held)
        joining = asyncio.create_task(hub.join(link(peer), [taken]))
        await held.has_found()
        hub.wake()
        await until(lambda: met.knocked or peer.asked)
        held.let_go()
        assert await joining == [taken]

    hubbed(met, scenario)

    assert peer.asked == []


def test_an_agent_that_says_it_is_another_instance_stays_one_connection(database: Database) -> None:
    met, peer = Met(database), Peer()
    agent = link(peer)

    async def scenario(hub: Hub) -> None:
        await hub.join(agent, [])
        agent.instance_id = "two"
        await hub.join(agent, [])
        hub.leave(agent)
        run_id = met.run("sheep")
        hub.wake()
        await until(lambda: peer.asked or met.end(run_id))

    hubbed(met, scenario)

    assert peer.asked == [], "its connection has ended"


def test_one_who_refuses_is_asked_again_and_given_up_in_the_end(database: Database) -> None:
    met, peer = Met(database, max_concurrent=2), Peer(Refused(-32010, "busy"), {"accepted": False}, "yes")
    run_id = met.run("sheep")

    async def accepted(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))

    hubbed(met, accepted)
    assert [later - at for at, later in pairwise(peer.at_s)] == pytest.approx([AGAIN_S] * 3, abs=0.01)

    stubborn = Peer(*[Refused(-32010, "busy")] * 20)
    other = met.run("more-sheep")

    async def given_up(hub: Hub) -> None:
        await hub.join(link(stubborn), [])
        await until(lambda: met.end(other))

    hubbed(met, given_up)
    assert len(stubborn.asked) == MOST_REFUSALS
    assert met.end(other) == {"type": "end", "outcome": "unreachable", "error": "it refused 5 times: busy"}


def test_one_who_does_not_answer_is_cut_off_and_its_run_goes_to_the_next(database: Database) -> None:
    met, silent, other = Met(database), Peer(Gone("no answer")), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(silent), [])
        await until(lambda: silent.closed)
        await hub.join(link(other, "other"), [])
        await until(lambda: met.told(run_id))

    hubbed(met, scenario)

    assert silent.closed[0][0] == 1011
    assert len(other.asked) == 1


def test_no_agent_has_more_than_it_takes(database: Database) -> None:
    met, peer, other = Met(database, max_concurrent=5), Peer(), Peer()
    runs = [met.run(f"sheep-{number}") for number in range(3)]

    async def scenario(hub: Hub) -> None:
        one = link(peer)
        await hub.join(one, [])
        await hub.join(link(other, "other"), [])
        await until(lambda: sum(bool(met.told(run)) for run in runs) == 2)
        await asyncio.sleep(GRACE_S)
        assert (len(peer.asked), len(other.asked)) == (1, 1)
        await hub.result(one, str(peer.asked[0][1]["assignment_id"]), DONE)
        await until(lambda: all(met.told(run) for run in runs))

    hubbed(met, scenario)

    assert (len(peer.asked), len(other.asked)) == (2, 1)


def test_the_same_instance_replaces_its_connection(database: Database) -> None:
    met, peer, again = Met(database, max_concurrent=2), Peer(), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        first, second = link(peer), link(again)
        await hub.join(first, [])
        await until(lambda: met.told(run_id))
        assert await hub.join(second, ["no-such-run", run_id]) == [run_id]
        hub.leave(first)
        await hub.result(second, run_id, DONE)
        other = met.run("more-sheep")
        hub.wake()
        await until(lambda: met.told(other))

    hubbed(met, scenario)

    assert peer.closed[0][0] == 1008


def test_a_run_that_is_over_is_cancelled_there(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        hub.wake()
        await until(lambda: len(peer.asked) > 1)
        assert peer.asked[1:] == [("task.cancel", {"assignment_id": run_id})]
        other = met.run("more-sheep")
        hub.wake()
        await until(lambda: met.told(other))

    hubbed(met, scenario)


def test_anothers_result_is_that_of_no_assignment(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        wolf = link(Peer(), agent_id="wolf")
        assert await hub.join(wolf, [run_id]) == []
        for wrong in (run_id, "no-such-run"):
            with pytest.raises(NotFound, match="There is no assignment"):
                await hub.result(wolf, wrong, DONE)

    hubbed(met, scenario)

    assert met.end(run_id) is None


def test_one_without_an_address_that_wakes_it_has_to_be_started(database: Database) -> None:
    met = Met(database)
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.end(run_id))

    hubbed(met, scenario)

    assert met.end(run_id)["outcome"] == "not_running"
    assert "start it" in met.end(run_id)["error"]


@pytest.mark.parametrize("deaf", [None, NotWoken("it answered 500")])
def test_one_that_is_woken_and_does_not_come_is_unreachable(database: Database, deaf: Exception | None) -> None:
    met = Met(database, wake_url="http://127.0.0.1:9/wake")
    met.deaf = deaf
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.end(run_id))

    hubbed(met, scenario)

    assert met.end(run_id)["outcome"] == "unreachable"
    assert (len(met.knocked) > 1) == (deaf is not None)


def test_one_that_is_woken_and_comes_is_given_the_task(database: Database) -> None:
    met, peer = Met(database, wake_url="https://agents.example/wake"), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.knocked)
        await hub.join(link(peer), [])
        await until(lambda: peer.asked)

    hubbed(met, scenario)

    assert met.knocked == ["https://agents.example/wake"]
    assert met.end(run_id) is None


def test_nobody_but_the_operator_has_this_machine_knocked_at(database: Database) -> None:
    """What listens on this machine alone may be open to whoever reaches it."""
    met = Met(database, by=ANN, wake_url="http://127.0.0.1:9/wake")
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.end(run_id))

    hubbed(met, scenario)

    assert met.knocked == []
    assert met.end(run_id)["outcome"] == "unreachable"


def test_a_daemon_waits_a_moment_for_those_who_were_connected(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await asyncio.sleep(GRACE_S / 2)
        assert met.told(run_id) == []
        await hub.join(link(peer), [])
        await asyncio.sleep(1)
        assert peer.asked

    hubbed(met, scenario)

    assert met.end(run_id) is None


def test_who_has_just_left_is_waited_for_as_well(database: Database) -> None:
    met, peer = Met(database), Peer()

    async def scenario(hub: Hub) -> None:
        agent = link(Peer())
        await hub.join(agent, [])
        await asyncio.sleep(GRACE_S)
        hub.leave(agent)
        run_id = met.run("sheep")
        hub.wake()
        await asyncio.sleep(GRACE_S - 1)
        assert met.told(run_id) == []
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))

    hubbed(met, scenario)


def test_where_one_instance_leaves_another_is_given_the_run(database: Database) -> None:
    met, peer = Met(database), Peer()

    async def scenario(hub: Hub) -> None:
        leaving = link(Peer(), "leaving")
        await hub.join(leaving, [])
        await hub.join(link(peer), [])
        hub.leave(leaving)
        run_id = met.run("sheep")
        hub.wake()
        await until(lambda: met.told(run_id))

    hubbed(met, scenario)

    assert len(peer.asked) == 1


def test_what_an_agent_resumes_counts_as_much_as_what_it_is_given(database: Database) -> None:
    met, peer = Met(database, max_concurrent=2), Peer()
    taken, other = met.run("sheep"), met.run("more-sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        assert await hub.join(agent, [taken]) == [taken]
        await asyncio.sleep(GRACE_S)
        assert peer.asked == []
        await hub.result(agent, taken, DONE)
        await until(lambda: met.told(other))

    hubbed(met, scenario)


def test_a_result_counts_though_its_agent_did_not_resume_the_assignment(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        first, again = link(peer), link(Peer())
        await hub.join(first, [])
        await until(lambda: met.told(run_id))
        hub.leave(first)
        await hub.join(again, [])
        assert await hub.result(again, run_id, DONE) is False

    hubbed(met, scenario)

    assert met.end(run_id) == DONE


def test_a_result_that_comes_before_the_acceptance_is_all_there_is(database: Database) -> None:
    met = Met(database)
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        peer = Peer(answer)
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: peer.asked)
        await hub.result(agent, run_id, DONE)
        answer.set_result({"accepted": True})
        await until(lambda: peer.waiting == 0)

    hubbed(met, scenario)

    assert met.told(run_id) == [DONE]


def test_a_result_is_taken_whether_or_not_the_store_can_be_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent whose registration has failed may have its result refused, and sends it again."""
    met = Met(database)
    run_id = met.run("sheep")

    def unavailable(_: object) -> None:
        raise StoreUnavailable("it is locked", "wait")

    async def scenario(hub: Hub) -> None:
        agent = link(Peer())
        with monkeypatch.context() as patched:
            patched.setattr(database, "read", unavailable)
            with pytest.raises(StoreUnavailable):
                await hub.result(agent, run_id, DONE)
        assert await hub.result(agent, run_id, DONE) is False
        monkeypatch.setattr(database, "read", unavailable)
        assert await hub.result(agent, run_id, DONE) is True

    hubbed(met, scenario)


def test_after_a_run_is_over_its_result_is_still_the_same_one(database: Database) -> None:
    met, peer = Met(database, max_concurrent=2), Peer()
    done, cancelled = met.run("sheep"), met.run("more-sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer, most=2)
        await hub.join(agent, [])
        await until(lambda: met.told(done) and met.told(cancelled))
        await hub.result(agent, done, DONE)
        met.world.service.cancel("more-sheep")
        met.world.end("sheep")
        met.world.tick()
        met.world.tick()
        await hub.join(agent, [])
        assert await hub.result(agent, done, DONE) is True
        with pytest.raises(Conflict, match="Another result"):
            await hub.result(agent, done, DONE | {"text": "43 sheep"})
        with pytest.raises(Conflict, match="ended without a result"):
            await hub.result(agent, cancelled, DONE)
        wolf = link(Peer(), agent_id="wolf")
        with pytest.raises(NotFound):
            await hub.result(wolf, done, DONE)

    hubbed(met, scenario)

    assert [one for one in peer.asked if one[0] == "task.cancel"] == [("task.cancel", {"assignment_id": cancelled})]


def test_that_a_run_is_over_which_nobody_has_keeps_nobody_from_connecting(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.told(run_id))
        hub.leave(agent)
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        assert await hub.join(link(Peer()), [run_id]) == []

    hubbed(met, scenario)

    assert peer.offered == [run_id]


def test_who_refuses_after_its_connection_has_ended_takes_nothing_from_the_next(database: Database) -> None:
    met, other = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        slow = Peer(answer)
        first = link(slow)
        await hub.join(first, [])
        await until(lambda: slow.asked)
        hub.leave(first)
        await hub.join(link(other, "other"), [])
        await until(lambda: met.told(run_id))
        answer.set_result(Refused(-32010, "busy"))
        await asyncio.sleep(2 * LEASE_S)

    hubbed(met, scenario)

    assert met.end(run_id) is None
    assert other.offered == [run_id]


def test_what_is_promised_to_an_agent_alone_is_forced_to_the_disk(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, forced = Met(database, wake_url="https://agents.example/wake"), list[tuple[str, bool]]()
    run_id, tell = met.run("sheep"), met.world.host.tell

    def told(run_id: str, message: bytes, *, durable: bool) -> None:
        forced.append((json.loads(message)["type"], durable))
        tell(run_id, message, durable=durable)

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.knocked)
        agent = link(Peer())
        await hub.join(agent, [run_id])
        await hub.progress("shepherd", run_id, {"text": "seven"})
        await hub.result(agent, run_id, DONE)

    monkeypatch.setattr(met.world.host, "tell", told)
    hubbed(met, scenario)

    assert forced == [("waking", False), ("accepted", True), ("progress", False), ("end", True)]


def test_who_has_come_is_not_woken_any_more(database: Database) -> None:
    met, peer = Met(database, wake_url="https://agents.example/wake"), Peer()
    met.deaf = NotWoken("it answered 500")
    met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await until(lambda: len(met.knocked) == 2)
        await hub.join(link(peer), [])
        await asyncio.sleep(WAKE_S)

    hubbed(met, scenario)

    assert len(met.knocked) == 2


@pytest.mark.parametrize("error", [StoreUnavailable("it is locked", "wait"), ValueError("a fault of ours")])
def test_after_a_failure_the_hub_looks_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    met = Met(database)
    run_id = met.run("sheep")

    def fails(_: object) -> None:
        raise error

    async def scenario(hub: Hub) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(database, "read", fails)
            await asyncio.sleep(1)
        await until(lambda: met.end(run_id))

    hubbed(met, scenario)


def test_what_could_not_be_offered_is_offered_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    def unreadable(_: str) -> str:
        raise OSError("it cannot be read")

    async def scenario(hub: Hub) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(met.world.host, "prompt", unreadable)
            await hub.join(link(peer), [])
            await asyncio.sleep(AGAIN_S / 2)
        await asyncio.sleep(AGAIN_S / 4)
        assert peer.asked == []
        await until(lambda: met.told(run_id))

    hubbed(met, scenario)


def test_a_mailbox_is_read_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met, reads = Met(database), list[str]()
    run_id, told = met.run("sheep"), met.world.host.told

    def counted(run_id: str) -> bytes:
        reads.append(run_id)
        return told(run_id)

    async def scenario(hub: Hub) -> None:
        monkeypatch.setattr(met.world.host, "told", counted)
        for instance in ("one", "two", "three"):
            await hub.join(link(Peer(), instance), [])

    hubbed(met, scenario)

    assert reads == [run_id]


# --- what happens while something is read -----------------------------------------------------------------------------


def test_a_run_that_begins_while_another_connects_stays_with_its_agent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, peer = Met(database), Peer()

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await asyncio.sleep(1)
        held = Held(database.read)
        monkeypatch.setattr(database, "read", held)
        joining = asyncio.create_task(hub.join(link(Peer(), "other"), []))
        await held.has_found()
        run_id = met.run("sheep")
        hub.wake()
        await until(lambda: met.told(run_id))
        held.let_go()
        await joining
        await asyncio.sleep(1)
        assert await hub.result(agent, run_id, DONE) is False

    hubbed(met, scenario)

    assert [method for method, _ in peer.asked] == ["task.assign"]


def test_who_comes_as_it_is_given_up_goes_on_with_what_it_has(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, peer = Met(database, max_concurrent=2), Peer()

    async def scenario(hub: Hub) -> None:
        await asyncio.sleep(GRACE_S)
        taken = met.run("sheep")
        met.world.tick(1)  # The older one is seen to first.
        over = met.run("more-sheep")
        held = Held(lambda query: find(query))
        find = database.read

        def read(query: Callable[..., Any]) -> Any:
            # The second reading of a look: whether the agent may be woken.
            reads.append(query)
            return held(query) if len(reads) == 2 else find(query)

        reads: list[object] = []
        monkeypatch.setattr(database, "read", read)
        hub.wake()
        await held.has_found()
        met.world.service.cancel("more-sheep")
        met.world.tick()
        met.world.tick()
        assert await hub.join(link(peer, most=2), [taken]) == [taken]
        held.let_go()
        await asyncio.sleep(LEASE_S)
        assert met.told(over) == []
        assert [one["type"] for one in met.told(taken)] == ["accepted"]

    hubbed(met, scenario)

    assert peer.asked == [], "what is over is not offered, either"


def test_a_run_that_is_over_before_it_is_offered_is_not_offered(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, peer = Met(database), Peer()
    met.run("sheep")
    held = Held(met.world.host.prompt)
    monkeypatch.setattr(met.world.host, "prompt", held)

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await held.has_found()
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        await hub.join(agent, [])
        held.let_go()
        await asyncio.sleep(1)

    hubbed(met, scenario)

    assert peer.offered == []


def test_a_run_that_two_find_over_at_once_is_over_for_both(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        held = Held(database.read)
        monkeypatch.setattr(database, "read", held)
        joining = asyncio.create_task(hub.join(link(Peer(), "other"), [run_id]))
        await held.has_found()
        hub.wake()
        await until(lambda: len(peer.asked) == 2)
        held.let_go()
        assert await joining == []

    hubbed(met, scenario)


def test_a_result_that_is_being_recorded_is_how_it_ends(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met = Met(database)

    async def scenario(hub: Hub) -> None:
        await asyncio.sleep(GRACE_S)
        run_id = met.run("sheep")
        held, tell, read, reads = Held(lambda: None), met.world.host.tell, database.read, list[object]()

        def told(run_id: str, message: bytes, *, durable: bool) -> None:
            held()
            tell(run_id, message, durable=durable)

        def counted(query: Callable[..., Any]) -> Any:
            found = read(query)
            reads.append(query)
            return found

        monkeypatch.setattr(met.world.host, "tell", told)
        monkeypatch.setattr(database, "read", counted)
        recording = asyncio.create_task(hub.result(link(Peer()), run_id, DONE))
        await held.has_found()
        hub.wake()
        await until(lambda: len(reads) == 3)
        held.let_go()
        assert await recording is False
        await asyncio.sleep(1)
        assert met.told(run_id) == [DONE]

    hubbed(met, scenario)


# --- beginning and ending ---------------------------------------------------------------------------------------------


def test_a_hub_that_does_not_run_is_told_in_vain(database: Database) -> None:
    met, peer = Met(database), Peer()
    met.run("sheep")
    hub = met.hub()
    hub.wake()

    async def play() -> None:
        hub.start()
        agent = link(peer)
        await hub.join(agent, [])
        await hub.close()
        hub.wake()
        hub.leave(agent)
        await asyncio.sleep(GRACE_S)

    run_quickly(play())

    assert peer.asked == []


def test_a_hub_that_is_closed_waits_for_no_answer(database: Database) -> None:
    met = Met(database)
    met.run("sheep")

    async def play() -> None:
        hub = met.hub()
        hub.start()
        peer = Peer(asyncio.get_running_loop().create_future())
        await hub.join(link(peer), [])
        await until(lambda: peer.asked)
        async with asyncio.timeout(1):
            await hub.close()
        assert peer.waiting == 0

    run_quickly(play())


def test_a_hub_keeps_nothing_of_what_it_has_asked(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))
        await asyncio.sleep(1)
        gc.collect()
        assert [task() for task in peer.tasks] == [None]

    hubbed(met, scenario)


def test_where_no_specialist_is_an_agent_of_the_hub_it_reads_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, reads = World(database), list[object]()
    hub = Hub(database, world.host, world.registry, lambda *_: None)
    monkeypatch.setattr(database, "read", reads.append)

    async def play() -> None:
        hub.start()
        hub.wake()
        await asyncio.sleep(LEASE_S)
        await hub.close()

    run_quickly(play())

    assert reads == []
