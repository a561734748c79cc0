"""Where the hub ends: mailboxes, a hub that is closed, and what it keeps."""

import asyncio
import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from claudomator_py.protocols.hub import (
    GRACE_S,
    LEASE_S,
    Hub,
)
from claudomator_py.protocols.hub.mailbox import MAX_PROGRESS_BYTES, PROGRESS_BURST, SIGN_OF_LIFE_S
from claudomator_py.store.database import Database
from tests.fakes.hub import DONE, Met, Peer, hubbed, link, until
from tests.fakes.quick_time import run_quickly
from tests.fakes.world import World


def size(met: Met, run_id: str) -> int:
    """Bytes of its mailbox."""
    return sum(len(line) + 1 for line in met.world.host.messages(run_id))


def test_a_mailbox_is_read_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    met, reads = Met(database), list[str]()
    run_id, record = met.run("sheep"), met.world.host.messages

    def counted(run_id: str) -> Iterator[bytes]:
        reads.append(run_id)
        yield from record(run_id)

    async def scenario(hub: Hub) -> None:
        monkeypatch.setattr(met.world.host, "messages", counted)
        for instance in ("one", "two", "three"):
            await hub.join(link(Peer(), instance), [])

    hubbed(met, scenario)

    assert reads == [run_id]


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
        await until(lambda: met.sent_by_hub(run_id))
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


def test_progress_fills_no_disk_over_however_many_connections_it_comes(database: Database) -> None:
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")
    flood = {"text": "x" * 100_000}

    async def scenario(hub: Hub) -> None:
        agents = [link(Peer(), f"instance {number}") for number in range(20)]
        for agent in (link(peer), *agents):
            await hub.join(agent, [])
        await until(lambda: met.sent_by_hub(run_id))
        for _ in range(400):
            await hub.progress("shepherd", run_id, flood)
        assert size(met, run_id) < 2 * PROGRESS_BURST
        for _ in range(400):
            await asyncio.sleep(SIGN_OF_LIFE_S)
            await hub.progress("shepherd", run_id, flood)
        assert size(met, run_id) < 1.1 * MAX_PROGRESS_BYTES
        assert "text" not in met.sent_by_hub(run_id)[-1], "it still says that it is alive"
        await hub.result(link(peer), run_id, DONE)

    hubbed(met, scenario)

    assert met.end(run_id)["text"] == "42 sheep"


def test_what_was_kept_before_counts_for_the_next_daemon(database: Database) -> None:
    met = Met(database)
    run_id = met.run("sheep")
    met.world.host.append_message(
        run_id, b'{"type": "progress", "text": "%s"}' % (b"x" * MAX_PROGRESS_BYTES), durable=False
    )
    before = size(met, run_id)

    async def scenario(hub: Hub) -> None:
        await hub.join(link(Peer()), [])
        await until(lambda: size(met, run_id) > before)
        await hub.progress("shepherd", run_id, {"text": "x" * 1_000})

    hubbed(met, scenario)

    assert size(met, run_id) < before + 500


def test_a_late_result_parses_nothing_but_the_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the mailbox holds besides: whoever sends results again holds up nobody."""
    met, peer = Met(database), Peer()
    run_id = met.run("sheep")
    parsed: list[Any] = []

    async def scenario(hub: Hub) -> None:
        agent = link(peer)
        await hub.join(agent, [])
        await until(lambda: met.sent_by_hub(run_id))
        for number in range(100):
            await hub.progress("shepherd", run_id, {"text": f'{number} sheep, "type": "end"'})
        await hub.result(agent, run_id, DONE)
        met.world.host.end(run_id, 0)
        met.world.tick()
        await until(lambda: not hub._assignments)
        loads = json.loads

        def noted(line: Any, **how: Any) -> Any:
            parsed.append(line)
            return loads(line, **how)

        monkeypatch.setattr(json, "loads", noted)
        assert await hub.result(agent, run_id, DONE) is True
        monkeypatch.undo()

    hubbed(met, scenario)

    assert not [line for line in parsed if "progress" in str(line)]
