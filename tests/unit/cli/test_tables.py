"""Tables and times as people see them."""

import pytest
from freezegun import freeze_time

from claudomator_py.cli.agents import agents_table
from claudomator_py.cli.status import overview, tasks_table
from claudomator_py.cli.table import Column, fields, render, short_ids
from claudomator_py.cli.times import ago, now_ms, parse_instant, until
from claudomator_py.core.lifecycle import Failed, Waiting, WaitReason
from claudomator_py.core.outcome import Provenance, Reason
from claudomator_py.core.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.core.views import TaskFilter
from tests.fakes.desk import START_MS, FakeDesk

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (-5 * SECOND_MS, "just now"),
        (0, "just now"),
        (42 * SECOND_MS, "42s ago"),
        (MINUTE_MS, "1m ago"),
        (59 * MINUTE_MS, "59m ago"),
        (HOUR_MS + 5 * MINUTE_MS, "1h05m ago"),
        (2 * DAY_MS, "2d ago"),
        (40 * DAY_MS, "2026-08-12"),
    ],
)
def test_ago(passed: int, said: str) -> None:
    assert ago(format_instant(NOW - passed), NOW) == said


@pytest.mark.parametrize(
    ("left", "said"),
    [(-1, "now"), (0, "now"), (30 * SECOND_MS, "in 30s"), (47 * MINUTE_MS, "in 47m"), (40 * DAY_MS, "2026-10-31")],
)
def test_until(left: int, said: str) -> None:
    assert until(format_instant(NOW + left), NOW) == said


def test_no_instant_is_nothing() -> None:
    assert (ago(None, NOW), until(None, NOW)) == ("", "")


def test_instants_are_read_as_they_are_written() -> None:
    assert parse_instant(format_instant(NOW + 123)) == NOW + 123


@freeze_time("2026-09-21T14:20:02Z")
def test_a_table_tells_times_relative_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    desk = FakeDesk(now_ms=START_MS)
    desk.add("backs-off", Waiting(WaitReason.BACKOFF, now_ms() + 90 * SECOND_MS))
    desk.add("broken", Failed(Reason.TIMEOUT))
    table = tasks_table(desk.tasks(TaskFilter(), None, 10).items)
    assert table.splitlines() == [
        "  NAME       ID                STATE    WHY                                             UNTIL  CHANGED",
        "  broken     c0ffee0000000002  FAILED   timeout: The run took longer than its timeout.         6m ago",
        "  backs-off  c0ffee0000000001  WAITING  backoff                                         in 1m  6m ago",
    ]


@freeze_time("2026-09-21T14:20:02Z")
def test_an_agent_tells_when_its_limit_ends() -> None:
    desk = FakeDesk()
    reset = format_instant(now_ms() + 47 * MINUTE_MS)
    desk.add_agent(
        "claude", limited=True, limited_until=reset, hold_reason="rate_limited", provenance=Provenance.REPORTED
    )
    line = agents_table(desk.agents()).splitlines()[1]
    assert line.split() == ["claude", "0/2", "LIMITED", "rate_limited", "(reported)", "in", "47m", "1.0.0"]


def test_the_overview_leaves_out_what_is_empty() -> None:
    desk = FakeDesk()
    desk.add("next")
    assert [line for line in overview(desk.status()).splitlines() if not line.startswith(" ")] == ["QUEUED"]


def test_columns_give_way_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    columns = (Column("ID"), Column("TEXT", flexible=True), Column("N", right=True), Column("MORE", wide=True))
    rows = [("12345678", "x" * 100, "7", "hidden"), ("87654321", "漢" * 50, "10", "hidden")]
    table = render(columns, rows)
    assert table.splitlines()[1] == "12345678  " + "x" * 25 + "…   7"
    assert "hidden" not in table
    assert "x" * 100 in render(columns, rows, wide=True)
    assert "hidden" in render(columns, rows, wide=True)


def test_a_cell_stays_on_its_line() -> None:
    assert render((Column("A"), Column("B")), [("one\ntwo", "\x1b[31mred")]).splitlines()[1] == "one two  red"


def test_empty_columns_are_left_out() -> None:
    columns = (Column("A"), Column("B"), Column("C"))
    assert render(columns, [("1", "", "3"), ("4", "", "")]).splitlines() == ["A  C", "1  3", "4"]


def test_values_without_content_are_left_out() -> None:
    assert fields([("name", "it"), ("branch", ""), ("id", "1")]) == "name  it\nid    1"
    assert fields([("branch", "")]) == ""


def test_ids_are_cut_to_what_tells_them_apart() -> None:
    assert short_ids(["aaaaaaaaaa1", "aaaaaaaaaa2"]) == {"aaaaaaaaaa1": "aaaaaaaaaa1", "aaaaaaaaaa2": "aaaaaaaaaa2"}
    assert short_ids(["abcdefghijk", "zbcdefghijk"]) == {"abcdefghijk": "abcdefgh", "zbcdefghijk": "zbcdefgh"}
    assert short_ids([]) == {}
