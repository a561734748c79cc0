"""Runs that succeeded near a limit or were denied tools, on both databases: what is said of them, and who is asked."""

from typing import Any

import pytest

from claudomator_py.domain.units import DAY_MS, HOUR_MS, format_instant
from claudomator_py.store.database import Database
from tests.fakes.world import START_MS, World

RESET_MS = START_MS + HOUR_MS
NEAR: dict[str, Any] = {"windows": {"five_hour": {"used": 0.97, "resets_at": RESET_MS}}, "text": "Half of it."}
WARNED: dict[str, Any] = {"near_limit": "five_hour", "near_limit_used": 0.95, "near_limit_until": RESET_MS}
EARLY = "may have stopped early: 97% of the 5h window was used up"


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def succeeded(world: World, name: str, outcome: dict[str, Any], **fields: Any) -> None:
    """A task whose first run ends so."""
    world.submit(name, **fields)
    world.tick()
    world.end(name, **outcome)
    world.tick()


def prompts(world: World) -> list[str]:
    return [request.prompt for request in world.kinds["claude"].requests]


@pytest.mark.both_databases
def test_a_success_near_a_limit_is_asked_about_once_after_the_reset(world: World) -> None:
    succeeded(world, "t", NEAR, on_limit="wait", retry={"max_attempts": 1})
    view = world.task("t")
    assert (view.state, view.reason, view.waiting_until) == ("WAITING", "backoff", format_instant(RESET_MS))
    assert "may have stopped early" in (view.reason_text or "")
    world.restarted_daemon()
    world.tick(HOUR_MS)
    first, second = world.service.runs("t")
    assert (second.resumes, second.agent) == (first.id, first.agent)
    assert "If all of it is done, change nothing." in prompts(world)[-1]
    world.end("t", **(NEAR | {"text": "All of it."}))
    world.tick()
    view = world.task("t")
    assert (view.state, view.runs, view.result_text) == ("COMPLETED", 2, "All of it.")
    assert view.reason_text == f"done, {EARLY}", "it was near a limit again, and is asked once only"
    sentences = [sentence for sentence in world.service.why("t").sentences if sentence.startswith("Run 1 on")]
    assert sentences[0].endswith(f" It {EARLY}."), "why there was a second run"


@pytest.mark.parametrize(
    ("fields", "outcome", "text"),
    [
        ({}, NEAR, f"done, {EARLY}"),
        ({}, WARNED, "done, may have stopped early: 95% of the 5h window was used up"),
        ({"on_limit": "fail"}, NEAR, f"done, {EARLY}"),
        ({"on_limit": "wait"}, WARNED | {"near_limit_used": 0.94}, None),
        ({"on_limit": "wait"}, {"windows": {"five_hour": {"used": 0.2, "resets_at": RESET_MS}}}, None),
        (
            {"on_limit": "wait"},
            {"windows": {"five_hour": {"used": 0.97, "resets_at": START_MS + 400 * DAY_MS}}},
            f"done, {EARLY}",
        ),
        (
            {"on_limit": "wait"},
            {"model": "sonnet-5", "windows": {"seven_day_opus": {"used": 1, "resets_at": RESET_MS, "family": "opus"}}},
            None,
        ),
        ({}, NEAR | {"denials": 2}, f"done, with 2 denials; {EARLY}"),
        ({}, {"denials": 1}, "done, with 1 denial"),
        ({}, {}, None),
    ],
)
def test_what_is_to_know_of_a_success_is_said(
    world: World, fields: dict[str, Any], outcome: dict[str, Any], text: str | None
) -> None:
    succeeded(world, "t", outcome, **fields)
    view = world.task("t")
    assert (view.state, view.reason, view.reason_text) == ("COMPLETED", None, text)
    assert view.reason_short == (None if text is None else text.partition(":")[0]), "the result is beside it"
    assert view.denials == outcome.get("denials", 0)
    headline = world.service.why("t").sentences[0]
    assert headline == f"t is COMPLETED{'' if text is None else f': {text}'}."


def test_a_check_that_passes_settles_it(world: World) -> None:
    succeeded(world, "t", NEAR, on_limit="wait", check=["true"])
    run = world.live("t")
    assert run.state == "checking"
    world.host.end(run.id, 0, step=1)
    world.tick()
    view = world.task("t")
    assert (view.state, view.reason_text) == ("COMPLETED", None)


@pytest.mark.parametrize("reason", ["agent_error", "timeout", "context_too_long"])
def test_if_nobody_can_be_asked_the_success_stays_one(world: World, reason: str) -> None:
    succeeded(world, "t", NEAR, on_limit="wait", retry={"max_attempts": 1})
    world.tick(HOUR_MS)
    world.fail("t", reason)
    view = world.task("t")
    assert (view.state, view.reason_text) == ("COMPLETED", f"done, {EARLY}")


def test_a_limit_on_the_way_is_waited_out_and_then_it_is_asked(world: World) -> None:
    succeeded(world, "t", NEAR, on_limit="wait", retry={"max_attempts": 1})
    world.tick(HOUR_MS)
    world.limit("t", reset_at=START_MS + DAY_MS)
    assert world.state("t") == "QUEUED limited"
    world.tick(DAY_MS)
    assert "If all of it is done, change nothing." in prompts(world)[-1]
    world.succeed("t")
    assert (world.state("t"), world.task("t").runs) == ("COMPLETED", 3)


def test_one_that_is_cancelled_while_it_waits_is_cancelled(world: World) -> None:
    succeeded(world, "t", NEAR, on_limit="wait")
    world.service.cancel("t")
    world.tick(HOUR_MS)
    assert (world.state("t"), world.task("t").runs) == ("CANCELLED", 1)
