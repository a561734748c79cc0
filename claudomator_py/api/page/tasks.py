"""/tasks/{id}: one task, and the forms to act on it.

Each form shows the task as it is and sends the version that it showed. If the task has changed since, nothing is done,
and the form is shown again in its current state.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import Ref, Version, read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import row_of
from claudomator_py.api.page.task_model import task_page_of
from claudomator_py.api.problem import status_of
from claudomator_py.domain.agent import TIERS
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError, StaleVersion
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches.page_model import changes_of
from claudomator_py.resources.branches.service import Changes
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.session import Access, Session
from claudomator_py.resources.specialists.page_model import OFFERED, choices_of
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks

RunId = Annotated[str | None, Query(max_length=128)]
Name = Annotated[str, Query(max_length=128)]
Field = Annotated[str, Form(max_length=2_000)]


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/tasks")

    @routes.get("/{ref}")
    def show(by: Asking, ref: Ref, run: RunId = None, *, check: bool = False) -> Response:
        granted = access.as_(by)
        why = granted[Tasks].why(ref)
        page = task_page_of(why, granted[Tasks].runs(why.task.id), run, check=check)
        changes = granted[Changes]
        shown = changes_of(changes.of_task(why.task.id).runs, changes.patch)
        ended = why.task.state in ENDED
        tree = granted[Tasks].get(why.task.id).worktree if ended and why.task.branch else None
        return render("task.html", {"page": page, "changes": shown, "tree": tree}, by=by)

    @routes.get("/{ref}/cancel")
    def ask_to_cancel(by: Asking, ref: Ref) -> Response:
        return _cancel_form(access.as_(by)[Tasks].get(ref), by, None)

    @routes.post("/{ref}/cancel")
    def cancel(by: Asking, ref: Ref, version: Version) -> Response:
        granted = access.as_(by)
        try:
            return _back(granted[Tasks].cancel(ref, versions=version))
        except (StaleVersion, Conflict) as refusal:
            return _cancel_form(granted[Tasks].get(ref), by, refusal)

    @routes.get("/{ref}/restart")
    def ask_to_restart(by: Asking, ref: Ref, specialist: Name = "") -> Response:
        return _restart_form(access.as_(by), ref, by, {"specialist": specialist}, None)

    @routes.post("/{ref}/restart")
    def restart(
        by: Asking,
        ref: Ref,
        version: Version,
        specialist: Field = "",
        agent: Field = "",
        tier: Field = "",
        model: Field = "",
        reason: Field = "",
        force: Field = "",
        resume: Field = "",
    ) -> Response:
        granted = access.as_(by)
        given = {
            "specialist": specialist.strip(),
            "agent": agent,
            "tier": tier,
            "model": model.strip(),
            "reason": reason.strip(),
            "force": bool(force),
            "resume": bool(resume),
        }
        try:
            return _back(granted[Tasks].restart(ref, read_fields(RestartRequest, given), versions=version))
        except (StaleVersion, Conflict, Invalid) as refusal:
            return _restart_form(granted, ref, by, given, refusal)

    return routes


def _back(task: TaskView) -> Response:
    return RedirectResponse(f"/tasks/{task.id}", 303)


def _cancel_form(task: TaskView, by: Principal, refusal: ServiceError | None) -> Response:
    offered = "cancel" in task.available_actions
    values = {"task": task, "row": row_of(task), "refusal": refusal, "offered": offered}
    return render("cancel.html", values, status_of(refusal), by=by)


def _restart_form(
    granted: Session, ref: str, by: Principal, given: Mapping[str, object], refusal: ServiceError | None
) -> Response:
    task = granted[Tasks].get(ref)
    force = "restart_force" in task.available_actions
    conversations = [run.outcome.conversation_id for run in granted[Tasks].runs(task.id) if run.outcome is not None]
    nothing: dict[str, object] = {"specialist": "", "agent": "", "tier": "", "model": "", "reason": "", "resume": False}
    values = {
        "task": task,
        "row": row_of(task),
        "refusal": refusal,
        "offered": force or "restart" in task.available_actions,
        "force": force,
        "resumable": any(conversations),
        "agents": [agent.name for agent in granted[Agents].all()],
        "tiers": TIERS,
        "specialists": choices_of(granted[PolicyService].candidates(ref, OFFERED)),
        "given": nothing | dict(given),
    }
    return render("restart.html", values, status_of(refusal), by=by)
