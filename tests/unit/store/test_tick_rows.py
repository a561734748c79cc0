"""What a tick looks at: each flag of rare rows is set by rows of its kind that count now, and by no others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows, tick_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import RUN, SPECIALIST, TASK
from claudomator_py.store.tick_rows import RareRows
from tests.databases import open_migrated

NOW = 1_790_000_000_000
NONE = RareRows(*[False] * len(RareRows._fields))
Change = Callable[[Connection], object]


def task(**columns: Any) -> Change:
    usual = {"id": "t", "name": "t", "state": "QUEUED", "priority": 0, "rank_ms": 1, "eligibility": "a"}
    usual |= {"dir_key": "/t", "tags": [], "source": "api", "created_ms": 1, "updated_ms": 1}
    return lambda connection: connection.execute(insert(TASK).values(usual | columns))


def run(warned_until_ms: int) -> Change:
    values = {"id": "r", "task_id": "t", "generation": 1, "attempt": 1, "seq": 1, "revision": 1, "agent": "a"}
    values |= {"kind": "claude", "account": "a", "tier": "fast", "dir_key": "", "thread": "t", "state": "ended"}
    values |= {"live": False, "started_ms": 1, "ended_ms": 2, "warned_until_ms": warned_until_ms}

    def write(connection: Connection) -> None:
        task(state="COMPLETED")(connection)
        connection.execute(insert(RUN).values(values))

    return write


def hold(until_ms: int | None, reason: Reason) -> Change:
    held = Hold(Bucket(agent="a"), reason, until_ms, Provenance.REPORTED, "test", created_ms=1)
    return lambda connection: hold_rows.add(connection, held, None)


def specialist(removed_ms: int | None) -> Change:
    values = {"id": "s", "card": {}, "content_hash": "", "created_ms": 1, "updated_ms": 1, "removed_ms": removed_ms}
    values |= {column.name: "" for column in SPECIALIST.columns if not column.nullable and column.name not in values}
    return lambda connection: connection.execute(insert(SPECIALIST).values(values))


def switch(name: str) -> Change:
    return lambda connection: hold_rows.turn_on(connection, name, None, NOW)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_migrated(tmp_path) as opened:
        yield opened


CASES: dict[str, tuple[Change, str | None]] = {
    "in force": (hold(NOW + 1, Reason.AUTH), "holds"),
    "without an end": (hold(None, Reason.AUTH), "holds"),
    "over and tried first": (hold(NOW - 1, Reason.RATE_LIMITED), "holds"),
    "over": (hold(NOW - 1, Reason.AUTH), None),
    "warned": (run(NOW + 1), "warned"),
    "warned before": (run(NOW), None),
    "registered": (specialist(None), "specialists"),
    "removed": (specialist(NOW), None),
    "drained": (switch(hold_rows.DRAIN), "drained"),
    "another host drained": (switch(f"{hold_rows.OF_HOST}node"), None),
    "kept": (task(kept_until_ms=NOW + 1), "kept"),
    "kept no longer": (task(kept_until_ms=NOW), None),
    "kept but ended": (task(kept_until_ms=NOW + 1, state="COMPLETED"), None),
    "has a turn": (task(seq=1, thread="other"), "in_turn"),
    "begun without a thread": (task(seq=1), None),
    "due": (task(state="WAITING", until_ms=NOW), "due"),
    "expired": (task(state="NEEDS_INPUT", until_ms=NOW), "due"),
    "not due yet": (task(state="WAITING", until_ms=NOW + 1), None),
    "to end": (task(state="RUNNING", cancel_requested_ms=1), "intent"),
    "to begin again": (task(restart_requested={"revision": 1}), "intent"),
    "queued": (task(), None),
}


@pytest.mark.parametrize(("change", "kind"), CASES.values(), ids=CASES)
def test_a_flag_is_set_by_what_counts_now(database: Database, change: Change, kind: str | None) -> None:
    database.write(change)
    present = database.read(lambda connection: tick_rows.present(connection, NOW))
    assert present == (NONE if kind is None else NONE._replace(**{kind: True}))
