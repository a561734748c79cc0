"""PostgreSQL in trouble, or set up otherwise: every refusal names cause and remedy, and work goes on afterwards."""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, make_url, text

from claudomator_py.store.connections import driver_of
from claudomator_py.store.database import Database, StoreUnavailable
from tests.integration.store.mark_table import add, count, create
from tests.postgresql import connected


def test_a_table_locked_by_another_client(postgresql_url: str, tmp_path: Path) -> None:
    with Database.open(postgresql_url, state_dir=tmp_path, busy_timeout_ms=50) as database:
        database.write(create)
        engine = create_engine(make_url(postgresql_url).set(drivername="postgresql+psycopg"))
        with engine.begin() as other:
            other.execute(text("LOCK TABLE mark IN ACCESS EXCLUSIVE MODE"))
            with pytest.raises(StoreUnavailable, match="locked by another client"):
                database.write(add)
        engine.dispose()
        database.write(add)
        assert database.read(count) == 1


def test_a_connection_lost_in_a_write_fails_that_write_and_the_next_one_reconnects(
    postgresql_url: str, tmp_path: Path
) -> None:
    def cut(connection: Connection) -> None:
        add(connection)
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with Database.open(postgresql_url, state_dir=tmp_path) as database:
        database.write(create)
        with pytest.raises(StoreUnavailable, match="connection to PostgreSQL"):
            database.write(cut)
        database.write(add)
        assert database.read(count) == 1


def test_connections_lost_while_idle_are_not_noticed(postgresql_url: str, tmp_path: Path) -> None:
    with Database.open(postgresql_url, state_dir=tmp_path) as database:
        database.write(create)
        assert database.read(count) == 0
        engine = create_engine(make_url(postgresql_url).set(drivername="postgresql+psycopg"))
        with engine.connect() as other:
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            other.execute(text(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {others}"))
        engine.dispose()
        database.write(add)
        assert database.read(count) == 1


def test_a_database_has_one_daemon_on_whatever_machine(postgresql_url: str, tmp_path: Path) -> None:
    open_daemon = partial(Database.open, postgresql_url, busy_timeout_ms=50, is_daemon=True)

    def cut(connection: Connection) -> None:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with open_daemon(state_dir=tmp_path / "here") as here:
        here.write(create)
        with pytest.raises(StoreUnavailable, match="another daemon has the database open"):
            open_daemon(state_dir=tmp_path / "there")
        with Database.open(postgresql_url, state_dir=tmp_path / "there") as reader:
            assert reader.read(count) == 0
        with pytest.raises(StoreUnavailable, match="connection to PostgreSQL"):
            here.write(cut)
        with open_daemon(state_dir=tmp_path / "there") as there:
            with pytest.raises(StoreUnavailable, match="another daemon has the database open"):
                here.write(add)
            there.write(add)
        here.write(add)
        assert here.read(count) == 2


def test_a_second_daemon_is_told_of_the_first_however_short_its_statements_must_be(
    postgresql_url: str, tmp_path: Path
) -> None:
    url = make_url(postgresql_url).update_query_dict({"options": "-c statement_timeout=200"})
    with (
        Database.open(postgresql_url, state_dir=tmp_path / "here", is_daemon=True),
        pytest.raises(StoreUnavailable, match="another daemon has the database open"),
    ):
        Database.open(url.render_as_string(hide_password=False), state_dir=tmp_path / "there", is_daemon=True)


def test_a_daemon_gets_past_its_own_session_that_the_server_still_keeps(postgresql_url: str, tmp_path: Path) -> None:
    kept: list[psycopg.Connection] = []

    def vanish(connection: Connection) -> None:
        driver = driver_of(connection)
        driver.close = lambda: kept.append(driver)  # as if the server did not hear of it
        connection.invalidate()

    with Database.open(postgresql_url, state_dir=tmp_path, busy_timeout_ms=50, is_daemon=True) as database:
        database.write(create)
        with pytest.raises(StoreUnavailable):
            database.write(vanish)
        database.write(add)
        assert database.read(count) == 1
    (session,) = kept
    psycopg.Connection.close(session)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(f"postgresql://me:hush-hush@/db?host={tmp_path}", state_dir=tmp_path)
    assert "start the server" in refusal.value.remedy
    assert "hush-hush" not in str(refusal.value)


def test_a_database_that_is_not_there(postgresql_url: str, tmp_path: Path) -> None:
    url = make_url(postgresql_url).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(StoreUnavailable, match="does not exist") as refusal:
        Database.open(url, state_dir=tmp_path)
    assert "createdb" in refusal.value.remedy
    assert "~/.pgpass" in refusal.value.remedy


def test_without_the_driver_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnavailable, match="not installed") as refusal:
        Database.open("postgresql://localhost/db", state_dir=tmp_path)
    assert "pip install 'claudomator-py[postgres]'" in refusal.value.remedy


@pytest.mark.parametrize("url", ["", "mysql://localhost/db", "sqlite:///elsewhere.db", "a database"])
def test_a_url_of_another_kind_is_refused_with_the_two_that_work(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(url, state_dir=tmp_path)
    assert refusal.value.remedy == "write sqlite, or postgresql://user@host/name"


@pytest.mark.parametrize(
    "url",
    ["postgresql://me@one:5432,two:5432/db", "postgresql://me@/db?host=one:5432&host=two:x", "postgres://one:/db"],
)
def test_a_url_whose_servers_cannot_be_read_is_refused_with_the_form_that_works(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="URL cannot be read") as refusal:
        Database.open(url, state_dir=tmp_path)
    assert "postgresql://user@/name?host=one:5432&host=two:5432" in refusal.value.remedy


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        ("host={0}", None),
        ("host={0}&host={0}", "primary"),
        ("host={0},{0}", "primary"),
        ("host={0}&host={0}&target_session_attrs=any", "any"),
    ],
)
def test_of_several_servers_only_the_primary_is_used(
    postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: str, asked: str | None
) -> None:
    connect, given = psycopg.connect, list[str | None]()

    def listen(*args: Any, **parameters: Any) -> psycopg.Connection:
        given.append(parameters.get("target_session_attrs"))
        return connect(*args, **parameters)

    monkeypatch.setattr(psycopg, "connect", listen)
    url = make_url(postgresql_url)
    query = hosts.format(url.query["host"])
    with Database.open(f"postgresql://{url.username}@/{url.database}?{query}", state_dir=tmp_path) as database:
        database.write(create)
        assert database.read(count) == 0
    assert given
    assert set(given) == {asked}


