"""Restart: what it does in every state, what it may pin, and what it never satisfies."""

from typing import Any

import pytest

from claudomator_py.dispatch.heads import HeadReader
from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.errors import Conflict, Invalid, StaleVersion
from claudomator_py.domain.requests import HoldRequest, RestartRequest, TaskFilter
from claudomator_py.domain.units import DAY_MS, format_instant
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def last_run(world: World, name: str) -> tuple[str, str | None, str | None]:
    run = world.service.runs(name)[-1]
    return run.agent, run.tier, run.model


def test_an_ended_task_begins_a_new_generation_with_a_fresh_conversation(world: World) -> None:
    world.submit("t")
    world.tick()
    first = world.live("t")
    world.fail("t")
    view = world.restart("t")
    assert (view.state, view.generation, view.attempts) == ("QUEUED", 2, 0)
    world.tick()
    second = world.live("t")
    assert (second.generation, second.attempt, second.seq) == (2, 1, 1)
    assert second.conversation_id != first.conversation_id
    world.succeed("t")
    assert world.restart("t").generation == 3
    world.service.cancel("t")
    assert world.restart("t").generation == 4
    assert [run.generation for run in world.service.runs("t")] == [1, 2]


def test_a_queued_task_has_nothing_to_restart(world: World) -> None:
    world.submit("t")
    for force in (False, True):
        with pytest.raises(Conflict, match="is QUEUED already"):
            world.restart("t", force=force)


def test_a_queued_task_is_given_to_somebody_else_before_it_begins(world: World) -> None:
    world.specialists.register(card("plumber"))
    world.submit("t")
    world.roster.hold("claude", HoldRequest())

    view = world.restart("t", specialist="plumber", agent="codex")
    world.tick()

    assert (view.state, view.generation) == ("QUEUED", 2)
    assert world.live("t").agent == "codex"
    assert (world.task("t").spec or {})["specialist"] == "plumber"


def test_waiting_and_asking_tasks_are_restarted_but_nothing_is_satisfied_by_it(world: World) -> None:
    world.submit("time", not_before=format_instant(START_MS + DAY_MS))
    world.submit("dependency", depends_on=["nobody"])
    world.submit("asking")
    world.submit("backoff", retry={"backoff": "1h"})
    world.tick()
    world.end("asking", status="needs_input")
    world.fail("backoff", "agent_error")
    assert world.restart("time").reason == "time"
    assert world.restart("dependency").reason == "dependency"
    assert world.restart("asking").state == "QUEUED"
    assert world.restart("backoff").state == "QUEUED"
    assert world.task("backoff").attempts == 0


