"""A process that upgrades a database to a schema after the newest and is killed at a crash point on the way.

Arguments: database URL, state folder, crash point, folder for the migration.
"""

import os
import signal
import sys
from pathlib import Path

from claudomator_py.domain import crashpoint
from claudomator_py.store import migrate
from claudomator_py.store.database import Database
from tests.integration.store.earlier_schemas import with_next


def main(url: str, state_dir: str, point: str, versions: str) -> None:
    def die(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoint.install(die)
    config = with_next(Path(versions))
    migrate.alembic_config = lambda: config
    with Database.open(url, state_dir=Path(state_dir)) as database:
        migrate.migrate(database)


if __name__ == "__main__":
    main(*sys.argv[1:])
