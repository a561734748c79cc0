"""/report: what happened in a span of time, and what is left."""

from collections.abc import Mapping
from datetime import datetime
from math import ceil
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import cost_text
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import grouped, row_of
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS, counted, format_instant, parse_instant
from claudomator_py.resources.report import ReportSpan, ReportView, RepositoryReport
from claudomator_py.resources.report.night_page import MAX_HOURS, night_url, span_words
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.report.text import MAX_STARTS, not_grouped
from claudomator_py.resources.session import Access
from claudomator_py.schema.validation import validate
from claudomator_py.surface.table import Column, Table, ago

REPOSITORIES = Table[RepositoryReport](
    Column("REPOSITORY", lambda one: one.path),
    Column("TASKS", lambda one: one.tasks, right=True),
    Column("COMMITS", lambda one: one.commits, right=True),
    Column("FILES", lambda one: one.files, right=True),
    Column("+", lambda one: one.added, right=True),
    Column("-", lambda one: one.removed, right=True),
    Column("UNCOMMITTED", lambda one: one.uncommitted or None, right=True),
    Column("COST", lambda one: cost_text(one.cost_usd), right=True),
    Column("LAST RUN", lambda one: ago(one.last_at)),
    Column("BRANCHES", lambda one: _branches(one)),
)
_NAMED = 2
_SPANS = (12, 24, 72, 168)
"""Hours."""
_FIRST = 5
"""How much of what needs you is shown before the rest is opened: what failed and what changed is below it."""


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/report")

    @routes.get("")
    def show(by: Asking, since: str = "", until: str = "") -> Response:
        given = {"since": since, "until": until}
        values: dict[str, Any] = {"given": given, "report": None, "refusal": None, "repositories": REPOSITORIES}
        try:
            span = validate(ReportSpan, {name: text for name, text in given.items() if text}, {})
            if isinstance(span, list):
                raise Invalid.of(span)
            found = access.as_(by)[Reports].report(span)
        except Invalid as refusal:
            return render("report.html", values | {"refusal": refusal}, 422, by=by)
        values |= {
            "report": found,
            "needs_you": grouped([row_of(view) for view in found.needs_you], {}),
            "cost": cost_text(found.cost_usd),
            "night": _night_of(found),
            "spans": _spans(found, given),
            "first": _FIRST,
            "contents": (
                ("needs", "What needs you", found.needs_you_total),
                ("failures", "What failed", found.failed),
                ("doubtful", "What to doubt", found.doubtful),
                ("changes", "What changed", len(found.repositories)),
                ("waits", "What is waiting", found.waiting),
                ("missed", "Missed scheduled times", len(found.missed)),
            ),
            "not_grouped": not_grouped,
            "max_starts": MAX_STARTS,
        }
        return render("report.html", values, by=by)

    return routes


def _spans(report: ReportView, given: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Words and address of each span up to now, and whether it is the one that is shown."""
    lasts = datetime.fromisoformat(report.until) - datetime.fromisoformat(report.since)
    now_ms = parse_instant(report.until) // MINUTE_MS * MINUTE_MS
    found = []
    for hours in _SPANS:
        url = "/report?" + urlencode({"since": format_instant(now_ms - hours * HOUR_MS)})
        shown = (
            not given["until"] and abs(lasts.total_seconds() - hours * HOUR_MS / SECOND_MS) < 2 * MINUTE_MS / SECOND_MS
        )
        found.append((span_words(hours), "/report" if hours == _SPANS[0] else url, shown))
    return found


def _night_of(report: ReportView) -> str:
    """Return the address of the picture of that span, which begins at most an hour earlier."""
    since, until = (datetime.fromisoformat(at).timestamp() for at in (report.since, report.until))
    return night_url(min(MAX_HOURS, max(1, ceil((until - since) * SECOND_MS / HOUR_MS))), ceil(until))


def _branches(one: RepositoryReport) -> str:
    """Two of them by name; of more, their number: the page of repositories has those that are left."""
    number = len(one.branches) + one.more_branches
    if number <= _NAMED:
        return ", ".join(branch.words for branch in one.branches)
    settled = sum(branch.since is not None for branch in one.branches)
    known = settled and not one.more_branches
    return f"{counted(number, 'branch')}, {settled} merged or discarded" if known else counted(number, "branch")
