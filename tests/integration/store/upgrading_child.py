"""A process that brings a database to the newest schema and is killed at a crash point on the way.

Arguments: database URL, state folder, crash point.
"""

import os
import signal
import sys
from pathlib import Path

from claudomator_py.domain import crashpoint
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate


def main(url: str, state_dir: str, point: str) -> None:
    def die(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoint.install(die)
    with Database.open(url, state_dir=Path(state_dir)) as database:
        migrate(database)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
