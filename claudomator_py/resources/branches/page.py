"""/repositories: what runs changed on each of the last days, and the unmerged branches of tasks."""

from fastapi import APIRouter
from fastapi.responses import Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import DAYS, Days
from claudomator_py.api.page.rendering import render
from claudomator_py.resources.branches import BRANCHES
from claudomator_py.resources.branches.service import BranchService
from claudomator_py.resources.report.page import REPOSITORIES
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.session import Access

_SHOWN = 20
"""Branches shown before the list is opened."""


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/repositories")

    @routes.get("")
    def show(by: Asking, days: Days = 7) -> Response:
        granted = access.as_(by)
        # How the branch of one that runs stands is not known before its run has ended.
        settled = [one for one in granted[BranchService].all() if one.state != "RUNNING"]
        values = {
            "place": "/repositories",
            "days": days,
            "spans": DAYS,
            "table": REPOSITORIES,
            "repositories": granted[Reports].repositories(days),
            "branch_table": BRANCHES,
            "shown": _SHOWN,
            "branches": [one for one in settled if not one.standing.is_spent],
        }
        return render("repositories.html", values, by=by)

    return routes
