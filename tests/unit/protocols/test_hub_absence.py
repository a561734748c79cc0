"""An agent of the hub that is not connected is waited for, woken, or said to be missing."""

import asyncio

import pytest

from claudomator_py.protocols.hub import (
    AGAIN_S,
    GRACE_S,
    WAKE_S,
    Hub,
)
from claudomator_py.protocols.hub.waking import NotWoken
from claudomator_py.store.database import Database
from tests.fakes.hub import ANN, Met, Peer, hubbed, link, until


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


def test_a_run_whose_mailbox_cannot_be_written_keeps_no_other_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = Met(database, max_concurrent=2)
    broken = met.run("sheep")
    met.world.tick(1)  # It is seen to first.
    other, tell = met.run("more-sheep"), met.world.host.append_message

    def unwritable(run_id: str, message: bytes, *, durable: bool) -> None:
        if run_id == broken:
            raise OSError("it cannot be written")
        tell(run_id, message, durable=durable)

    async def scenario(hub: Hub) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(met.world.host, "append_message", unwritable)
            await until(lambda: met.end(other))
            await asyncio.sleep(AGAIN_S / 2)
        await until(lambda: met.end(broken))

    hubbed(met, scenario)


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
        assert met.sent_by_hub(run_id) == []
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
        assert met.sent_by_hub(run_id) == []
        await hub.join(link(peer), [])
        await until(lambda: met.sent_by_hub(run_id))

    hubbed(met, scenario)


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


def test_one_is_woken_though_it_could_not_be_written_down_at_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, failed = Met(database, wake_url="https://agents.example/wake"), list[str]()
    met.run("sheep")

    def full(run_id: str, _: bytes, *, durable: bool) -> None:
        failed.append(run_id)
        raise OSError("no space left on device")

    async def scenario(hub: Hub) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(met.world.host, "append_message", full)
            await until(lambda: failed)
        await until(lambda: met.knocked)

    hubbed(met, scenario)


def test_an_agent_is_taken_for_present_for_a_moment_after_it_has_left(database: Database) -> None:
    met = Met(database)
    seen: list[bool] = []

    async def scenario(hub: Hub) -> None:
        seen.append(hub.is_present("shepherd"))  # the daemon has just started
        await asyncio.sleep(GRACE_S + 1)
        seen.append(hub.is_present("shepherd"))
        agent = link(Peer())
        await hub.join(agent, [])
        seen.append(hub.is_present("shepherd"))
        hub.leave(agent)
        seen.append(hub.is_present("shepherd"))
        await asyncio.sleep(GRACE_S + 1)
        seen.append(hub.is_present("shepherd"))

    hubbed(met, scenario)

    assert seen == [True, False, True, True, False]
