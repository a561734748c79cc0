"""What is asked often reads an index, however many rows have ended."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast, get_args

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.scheduler.lanes import Demand
from claudomator_py.scheduler.load import Shut, Taken
from claudomator_py.store import (
    alike_rows,
    events,
    metric_rows,
    pruning,
    queue,
    reads,
    run_rows,
    spending_rows,
    tick_rows,
)
from claudomator_py.store.database import Database
from claudomator_py.store.events import EventQuery
from claudomator_py.store.migrations import begin
from claudomator_py.store.tables import Task
from tests.databases import listening, open_migrated

TAKEN = Taken(frozenset({"/a", "/b"}), frozenset({"keeper"}), frozenset({"thread"}), frozenset({"first"}))
SHUT = Shut(frozenset({"org:acme"}))
DEMAND = Demand("hint", "{}")

QUEUED = reads.StatusFigures({"QUEUED": 1}, 0, {})
NOT_LISTED: Final = ("needs_you", "problems", "running", "recent")
LISTED = reads.Listed([cast(Task, SimpleNamespace(id="a"))], 2)
FIGURES = reads.StatusFigures(dict.fromkeys(get_args(StateName), 1), 1, {"lost": 1})


def _of_specialist(connection: Connection) -> object:
    return reads.page(connection, TaskFilter(specialist="a"), None, 2)


ASKED: dict[str, tuple[Callable[[Connection], object], str]] = {
    "live runs": (run_rows.live, "INDEX uq_run_"),
    "live runs by agent": (metric_rows.live_runs, "INDEX uq_run_"),
    "ended runs": (metric_rows.ended_runs, "COVERING INDEX ix_run_ended"),
    "tasks by state": (reads.counts, "COVERING INDEX ix_task_state (state=?)"),
    "tasks that have not ended": (tick_rows.unended, "COVERING INDEX ix_task_state (state=?)"),
    "tasks of a specialist": (_of_specialist, "INDEX ix_task_specialist (specialist=?)"),
    "tasks of a conversation": (
        lambda result: reads.last_of_context(result, "c", OPERATOR),
        "INDEX ix_task_context (creator=? AND context=?)",
    ),
    "waiting tasks": (metric_rows.waiting, "INDEX ix_task_"),
    "what was spent on a day": (lambda result: spending_rows.by_agent(result, 1, 2), "COVERING INDEX ix_run_spent"),
    "what a task has spent": (lambda result: spending_rows.of_task(result, "a"), "INDEX ix_run_task"),
    "windows of an account": (lambda result: spending_rows.windows(result, "a", "b"), "INDEX ix_run_windows"),
    "the next demand": (
        lambda result: queue.demands(result, ["hint"]),
        "INDEX ix_task_place (state=? AND hint=? AND demand>?)",
    ),
    "the next hint": (
        lambda result: queue.demands(result, ["hint"]),
        "INDEX ix_task_place (state=? AND hint>?)",
    ),
    "the number of the queued": (lambda result: queue.number(result, 3), "COVERING INDEX ix_task_"),
    "the first of the queue": (lambda result: queue.first_places(result, 3), "INDEX ix_task_turn (state=?)"),
    "the first of a demand": (
        lambda result: queue.next_places(result, DEMAND, 3, (1, 2, "a")),
        "INDEX ix_task_demand (state=? AND hint=? AND demand=? AND (rank_ms,created_ms,id)>(?,?,?))",
    ),
    "lanes": (
        lambda result: queue.lanes(result, DEMAND, TAKEN, SHUT),
        "INDEX ix_task_place (state=? AND hint=? AND demand=? AND tenant=? AND lane=? AND dir_key>?)",
    ),
    "the next lane": (
        lambda result: queue.lanes(result, DEMAND, TAKEN, SHUT),
        "INDEX ix_task_place (state=? AND hint=? AND demand=? AND tenant=? AND lane>?)",
    ),
    "the next tenant": (
        lambda result: queue.lanes(result, DEMAND, TAKEN, SHUT),
        "INDEX ix_task_place (state=? AND hint=? AND demand=? AND tenant>?)",
    ),
    "the operator's first lane": (
        lambda result: queue.lanes(result, DEMAND, TAKEN, SHUT),
        "INDEX ix_task_place (state=? AND hint=? AND demand=? AND tenant=?)",
    ),
    "what is queued, in order": (
        lambda result: reads.status_lists(result, 5, failed_since_ms=1, figures=QUEUED),
        "INDEX ix_task_turn (state=?)",
    ),
    "those of the lanes that are listed": (
        lambda result: alike_rows.unlisted(
            result, {**dict.fromkeys(NOT_LISTED, reads.Listed((), 0)), "queued": LISTED}, 1
        ),
        "INDEX ix_task_lane (state=? AND lane=?)",
    ),
    "the head of a lane": (
        lambda result: queue.heads(result, ["lane"], TAKEN, after=(1, 2, "a"), without=["b"]),
        "INDEX ix_task_lane (state=? AND lane=? AND (rank_ms,created_ms,id)>(?,?,?))",
    ),
    "the first of a lane": (lambda result: queue.first(result, "lane", 3), "INDEX ix_task_lane (state=? AND lane=?)"),
    "who has a turn": (tick_rows.in_turn, "COVERING INDEX ix_task_begun (state=?)"),
    "kept directories": (lambda result: tick_rows.kept(result, 1), "INDEX ix_task_kept (state=? AND kept_until_ms>?)"),
    "the next that is kept": (lambda result: tick_rows.next_times(result, 1), "COVERING INDEX ix_task_kept"),
    "due tasks": (lambda result: tick_rows.due(result, 1, 2), "INDEX ix_task_due (state=? AND until_ms<?)"),
    "the next due": (lambda result: tick_rows.next_times(result, 1), "COVERING INDEX ix_task_due"),
    "branches that were merged": (
        lambda result: events.resolved_branches(result, 5, OPERATOR),
        "INDEX ix_event_settled (kind=?)",
    ),
    "events of no task": (
        lambda result: events.newest(result, 5, EventQuery(of_no_task=True, kinds=("schedule_missed",))),
        "INDEX ix_event_task (task_id=?)",
    ),
    "answers": (metric_rows.answers, "COVERING INDEX ix_classification_answered"),
}


@pytest.fixture(params=["new", "migrated"])
def sqlite(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """As a new database is made, and as one that was upgraded step by step: of two indexes that cost the same, SQLite
    takes one by the order in which they were made."""
    if request.param == "migrated":
        with open_migrated(tmp_path / "state") as opened:
            yield opened
        return
    with Database.open("sqlite", state_dir=tmp_path / "state") as opened:
        assert begin(opened)
        yield opened


def plans(database: Database, ask: Callable[[Connection], object]) -> list[tuple[str, str]]:
    """How each of its queries is answered, with its text and parameters."""
    asked: list[tuple[str, Any]] = []

    def remember(statement: str, parameters: Any) -> None:
        if statement.startswith(("SELECT", "WITH")):
            asked.append((statement, parameters))

    def read(connection: Connection) -> list[tuple[str, str]]:
        with listening(remember):
            ask(connection)
        explained = [
            (connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", given), f"{text} {given}")
            for text, given in asked
        ]
        return [("; ".join(str(row[3]) for row in plan), text) for plan, text in explained]

    return database.read(read)


@pytest.mark.parametrize("name", ASKED)
def test_it_reads_its_index(sqlite: Database, name: str) -> None:
    ask, index = ASKED[name]
    assert f"USING {index}" in plans(sqlite, ask)[0][0]


def test_all_tasks_are_counted_without_a_look_at_any(sqlite: Database) -> None:
    others, whole = plans(sqlite, reads.counts)
    assert whole[0].startswith("SCAN task USING COVERING INDEX")
    assert "COMPLETED" not in others[1]


def test_the_status_counts_nothing_that_has_ended_again(sqlite: Database) -> None:
    result = plans(sqlite, lambda connection: reads.status_lists(connection, 0, failed_since_ms=1, figures=FIGURES))
    assert not [asked for _, asked in result if "COMPLETED" in asked or "CANCELLED" in asked]


@pytest.mark.parametrize("state", ["CANCELLED", "COMPLETED", "FAILED"])
def test_the_status_sorts_nothing_that_has_ended(sqlite: Database, state: str) -> None:
    results = plans(sqlite, lambda connection: reads.status_lists(connection, 10, failed_since_ms=1, figures=FIGURES))
    (plan,) = (plan for plan, asked in results if state in asked)
    assert plan.startswith("SEARCH task USING INDEX ix_task_ended (state=?")
    assert "TEMP B-TREE" not in plan


def test_what_may_not_be_forgotten_is_found_without_a_look_at_what_has_ended(sqlite: Database) -> None:
    plan, _ = plans(sqlite, lambda connection: pruning.events(connection, [1]))[0]
    assert "INDEX ix_task_state (state=?)" in plan
    assert "SCAN task" not in plan
