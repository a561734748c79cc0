"""Sessions of browsers: where they count, how long, and that they outlive the daemon but not the token."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.api.guard.sessions import MAX_SESSIONS, Sessions
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import BROWSER_SESSION

TOKEN = "x" * 32
NOW = 1_790_000_000_000
HOST = "claudomator-0123456789abcdef.localhost:8484"


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(None, TOKEN, clock)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open("sqlite", state_dir=tmp_path) as database:
        migrate(database)
        yield database


def begin(sessions: Sessions, browser: str = "Firefox 131 on Linux") -> str:
    return sessions.begin("operator", HOST, browser)


def test_a_session_counts_at_its_host_only(sessions: Sessions) -> None:
    value = begin(sessions)
    assert sessions.find(value, HOST) is not None
    for host in ("127.0.0.1:8484", "localhost:8484", HOST.replace("8484", "8485"), HOST.partition(":")[0], ""):
        assert sessions.find(value, host) is None


def test_any_other_value_is_none(sessions: Sessions) -> None:
    value = begin(sessions)
    for other in (value[:-1], f"{value}=", value.swapcase(), "", "ü", "x" * 100_000):
        assert sessions.find(other, HOST) is None


def test_it_lasts_two_hours_after_its_last_use(sessions: Sessions, clock: Clock) -> None:
    value = begin(sessions)
    for _ in range(2):
        clock.now += 2 * HOUR_MS - 1
        assert sessions.find(value, HOST) is not None
    clock.now += 2 * HOUR_MS
    assert sessions.find(value, HOST) is None
    assert sessions.all() == []


def test_it_lasts_seven_days_at_most(sessions: Sessions, clock: Clock) -> None:
    value = begin(sessions)
    while clock.now < NOW + 7 * DAY_MS:
        assert sessions.find(value, HOST) is not None
        clock.now += HOUR_MS
    assert sessions.find(value, HOST) is None


def test_the_least_used_one_makes_room(sessions: Sessions, clock: Clock) -> None:
    values = []
    for _ in range(MAX_SESSIONS):
        values.append(begin(sessions))
        clock.now += 1
    sessions.find(values[0], HOST)
    newest = begin(sessions)
    assert len(sessions.all()) == MAX_SESSIONS
    assert sessions.find(values[0], HOST) is not None
    assert sessions.find(values[1], HOST) is None
    assert sessions.find(newest, HOST) is not None


def test_it_outlives_the_daemon_and_ends_with_the_token(database: Database, clock: Clock) -> None:
    value = begin(Sessions(database, TOKEN, clock))
    browser_session = Sessions(database, TOKEN, clock).find(value, HOST)
    assert browser_session is not None
    assert (browser_session.principal, browser_session.browser, browser_session.created_ms) == (
        "operator",
        "Firefox 131 on Linux",
        NOW,
    )
    assert Sessions(database, "y" * 32, clock).find(value, HOST) is None


def test_what_has_ended_stays_so(database: Database, clock: Clock) -> None:
    sessions = Sessions(database, TOKEN, clock)
    mine, yours = begin(sessions), begin(sessions)
    ended: list[int] = []
    sessions.on_end(lambda: ended.append(len(sessions.all())))
    browser_session = sessions.find(mine, HOST)
    assert browser_session is not None
    sessions.end([browser_session.id, "no session at all"], "operator")
    assert ended == [1]
    for known in (sessions, Sessions(database, TOKEN, clock)):
        assert known.find(mine, HOST) is None
        assert known.find(yours, HOST) is not None


def test_its_use_is_written_now_and_then(database: Database, clock: Clock) -> None:
    def written() -> int:
        database.probe()  # what was asked for before is written by then
        row = database.read(lambda connection: connection.execute(BROWSER_SESSION.select()).one())
        return int(row.expires_ms)

    sessions = Sessions(database, TOKEN, clock)
    value = begin(sessions)
    for minutes, expected in ((4, 0), (5, 5), (9, 5), (11, 11)):
        clock.now = NOW + minutes * MINUTE_MS
        sessions.find(value, HOST)
        assert written() == NOW + expected * MINUTE_MS + 2 * HOUR_MS


def test_the_cookie_is_kept_nowhere_and_old_sessions_go(database: Database, clock: Clock) -> None:
    sessions = Sessions(database, TOKEN, clock)
    value = begin(sessions)
    rows = database.read(lambda connection: connection.execute(BROWSER_SESSION.select()).all())
    assert value not in str(rows)
    assert TOKEN not in str(rows)
    clock.now += 3 * HOUR_MS
    begin(sessions)
    assert len(database.read(lambda connection: connection.execute(BROWSER_SESSION.select()).all())) == 1
