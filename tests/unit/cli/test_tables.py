"""Tables and times as people see them."""

import io
import random
import re
import time
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from freezegun import freeze_time
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from claudomator_py.cli import output
from claudomator_py.cli.doctor.daemon import _inside
from claudomator_py.cli.output import Format, fields, in_format, short_ids, table_text
from claudomator_py.cli.times import ago, localized, now_ms, until, why_words
from claudomator_py.daemon.health import trouble_check
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked, on_hold
from claudomator_py.domain.health import Trouble
from claudomator_py.domain.host import HostView
from claudomator_py.domain.lifecycle import Failed, Phase, Running, Waiting, WaitReason
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.requests import ProgressRequest, TaskFilter
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant, parse_instant
from claudomator_py.domain.worktree import TreeStanding
from claudomator_py.resources.agents import AgentView, HoldView, NearLimitView, WindowView
from claudomator_py.resources.agents.cli import AGENTS, hold_tables
from claudomator_py.resources.branches import BRANCHES, BranchView
from claudomator_py.resources.overview import StatusView
from claudomator_py.resources.overview.cli import overview
from claudomator_py.resources.schedules.cli import SCHEDULES
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.cli import tasks_table
from claudomator_py.surface.table import Column, Table
from tests.fakes.prepared import START_MS, PreparedService

NOW = 1_790_000_000_000
THREE_UTC, TOMORROW = "2026-09-21T15:00:00.000Z", "2026-09-22T06:30:00.000Z"


def an_agent(name: str, **changes: object) -> AgentView:
    usual = AgentView(
        name=name, kind=name, version="1.0.0", installed=True, max_concurrent=2, default_tier=Tier.BALANCED
    )
    return usual.model_copy(update=changes)


