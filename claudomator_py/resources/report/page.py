"""/report: what happened in a span of time, and what is left."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil
from typing import Annotated, Any

from fastapi import Cookie, Query
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import address, read_times, time_field
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import grouped, row_of
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, counted, format_instant, parse_instant
from claudomator_py.resources.report import ReportSpan, ReportView, RepositoryReport
from claudomator_py.resources.report.drawing import night_url
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.night_page import MAX_HOURS, span_words
from claudomator_py.resources.report.service import Reports, RepositoryDay
from claudomator_py.resources.report.text import MAX_STARTS, not_grouped
from claudomator_py.surface.table import Column, Table, ago
from claudomator_py.values import regex

REPOSITORIES = Table[RepositoryReport](
    Column("REPOSITORY", lambda row: row.path),
    Column("TASKS", lambda row: row.tasks, right=True),
    Column("COMMITS", lambda row: row.commits, right=True),
    Column("FILES", lambda row: row.files, right=True),
    Column("+", lambda row: row.added or None, right=True),
    Column("-", lambda row: row.removed or None, right=True),
    Column("UNCOMMITTED", lambda row: row.uncommitted or None, right=True),
    Column("COST", lambda row: cost_text(row.cost_usd, row.unpriced), right=True),
    Column("LAST RUN", lambda row: ago(row.last_at)),
    Column("BRANCHES", lambda row: _branches_and_fault(row)),
)
REPOSITORY_DAYS = Table[RepositoryDay](
    Column("DAY", lambda row: f"{row.day:%Y-%m-%d}"),
    Column("REPOSITORY", lambda row: row.report.path),
    Column("RUNS", lambda row: row.report.runs, right=True),
    Column("COMMITS", lambda row: row.report.commits, right=True),
    Column("FILES", lambda row: row.report.files, right=True),
    Column("COST", lambda row: cost_text(row.report.cost_usd, row.report.unpriced), right=True),
)
_NAMED = 2
_EVENING, _MORNING = 22, 8
"""The hours between which is night."""
_LOOKS = "report_looks"
_LOOKS_FORM = regex(r"\d{1,15}\.\d{1,15}", re.ASCII)
_KEPT_S = 365 * DAY_MS // SECOND_MS
_ONE_LOOK_MS = 30 * MINUTE_MS
Text = Annotated[str, Query(max_length=40)]
_SPANS = (12, 24, 72, 168)
"""Hours."""
_FIRST = 5
"""How much of what needs you is shown before the rest is opened: what failed and what changed is below it."""


routes = UnlistedRoutes("/report")


@routes.get("", "getReport")
def show(
    granted: Allowed, since: Text = "", until: Text = "", looks: Annotated[str, Cookie(alias=_LOOKS)] = ""
) -> Response:
    now_ms, zone = granted[Nights].clock(), granted[Nights].zone()
    given = {"since": since.strip(), "until": until.strip()}
    values: dict[str, Any] = {"report": None, "repositories": REPOSITORIES, "zone": str(zone)}
    values["fields"] = dict.fromkeys(given)
    try:
        ends = read_times(given, now_ms, zone)
        values["fields"] = {name: time_field(ends.get(name), zone) for name in given}
        instants = {name: datetime.fromtimestamp(at_ms / SECOND_MS, UTC) for name, at_ms in ends.items()}
        report = granted[Reports].report(ReportSpan.model_validate(instants))
    except Invalid as refusal:
        return render("report.html", values, granted, refusal=refusal)
    last_ms, noted = _looked(looks, now_ms)
    values |= {
        "report": report,
        "needs_you": grouped([row_of(view) for view in report.needs_you], {}),
        "cost": cost_text(report.cost_usd),
        "night": _night_of(report),
        "spans": [*_nights(report, now_ms, zone), *_spans(report, given)],
        "last_look": None if last_ms is None else format_instant(last_ms),
        "first": _FIRST,
        "contents": (
            ("needs", "What needs you", report.needs_you_total + len(report.held)),
            ("refused", "Refused files", report.refused_total),
            ("failures", "What failed", report.failed),
            ("doubtful", "Doubtful results", report.doubtful),
            ("changes", "What changed", len(report.repositories)),
            ("waits", "What is waiting", report.waiting),
            ("missed", "Missed scheduled times", len(report.missed)),
        ),
        "not_grouped": not_grouped,
        "max_starts": MAX_STARTS,
    }
    response = render("report.html", values, granted)
    response.set_cookie(_LOOKS, noted, max_age=_KEPT_S, httponly=True, samesite="strict", path="/report")
    return response


def _looked(looks: str, now_ms: int) -> tuple[int | None, str]:
    """Return when this browser looked before, and the cookie by which to remember that it looks now. Looks in quick
    succession are one."""
    noted = [int(part) for part in looks.split(".")] if _LOOKS_FORM.fullmatch(looks) else []
    before_ms, latest_ms = (*noted, None, None)[:2]
    if latest_ms is not None and now_ms - latest_ms > _ONE_LOOK_MS:
        before_ms = latest_ms
    return before_ms or None, f"{before_ms or 0}.{now_ms}"


def _nights(report: ReportView, now_ms: int, zone: tzinfo) -> list[tuple[str, str, bool]]:
    """Words and address of the last night, and whether it is the span that is shown."""
    evening = datetime.fromtimestamp(now_ms / SECOND_MS, zone).replace(minute=0, second=0, microsecond=0)
    since = (evening - timedelta(days=1)).replace(hour=_EVENING)
    until = evening.replace(hour=_MORNING)
    ends = {"since": format_instant(round(since.timestamp() * SECOND_MS))}
    if until.timestamp() * SECOND_MS < now_ms:
        ends["until"] = format_instant(round(until.timestamp() * SECOND_MS))
    is_shown = report.since == ends["since"] and report.until == ends.get("until", report.until)
    return [("Last night", address("/report", **ends), is_shown)]


def _spans(report: ReportView, given: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Words and address of each span up to now, and whether it is the one that is shown."""
    lasts = datetime.fromisoformat(report.until) - datetime.fromisoformat(report.since)
    now_ms = parse_instant(report.until) // MINUTE_MS * MINUTE_MS
    days = []
    for hours in _SPANS:
        url = address("/report", since=format_instant(now_ms - hours * HOUR_MS))
        shown = (
            not given["until"] and abs(lasts.total_seconds() - hours * HOUR_MS / SECOND_MS) < 2 * MINUTE_MS / SECOND_MS
        )
        days.append((span_words(hours), "/report" if hours == _SPANS[0] else url, shown))
    return days


def _night_of(report: ReportView) -> str:
    """Return the address of the picture of that span, which begins at most an hour earlier."""
    since, until = (datetime.fromisoformat(at).timestamp() for at in (report.since, report.until))
    return night_url(min(MAX_HOURS, max(1, ceil((until - since) * SECOND_MS / HOUR_MS))), ceil(until))


def _branches_and_fault(repository: RepositoryReport) -> str:
    fault = "" if repository.fault is None else f"not recorded: {repository.fault}"
    return "; ".join(filter(None, (_branches(repository), fault)))


def _branches(repository: RepositoryReport) -> str:
    """Two of them by name; of more, their number: the page of repositories has those that are left."""
    number = len(repository.branches) + repository.more_branches
    if number <= _NAMED:
        return ", ".join(branch.words for branch in repository.branches)
    settled_count = sum(branch.since is not None for branch in repository.branches)
    known = settled_count and not repository.more_branches
    return f"{counted(number, 'branch')}, {settled_count} merged or discarded" if known else counted(number, "branch")
