"""What ``list`` and ``status`` keep in sight where a terminal is narrow or many tasks say the same."""

import pytest
from freezegun import freeze_time

from claudomator_py.cli.output import Format, in_format
from claudomator_py.domain.blocked import on_hold
from claudomator_py.domain.lifecycle import Completed, Failed, Queued, Waiting, WaitReason
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import MINUTE_MS, format_instant, parse_instant
from claudomator_py.resources.overview.cli import overview
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.cli import list_text, tasks_table
from tests.fakes.prepared import START_MS, PreparedService

NOW = "2026-09-21T14:20:02.000Z"
UNTIL = "2026-09-21T14:35:00.000Z"
CHECK = "check_failed: check `make test` exited with 2"


def a_view(name: str, **changes: object) -> TaskView:
    """A task that failed its check, unless said otherwise."""
    prepared = PreparedService(now_ms=START_MS)
    view = prepared.service.get(prepared.add(name, Failed(Reason.CHECK_FAILED)))
    usual = {
        "agent": "claude-of-the-office",
        "working_dir": "/home/somebody/src/shop",
        "changes": "2 commits, 14 files (+1,204 -388)",
        "cost_usd": 1.25,
        "reason_text": "check `make test` exited with 2",
        "reason_short": "check `make test` exited with 2",
        "created_at": "2026-09-21T12:20:02.000Z",
    }
    return view.model_copy(update=usual | changes)


@freeze_time(NOW)
def test_a_list_of_80_columns_has_the_whole_name_and_the_whole_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = a_view("write-the-notes", state="COMPLETED", reason=None, reason_text=None, reason_short=None)
    lines = list_text([a_view("fix-the-login-redirect"), done]).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["STATE", "NAME", "DETAIL"]
    assert "fix-the-login-redirect" in lines[1]
    assert CHECK in lines[1]
    assert lines[2].endswith("2 commits, 14 files (+1,204 -388)")
    with in_format(Format.WIDE):
        assert list_text([done]).count("14 files") == 1, "with a column for it, it is said there alone"


@freeze_time(NOW)
@pytest.mark.parametrize(
    ("columns", "heads"),
    [
        (80, "STATE NAME DETAIL"),
        (100, "STATE NAME AGE DETAIL"),
        (117, "STATE NAME AGENT AGE DETAIL"),
        (124, "STATE NAME AGENT AGE COST DETAIL"),
        (130, "STATE NAME REPO AGENT AGE COST DETAIL"),
    ],
)
def test_the_least_useful_column_goes_first(monkeypatch: pytest.MonkeyPatch, columns: int, heads: str) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    line = list_text([a_view("a-name-of-thirty-four-letters-here")]).splitlines()[0]
    assert " ".join(line.split()) == heads


@freeze_time(NOW)
def test_status_gives_a_reason_the_room_of_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    view = a_view("fix-the-login-redirect")
    lines = tasks_table([view], ids={view.id: view.id[:8]}, known_state=True).splitlines()
    assert "AGENT" not in lines[0]
    assert "fix-the-login-redirect" in lines[1]
    assert CHECK[:38] in lines[1]
    monkeypatch.setenv("COLUMNS", "140")
    assert "claude-of-the-office" in tasks_table([view], known_state=True)


def waiting(count: int, **changes: object) -> list[TaskView]:
    prepared = PreparedService(now_ms=START_MS)
    held = on_hold(
        "claude",
        bucket="claude/default",
        reason=Reason.RATE_LIMITED,
        until=parse_instant(UNTIL),
        provenance=Provenance.REPORTED,
        source="five_hour",
        window="five_hour",
    )
    limited = {"reason": "limited", "blocked": held, "waiting_until": UNTIL}
    for number in range(count):
        prepared.add(f"next-{number}", Queued())
    return [view.model_copy(update=limited | changes) for view in prepared.service.page(TaskFilter(), None, 100).items]


@freeze_time(NOW)
def test_the_end_of_a_wait_is_named_once() -> None:
    prepared = PreparedService(now_ms=START_MS)
    prepared.add("later", Waiting(WaitReason.TIME, START_MS + MINUTE_MS))
    (view,) = prepared.service.page(TaskFilter(), None, 1).items
    detail = list_text([view]).splitlines()[-1].partition("time: ")[2]
    assert detail.count("UTC") == 1, detail


@freeze_time(NOW)
def test_equal_reasons_are_one_line_of_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status = PreparedService(now_ms=START_MS).status()
    tasks = waiting(5)
    other = waiting(1, reason="time", blocked=None, waiting_until=format_instant(START_MS + MINUTE_MS))
    other[0] = other[0].model_copy(update={"name": "alone", "id": "f" * 36})
    shown = status.model_copy(
        update={
            "queued": (*tasks, *other),
            "counts": {"QUEUED": 60},
            "totals": {"queued": 60},
            "unlisted": {tasks[0].id: 53},
        }
    )
    lines = overview(shown).splitlines()
    text = " ".join(line.strip() for line in lines if not line.startswith("  alone"))
    assert "58 wait: claude is limited (5h window, reported) until 14:35 UTC (next-4, next-3 and 56 more)" in text
    assert any(line.startswith("  alone") for line in lines)
    assert [line for line in lines if line.startswith("  ...")] == ["  ... and 1 more"]
    assert max(map(len, lines)) <= 80
    with in_format(Format.WIDE):
        assert "next-0" in overview(shown), "nothing is folded where all is wanted"


@freeze_time(NOW)
def test_what_failed_with_tasks_before_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    prepared = PreparedService(now_ms=START_MS)
    for number in range(3):
        prepared.add(f"broken-{number}", Failed(Reason.TIMEOUT))
        prepared.add(f"after-{number}", Failed(Reason.DEPENDENCY_FAILED), depends_on=[f"broken-{number}"])
    text = overview(prepared.status())
    assert "3 failed: dependency_failed: A task that it depends on did not complete (after-2, after-1 and" in text
    assert "broken-1 (FAILED)" not in text
    with in_format(Format.WIDE):
        assert "broken-1 (FAILED)" in overview(prepared.status())


@freeze_time(NOW)
def test_two_that_say_the_same_stand_by_themselves() -> None:
    status = PreparedService(now_ms=START_MS).status()
    text = overview(status.model_copy(update={"queued": tuple(waiting(2)), "totals": {"queued": 2}}))
    assert " wait: " not in text
    assert "next-0" in text


def test_what_has_ended_does_not_push_away_what_needs_somebody() -> None:
    prepared = PreparedService()
    for number in range(14):
        prepared.add(f"done-{number}", Completed())
    lines = overview(prepared.status()).splitlines()
    assert sum(" done-" in line for line in lines) == 10
    assert "  ... and 4 more" in lines
    with in_format(Format.WIDE):
        assert " done-0 " in overview(prepared.status())
