"""/tasks/{id}: one task, and the forms to act on it and to give the input that it waits for.

Each form shows the task as it is and sends the version that it showed. If the task has changed since, nothing is done,
and the form is shown again in its current state.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Field, LongText, Ref, Version, read_fields
from claudomator_py.api.page.rendering import button, render, to_task
from claudomator_py.api.page.rows import row_of
from claudomator_py.api.page.task_model import TaskPage, task_page_of
from claudomator_py.domain.agent import TIERS
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError, StaleVersion
from claudomator_py.domain.lifecycle import ENDED, InputKind
from claudomator_py.domain.routing import Risk
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches.page import ChangesShown, changes_of
from claudomator_py.resources.branches.service import Changes
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists.page import OFFERED, choices_of
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, TaskCalls, TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.risk import assess
from claudomator_py.surface import READ

RunId = Annotated[str | None, Query(max_length=128)]
Name = Annotated[str, Query(max_length=128)]
Back = Annotated[str, Form(max_length=20)]
OVERVIEW = "overview"
REFUSALS = (StaleVersion, Conflict, Invalid)
"""After these, a form is shown again with what was typed."""
Specialist = Annotated[str, Form(max_length=128)]
_NOTHING: Mapping[str, str] = {"text": "", "tools": "", "reason": "", "specialist": ""}
"""The empty fields of a form."""

routes = UnlistedRoutes("/tasks")


@routes.get("/{ref}", READ)
def show(granted: Allowed, ref: Ref, run: RunId = None, *, check: bool = False) -> Response:
    why = granted[Tasks].why(ref)
    page = task_page_of(why, granted[Tasks].runs(why.task.id), run, check=check)
    shown = _changes(granted[Changes], why.task)
    ended = why.task.state in ENDED
    tree = granted[Tasks].get(why.task.id).worktree if ended and why.task.branch else None
    return render("task.html", {"page": page, "changes": shown, "tree": tree}, granted)


@routes.get("/{ref}/cancel", "cancelTask")
def ask_to_cancel(granted: Allowed, ref: Ref) -> Response:
    return _cancel_form(granted, {"ref": ref})


@routes.get("/{ref}/restart", "restartTask")
def ask_to_restart(granted: Allowed, ref: Ref, specialist: Name = "") -> Response:
    return _restart_form(granted, {"ref": ref, "specialist": specialist})


def _cancel_form(granted: Session, given: Mapping[str, Any], refusal: ServiceError | None = None) -> Response:
    task = granted[Tasks].get(given["ref"])
    offered = "cancel" in task.available_actions
    values = {"task": task, "row": row_of(task), "offered": offered}
    return render("cancel.html", values, granted, refusal=refusal)


def _restart_form(granted: Session, given: Mapping[str, Any], refusal: ServiceError | None = None) -> Response:
    task = granted[Tasks].get(given["ref"])
    force = "restart_force" in task.available_actions
    conversations = [run.outcome.conversation_id for run in granted[Tasks].runs(task.id) if run.outcome is not None]
    nothing = dict.fromkeys(("specialist", "agent", "tier", "model", "reason", "resume"), "")
    values = {
        "task": task,
        "row": row_of(task),
        "offered": force or "restart" in task.available_actions,
        "force": force,
        "resumable": any(conversations),
        "agents": [agent.name for agent in granted[Agents].all()],
        "tiers": TIERS,
        "specialists": choices_of(granted[PolicyService].candidates(task.id, OFFERED)),
        "given": {**nothing, **given},
    }
    return render("restart.html", values, granted, refusal=refusal)


@routes.get("/{ref}/answer", "answerTask")
def ask_for_answer(granted: Allowed, ref: Ref) -> Response:
    return _form("answer", granted, {"ref": ref})


@routes.post("/{ref}/answer", "answerTask")
def answer(granted: Allowed, ref: Ref, version: Version, text: LongText = "", back: Back = "") -> Response:
    try:
        done = granted[Tasks].answer(ref, read_fields(AnswerRequest, {"text": text.strip()}), versions=version)
    except REFUSALS as refusal:
        return _form("answer", granted, {"ref": ref, "text": text}, refusal)
    return RedirectResponse("/", 303) if back == OVERVIEW else to_task(done)


@routes.get("/{ref}/approve", "approveTask")
def ask_for_approval(granted: Allowed, ref: Ref) -> Response:
    return _form("approve", granted, {"ref": ref})


@routes.post("/{ref}/approve", "approveTask")
def approve(
    granted: Allowed, ref: Ref, version: Version, tools: LongText = "", reason: Field = "", specialist: Specialist = ""
) -> Response:
    try:
        rules = _edited_rules(_rules(granted[Tasks].get(ref)), tools)
        given = {"tools": rules, "reason": reason.strip(), "specialist": specialist.strip()}
        return to_task(granted[Tasks].approve(ref, read_fields(ApproveRequest, given), versions=version))
    except REFUSALS as refusal:
        typed = {"ref": ref, "tools": tools, "reason": reason, "specialist": specialist}
        return _form("approve", granted, typed, refusal)


def _edited_rules(offered: Sequence[str], tools: str) -> list[str]:
    """Return the rules in the field; none if it has those that were offered, which are allowed as they are, whatever
    characters they have. Raises Invalid."""
    if offered and tools.split() == " ".join(offered).split():
        return []
    rules = [line.strip() for line in tools.splitlines() if line.strip()]
    if offered and not rules:
        raise Invalid("No tool to allow was named.", remedy="Name a tool, or reject the task.")
    return rules


@routes.get("/{ref}/reject", "rejectTask")
def ask_for_rejection(granted: Allowed, ref: Ref) -> Response:
    return _form("reject", granted, {"ref": ref})


def _form(what: str, granted: Session, given: Mapping[str, Any], refusal: ServiceError | None = None) -> Response:
    task = granted[Tasks].get(given["ref"])
    asks = task.asks
    page = None if what == "answer" else task_page_of(granted[Tasks].why(task.id), (), None)
    # No run has begun: the daemon itself asks, and the answer may name the specialist.
    unbegun = asks is not None and asks.run_id is None and asks.kind in (InputKind.CLARIFICATION, InputKind.APPROVAL)
    values = {
        "what": what,
        "task": task,
        "asks": asks,
        "specialists": choices_of(granted[PolicyService].candidates(task.id, OFFERED)) if unbegun else None,
        "row": row_of(task),
        "offered": what in task.available_actions,
        "rules": _rules(task),
        "typed": {**_NOTHING, **given},
        "page": page,
        "risk_words": _risk_words(page),
        "changes": None if page is None else _changes(granted[Changes], task),
        "tree": None,
    }
    return render("input.html", values, granted, refusal=refusal)


button(routes, "/{ref}/cancel", TaskCalls.cancel, Tasks, "/tasks/{id}", again=_cancel_form)
button(routes, "/{ref}/restart", TaskCalls.restart, Tasks, "/tasks/{id}", again=_restart_form)
button(routes, "/{ref}/reject", TaskCalls.reject, Tasks, "/tasks/{id}", again=partial(_form, "reject"))


def _risk_words(page: TaskPage | None) -> str | None:
    """Return the words of the task that make it risky, if its risk follows from them."""
    if page is None or page.instructions is None or page.risk in (None, Risk.LOW):
        return None
    return assess(page.instructions).words or None


def _changes(changes: Changes, task: TaskView) -> ChangesShown:
    return changes_of(changes.of_task(task.id).runs, changes.patch)


def _rules(task: TaskView) -> list[str]:
    """Return the rules that would allow the denied calls of the task's agent."""
    return list(dict.fromkeys(tool.rule for tool in task.asks.tools if tool.rule)) if task.asks else []
