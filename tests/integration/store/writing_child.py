"""A process that writes without end and prints the id of each acknowledged write, to be killed by the test.

Arguments: database URL, state folder, crash point or ``-``, the pass of that point at which to die.
"""

import os
import signal
import sys
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, text

from claudomator_py.domain import crashpoint
from claudomator_py.store.database import Database

IN_FLIGHT = 40


def main(url: str, state_dir: str, point: str, nth: int) -> None:
    passes = 0

    def die(name: str) -> None:
        nonlocal passes
        passes += name == point
        if name == point and passes == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(number: int, connection: Connection) -> int:
        # Two rows, so that half a write would show.
        for half in (0, 1):
            connection.execute(text("INSERT INTO mark VALUES (:number, :half)"), {"number": number, "half": half})
        return number

    def acknowledge(future: Future[int]) -> None:
        os.write(1, b"%d\n" % future.result())

    with Database.open(url, state_dir=Path(state_dir)) as database:
        database.write(lambda connection: connection.execute(text("CREATE TABLE mark (number INTEGER, half INTEGER)")))
        crashpoint.install(die)
        number = 0
        while True:
            futures = []
            for _ in range(IN_FLIGHT):
                future = database.submit(partial(write, number))
                future.add_done_callback(acknowledge)
                futures.append(future)
                number += 1
            futures[-1].result()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
