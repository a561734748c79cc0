"""The mailbox of a run: what is written to it, and what is read of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict
from claudomator_py.protocols.hub.mailbox import End, Mailboxes, check_same
from tests.databases import open_migrated
from tests.fakes.world import World

DONE = {"type": "end", "outcome": "completed"}
LOST = {"type": "end", "outcome": "lost"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path) as database:
        yield World(database)


@pytest.fixture
def run_id(world: World) -> str:
    world.submit("t")
    world.tick()
    return world.live("t").id


def put(world: World, run_id: str, **message: Any) -> None:
    asyncio.run(Mailboxes(world.host).put(run_id, message))


def heard(world: World, run_id: str) -> tuple[bool, End | None]:
    content = asyncio.run(Mailboxes(world.host).heard(run_id))
    assert content.size == sum(len(line) + 1 for line in world.host.messages(run_id))
    return content.accepted, content.end


def test_the_first_result_counts_however_often_one_comes(world: World, run_id: str) -> None:
    assert heard(world, run_id) == (False, None)
    put(world, run_id, type="progress", text="on it")
    assert heard(world, run_id) == (False, None)
    put(world, run_id, type="accepted")
    assert heard(world, run_id) == (True, None)
    for end in (DONE, LOST):
        put(world, run_id, **end)
    assert heard(world, run_id) == (True, DONE)


def test_what_is_no_message_is_passed_over(world: World, run_id: str) -> None:
    for line in (b'["end"]', b'{"type": "end", "outc'):
        world.host.append_message(run_id, line, durable=True)
    put(world, run_id, **DONE)
    assert heard(world, run_id) == (False, DONE)


def test_a_message_is_a_line_of_json_in_its_own_letters(world: World, run_id: str) -> None:
    put(world, run_id, type="progress", text="Zwölf\nBoxkämpfer")
    (line,) = world.host.messages(run_id)
    assert line.decode() == '{"type": "progress", "text": "Zwölf\\nBoxkämpfer"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        put(world, run_id, type="progress", used=float("nan"))


def test_a_result_may_come_again_and_another_one_may_not() -> None:
    check_same(DONE, dict(DONE))
    with pytest.raises(Conflict):
        check_same(DONE, LOST)