def test_a_running_task_is_restarted_by_force_only_and_its_run_ends_first(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.stubborn = True
    run = world.live("t").id
    with pytest.raises(Conflict, match="with `force`"):
        world.restart("t")
    restarted = world.restart("t", force=True)
    assert (restarted.state, restarted.phase) == ("RUNNING", "stopping")
    world.tick()
    assert world.task("t").phase == "stopping"
    assert world.live("t").id == run
    world.host.end(run, None, ended_by="cancel")
    world.tick()
    assert world.live("t").id != run
    assert (world.task("t").generation, world.task("t").state) == (2, "RUNNING")
    assert [event.data.get("event") for event in world.service.why("t").events].count("Cancelling") == 1


@pytest.mark.both_databases
def test_a_forced_restart_survives_the_daemon_and_a_cancel_replaces_it(world: World) -> None:
    for name in ("again", "not-again"):
        world.submit(name)
    world.tick()
    world.host.stubborn = True
    world.restart("again", force=True)
    world.restart("not-again", force=True)
    world.service.cancel("not-again")
    world.restarted_daemon()
    for name in ("again", "not-again"):
        world.host.end(world.live(name).id, None, ended_by="cancel")
    world.tick()
    assert world.state("not-again") == "CANCELLED"
    assert world.task("again").generation == 2


def test_a_run_that_succeeds_before_a_forced_restart_reaches_it_is_restarted_all_the_same(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.stubborn = True
    world.restart("t", force=True)
    world.succeed("t")
    assert (world.task("t").generation, world.task("t").state) == (2, "RUNNING")


def test_a_restart_may_pin_agent_tier_and_model_and_the_next_plain_one_goes_back_to_the_file(world: World) -> None:
    world.submit("t", agent={"type": "claude", "model": "opus"}, retry={"max_attempts": 1})
    requests: list[tuple[dict[str, Any], tuple[str, str, str]]] = [
        ({}, ("claude", "powerful", "opus")),
        ({"tier": "fast"}, ("claude", "fast", "haiku")),
        ({"agent": "codex"}, ("codex", "balanced", "sol")),
        ({"agent": "codex", "tier": "fast"}, ("codex", "fast", "luna")),
        ({"model": "sonnet"}, ("claude", "balanced", "sonnet")),
        ({"agent": "codex", "model": "luna"}, ("codex", "fast", "luna")),
        ({}, ("claude", "powerful", "opus")),
    ]
    world.tick()
    world.fail("t")
    for request, expected in requests:
        world.restart("t", **request)
        world.tick()
        assert last_run(world, "t") == expected, request
        world.fail("t")
    kept = world.task("t").spec
    assert kept is not None
    assert kept["agent"] == {"type": "claude", "model": "opus", "strict": False}


def test_automatic_retries_keep_what_the_restart_pinned(world: World) -> None:
    world.submit("t", retry={"max_attempts": 3, "backoff": "1s"})
    world.service.cancel("t")
    world.restart("t", agent="codex", tier="fast")
    world.tick()
    world.fail("t", "agent_error")
    world.tick(60_000)
    assert last_run(world, "t") == ("codex", "fast", "luna")


def test_the_content_of_the_file_wins_over_what_a_restart_pinned_before(world: World) -> None:
    world.take("/in/t.yaml", spec("t"))
    world.service.cancel("t")
    world.restart("t", agent="codex")
    world.take("/in/t.yaml", spec("t", tags=["new"]), mtime_ns=2)
    world.tick()
    assert last_run(world, "t")[0] == "claude"
    assert world.task("t").tags == ("new",)


def test_what_cannot_be_is_refused_and_changes_nothing(world: World) -> None:
    world.submit("t")
    world.service.cancel("t")
    before = world.task("t")
    for request, words in (
        ({"agent": "cluade"}, "no agent `cluade` is configured; did you mean `claude`"),
        ({"agent": ""}, "agent.type"),
        ({"model": "opus"}, "also give `agent`"),
        ({"specialist": "x"}, "there is no specialist `x`"),
    ):
        with pytest.raises(Invalid, match=words):
            world.restart("t", **request)
    with pytest.raises(StaleVersion):
        world.service.restart("t", RestartRequest(), versions=before.version - 1)
    assert world.task("t") == before


def test_a_failed_dependency_has_to_be_restarted_first(world: World) -> None:
    world.submit("build")
    world.submit("test", depends_on=["build"])
    world.tick()
    world.fail("build")
    with pytest.raises(Conflict, match="Restart build first; this revives test"):
        world.restart("test")
    world.restart("build")
    assert world.state("test") == "WAITING dependency"


@pytest.mark.parametrize("interrupted", ["fail", "limit"])
def test_a_task_between_two_runs_waits_for_a_dependency_that_began_again_during_the_first(
    world: World, interrupted: str
) -> None:
    world.submit("build")
    world.submit("test", depends_on=["build"])
    world.tick()
    world.succeed("build")
    world.restart("build")
    world.tick()
    assert set(world.running()) == {"build", "test"}

    if interrupted == "fail":
        world.fail("test", "agent_error")
    else:
        world.limit("test", reset_at=world.now_ms + 60_000)

    assert world.state("test") == "WAITING dependency"
    world.fail("build")
    assert world.state("test") == "FAILED dependency_failed"


def test_what_failed_first_is_named_however_far_it_is(world: World) -> None:
    world.submit("build")
    world.submit("lint")
    world.submit("test", depends_on=["build"])
    world.submit("ship", depends_on=["test", "lint"])
    world.submit("tell", depends_on=["ship"])
    world.tick()
    world.fail("lint")
    world.fail("build")
    last = world.task("tell")
    assert (last.reason, last.available_actions) == ("dependency_failed", ())
    assert world.service.why("tell").sentences[1] == "Restart lint, build; this revives tell."
    with pytest.raises(Conflict, match="Restart lint, build first; this revives tell"):
        world.restart("tell")
    for name in ("build", "lint"):
        world.restart(name)
    assert world.state("tell") == "WAITING dependency"
    assert not any("this revives" in sentence for sentence in world.service.why("tell").sentences)


def test_content_that_arrives_after_a_forced_restart_is_what_runs_next(world: World) -> None:
    world.take("/in/t.yaml", spec("t", tags=["old"]))
    world.tick()
    world.host.stubborn = True
    world.restart("t", force=True, agent="codex")
    world.take("/in/t.yaml", spec("t", tags=["new"]), mtime_ns=2)
    world.host.end(world.live("t").id, None, ended_by="cancel")
    world.tick()
    assert world.task("t").tags == ("new",)
    assert world.task("t").state == "RUNNING"


def test_a_change_answers_the_row_and_asks_no_planner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.roster.hold("claude", HoldRequest())
    world.roster.hold("codex", HoldRequest())

    def no_planner(*_: object) -> None:
        raise AssertionError("the planner was asked")

    with monkeypatch.context() as patched:
        patched.setattr(Observer, "present", no_planner)
        patched.setattr(HeadReader, "heads", no_planner)
        world.submit("t")
        cancelled = world.service.cancel("t")
        answered = world.restart("t")
        assert [item.state for item in world.service.page(TaskFilter(state="CANCELLED")).items] == []
    assert (cancelled.state, answered.state, answered.reason, answered.holds) == ("CANCELLED", "QUEUED", None, ())
    asked = world.service.get("t")
    assert (asked.version, asked.reason) == (answered.version, "limited")
    assert {hold.agent for hold in asked.holds} == {"claude", "codex"}
