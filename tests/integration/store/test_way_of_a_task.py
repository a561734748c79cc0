"""What a task that does next to nothing costs on its way: statements, commits and flushes, none of which grow."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.run import RunLimits, RunSpec
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.store import remembered, writer
from claudomator_py.store.database import Database
from tests.databases import listening, open_migrated
from tests.fakes.steps import spec
from tests.fakes.world import World

STEPS: dict[str, tuple[int, int, str]] = {
    "accept": (6, 1, "what is known of path and name, who waits for it; task, content, events, document, file"),
    "start": (
        21,
        1,
        "the present, whether anything is queued, lanes and heads, what was decided; run, snapshot, decision, state",
    ),
    "run": (10, 1, "the present again; that the run is alive, and its event"),
    "end": (17, 1, "the present; what the run had announced, outcome, state and its event"),
    "rest": (6, 0, "the present, and when something is due"),
}
"""Of each step: statements and commits at most, and what they are for. A number may only go down, unless its reason
says what more has to be known or made durable."""
FLUSHES = (1, "the folder that it lies in")
MADE = {"spec.json", "prompt.md", "handoff.json", "work"}
"""In a run directory before its shim. What that opens for writing it makes itself."""
GROWING = ("task", "task_revision", "run", "event", "decision", "snapshot", "inbox_file", "inbox_document", "label")
"""Tables with rows of what has ended."""
SCANNED = re.compile(
    rf"SCAN ({'|'.join(GROWING)})\b(?! USING (COVERING )?INDEX (uq_run_\w+|ix_task_(due|kept|intent)))"
)


@dataclass
class Counted:
    """What was done on the connections of the engines."""

    statements: list[tuple[str, Any]] = field(default_factory=list)
    commits: int = 0


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()

    def executed(statement: str, parameters: Any) -> None:
        if not statement.startswith(("SAVEPOINT", "RELEASE")):
            counted.statements.append((statement, parameters))

    def reached(point: str) -> None:
        counted.commits += point == "store-after-commit"

    with pytest.MonkeyPatch.context() as patch, listening(executed):
        patch.setattr(writer, "crashpoint", reached)
        yield counted


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_migrated(tmp_path / "state") as opened:
        yield opened


def steps_of(world: World) -> dict[str, Callable[[], object]]:
    """The way of a task, step by step."""
    task = spec("t", agent={"type": "lint"})

    def end() -> None:
        world.end("t")
        world.tick(1_000)

    return {
        "accept": lambda: world.take("/inbox/t.yaml", task),
        "start": world.tick,
        "run": lambda: world.tick(1_000),
        "end": end,
        "rest": lambda: world.tick(1_000),
    }


def test_each_step_takes_few_statements_and_commits(database: Database, counted: Counted) -> None:
    world = World(database)
    world.take("/inbox/warm.yaml", spec("warm", agent={"type": "claude"}))
    world.tick()
    taken = {}
    for name, step in steps_of(world).items():
        counted.statements.clear()
        counted.commits = 0
        step()
        statements = [entry for entry, _ in counted.statements if not entry.startswith("PRAGMA")]
        taken[name] = (len(statements), counted.commits)
    assert world.state("t") == "COMPLETED"
    too_many = {
        name: number for name, number in taken.items() if number[0] > STEPS[name][0] or number[1] > STEPS[name][1]
    }
    assert not too_many, taken


def test_new_files_take_no_more_statements_however_many_they_are(database: Database, counted: Counted) -> None:
    world = World(database)
    world.take("/inbox/warm.yaml", spec("warm"))
    taken = {}
    for number in (1, 100):
        counted.statements.clear()
        counted.commits = 0
        files = {f"/inbox/{number}-{each}.yaml": [spec(f"t{number}-{each}")] for each in range(number)}
        assert not any(world.take_many(files))
        taken[number] = (len(counted.statements), counted.commits)
    assert taken[1] == taken[100]
    assert taken[1][1] == 1


@pytest.mark.parametrize("what", ["gone", "archived"])
def test_files_that_leave_the_inbox_take_no_more_statements_however_many_they_are(
    database: Database, counted: Counted, what: str
) -> None:
    world = World(database)
    taken = {}
    for number in (1, 100):
        paths = [f"/inbox/{number}-{each}.yaml" for each in range(number)]
        world.take_many({path: [spec(Path(path).stem)] for path in paths})
        counted.statements.clear()
        counted.commits = 0
        getattr(world.intake, what)(paths)
        taken[number] = (len(counted.statements), counted.commits)
        assert not world.intake.known_files()
    assert taken[1] == taken[100]
    assert taken[1][1] == 1


def test_no_statement_reads_all_that_has_ended(database: Database, counted: Counted) -> None:
    world = World(database)
    for step in steps_of(world).values():
        step()
    asked = dict(counted.statements)

    def plans(connection: Any) -> list[str]:
        results = []
        for statement, parameters in asked.items():
            if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE")):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                results += [f"{row[3]}: {statement}" for row in plan if SCANNED.match(str(row[3]))]
        return results

    assert database.read(plans) == []


def test_no_statement_is_planned_at_each_execution(database: Database, counted: Counted) -> None:
    """SQLite does that where a parameter might be compared with the condition of an index."""
    world = World(database)
    for step in steps_of(world).values():
        step()
    assert database.file is not None
    planned: list[int] = []

    def authorise(*_: object) -> int:
        planned.append(1)
        return sqlite3.SQLITE_OK

    again = []
    with closing(sqlite3.connect(database.file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.set_authorizer(authorise)
        for statement, parameters in dict(counted.statements).items():
            if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE")):
                connection.execute(statement, parameters).fetchall()
                planned.clear()
                connection.execute(statement, parameters).fetchall()
                again += [statement] if planned else []
        connection.execute("ROLLBACK")
    assert again == []


def test_a_large_write_makes_no_file_beside_the_database(database: Database) -> None:
    pages = 64 * 1024

    def files(connection: Any) -> set[str]:
        # The savepoint keeps the pages as they were, and those are more than SQLite keeps in memory by itself.
        remembered.keep(connection, "large", {"filler": "b" * 4 * pages})
        return {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}

    database.write(lambda connection: remembered.keep(connection, "large", {"filler": "a" * 4 * pages}))
    there = database.write(files)
    assert database.file is not None
    assert str(database.file) in there
    assert not [name for name in there if "(deleted)" in name and "etilqs" in name]


def test_a_run_directory_takes_few_flushes_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = []
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(descriptor)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    limits = RunLimits(timeout_ms=1_000, stall_ms=None, grace_ms=100, output_bytes=1_000)
    order = RunSpec("r", (("true",),), None, (), (), "", limits, handoff="{}")
    host = LocalRunHost(tmp_path, Launcher(), grace_ms=100)
    host.prepare(order)
    host.flush_prepared()
    host.close()
    assert len(flushed) <= FLUSHES[0], FLUSHES[1]
    assert {path.name for path in (tmp_path / "r").iterdir()} == MADE
