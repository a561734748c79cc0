"""/report: what happened in a span of time, and what is left."""

from datetime import datetime
from math import ceil
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import cost_text
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import grouped, row_of
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.units import HOUR_MS, SECOND_MS
from claudomator_py.resources.report import ReportSpan, ReportView, RepositoryReport
from claudomator_py.resources.report.night_page import MAX_HOURS, night_url
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.report.text import SHOWN_BRANCHES, more_branches, not_grouped
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
    Column("NOT COMMITTED", lambda one: one.uncommitted or None, right=True),
    Column("COST", lambda one: cost_text(one.cost_usd), right=True),
    Column("LAST RUN", lambda one: ago(one.last_at)),
    Column("BRANCHES", lambda one: _branches(one)),
)
_FIRST = 5
"""Of what asks: what failed and what changed stands below."""


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
            "first": _FIRST,
            "contents": (
                ("needs", "What needs you", found.needs_you_total),
                ("failures", "What failed", found.failed),
                ("doubtful", "What to doubt", found.doubtful),
                ("changes", "What changed", len(found.repositories)),
                ("waits", "What waits", found.waiting),
                ("missed", "Scheduled times without a task", len(found.missed)),
            ),
            "not_grouped": not_grouped,
        }
        return render("report.html", values, by=by)

    return routes


def _night_of(report: ReportView) -> str:
    """The picture of that span, which begins at most an hour before."""
    since, until = (datetime.fromisoformat(at).timestamp() for at in (report.since, report.until))
    return night_url(min(MAX_HOURS, max(1, ceil((until - since) * SECOND_MS / HOUR_MS))), ceil(until))


def _branches(one: RepositoryReport) -> str:
    words = [branch.words for branch in one.branches[:SHOWN_BRANCHES]]
    more = more_branches(one)
    return ", ".join([*words, *([f"and {more} more"] if more else [])])
