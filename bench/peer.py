"""Runs tasks of ``true`` with another task queue: ``python -I peer.py NAME FOLDER URL NUMBER``.

A program of its own, for the interpreter that has those packages. It prints two figures as JSON: milliseconds of CPU
for each task, and tasks a second from the first that is enqueued until the last has ended. Two run at a time.
"""

import asyncio
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SLOTS = 2
PROGRAM = "true"
_PAUSE_S = 0.001

Taken = tuple[float, float]
"""Seconds, and those of this process's CPU."""


def run_huey(folder: Path, _url: str, number: int) -> Taken:
    """huey keeps its queue in SQLite, flushes each commit, and runs tasks on two threads."""
    huey = importlib.import_module("huey").SqliteHuey(filename=str(folder / "huey.db"), fsync=True)
    ended: list[int] = []

    @huey.task()  # type: ignore[untyped-decorator]
    def run() -> None:
        subprocess.run([PROGRAM], check=True)
        ended.append(1)

    consumer = huey.create_consumer(workers=SLOTS)
    consumer.start()
    began = _now()
    for _ in range(number):
        run()
    while len(ended) < number:
        time.sleep(_PAUSE_S)
    taken = _since(began)
    consumer.stop()
    return taken


def run_procrastinate(_folder: Path, url: str, number: int) -> Taken:
    """Procrastinate keeps its queue in PostgreSQL; a worker runs two jobs at a time."""
    procrastinate = importlib.import_module("procrastinate")
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task  # type: ignore[untyped-decorator]
    async def run() -> None:
        await _program()

    async def work() -> Taken:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            began = _now()
            for _ in range(number):
                await run.defer_async()
            await app.run_worker_async(concurrency=SLOTS, wait=False, install_signal_handlers=False)
            return _since(began)

    return asyncio.run(work())


def run_pgqueuer(_folder: Path, url: str, number: int) -> Taken:
    """PgQueuer keeps its queue in PostgreSQL; jobs are taken in tens, and two run at a time."""
    pgqueuer, asyncpg = importlib.import_module("pgqueuer"), importlib.import_module("asyncpg")
    drain = importlib.import_module("pgqueuer.domain.types").QueueExecutionMode.drain

    async def work() -> Taken:
        connection = await asyncpg.connect(url)
        driver = pgqueuer.AsyncpgDriver(connection)
        queries, worker = pgqueuer.Queries(driver), pgqueuer.PgQueuer(driver)
        await queries.install()

        @worker.entrypoint("run", concurrency_limit=SLOTS)  # type: ignore[untyped-decorator]
        async def run(_job: Any) -> None:
            await _program()

        began = _now()
        for _ in range(number):
            await queries.enqueue("run", None)
        await worker.run(mode=drain)
        taken = _since(began)
        await connection.close()
        return taken

    return asyncio.run(work())


def run_dbos(_folder: Path, url: str, number: int) -> Taken:
    """DBOS records each workflow and its step in PostgreSQL; a worker runs two of the queue at a time."""
    dbos = importlib.import_module("dbos")
    dbos.DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})

    @dbos.DBOS.step()  # type: ignore[untyped-decorator]
    def step() -> None:
        subprocess.run([PROGRAM], check=True)

    @dbos.DBOS.workflow()  # type: ignore[untyped-decorator]
    def run() -> None:
        step()

    dbos.DBOS.launch()
    queue = dbos.DBOS.register_queue("bench", worker_concurrency=SLOTS, polling_interval_sec=0.01)
    began = _now()
    for handle in [queue.enqueue(run) for _ in range(number)]:
        handle.get_result(polling_interval_sec=0.01)
    taken = _since(began)
    dbos.DBOS.destroy()
    return taken


def _now() -> Taken:
    return time.perf_counter(), time.process_time()


def _since(began: Taken) -> Taken:
    return time.perf_counter() - began[0], time.process_time() - began[1]


async def _program() -> None:
    process = await asyncio.create_subprocess_exec(PROGRAM)
    await process.wait()


RUNS: dict[str, Callable[[Path, str, int], Taken]] = {
    "huey": run_huey,
    "procrastinate": run_procrastinate,
    "pgqueuer": run_pgqueuer,
    "dbos": run_dbos,
}


def main(name: str, folder: str, url: str, number: str) -> None:
    """Print the figures."""
    taken_s, cpu_s = RUNS[name](Path(folder), url, int(number))
    sys.stdout.write(json.dumps([cpu_s * 1000 / int(number), int(number) / taken_s]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
