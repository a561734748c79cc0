"""/repositories: what runs changed on each of the last days, and the unmerged branches of tasks. /tasks/{id}/merge and
discard: merge such a branch, or remove it, after a preview."""

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Days, Ref, Version, day_spans, read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.problem import status_of
from claudomator_py.domain.changes import MergeMethod
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError, StaleVersion
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.resources.branches import BRANCHES, BranchView, DiscardRequest, MergeRequest
from claudomator_py.resources.branches.service import BranchService
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.page import REPOSITORIES, REPOSITORY_DAYS
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.session import Session
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks, require_version

_SHOWN = 20
"""Branches shown before the list is opened."""
_METHODS: Final = {
    MergeMethod.MERGE: "Merge: keep its commits",
    MergeMethod.SQUASH: "Squash: make one commit",
    MergeMethod.REBASE: "Rebase: repeat its commits on the target",
}
AskedBranch = Annotated[str, Query(max_length=250)]
AskedWord = Annotated[str, Query(max_length=20)]
SentBranch = Annotated[str, Form(max_length=250)]
SentWord = Annotated[str, Form(max_length=20)]


routes = UnlistedRoutes()


@routes.get("/repositories", "getReport")
def show(granted: Allowed, days: Days = 7) -> Response:
    # How the branch of one that runs stands is not known before its run has ended.
    ended = [branch for branch in granted[BranchService].all() if branch.state != "RUNNING"]
    repositories, daily = granted[Reports].repositories(days, granted[Nights].zone())
    values = {
        "place": "/repositories",
        "spans": day_spans("/repositories", days),
        "table": REPOSITORIES,
        "repositories": repositories,
        "day_table": REPOSITORY_DAYS,
        "daily": daily,
        "branch_table": BRANCHES,
        "shown": _SHOWN,
        "ended": ENDED,
        "branches": [branch for branch in ended if not branch.standing.is_spent],
    }
    return render("repositories.html", values, granted)


@routes.get("/tasks/{ref}/merge", "mergeTask")
def preview_merge(
    granted: Allowed, ref: Ref, into: AskedBranch = "", method: AskedWord = "", commit: AskedWord = ""
) -> Response:
    return _merge_form(granted, ref, {"into": into.strip(), "method": method, "commit": bool(commit)})


@routes.post("/tasks/{ref}/merge", "mergeTask")
def merge(
    granted: Allowed, ref: Ref, version: Version, into: SentBranch = "", method: SentWord = "", commit: SentWord = ""
) -> Response:
    granted, given = granted, {"into": into.strip(), "method": method, "commit": bool(commit)}
    try:
        _require_seen(granted, ref, version)
        done = granted[BranchService].merge(ref, read_fields(MergeRequest, given))
    except (StaleVersion, Conflict, Invalid) as refusal:
        return _merge_form(granted, ref, given, refusal)
    return _to_changes(done.task_id) if done.commits else _merge_form(granted, ref, given)


@routes.get("/tasks/{ref}/discard", "discardTask")
def preview_discard(granted: Allowed, ref: Ref) -> Response:
    return _discard_form(granted, ref)


@routes.post("/tasks/{ref}/discard", "discardTask")
def discard(granted: Allowed, ref: Ref, version: Version) -> Response:
    try:
        _require_seen(granted, ref, version)
        return _to_changes(granted[BranchService].discard(ref, DiscardRequest()).task_id)
    except (StaleVersion, Conflict) as refusal:
        return _discard_form(granted, ref, refusal)


def _require_seen(granted: Session, ref: str, version: int) -> None:
    """Raise StaleVersion if the task is no longer as its form showed it, such as after a restart."""
    task = granted[Tasks].get(ref)
    require_version(task.name, task.version, version)


def _to_changes(task_id: str) -> Response:
    """Return a redirect to what the task changed, where the command that undoes it is shown as well."""
    return RedirectResponse(f"/tasks/{task_id}#changes-title", 303)


def _merge_form(
    granted: Session, ref: str, given: Mapping[str, object], refusal: ServiceError | None = None
) -> Response:
    """Return the form with a preview. refusal: of what was sent, in place of a preview."""
    preview, impossible = None, refusal
    if refusal is None:
        try:
            preview = granted[BranchService].merge(ref, read_fields(MergeRequest, {**given, "dry_run": True}))
        except (Conflict, Invalid) as refused:
            impossible = refused
    task = granted[Tasks].get(ref)
    branch, others = _branches_of(granted, task)
    values = {
        "task": task,
        "ended": task.state in ENDED,
        "branch": branch,
        "targets": others,
        "methods": _METHODS,
        "given": given,
        "preview": preview,
        "refusal": impossible,
    }
    return render("merge.html", values, granted, status_of(refusal))


def _branches_of(granted: Session, task: TaskView) -> tuple[BranchView | None, list[str]]:
    """Return the task's branch, and the branches of its repository that it can be merged into, as far as known."""
    views = granted[BranchService].all()
    own = next((view for view in views if view.branch == task.branch), None)
    if own is None:
        return None, []
    there = [view for view in views if view.repository == own.repository]
    names = [name for view in (own, *there) for name in (view.onto, view.branch) if name and name != own.branch]
    return own, [*dict.fromkeys(names)]


def _discard_form(granted: Session, ref: str, refusal: ServiceError | None = None) -> Response:
    preview, impossible = None, refusal
    if refusal is None:
        try:
            preview = granted[BranchService].discard(ref, DiscardRequest(dry_run=True))
        except Conflict as refused:
            impossible = refused
    task = granted[Tasks].get(ref)
    values = {"task": task, "ended": task.state in ENDED, "preview": preview, "refusal": impossible}
    return render("discard.html", values, granted, status_of(refusal))