@pytest.mark.parametrize(
    ("passed", "text"),
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
def test_ago(passed: int, text: str) -> None:
    assert ago(format_instant(NOW - passed), NOW) == text


@pytest.mark.parametrize(
    ("left", "text"),
    [(-1, "now"), (0, "now"), (30 * SECOND_MS, "in 30s"), (47 * MINUTE_MS, "in 47m"), (40 * DAY_MS, "2026-10-31")],
)
def test_until(left: int, text: str) -> None:
    assert until(format_instant(NOW + left), NOW) == text


def test_no_instant_is_nothing() -> None:
    assert (ago(None, NOW), until(None, NOW)) == ("", "")


def test_instants_are_read_as_they_are_written() -> None:
    assert parse_instant(format_instant(NOW + 123)) == NOW + 123


@freeze_time("2026-09-21T14:20:02Z")
def test_a_table_tells_times_relative_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    prepared = PreparedService(now_ms=START_MS)
    backs_off = prepared.add("backs-off", Waiting(WaitReason.BACKOFF, now_ms() + 90 * SECOND_MS))
    broken = prepared.add("broken", Failed(Reason.TIMEOUT))
    table = tasks_table(prepared.service.page(TaskFilter(), None, 10).items)
    columns = [re.split(r"  +", line.strip()) for line in table.splitlines()]
    assert columns == [
        ["NAME", "ID", "STATE", "WHY", "UNTIL", "CHANGED"],
        ["broken", broken, "FAILED", "timeout: The run took longer than its timeout.", "6m ago"],
        ["backs-off", backs_off, "WAITING", "backoff: tries again at 14:21 UTC", "in 1m", "6m ago"],
    ]


@freeze_time("2026-09-21T14:20:02Z")
def test_an_agent_tells_when_its_limit_ends() -> None:
    reset = format_instant(now_ms() + 47 * MINUTE_MS)
    limited = an_agent("claude", limited=True, limited_until=reset, holds=(a_hold(until=reset),))
    line = table_text(AGENTS, [limited]).splitlines()[1]
    assert line.split() == ["claude", "0/2", "limited", "5h", "window,", "reported", "in", "47m", "1.0.0"]


def test_an_agent_tells_who_holds_it_and_what_holds_a_family_of_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    by_hand = {"reason": None, "window": None, "provenance": Provenance.OPERATOR, "source": "kept for the day"}
    held = an_agent("claude", limited=True, holds=(a_hold(until=None, **by_hand),))
    opus = an_agent("codex", holds=(a_hold(agent="codex", family="opus"),))
    lines = table_text(AGENTS, [held, opus]).splitlines()
    assert "by the operator: kept for the day" in lines[1]
    assert "limited (opus models, 5h window, reported) until" in lines[2]


def test_a_running_task_tells_how_far_it_is() -> None:
    prepared = PreparedService()
    run = prepared.add_run(prepared.add("works", Running(Phase.RUNNING)))
    prepared.world.run_requests.report_progress(run, ProgressRequest(text="The first coat is on.", percent=40))
    assert "40%: The first coat is on." in overview(prepared.status())


def test_the_overview_leaves_out_what_is_empty() -> None:
    prepared = PreparedService()
    prepared.add("next")
    assert [line for line in overview(prepared.status()).splitlines() if not line.startswith(" ")] == [
        "1 queued; today 0 runs",
        "",
        "QUEUED",
    ]


@freeze_time("2026-09-21T14:13:20Z")
def test_a_cut_list_says_how_many_more_there_are() -> None:
    prepared = PreparedService()
    prepared.add("next")
    prepared.add("broken", Failed(Reason.TIMEOUT))
    shown = prepared.status().model_copy(update={"totals": {"queued": 41, "problems": 1}})
    lines = overview(shown).splitlines()
    assert lines[0].startswith("1 failed, 1 queued, 40 waiting; ")
    assert [line for line in lines if "more" in line] == ["  ... and 40 more"]


@pytest.mark.usefixtures("in_berlin")
def test_that_all_agents_are_limited_is_said_once() -> None:
    def banner(**changes: AgentView) -> str:
        return overview(status.model_copy(update={"agents": tuple((agents | changes).values())})).splitlines()[1]

    agents = {
        "claude": an_agent("claude", limited=True, limited_until="2026-09-21T15:00:00.000Z"),
        "codex": an_agent("codex", limited=True, limited_until="2026-09-21T14:30:00.000Z"),
        "lint": an_agent("lint", auto_select=False),
        "gemini": an_agent("gemini", installed=False),
    }
    prepared = PreparedService()
    prepared.add("it")
    status = prepared.status()
    that = "All agents that are chosen automatically are limited."
    assert banner() == f"{that} The next to be available is codex, at 16:30 CEST (in 16m)."
    reset = {"limited": True, "limited_until": "2026-09-21T17:00:00.000Z", "auto_select": False}
    next_agent = "The next to be available is"
    assert banner(lint=an_agent("lint", **reset)).startswith(f"All agents are limited. {next_agent} codex, at")
    absent = {name: an_agent(name, installed=False) for name in ("claude", "codex")}
    assert banner(lint=an_agent("lint", **reset), **absent).startswith(f"All agents are limited. {next_agent} lint, at")
    held = an_agent("lint", **reset, provenance=Provenance.OPERATOR)
    assert banner(lint=held, **absent).startswith(f"All agents are held. {next_agent} lint, at")
    assert banner(lint=held).startswith(f"All agents are held or limited. {next_agent} codex, at")
    until_released = {name: an_agent(name, limited=True) for name in ("codex", "claude")}
    assert "claudomator release claude" in banner(**until_released)
    assert "All agents" not in banner(codex=an_agent("codex"))


def test_columns_give_way_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = Table[tuple[str, ...]](
        Column("ID", itemgetter(0)),
        Column("TEXT", itemgetter(1), flexible=True),
        Column("N", itemgetter(2), right=True),
        Column("MORE", itemgetter(3), wide=True),
    )
    rows = [("12345678", "x" * 100, "7", "hidden"), ("87654321", "漢" * 50, "10", "hidden")]
    text = table_text(shown, rows)
    assert text.splitlines()[1] == "12345678  " + "x" * 25 + "…   7"
    assert "hidden" not in text
    with in_format(Format.WIDE):
        assert "x" * 100 in table_text(shown, rows)
        assert "hidden" in table_text(shown, rows)


@pytest.mark.parametrize(
    ("columns", "heads", "name"),
    [
        (110, ["NAME", "WHERE", "TEXT", "LAST"], 30),
        (60, ["NAME", "WHERE", "TEXT", "LAST"], 20),
        (54, ["NAME", "WHERE", "TEXT", "LAST"], 20),
        (53, ["NAME", "TEXT", "LAST"], 21),
        (44, ["NAME", "TEXT", "LAST"], 20),
        (30, ["NAME", "TEXT", "LAST"], 10),
    ],
)
def test_what_can_be_spared_goes_before_a_name_is_cut(
    monkeypatch: pytest.MonkeyPatch, columns: int, heads: list[str], name: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = Table[tuple[str, ...]](
        Column("NAME", itemgetter(0), flexible=True, least=20),
        Column("WHERE", itemgetter(1), flexible=True, spare=True),
        Column("TEXT", itemgetter(2), flexible=True, least=14),
        Column("LAST", itemgetter(3)),
    )
    lines = table_text(shown, [("n" * 30, "w" * 30, "t" * 30, "1m ago")]).splitlines()
    assert all(len(line) <= columns for line in lines)
    assert lines[0].split() == heads
    assert lines[1].count("n") + (name < 30) == name


PLAIN = Table[tuple[str, ...]](
    Column("A", lambda row: row[0]), Column("B", lambda row: row[1]), Column("C", lambda row: row[2])
)


def test_a_cell_stays_on_its_line() -> None:
    assert table_text(PLAIN, [("one\ntwo", "\x1b[31mred", "")]).splitlines()[1] == "one two  red"


def test_empty_columns_are_left_out() -> None:
    assert table_text(PLAIN, [("1", "", "3"), ("4", "", "")]).splitlines() == ["A  C", "1  3", "4"]


def test_values_without_content_are_left_out() -> None:
    assert fields([("name", "it"), ("branch", ""), ("id", "1")]) == "name  it\nid    1"
    assert fields([("branch", "")]) == ""


def test_ids_are_cut_to_what_tells_them_apart() -> None:
    assert short_ids(["aaaaaaaaaa1", "aaaaaaaaaa2"]) == {"aaaaaaaaaa1": "aaaaaaaaaa1", "aaaaaaaaaa2": "aaaaaaaaaa2"}
    assert short_ids(["abcdefghijk", "zbcdefghijk"]) == {"abcdefghijk": "abcdefgh", "zbcdefghijk": "zbcdefgh"}
    assert short_ids([]) == {}


# --- holds ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader two hours ahead of UTC, a day in September."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    with freeze_time("2026-09-21T14:13:20Z"):
        yield
    monkeypatch.undo()
    time.tzset()


def a_hold(**changes: Any) -> HoldView:
    usual: dict[str, Any] = {
        "agent": "claude",
        "bucket": "claude/default",
        "window": "five_hour",
        "reason": Reason.RATE_LIMITED,
        "until": "2026-09-21T15:00:00.000Z",
        "provenance": Provenance.REPORTED,
        "source": "five_hour",
        "since": format_instant(START_MS),
        "run_id": "0123456789abcdef",
    }
    values = {**usual, **changes}
    until = values["until"]
    params: dict[str, Any] = {name: values.get(name) for name in ("bucket", "reason", "provenance", "source")}
    params |= {"family": values.get("family"), "window": values["window"], "room": values.get("may_start")}
    what = on_hold(values["agent"], until=None if until is None else parse_instant(until), **params)
    return HoldView.model_validate({**values, "blocked": what})


@pytest.mark.usefixtures("in_berlin")
def test_a_task_behind_holds_is_told_their_times_on_the_clock_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    prepared = PreparedService()
    prepared.add("it")
    (task,) = prepared.service.page(TaskFilter(), None, 1).items
    first, later = (_limited(agent, until) for agent, until in (("claude", THREE_UTC), ("codex", TOMORROW)))
    behind = task.model_copy(
        update={
            "reason": "limited",
            "blocked": blocked(BlockCode.AGENTS_LIMITED, agents=(first, later)),
            "waiting_until": "2026-09-21T15:00:00.000Z",
        }
    )
    text = (
        "limited: claude is limited (5h window, reported) until 17:00 CEST; "
        "codex is limited (5h window, reported) until 2026-09-22 08:30 CEST"
    )
    with in_format(Format.WIDE):
        assert text in tasks_table([behind])
    assert "limited  in 46m" in tasks_table([behind])
    backs_off = task.model_copy(
        update={"reason": "backoff", "blocked": blocked(BlockCode.BACKOFF, until=parse_instant(THREE_UTC))}
    )
    assert why_words(backs_off, now_ms()) == "backoff: tries again at 17:00 CEST"
    # What a daemon says that is older, or knows more.
    older = task.model_copy(update={"reason": "limited", "reason_text": "claude is limited", "blocked": None})
    assert why_words(older, now_ms()) == "limited: claude is limited"
    newer = TaskView.model_validate(older.model_dump() | {"blocked": {"code": "of tomorrow", "params": {}}})
    assert why_words(newer, now_ms()) == "limited: claude is limited"


def _limited(agent: str, until: str) -> Blocked:
    return on_hold(
        agent,
        bucket=f"{agent}/default",
        reason=Reason.RATE_LIMITED,
        until=parse_instant(until),
        provenance=Provenance.REPORTED,
        source="five_hour",
        window="five_hour",
    )


@pytest.mark.usefixtures("in_berlin")
def test_each_hold_is_listed_once_with_whom_it_stops_and_where_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    near = NearLimitView(
        window="seven_day", used=0.931, until="2026-09-24T06:00:00.000Z", since=format_instant(START_MS), run_id="f" * 9
    )
    by_hand = a_hold(
        agent="work",
        bucket="work:opus",
        family="opus",
        window=None,
        reason=None,
        until=None,
        provenance=Provenance.OPERATOR,
        source="kept for the day",
        run_id=None,
    )
    tried = a_hold(agent="codex", bucket="codex/default", window=None, source="429", probing=True, may_start=2)
    agents = [
        an_agent("claude", holds=(a_hold(),), near_limit=near),
        an_agent("work", holds=(a_hold(agent="work"), by_hand), near_limit=near),
        an_agent("codex", holds=(tried,)),
    ]
    assert "\n\n".join(hold_tables(agents)).splitlines() == [
        "HOLDS",
        "HELD            AGENTS        WHAT                                            UNTIL              KNOWN FROM",
        "claude/default  claude, work  5h window, reported                             17:00 CEST         run 01234567",
        "work:opus       work          opus models, by the operator: kept for the day  released",
        "codex/default   codex         429, reported                                   tried, 2 more now  run 01234567",
        "",
        "NEAR LIMITS",
        "AGENTS        WINDOW     USED  UNTIL                  KNOWN FROM",
        "claude, work  7d window   93%  2026-09-24 08:00 CEST  run ffffffff",
    ]


def test_schedules_fit_a_terminal_and_say_what_became_of_the_last_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    prepared = PreparedService()
    for name, zone in (("nightly-triage-of-everything", "America/Argentina/Buenos_Aires"), ("weekly", "UTC")):
        prepared.schedules.add(TaskSpec(name=name, instructions="x", schedule="0 3 * * 1-5", timezone=zone))
    prepared.schedules.run("weekly")
    prepared.world.now_ms = parse_instant("2026-09-22T03:00:00.000Z")
    prepared.world.schedule_runner.run_due()
    prepared.schedules.pause("weekly")
    prepared.schedules.run("nightly-triage-of-everything")
    with freeze_time("2026-09-22T03:30:00Z"):
        lines = table_text(SCHEDULES, prepared.schedules.all()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["NAME", "SCHEDULE", "ZONE", "NEXT", "LAST", "RESULT"]
    assert lines[1].split()[-4:] == ["2h30m", "30m", "ago", "QUEUED"]
    assert lines[2].split()[7:11] == ["paused", "30m", "ago", "skipped:"]
    assert "SCHEDULES" in overview(prepared.status()).splitlines()


@pytest.mark.parametrize(
    ("said", "here"),
    [
        ("Run 2 (14:10 UTC) went", "Run 2 (16:10 CEST) went"),
        ("at 2026-12-01 23:30 UTC.", "at 2026-12-02 00:30 CET."),
        ("until 2026-09-21 14:10 UTC", "until 16:10 CEST"),
        ("99:99 UTC and 14:10", "99:99 UTC and 14:10"),
        ("UTC", "UTC"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
def test_times_of_the_daemon_are_worded_on_the_clock_here(said: str, here: str) -> None:
    assert localized(said, parse_instant("2026-09-21T14:14:00Z")) == here


@pytest.mark.usefixtures("in_berlin")
def test_since_when_something_fails_is_told_by_the_clock_here() -> None:
    began_ms = parse_instant("2026-09-21T14:14:00Z")
    (check,) = trouble_check("encoder", Trouble("no answer", began_ms), "words alone are compared", "see there")
    assert check.detail == "no answer; since 2026-09-21 14:14 UTC words alone are compared"
    with freeze_time("2026-09-21T15:00:00Z"):
        assert _inside(check).detail == "no answer; since 16:14 CEST words alone are compared"


def test_windows_of_accounts_are_told_once_with_their_forecast() -> None:
    def window(**more: object) -> WindowView:
        usual = {"account": "claude/default", "name": "five_hour", "resets_at": TOMORROW, "said_at": THREE_UTC}
        return WindowView.model_validate(usual | more)

    pace = {"full_at": "2026-09-21T16:00:00Z", "since": "2026-09-21T14:20:00Z", "used_then": 0.31}
    known = window(used=0.48, forecast=pace, run_id="c5c51943-fa06-4718-9cdc-36de1a9d4d74")
    slow = window(name="seven_day_opus", used=0.5, forecast=pace | {"full_at": None})
    over = window(name="seven_day", resets_at=THREE_UTC)
    agents = [an_agent(name, windows=(known, slow, over)) for name in ("a", "b")]
    with freeze_time("2026-09-21T15:10:00Z"):
        (text,) = hold_tables(agents)
    title, *rows = text.splitlines()
    assert title == "WINDOWS"
    assert [re.split("  +", row) for row in rows] == [
        ["ACCOUNT", "WINDOW", "USED", "RESETS", "READ", "FORECAST"],
        ["claude/default", "5h window", "48%", "in 15h20m", "10m ago", "full at 16:00 UTC (31% to 48% in 40m)"],
        ["claude/default", "7d opus window", "50%", "in 15h20m", "10m ago", "not before its reset (31% to 50% in 40m)"],
        ["claude/default", "7d window", "not known", "10m ago", "10m ago"],
    ]


def test_it_paints_and_measures_as_rich_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "wants_colour", lambda: True)
    chance = random.Random(7)
    styles = [*output.STATE_STYLES.values(), "", "bold"]

    def text() -> str:
        return "".join(chance.choice("ab [bold]:x:é中…\t\n") for _ in range(chance.randrange(9)))

    for _ in range(300):
        parts = [(text(), chance.choice(styles)) for _ in range(chance.randrange(5))]
        console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)
        with console.capture() as capture:
            console.print(Text.assemble(*parts), soft_wrap=True, end="")
        assert output.painted(parts) == capture.get()
        name, broad = text(), chance.randrange(1, 9)
        assert output._cells(name) == cell_len(name)
        assert output._cut(name, broad) == (name if cell_len(name) <= broad else set_cell_size(name, broad - 1) + "…")


def test_hosts_are_part_of_the_whole_once_there_are_some() -> None:
    cluster = HostView(name="cluster", kind="slurm", live=3, slots=8, agents={"claude": 2, "codex": 1})
    cluster = cluster.model_copy(update={"waits": {"Priority": 1}, "clock_skew": -61.24})
    assert "HOSTS" not in overview(StatusView())
    shown = overview(StatusView(hosts=(HostView(name="local", kind="local", live=0), cluster))).splitlines()
    assert [line.split() for line in shown[shown.index("HOSTS") + 1 :]] == [
        ["HOST", "SLOTS", "AGENTS", "WAITING", "CLOCK"],
        ["local", "0/0"],
        ["cluster", "3/8", "2", "claude,", "1", "codex", "1", "Priority", "-61.2", "s"],
    ]


def test_branches_name_their_repository_at_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    view = BranchView(
        task_id="t", task_name="tidy-the-cellar", state="COMPLETED", branch="claudomator/tidy-the-cellar-6fb01c7e",
        repository="/home/ann/work/clients/acme/shop", onto="main", path="/w", standing=TreeStanding.AHEAD,
        commits=1, changed=0,
    )  # fmt: skip
    monkeypatch.setenv("COLUMNS", "80")
    head, row = table_text(BRANCHES, [view]).splitlines()
    assert (head.split()[-1], row.split()[-1]) == ("REPOSITORY", "shop")
    assert len(head) <= 80
    with in_format(Format.WIDE):
        assert "/home/ann/work/clients/acme/shop" in table_text(BRANCHES, [view])
