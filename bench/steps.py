"""What growth costs in steps of SQLite's virtual machine, which no other work on the machine changes: each step of a
task's path and what people ask, with ended tasks, and with blocked tasks that are each in a lane of their own.

The daemon's own code runs on a database, without processes. ``BENCH_SIZES`` and ``BENCH_BLOCKED`` are numbers of tasks.
"""

import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection
from sqlalchemy.pool import _ConnectionFairy

from bench.grown import copy, part_lanes
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows, statement
from claudomator_py.store.connections import driver_of
from claudomator_py.store.database import FILE_NAME, Database
from tests.databases import put_migrated
from tests.fakes.agents import CLAUDE, LINT
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "1000,100000").split(","))
BLOCKED = int(os.environ.get("BENCH_BLOCKED", "20000"))
ROUNDS = 3
EXPLICIT = {"type": "lint"}


def measure() -> None:
    """Print the steps of each size, and at last with blocked lanes."""
    figures: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        put_migrated(state)
        with Database.open("sqlite", state_dir=state) as database:
            world = World(database, agents=(CLAUDE, LINT))
            for step in _path(world, "first").values():
                step()
        for size in SIZES:
            _grow(state, "COMPLETED", size)
            figures[f"{size:,} ended tasks"] = _counted(state)
        with Database.open("sqlite", state_dir=state) as database:
            world = World(database, agents=(CLAUDE, LINT))
            limit = Hold(
                Bucket(agent="claude"), Reason.RATE_LIMITED, START_MS + 10**12, Provenance.REPORTED, "", START_MS
            )
            database.write(lambda connection: hold_rows.add(connection, limit, None))
            world.submit("blocked", agent={"type": "claude"}, working_dir="/srv/blocked")
        _grow(state, "QUEUED", BLOCKED)
        figures[f"and {BLOCKED:,} blocked tasks"] = _counted(state)
        with closing(sqlite3.connect(state / FILE_NAME)) as connection:
            part_lanes(connection)
            connection.commit()
        figures[f"and {BLOCKED:,} blocked lanes"] = _counted(state)
    sys.stdout.write(f"| | {' | '.join(figures)} |\n|---|{'---:|' * len(figures)}\n")
    for name in next(iter(figures.values())):
        cells = " | ".join(f"{steps[name]:,}" for steps in figures.values())
        sys.stdout.write(f"| {name} | {cells} |\n")
    sys.stdout.flush()


def _grow(state: Path, of: str, number: int) -> None:
    with closing(sqlite3.connect(state / FILE_NAME)) as connection:
        (there,) = connection.execute("SELECT count(*) FROM task WHERE state = ?", (of,)).fetchone()
        copy(connection, of, range(there, number))
        connection.commit()


def _path(world: World, name: str) -> dict[str, Callable[[], object]]:
    """The steps of a task's path."""
    task = spec(name, agent=EXPLICIT)

    def end() -> None:
        world.end(name)
        world.tick(1_000)

    return {
        "accept": lambda: world.take(f"/inbox/{name}.yaml", task),
        "start": world.tick,
        "running": lambda: world.tick(1_000),
        "end": end,
        "nothing to do": lambda: world.tick(1_000),
    }


def _counted(state: Path) -> dict[str, int]:
    """Return the steps of each step, of the last of several rounds."""
    taken: dict[str, int] = {}
    with Database.open("sqlite", state_dir=state) as database:
        world = World(database, agents=(CLAUDE, LINT))
        world.now_ms += state.stat().st_mtime_ns // 10**9 % 10**8  # behind what was run before
        _first = _counting(world.overview.status)
        for number in range(ROUNDS):
            for name, step in _path(world, f"t-{world.now_ms}-{number}").items():
                taken[name] = _counting(step)
        taken["the first `status`, which counts"] = _first
        taken["`status`"] = _counting(world.overview.status)
        taken["`list`"] = _counting(lambda: world.names())
        text = world.names()[0]
        taken["`why`"] = _counting(lambda: world.service.why(text))
    return taken


def _counting(step: Callable[[], object]) -> int:
    with _listening() as counted:
        step()
    return counted[0]


@contextmanager
def _listening() -> Iterator[list[int]]:
    """Count the steps of all that is executed in the block, on any connection."""
    counted, connections = [0], cast(Any, _ConnectionFairy)
    given = connections.cursor

    def count() -> None:
        counted[0] += 1

    def cursor(fairy: Any, *arguments: Any, **options: Any) -> Any:
        fairy.driver_connection.set_progress_handler(count, 1)
        return given(fairy, *arguments, **options)

    def driver(connection: Connection) -> Any:
        given_driver = driver_of(connection)
        given_driver.set_progress_handler(count, 1)
        return given_driver

    connections.cursor = cursor
    of_statements = cast(Any, statement)
    of_statements.driver_of = driver
    try:
        yield counted
    finally:
        connections.cursor = given
        of_statements.driver_of = driver_of
