"""What a tick costs at rest with a great many tasks that cannot start: behind a held agent, or in a busy directory."""

import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from tests.fakes.many import multiply
from tests.fakes.world import START_MS, World

SIZES = (100, 2_000, 20_000)
ROUNDS = 20
FAR_MS = 10**9


def measure() -> None:
    """Print the median of a tick, in milliseconds, by the number of blocked tasks."""
    for name, held in (("in folders of their own, of a held agent", True), ("in one busy directory", False)):
        for size in SIZES:
            with (
                tempfile.TemporaryDirectory() as folder,
                Database.open("sqlite", state_dir=Path(folder) / "state") as database,
            ):
                migrate(database)
                seconds = _tick_s(_blocked(database, size, held=held))
                sys.stdout.write(f"  {size:6} {name}: {seconds * 1000:.1f} ms\n")


def _blocked(database: Database, size: int, *, held: bool) -> World:
    world = World(database)
    agent = {"type": "claude", "strict": True}
    if held:
        hold = Hold(Bucket(agent="claude"), Reason.RATE_LIMITED, START_MS + FAR_MS, Provenance.REPORTED, "", START_MS)
        database.write(partial(hold_rows.add, hold=hold, run_id=None))
    else:
        world.submit("first", working_dir="/srv/one", agent=agent)
        world.tick()
    world.submit("blocked", working_dir="/srv/one", agent=agent)

    def more(connection: Connection) -> None:
        multiply(connection, "blocked", size - 1, folders=held)

    database.write(more)
    return world


def _tick_s(world: World) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        world.tick(1_000)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
