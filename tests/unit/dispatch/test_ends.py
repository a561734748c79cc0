"""Ends: every way in which a run can end, be cancelled or get lost, and what is made of it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from claudomator_py.dispatch.apply_report import PendingEnd
from claudomator_py.domain import crashpoint
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.store import run_rows
from claudomator_py.store.tables import RUN, TASK_REVISION, Run
from tests.fakes.agents import CLAUDE
from tests.fakes.runs import MemoryRunHost
from tests.fakes.world import START_MS, World


def starts(host: MemoryRunHost) -> list[tuple[str, int]]:
    return [(run_id, step) for call, run_id, step in host.calls if call == "spawn"]


def is_live(world: World, run_id: str) -> bool:
    """As its row says."""
    row = world.database.read(lambda connection: run_rows.find(connection, run_id))
    return row is not None and row.live


def test_a_run_given_up_before_it_started_costs_nothing(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    first = world.live("t").id
    world.host.kill_shim(first)
    world.tick()
    second = world.live("t")
    assert (second.attempt, second.seq) == (1, 2)
    assert world.run_requests.get(first).state == "revoked"
    assert not world.host.begin(first)
    assert "was given up before it started; it cost nothing" in " ".join(world.service.why("t").sentences)


def test_a_shim_on_its_way_is_waited_for(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    for _ in range(3):
        assert world.tick().wake_ms is not None
    assert world.task("t").phase == "starting"
    world.host.begin(run_id)
    world.tick()
    assert (world.task("t").phase, world.live("t").state) == ("running", "running")
    world.succeed("t")
    assert starts(world.host) == [(run_id, 0)]


def test_a_lost_run_whose_last_word_was_said_counts_as_that(world: World) -> None:
    world.submit("done")
    world.submit("lost")
    world.tick()
    world.say("done", text="all done")
    for name in ("done", "lost"):
        world.host.kill_shim(world.live(name).id)
    world.tick()
    view = world.task("done")
    assert (view.state, view.result_text) == ("COMPLETED", "all done")
    (run,) = world.service.runs("done")
    assert run.exit_code is None
    assert world.state("lost") == "FAILED lost"


def test_others_can_write_while_processes_are_started_and_ended(world: World) -> None:
    """Although the tick has ended a run before, which is not durable yet."""
    called: list[str] = []

    def others_write(call: str, work: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object) -> object:
            other.submit(world.database.write, lambda _: None).result(timeout=10)
            called.append(call)
            return work(*arguments)

        return wrapped

    for name in ("done", "lost"):
        world.submit(name, retry={"max_attempts": 1})
        world.tick(1_000)
    world.submit("next")
    world.say("done", text="all done")
    world.host.end(world.live("done").id, 0)
    world.host.kill_shim(world.live("lost").id)
    with ThreadPoolExecutor(1) as other, pytest.MonkeyPatch.context() as patch:
        for call in ("spawn", "end_survivors"):
            patch.setattr(world.host, call, others_write(call, getattr(world.host, call)))
        world.tick(1_000)
    assert called == ["end_survivors", "spawn"]


def test_a_run_whose_supervisor_was_told_to_stop_is_judged_by_its_record(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.tick()
    world.host.end(world.live("t").id, 143, ended_by="interrupt")
    world.tick()
    (run,) = world.service.runs("t")
    assert run.outcome is not None
    assert (run.exit_code, run.outcome.status) == (143, "failed"), "a lost run has no exit code"


def test_half_a_last_word_is_none(world: World) -> None:
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.host.write(run_id, json.dumps({"status": "succeeded"}).encode())
    world.host.kill_shim(run_id)
    world.tick()
    assert world.state("t") == "FAILED lost"


def test_no_retry_before_nothing_of_the_lost_run_is_left(world: World) -> None:
    world.submit("t", on_lost="retry", retry={"backoff": "0s"})
    world.tick()
    run_id = world.live("t").id
    world.host.kill_shim(run_id)
    world.host.survivors[run_id] = 2
    for _ in range(2):
        world.tick()
        assert world.live("t").id == run_id
    report = world.tick(1)
    assert report.wake_ms is not None
    assert report.wake_ms <= world.now_ms, "the next tick is due at once"
    world.tick()
    assert world.live("t").id != run_id


def test_a_run_directory_that_is_gone_is_a_lost_run(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.lose(world.live("t").id)
    world.tick()
    assert world.state("t") == "FAILED lost"


def test_content_that_a_new_daemon_cannot_understand_keeps_nobody_else_waiting(world: World) -> None:
    for name in ("bad", "good"):
        world.submit(name)
    world.tick()
    spoil = update(TASK_REVISION).where(TASK_REVISION.c.task_id == world.row("bad").id).values(spec={})
    world.database.write(lambda connection: connection.execute(spoil))
    world.restarted_daemon()
    world.end("good")
    world.tick()
    assert (world.row("good").state, world.row("bad").state) == ("COMPLETED", "RUNNING")


def test_one_unreadable_directory_keeps_nobody_else_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit("bad")
    world.submit("good")
    world.tick()
    bad, reconcile = world.live("bad").id, world.host.reconcile

    def reconcile_but_one(run_id: str, step: int = 0) -> object:
        if run_id == bad:
            raise OSError(5, "Input/output error")
        return reconcile(run_id, step)

    monkeypatch.setattr(world.host, "reconcile", reconcile_but_one)
    world.end("good")
    world.submit("next")
    world.tick()
    assert world.state("good") == "COMPLETED"
    assert set(world.running()) == {"bad", "next"}


def test_output_that_its_reader_stumbles_over_ends_that_run_only(world: World) -> None:
    for kind in world.kinds.values():
        kind.poison = b"poison"
    world.submit("bad", retry={"max_attempts": 1})
    world.submit("good")
    world.tick()
    world.end("bad", text="here is poison for you")
    world.end("good")
    world.tick()
    assert world.state("good") == "COMPLETED"
    assert world.state("bad") == "FAILED agent_error"
    assert "could not be understood" in str(world.task("bad").reason_text)


def test_an_agent_that_is_no_longer_configured_is_still_read(world: World) -> None:
    world.submit("t", agent={"type": "codex"})
    world.tick()
    world.agents = (CLAUDE,)
    world.restarted_daemon()
    world.succeed("t")
    assert world.state("t") == "COMPLETED"


def lives(world: World, run: Run) -> bool:
    """Look at it."""
    collected = world.collector.collect(run, world.now_ms)
    if isinstance(collected, PendingEnd):
        collected.applied()
    return collected is True


def test_an_end_is_recorded_once(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.end("t")
    world.tick()
    version = world.task("t").version
    assert lives(world, run) is False
    assert world.task("t").version == version


def goes_on(world: World, patch: pytest.MonkeyPatch) -> None:
    """Nothing has happened."""


def never_starts(world: World, patch: pytest.MonkeyPatch) -> None:
    world.host.directories[world.live("t").id, 0].started = False
    world.host.kill_shim(world.live("t").id)


def loses_its_supervisor(world: World, patch: pytest.MonkeyPatch) -> None:
    world.host.kill_shim(world.live("t").id, agent_lives=True)


def ends(world: World, patch: pytest.MonkeyPatch) -> None:
    world.end("t")


def ends_and_is_being_read(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(world.host, "report", lambda *_: None)
    world.end("t")


def ends_and_its_tree_is_looked_at(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(world.worktrees, "looked_after_run", lambda *_: False)
    world.end("t", status="failed", reason="refused")


def leaves_processes(world: World, patch: pytest.MonkeyPatch) -> None:
    world.host.survivors[world.live("t").id] = 1
    world.host.kill_shim(world.live("t").id)


def is_lost(world: World, patch: pytest.MonkeyPatch) -> None:
    world.host.kill_shim(world.live("t").id)


def loses_its_directory(world: World, patch: pytest.MonkeyPatch) -> None:
    world.host.lose(world.live("t").id)


@pytest.mark.parametrize(
    "what",
    [
        goes_on,
        never_starts,
        loses_its_supervisor,
        ends,
        ends_and_is_being_read,
        ends_and_its_tree_is_looked_at,
        leaves_processes,
        is_lost,
        loses_its_directory,
    ],
    ids=lambda what: what.__name__,
)
@pytest.mark.parametrize("check", [[], ["make test"]], ids=["unchecked", "checked"])
def test_a_look_at_a_run_says_whether_it_is_still_live(
    world: World, monkeypatch: pytest.MonkeyPatch, what: Callable[[World, pytest.MonkeyPatch], None], check: list[str]
) -> None:
    world.submit("t", check=check)
    world.tick()
    run = world.live("t")
    what(world, monkeypatch)
    assert lives(world, run) is is_live(world, run.id)


def test_no_check_begins_of_a_run_that_has_ended_meanwhile(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.end("t", text="done")
    run = world.live("t")

    def end_it(point: str) -> None:
        if point == "check-prepared":
            world.database.write(lambda connection: connection.execute(update(RUN).values(live=False, state="ended")))

    crashpoint.install(end_it)
    try:
        assert lives(world, run) is is_live(world, run.id) is False
    finally:
        crashpoint.install(None)
    assert (run.id, 1) not in starts(world.host)


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_cancel_before_the_process_has_started(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.service.cancel("t")
    world.tick()
    assert world.task("t").phase == "stopping"
    assert not world.host.begin(run_id)
    world.tick()
    assert world.state("t") == "CANCELLED"
    assert world.run_requests.get(run_id).state == "revoked"


def test_cancel_is_asked_for_until_the_run_has_ended(world: World) -> None:
    world.host.stubborn = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.service.cancel("t")
    for _ in range(3):
        world.tick()
    assert world.host.calls.count(("cancel", run_id, 0)) == 3
    assert world.task("t").phase == "stopping"
    world.host.end(run_id, None, ended_by="cancel")
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_cancelled_run_is_neither_retried_nor_resumed_by_its_limit(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.stubborn = True
    world.service.cancel("t")
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert world.state("t") == "CANCELLED"
    assert world.roster.all()[0].limited


def test_an_agent_that_kept_to_a_budget_by_itself_is_told_of_with_the_figures(world: World) -> None:
    world.submit("t", budget={"usd": 2.0}, retry={"max_attempts": 1})
    world.tick()
    world.fail("t", "budget", detail="it would not go on", cost_usd=2.5)
    (run,) = world.service.runs("t")
    assert run.outcome is not None
    detail = run.outcome.detail or ""
    assert world.state("t") == "FAILED budget"
    assert "it would not go on" in detail
    assert "2.50" in detail
