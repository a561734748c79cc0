"""``report``: the times that people write, and what it prints."""

import json
import time
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import parse_instant, past_instant
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService

NOW = parse_instant("2026-11-28T07:30:00+01:00")


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("22:00", "2026-11-27T22:00:00+01:00"),
        ("7:30", "2026-11-28T07:30:00+01:00"),
        ("07:31", "2026-11-27T07:31:00+01:00"),
        ("12h", "2026-11-27T19:30:00+01:00"),
        ("1d2h", "2026-11-27T05:30:00+01:00"),
        ("2026-11-27", "2026-11-27T00:00:00+01:00"),
        ("2026-11-27T22:00", "2026-11-27T22:00:00+01:00"),
        ("2026-07-01T22:00", "2026-07-01T22:00:00+02:00"),
        ("2026-11-27T22:00:00Z", "2026-11-27T23:00:00+01:00"),
    ],
)
def test_a_time_is_the_last_one_that_is_meant(text: str, instant: str) -> None:
    assert past_instant(text, NOW) == parse_instant(instant)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("zone", [None, ZoneInfo("Europe/Berlin")])
@pytest.mark.parametrize(
    ("now", "instant"),
    [
        ("2026-10-25T00:20:00Z", "2026-10-24T00:30:00Z"),
        ("2026-10-25T00:40:00Z", "2026-10-25T00:30:00Z"),
        ("2026-10-25T01:20:00Z", "2026-10-25T00:30:00Z"),
        ("2026-10-25T01:40:00Z", "2026-10-25T01:30:00Z"),
        ("2026-10-25T20:00:00Z", "2026-10-25T01:30:00Z"),
        ("2026-10-26T01:00:00Z", "2026-10-25T01:30:00Z"),
    ],
)
def test_of_a_time_that_the_clock_shows_twice_the_last_one_is_meant(
    now: str, instant: str, zone: ZoneInfo | None
) -> None:
    assert past_instant("02:30", parse_instant(now), zone) == parse_instant(instant)


@pytest.mark.parametrize("text", ["24:00", "22", "22:60", "yesterday", "", "12", "-3h", "2026-13-01", "99999999d"])
def test_what_is_no_time_is_refused_with_what_to_write(command: Command, text: str) -> None:
    done = command("report", f"--since={text}")
    assert done.returncode == 2
    assert "22:00, 12h" in " ".join(done.stderr.split())


def test_it_prints_the_report_on_the_clock_here_and_no_terminal_code(
    command: Command, prepared: PreparedService
) -> None:
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.REFUSED, text="\x1b[31mNo\x1b[0m", cost_usd=0.2)
    prepared.end_run(prepared.add_run(prepared.add("t")), outcome)
    done = command("report", "--since", "2026-09-21", "--until", "2026-09-23")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# ")
    assert "\x1b" not in done.stdout
    result = json.loads(command("report", "-o", "json", "--since", "2026-09-21", "--until", "2026-09-23").stdout)
    assert result["runs"] == 1
    assert f"# {result['headline']}\n" in done.stdout


def test_a_span_that_ends_before_it_begins_is_refused(command: Command) -> None:
    done = command("report", "--since", "1h", "--until", "2h")
    assert done.returncode != 0
    assert "Choose an earlier one" in done.stderr