@pytest.mark.parametrize("access", ["read", "write"])
def test_a_limit_of_the_role_that_was_raised_holds_for_connections_that_were_open_before(
    postgresql_url: str, tmp_path: Path, access: str
) -> None:
    def wait(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(0.2)"))

    name = make_url(postgresql_url).database
    with connected(postgresql_url) as other:
        other.execute(text(f"ALTER DATABASE {name} SET statement_timeout = 50"))
        try:
            with Database.open(postgresql_url, state_dir=tmp_path) as database:
                with pytest.raises(StoreUnavailable, match="statement timeout") as refusal:
                    getattr(database, access)(wait)
                assert "raise the daemon's statement_timeout" in refusal.value.remedy
                other.execute(text(f"ALTER DATABASE {name} SET statement_timeout = '1min'"))
                getattr(database, access)(wait)
        finally:
            other.execute(text(f"ALTER DATABASE {name} RESET ALL"))


def test_options_of_the_url_reach_the_server_beside_ours(postgresql_url: str, tmp_path: Path) -> None:
    def show(name: str, connection: Connection) -> object:
        return connection.execute(text(f"SHOW {name}")).scalar()

    url = make_url(postgresql_url).update_query_dict({"options": "-c work_mem=77MB"})
    with Database.open(url.render_as_string(hide_password=False), state_dir=tmp_path) as database:
        for name, value in (("work_mem", "77MB"), ("synchronous_commit", "on"), ("lock_timeout", "5s")):
            assert database.write(partial(show, name)) == value


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("datestyle", "German, DMY"),
        ("standard_conforming_strings", "off"),
        ("extra_float_digits", "-12"),
        ("client_encoding", "LATIN1"),
    ],
)
def test_settings_of_the_role_change_nothing_that_is_read_or_written(
    postgresql_url: str, tmp_path: Path, setting: str, value: str
) -> None:
    url = make_url(postgresql_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as other:
        other.execute(text(f"ALTER DATABASE {url.database} SET {setting} = '{value}'"))
    try:
        with Database.open(postgresql_url, state_dir=tmp_path, is_daemon=True) as database:
            row = "SELECT 0.1::float8 + 0.2::float8, '漢\\w' = :text, now()"
            for access in (database.read, database.write):
                number, same, instant = access(
                    lambda connection: connection.execute(text(row), {"text": "漢\\w"}).one()
                )
                assert (number, same) == (0.1 + 0.2, True)
                assert abs(instant.timestamp() - time.time()) < 3_600
    finally:
        with engine.connect() as other:
            other.execute(text(f"ALTER DATABASE {url.database} RESET ALL"))
        engine.dispose()


def test_a_database_that_is_set_read_only_is_written_again_once_it_is_reset(
    postgresql_url: str, tmp_path: Path
) -> None:
    url = make_url(postgresql_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as other, Database.open(postgresql_url, state_dir=tmp_path) as database:
        database.write(create)
        other.execute(text(f"ALTER DATABASE {url.database} SET default_transaction_read_only = on"))
    with engine.connect() as other, Database.open(postgresql_url, state_dir=tmp_path) as database:
        with pytest.raises(StoreUnavailable, match="permits no writing") as refusal:
            database.write(add)
        assert "reset default_transaction_read_only" in refusal.value.remedy
        other.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"))
        other.execute(text(f"ALTER DATABASE {url.database} RESET ALL"))
        database.write(add)
        assert database.read(count) == 1
    engine.dispose()


def test_sessions_that_a_pooler_shares_are_refused(
    postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, shared = psycopg.connect, list[psycopg.Connection]()

    def lend(*args: Any, **parameters: Any) -> psycopg.Connection:
        if not shared:
            shared.append(connect(*args, **parameters))
        return shared[0]

    with monkeypatch.context() as pooler:
        pooler.setattr(psycopg, "connect", lend)
        with pytest.raises(StoreUnavailable, match="shares the sessions") as refusal:
            Database.open(postgresql_url, state_dir=tmp_path, is_daemon=True)
    assert "pool_mode = session" in refusal.value.remedy
    with Database.open(postgresql_url, state_dir=tmp_path, is_daemon=True) as database:
        database.write(create)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_store_all_texts_is_refused(postgresql_url: str, tmp_path: Path, encoding: str) -> None:
    server = create_engine(make_url(postgresql_url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    name = f"encoded_{encoding.lower()}_{os.getpid()}"
    with server.connect() as other:
        other.execute(text(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"))
        url = make_url(postgresql_url).set(database=name).render_as_string(hide_password=False)
        with pytest.raises(StoreUnavailable, match=f"has the encoding {encoding}") as refusal:
            Database.open(url, state_dir=tmp_path)
        assert "createdb --encoding UTF8" in refusal.value.remedy
        other.execute(text(f"DROP DATABASE {name}"))
    server.dispose()


def test_a_server_that_vanishes_is_noticed_within_a_minute_or_as_the_url_says(
    postgresql_url: str, tmp_path: Path
) -> None:
    def parameters(url: str) -> list[str]:
        def read(connection: Connection) -> list[str]:
            driver = connection.connection.driver_connection
            assert driver is not None
            given = driver.info.get_parameters()
            return [given.get(name) for name in ("keepalives_idle", "tcp_user_timeout", "connect_timeout")]

        with Database.open(url, state_dir=tmp_path) as database:
            assert database.write(read) == database.read(read)
            return database.read(read)

    assert parameters(postgresql_url) == ["20", "40000", "10"]
    more = make_url(postgresql_url).update_query_dict({"keepalives_idle": "7", "connect_timeout": "33"})
    assert parameters(more.render_as_string(hide_password=False)) == ["7", "40000", "33"]


def test_a_postgresql_database_is_not_copied(postgresql_url: str, tmp_path: Path) -> None:
    with Database.open(postgresql_url, state_dir=tmp_path) as database, pytest.raises(StoreUnavailable) as refusal:
        database.backup(tmp_path / "copy.db")
    assert "pg_dump" in refusal.value.remedy
