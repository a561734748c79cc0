"""The page /schedules, and the section of the front page: next times, results of the last times, and buttons."""

from collections.abc import Sequence

from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.rendering import button, render
from claudomator_py.api.page.rows import words_of
from claudomator_py.domain.wording import Piece, Sentence
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.schedules import FireView, ScheduleCalls, ScheduleView
from claudomator_py.resources.schedules.service import Schedules

_MISSED_DAYS = 7
_FIRST = 10
"""Missed times shown before the rest is opened."""


routes = UnlistedRoutes("/schedules")


@routes.get("", "listSchedules")
def show(granted: Allowed) -> Response:
    schedules = sorted(granted[Schedules].all(), key=lambda schedule: schedule.place)
    missed = granted[Reports].missed(_MISSED_DAYS)
    values = {"schedules": cards_of(schedules), "missed": missed, "days": _MISSED_DAYS, "first": _FIRST}
    return render("schedules.html", {**values, "place": "/schedules"}, granted)


button(routes, "/{name}/pause", ScheduleCalls.pause_schedule, Schedules, "/#schedules")
button(routes, "/{name}/resume", ScheduleCalls.resume_schedule, Schedules, "/#schedules")
button(routes, "/{name}/run", ScheduleCalls.run_schedule, Schedules, "/tasks/{id}")


ScheduleCard = tuple[ScheduleView, Sentence | None]
"""A schedule, and the result of its last time in words."""


def cards_of(schedules: Sequence[ScheduleView]) -> tuple[ScheduleCard, ...]:
    """Return the cards, in this order."""
    return tuple((schedule, None if schedule.last is None else _last(schedule.last)) for schedule in schedules)


def _last(last: FireView) -> Sentence:
    """Return the text that follows the name of the last task, if one was created."""
    if last.skipped is not None:
        return (Piece("skipped "), Piece(instant=last.due_at), Piece(f": {last.skipped}"))
    state = words_of(last.task_state) if last.task_state is not None else "made"
    by = ", by hand" if last.by == "operator" else ""
    return (Piece(f" {state}{by}, "), Piece(instant=last.due_at))
