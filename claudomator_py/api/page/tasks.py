"""/tasks/{id}: one task, and the forms to act on it and to give the input that it waits for.

Each form shows the task as it is and sends the version that it showed. If the task has changed since, nothing is done,
and the form is shown again in its current state.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import Ref, Version, read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import row_of
from claudomator_py.api.page.task_model import TaskPage, task_page_of
from claudomator_py.api.problem import status_of
from claudomator_py.domain.agent import TIERS
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError, StaleVersion
from claudomator_py.domain.lifecycle import ENDED, InputKind
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.routing import Risk
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches.page import ChangesShown, changes_of
from claudomator_py.resources.branches.service import Changes
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists.page import OFFERED, choices_of
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.risk import assess
from claudomator_py.surface import READ

RunId = Annotated[str | None, Query(max_length=128)]
Name = Annotated[str, Query(max_length=128)]
Field = Annotated[str, Form(max_length=2_000)]
Answer = Annotated[str, Form(max_length=20_000)]
Tools = Annotated[str, Form(max_length=20_000)]
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
    return _cancel_form(granted, ref)


@routes.post("/{ref}/cancel", "cancelTask")
def cancel(granted: Allowed, ref: Ref, version: Version) -> Response:
    try:
        return _back(granted[Tasks].cancel(ref, versions=version))
    except (StaleVersion, Conflict) as refusal:
        return _cancel_form(granted, ref, refusal)


@routes.get("/{ref}/restart", "restartTask")
def ask_to_restart(granted: Allowed, ref: Ref, specialist: Name = "") -> Response:
    return _restart_form(granted, ref, {"specialist": specialist}, None)


@routes.post("/{ref}/restart", "restartTask")
def restart(
    granted: Allowed,
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
    except REFUSALS as refusal:
        return _restart_form(granted, ref, given, refusal)


def _back(task: TaskView) -> Response:
    return RedirectResponse(f"/tasks/{task.id}", 303)


def _cancel_form(granted: Session, ref: str, refusal: ServiceError | None = None) -> Response:
    task = granted[Tasks].get(ref)
    offered = "cancel" in task.available_actions
    values = {"task": task, "row": row_of(task), "refusal": refusal, "offered": offered}
    return render("cancel.html", values, granted, status_of(refusal))


def _restart_form(granted: Session, ref: str, given: Mapping[str, object], refusal: ServiceError | None) -> Response:
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
    return render("restart.html", values, granted, status_of(refusal))


@routes.get("/{ref}/answer", "answerTask")
def ask_for_answer(granted: Allowed, ref: Ref) -> Response:
    return _form("answer", granted, ref)


@routes.post("/{ref}/answer", "answerTask")
def answer(granted: Allowed, ref: Ref, version: Version, text: Answer = "", back: Back = "") -> Response:
    try:
        done = granted[Tasks].answer(ref, read_fields(AnswerRequest, {"text": text.strip()}), versions=version)
    except REFUSALS as refusal:
        return _form("answer", granted, ref, refusal, {"text": text})
    return RedirectResponse("/", 303) if back == OVERVIEW else _back(done)


@routes.get("/{ref}/approve", "approveTask")
def ask_for_approval(granted: Allowed, ref: Ref) -> Response:
    return _form("approve", granted, ref)


@routes.post("/{ref}/approve", "approveTask")
def approve(
    granted: Allowed, ref: Ref, version: Version, tools: Tools = "", reason: Field = "", specialist: Specialist = ""
) -> Response:
    try:
        rules = _edited_rules(_rules(granted[Tasks].get(ref)), tools)
        given = {"tools": rules, "reason": reason.strip(), "specialist": specialist.strip()}
        return _back(granted[Tasks].approve(ref, read_fields(ApproveRequest, given), versions=version))
    except REFUSALS as refusal:
        typed = {"tools": tools, "reason": reason, "specialist": specialist}
        return _form("approve", granted, ref, refusal, typed)


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
    return _form("reject", granted, ref)


@routes.post("/{ref}/reject", "rejectTask")
def reject(granted: Allowed, ref: Ref, version: Version, reason: Field = "") -> Response:
    try:
        request = read_fields(RejectRequest, {"reason": reason.strip()})
        return _back(granted[Tasks].reject(ref, request, versions=version))
    except REFUSALS as refusal:
        return _form("reject", granted, ref, refusal, {"reason": reason})


def _form(
    what: str,
    granted: Session,
    ref: str,
    refusal: ServiceError | None = None,
    typed: Mapping[str, str] = _NOTHING,
) -> Response:
    task = granted[Tasks].get(ref)
    asks = task.asks
    page = None if what == "answer" else task_page_of(granted[Tasks].why(ref), (), None)
    # No run has begun: the daemon itself asks, and the answer may name the specialist.
    unbegun = asks is not None and asks.run_id is None and asks.kind in (InputKind.CLARIFICATION, InputKind.APPROVAL)
    values = {
        "what": what,
        "task": task,
        "asks": asks,
        "specialists": choices_of(granted[PolicyService].candidates(ref, OFFERED)) if unbegun else None,
        "row": row_of(task),
        "refusal": refusal,
        "offered": what in task.available_actions,
        "rules": _rules(task),
        "typed": {**_NOTHING, **typed},
        "page": page,
        "risk_words": _risk_words(page),
        "changes": None if page is None else _changes(granted[Changes], task),
        "tree": None,
    }
    return render("input.html", values, granted, status_of(refusal))


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
