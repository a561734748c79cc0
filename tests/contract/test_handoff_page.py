"""The example of docs/explanation/handoff.md, played: the page shows what the daemon writes."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from claudomator_py.domain.handoff import parse_handoff
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "handoff.md"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def document(world: World, name: str) -> Any:
    text = world.host.directories[world.live(name).id, 0].order.handoff
    assert text is not None
    return json.loads(_ID.sub("...", text))


def test_the_page_shows_what_happens(database: Database) -> None:
    world = World(database, routing=True)
    *cards, task = (yaml.safe_load(text) for text in blocks("yaml"))
    first, second = (json.loads(text) for text in blocks("json"))
    line, why = (text.strip() for text in blocks("text"))
    world.specialists.register(card("generalist"))  # one of those that come with it
    for written in cards:
        world.specialists.register(card(written.pop("id"), **written))
    name = task.pop("name")

    world.submit(name, **task)
    world.router.route()
    world.tick()
    assert document(world, name) == first
    assert "# Handoff" not in world.host.directories[world.live(name).id, 0].order.stdin

    world.tick(12 * MINUTE_MS)
    world.end(name, cost_usd=1.1, text=f"The redirect is mended.\n\n{line}")
    world.tick()
    world.now_ms += SECOND_MS
    world.router.route()
    world.tick()
    assert parse_handoff(line) is not None
    assert document(world, name) == second
    assert "# Handoff" in world.host.directories[world.live(name).id, 0].order.stdin

    world.succeed(name)
    world.tick()
    assert world.state(name) == "COMPLETED"
    assert why in world.service.why(name).sentences
