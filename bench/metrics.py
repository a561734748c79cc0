"""What a scrape costs: the sums behind /metrics over 100,000 runs with final answers of 4,000 characters."""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, insert

from claudomator_py.scheduler.load import Taken
from claudomator_py.store import hold_rows, metric_rows, queue, reads
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import RUN, TASK, TASK_REVISION

START_MS = 1_790_000_000_000
RUNS = 100_000
BATCH = 1_000
QUEUED_EVERY = 10
LANES = 50
ROUNDS = 5
ANSWER = "y" * 4_000


def fill(database: Database, runs: int = RUNS) -> None:
    """Ended runs of as many tasks; one task in ten is queued besides, in fifty lanes."""
    chance = random.Random(1)  # noqa: S311 - the same rows every time
    for first in range(0, runs, BATCH):
        numbers = range(first, min(first + BATCH, runs))
        ended = [_run(number, chance) for number in numbers]
        tasks = [_task(number) for number in numbers]
        revisions = [
            {
                "task_id": task["id"],
                "revision": 1,
                "spec": {"name": "t", "instructions": "do it"},
                "content_hash": "",
                "dir_key": "",
                "created_ms": START_MS,
            }
            for task in tasks
        ]
        database.write(partial(_insert, rows=(tasks, revisions, ended)))


def _insert(connection: Connection, rows: tuple[Sequence[Mapping[str, object]], ...]) -> None:
    for table, values in zip((TASK, TASK_REVISION, RUN), rows, strict=True):
        connection.execute(insert(table), list(values))


def _task(number: int) -> dict[str, object]:
    queued = number % QUEUED_EVERY == 0
    return {
        "id": f"task-{number:09}",
        "name": f"t{number}",
        "version": 1,
        "generation": 1,
        "attempt": 1,
        "seq": 1,
        "revision": 1,
        "state": "QUEUED" if queued else "COMPLETED",
        "priority": 1,
        "rank_ms": START_MS + number,
        "eligibility": f"lane-{number // QUEUED_EVERY % LANES}",
        "dir_key": "",
        "tags": [],
        "source": "api",
        "created_ms": START_MS + number,
        "updated_ms": START_MS + number,
    }


def _run(number: int, chance: random.Random) -> dict[str, object]:
    status = chance.choice(["succeeded"] * 5 + ["failed", "limited"])
    reason = None if status == "succeeded" else chance.choice(["timeout", "agent_error", "rate_limited"])
    began_ms = START_MS + number * 1_000
    return {
        "id": f"run-{number:09}",
        "task_id": f"task-{number:09}",
        "generation": 1,
        "attempt": 1,
        "seq": 1,
        "revision": 1,
        "agent": chance.choice(["claude", "gemini", "codex"]),
        "kind": "claude",
        "dir_key": "",
        "conversation_id": "",
        "state": "ended",
        "live": False,
        "check_seq": 0,
        "started_ms": began_ms,
        "ended_ms": began_ms + chance.randrange(3_600_000),
        "outcome": {"status": status, "reason": reason, "text": ANSWER},
        "ended_as": status,
        "reason": reason,
        "input_tokens": chance.randrange(100_000),
        "output_tokens": chance.randrange(10_000),
        "cost_usd": chance.random(),
    }


def measure() -> None:
    """Print the median of each sum, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder, Database.open("sqlite", state_dir=Path(folder) / "state") as database:
        migrate(database)
        fill(database)
        sums: dict[str, Callable[[Connection], object]] = {
            "tasks by state": reads.counts,
            "ended runs": metric_rows.ended_runs,
            "live runs": metric_rows.live_runs,
            "waiting": metric_rows.waiting,
            "queued": lambda connection: metric_rows.queued(connection, Taken()),
            "lanes": queue.all_lanes,
            "holds": lambda connection: hold_rows.in_force(connection, START_MS),
            "answers": metric_rows.answers,
        }
        for name, fn in sums.items():
            times = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                database.read(fn)
                times.append((time.perf_counter() - begin) * 1000)
            print(f"{name:>16}: {statistics.median(times):8.1f} ms")
