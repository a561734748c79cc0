"""A daemon on PostgreSQL whose role has what the guide gives it, and no more: a login, and a database of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import open_site
from tests.postgresql import connected, named
from tests.warm.starter import WarmStarter


@pytest.fixture
def role(postgresql_server: str) -> Iterator[str]:
    """A role that may only log in, and its database of the same name; the name."""
    name = f"claudomator_{os.getpid()}"
    with connected(postgresql_server) as connection:
        connection.execute(text(f"CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"))
        connection.execute(text(f"CREATE DATABASE {name} OWNER {name}"))
        yield name
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        connection.execute(text(f"DROP ROLE {name}"))


def url_of(server: str, user: str, database: str) -> str:
    return make_url(named(server, database)).set(username=user, password=None).render_as_string(hide_password=False)


def test_it_needs_no_more_than_a_database_of_its_own(
    tmp_path: Path, postgresql_server: str, role: str, warm: WarmStarter
) -> None:
    with open_site(tmp_path / "site", warm=warm, database=url_of(postgresql_server, role, role)) as site:
        for number in range(2):
            daemon = site.start().ready()
            site.drop(f"task-{number}.yaml", document(None, "do: echo done"))
            assert ended(daemon, f"task-{number}").state == "COMPLETED"
            assert daemon.stop() == 0


def test_one_that_may_not_create_tables_is_told_so_and_nothing_is_left(
    tmp_path: Path, postgresql_server: str, role: str, warm: WarmStarter
) -> None:
    with connected(named(postgresql_server, role)) as connection:
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        connection.execute(text(f"ALTER SCHEMA public OWNER TO {make_url(postgresql_server).username}"))
    with open_site(tmp_path / "site", warm=warm, database=url_of(postgresql_server, role, role)) as site:
        daemon = site.start()
        assert daemon.wait() == 1
        message = site.log_file.read_text()
    assert "permission" in message
    assert "Traceback" not in message, message


def test_a_second_daemon_is_told_that_the_first_has_the_database(
    tmp_path: Path, postgresql_server: str, role: str, warm: WarmStarter
) -> None:
    url = url_of(postgresql_server, role, role)
    with (
        open_site(tmp_path / "here", warm=warm, database=url) as here,
        open_site(tmp_path / "there", warm=warm, database=url) as there,
    ):
        first = here.start().ready()
        assert there.start().wait() == 1
        assert "another daemon has the database open" in there.log_text()
        assert "Traceback" not in there.log_text()
        assert first.stop() == 0
        assert there.start().ready().stop() == 0
