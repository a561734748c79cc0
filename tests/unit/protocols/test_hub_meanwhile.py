"""What the hub decides after it has read something is decided by what is so then."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from claudomator_py.protocols.hub import (
    GRACE_S,
    LEASE_S,
    Hub,
)
from claudomator_py.store.database import Database
from tests.fakes.hub import DONE, Held, Met, Peer, hubbed, link, until


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
        await until(lambda: met.sent_by_hub(run_id))
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
        assert met.sent_by_hub(over) == []
        assert [entry["type"] for entry in met.sent_by_hub(taken)] == ["accepted"]

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
        await until(lambda: met.sent_by_hub(run_id))
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


def test_who_comes_back_while_its_run_is_being_ended_does_not_continue_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.sent_by_hub(run_id))
        held, tell = Held(lambda: None), met.world.host.append_message

        def told(run_id: str, message: bytes, *, durable: bool) -> None:
            held()
            tell(run_id, message, durable=durable)

        monkeypatch.setattr(met.world.host, "append_message", told)
        hub.leave(agent)
        await asyncio.sleep(LEASE_S)
        await held.has_found()
        assert await hub.join(link(Peer()), [run_id]) == []
        held.let_go()
        await until(lambda: met.end(run_id))

    hubbed(met, scenario)

    assert met.end(run_id)["outcome"] == "lost"
