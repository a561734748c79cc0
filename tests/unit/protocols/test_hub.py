"""The hub gives its agents the runs of their specialist, in any order of connections, refusals and failures."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict
from claudomator_py.protocols.hub import AGAIN_S, GRACE_S, LEASE_S, MAX_REFUSALS, Hub
from claudomator_py.protocols.hub.assignment import AgentGone, AgentRefused
from claudomator_py.store.database import Database, StoreUnavailable
from tests.fakes.hub import DONE, Held, Met, Peer, hubbed, link, until


@pytest.mark.both_databases
def test_a_run_is_given_to_who_is_connected_and_ends_with_the_result(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        assert await hub.join(agent, []) == []
        await until(lambda: peer.asked)
        await until(lambda: met.sent_by_hub(run_id))
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
    assert [entry["type"] for entry in met.sent_by_hub(run_id)] == ["accepted", "progress", "end"]


def test_an_assignment_is_lost_when_its_lease_is_over(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.sent_by_hub(run_id))
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
        await until(lambda: met.sent_by_hub(run_id))

    async def back(hub: Hub) -> None:
        await asyncio.sleep(LEASE_S - 1)
        again = link(Peer())
        assert await hub.join(again, [run_id]) == [run_id]
        assert await hub.result(again, run_id, DONE) is False

    hubbed(met, assigned)
    hubbed(met, back)

    assert [entry["type"] for entry in met.sent_by_hub(run_id)] == ["accepted", "end"]


def test_what_the_agent_took_and_the_daemon_forgot_goes_on(database: Database) -> None:
    """The daemon was killed before it wrote down that the agent had accepted."""
    met, peer = Met(database, max_concurrent=2), Peer()
    taken, other = met.run("sheep"), met.run("more-sheep")

    async def scenario(hub: Hub) -> None:
        assert await hub.join(link(peer, most=2), [taken]) == [taken]
        await until(lambda: met.sent_by_hub(other))

    hubbed(met, scenario)

    assert [params["assignment_id"] for _, params in peer.asked] == [other], "it is asked only for what it has not"
    assert [entry["type"] for entry in met.sent_by_hub(taken)] == ["accepted"]


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
    met, peer = Met(database, max_concurrent=2), Peer(AgentRefused(-32010, "busy"), {"accepted": False}, "yes")
    run_id = met.run("sheep")

    async def accepted(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.sent_by_hub(run_id))

    hubbed(met, accepted)
    assert [later - at for at, later in pairwise(peer.at_s)] == pytest.approx([AGAIN_S] * 3, abs=0.01)

    stubborn = Peer(*[AgentRefused(-32010, "busy")] * 20)
    other = met.run("more-sheep")

    async def given_up(hub: Hub) -> None:
        await hub.join(link(stubborn), [])
        await until(lambda: met.end(other))

    hubbed(met, given_up)
    assert len(stubborn.asked) == MAX_REFUSALS
    assert met.end(other) == {"type": "end", "outcome": "unreachable", "error": "it refused 5 times: busy"}


def test_one_who_does_not_answer_is_cut_off_and_its_run_goes_to_the_next(database: Database) -> None:
    met, silent, other = Met(database), Peer(AgentGone("no answer")), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(silent), [])
        await until(lambda: silent.closed)
        await hub.join(link(other, "other"), [])
        await until(lambda: met.sent_by_hub(run_id))

    hubbed(met, scenario)

    assert silent.closed[0][0] == 1011
    assert len(other.asked) == 1


def test_no_agent_has_more_than_it_takes(database: Database) -> None:
    met, peer, other = Met(database, max_concurrent=5), Peer(), Peer()
    runs = [met.run(f"sheep-{number}") for number in range(3)]

    async def scenario(hub: Hub) -> None:
        agent_connection = link(peer)
        await hub.join(agent_connection, [])
        await hub.join(link(other, "other"), [])
        await until(lambda: sum(bool(met.sent_by_hub(run)) for run in runs) == 2)
        await asyncio.sleep(GRACE_S)
        assert (len(peer.asked), len(other.asked)) == (1, 1)
        await hub.result(agent_connection, str(peer.asked[0][1]["assignment_id"]), DONE)
        await until(lambda: all(met.sent_by_hub(run) for run in runs))

    hubbed(met, scenario)

    assert (len(peer.asked), len(other.asked)) == (2, 1)


def test_the_same_instance_replaces_its_connection(database: Database) -> None:
    met, peer, again = Met(database, max_concurrent=2), Peer(), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        first, second = link(peer), link(again)
        await hub.join(first, [])
        await until(lambda: met.sent_by_hub(run_id))
        assert await hub.join(second, ["no-such-run", run_id]) == [run_id]
        hub.leave(first)
        await hub.result(second, run_id, DONE)
        met.run("more-sheep")
        hub.wake()
        await until(lambda: again.offered)

    hubbed(met, scenario)

    assert peer.closed[0][0] == 1008


def test_a_run_that_is_over_is_cancelled_there(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        await hub.join(link(peer), [])
        await until(lambda: met.sent_by_hub(run_id))
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        hub.wake()
        await until(lambda: len(peer.asked) > 1)
        assert peer.asked[1:] == [("task.cancel", {"assignment_id": run_id})]
        other = met.run("more-sheep")
        hub.wake()
        await until(lambda: met.sent_by_hub(other))

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
        await until(lambda: met.sent_by_hub(run_id))

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
        await until(lambda: met.sent_by_hub(other))

    hubbed(met, scenario)


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
        await until(lambda: met.sent_by_hub(run_id))
        answer.set_result(AgentRefused(-32010, "busy"))
        await asyncio.sleep(2 * LEASE_S)

    hubbed(met, scenario)

    assert met.end(run_id) is None
    assert other.offered == [run_id]


def test_what_is_promised_to_an_agent_alone_is_forced_to_the_disk(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, forced = Met(database, wake_url="https://agents.example/wake"), list[tuple[str, bool]]()
    run_id, tell = met.run("sheep"), met.world.host.append_message

    def told(run_id: str, message: bytes, *, durable: bool) -> None:
        forced.append((json.loads(message)["type"], durable))
        tell(run_id, message, durable=durable)

    async def scenario(hub: Hub) -> None:
        await until(lambda: met.knocked)
        agent = link(Peer())
        await hub.join(agent, [run_id])
        await hub.progress("shepherd", run_id, {"text": "seven"})
        await hub.result(agent, run_id, DONE)

    monkeypatch.setattr(met.world.host, "append_message", told)
    hubbed(met, scenario)

    assert forced == [("waking", False), ("accepted", True), ("progress", False), ("end", True)]


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
        await until(lambda: met.sent_by_hub(run_id))

    hubbed(met, scenario)
