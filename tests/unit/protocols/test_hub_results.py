"""A result that an agent of the hub sends: whose it is, and that it is recorded once, whatever comes between."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.protocols.hub import (
    GRACE_S,
    Hub,
)
from claudomator_py.store.database import Database, StoreUnavailable
from tests.fakes.hub import DONE, Held, Met, Peer, hubbed, link, until


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


def test_a_result_counts_though_its_agent_did_not_resume_the_assignment(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        first, again = link(peer), link(Peer())
        await hub.join(first, [])
        await until(lambda: met.sent_by_hub(run_id))
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

    assert met.sent_by_hub(run_id) == [DONE]


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
        await until(lambda: met.sent_by_hub(done) and met.sent_by_hub(cancelled))
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

    assert [entry for entry in peer.asked if entry[0] == "task.cancel"] == [
        ("task.cancel", {"assignment_id": cancelled})
    ]


def test_that_a_run_is_over_which_nobody_has_keeps_nobody_from_connecting(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.sent_by_hub(run_id))
        hub.leave(agent)
        met.world.service.cancel("sheep")
        met.world.tick()
        met.world.tick()
        assert await hub.join(link(Peer()), [run_id]) == []

    hubbed(met, scenario)

    assert peer.offered == [run_id]


def test_a_result_that_is_being_recorded_is_how_it_ends(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met = Met(database)

    async def scenario(hub: Hub) -> None:
        await asyncio.sleep(GRACE_S)
        run_id = met.run("sheep")
        held, tell, read, reads = Held(lambda: None), met.world.host.append_message, database.read, list[object]()

        def told(run_id: str, message: bytes, *, durable: bool) -> None:
            held()
            tell(run_id, message, durable=durable)

        def counted(query: Callable[..., Any]) -> Any:
            result = read(query)
            reads.append(query)
            return result

        monkeypatch.setattr(met.world.host, "append_message", told)
        monkeypatch.setattr(database, "read", counted)
        recording = asyncio.create_task(hub.result(link(Peer()), run_id, DONE))
        await held.has_found()
        hub.wake()
        await until(lambda: len(reads) == 3)
        held.let_go()
        assert await recording is False
        await asyncio.sleep(1)
        assert met.sent_by_hub(run_id) == [DONE]

    hubbed(met, scenario)
