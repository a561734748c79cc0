"""The hub between runs and connections, with time that passes fast."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.dispatch.hub import Gone, Hub, Link, Refused
from claudomator_py.dispatch.waking import NotWoken
from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World
from tests.patience import PATIENCE_S

ANN = Principal("ann", Role.OPERATE, "acme")
DONE = {"type": "end", "outcome": "completed", "text": "42 sheep"}


class Peer:
    """A connection whose agent says what it is told to. asked: every request; closed: why it was closed."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.closed: list[tuple[int, str]] = []

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        self.asked.append((method, params))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if self.answers else {"accepted": True}
        if isinstance(answer, Exception):
            raise answer
        return answer

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

    def hub(self, **times: float) -> Hub:
        short = {"lease_s": 0.2, "grace_s": 0.0, "wake_s": 0.2, "again_s": 0.01}
        return Hub(self.world.database, self.world.host, self.world.registry, self._knock, **(short | times))

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


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is told to nobody
            await asyncio.sleep(0.005)


def hubbed(met: Met, scenario: Callable[[Hub], Awaitable[None]], **times: float) -> None:
    async def play() -> None:
        hub = met.hub(**times)
        hub.start()
        try:
            await scenario(hub)
        finally:
            await hub.close()

    asyncio.run(play())


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
        hub.leave(agent)
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
        await asyncio.sleep(0.05)
        again = link(Peer())
        assert await hub.join(again, [run_id]) == [run_id]
        assert await hub.result(again, run_id, DONE) is False

    hubbed(met, assigned)
    hubbed(met, back)

    assert met.end(run_id) == DONE


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
    taken = met.run("sheep")
    looked, reads, read = threading.Event(), count(), database.read

    def slow_at_first(query: Callable[[Connection], object]) -> object:
        found = read(query)
        if next(reads) == 0:
            looked.wait(PATIENCE_S)
        return found

    async def scenario(hub: Hub) -> None:
        monkeypatch.setattr(database, "read", slow_at_first)
        joining = asyncio.create_task(hub.join(link(peer), [taken]))
        await until(lambda: met.knocked or peer.asked)
        looked.set()
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
    met, peer = Met(database), Peer(Refused(-32010, "busy"), Refused(-32010, "busy"))
    run_id = met.run("sheep")

    async def accepted(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))

    hubbed(met, accepted)
    assert len(peer.asked) == 3

    stubborn = Peer(*[Refused(-32010, "busy")] * 20)
    other = met.run("more-sheep")

    async def given_up(hub: Hub) -> None:
        await hub.join(link(stubborn, most=5), [])
        await until(lambda: met.end(other))

    hubbed(met, given_up, lease_s=60)
    assert (met.end(other)["outcome"], "busy" in met.end(other)["error"]) == ("unreachable", True)


def test_one_who_does_not_answer_is_cut_off_and_its_run_goes_to_the_next(database: Database) -> None:
    met, silent, other = Met(database), Peer(Gone("no answer")), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        first = link(silent)
        await hub.join(first, [])
        await until(lambda: silent.closed)
        hub.leave(first)
        await hub.join(link(other, "other"), [])
        await until(lambda: met.told(run_id))

    hubbed(met, scenario, grace_s=60)

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
        await asyncio.sleep(0.05)
        assert (len(peer.asked), len(other.asked)) == (1, 1)
        await hub.result(one, str(peer.asked[0][1]["assignment_id"]), DONE)
        await until(lambda: all(met.told(run) for run in runs))

    hubbed(met, scenario)

    assert (len(peer.asked), len(other.asked)) == (2, 1)


def test_the_same_instance_replaces_its_connection(database: Database) -> None:
    met, peer, again = Met(database), Peer(), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.told(run_id))
        assert await hub.join(link(again), [run_id]) == [run_id]

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

    hubbed(met, scenario)

    assert peer.asked[1] == ("task.cancel", {"assignment_id": run_id})


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

    hubbed(met, scenario, wake_s=60)

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
        await asyncio.sleep(0.05)
        assert met.told(run_id) == []
        await hub.join(link(peer), [])
        await until(lambda: peer.asked)

    hubbed(met, scenario, grace_s=60)

    assert met.end(run_id) is None
