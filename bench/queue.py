"""What a tick costs at rest with a great many tasks that cannot start: behind a held agent, in a busy directory, or of
an organisation that has its share of the slots."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, update

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import hold_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import TASK
from tests.fakes.agents import CLAUDE
from tests.fakes.many import multiply
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

SIZES = (100, 2_000, 20_000)
ROUNDS = 20
FAR_MS = 10**9
GUEST = Principal("acme-ci", Role.OPERATE, "acme")
WIDE = CLAUDE.model_copy(update={"max_concurrent": 9})
SHOP = AgentSpec(name="shop", kind="a2a", max_concurrent=90, auto_select=False)


def measure() -> None:
    """Print the median of a tick, in milliseconds, by the number of blocked tasks."""
    for name, blocked in _SCENES.items():
        for size in SIZES:
            with (
                tempfile.TemporaryDirectory() as folder,
                Database.open("sqlite", state_dir=Path(folder) / "state") as database,
            ):
                migrate(database)
                seconds = _tick_s(blocked(database, size))
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


def _beyond_their_share(database: Database, size: int, *, apart: bool) -> World:
    """apart: each in a lane of its own, and an agent is free that none of them names."""
    world = World(database, agents=(WIDE, SHOP), total=6, per_organisation=2, remote=4, remote_per_organisation=2)
    for number in range(3):
        world.now_ms += 1
        world.access.as_(GUEST)[Tasks].submit(spec(f"t{number}"))
    world.tick()

    def more(connection: Connection) -> None:
        multiply(connection, "t2", size - 1)
        if apart:
            their_own = update(TASK).where(TASK.c.name.like("t2%")).values(eligibility=TASK.c.eligibility + TASK.c.id)
            connection.execute(their_own)

    database.write(more)
    return world


_SCENES: Mapping[str, Callable[[Database, int], World]] = {
    "in folders of their own, of a held agent": partial(_blocked, held=True),
    "in one busy directory": partial(_blocked, held=False),
    "of an organisation that has its share": partial(_beyond_their_share, apart=False),
    "of such a one, in lanes of their own": partial(_beyond_their_share, apart=True),
}


def _tick_s(world: World) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        world.tick(1_000)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
