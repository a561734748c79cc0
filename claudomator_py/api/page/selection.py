"""/select: act on several tasks. Choose them, confirm the change, and read the result for each."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from fastapi import Path
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import (
    MAX_CHOSEN,
    Chosen,
    Field,
    Filters,
    LongText,
    Text,
    chosen_tasks,
    filter_url,
    read_fields,
    remedy_text,
)
from claudomator_py.api.page.front import FILTER_STATES
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.rows import TaskRow, row_of
from claudomator_py.domain.errors import Conflict, Invalid, StaleVersion
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.resources.session import Session
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.surface import OPERATE


class Change(StrEnum):
    """What can be done to several tasks at once."""

    ANSWER = "answer"
    APPROVE = "approve"
    REJECT = "reject"
    RESTART = "restart"
    CANCEL = "cancel"


routes = UnlistedRoutes("/select")


@routes.get("", OPERATE)
def select(granted: Allowed, wanted: Filters, marked: Text = "") -> Response:
    return _choice(granted, wanted, marked=bool(marked))


@routes.post("/{change}", OPERATE)
def act(
    granted: Allowed, change: Annotated[Change, Path()], task: Chosen, sure: Field = "", words: LongText = ""
) -> Response:
    chosen = chosen_tasks(task)
    if not sure:
        tasks = [granted[Tasks].get(task_id) for task_id, _ in chosen]
        able = [change in task.available_actions for task in tasks]
        shown = {
            "change": change.value,
            "rows": [row_of(task) for task, can in zip(tasks, able, strict=True) if can],
            "others": [row_of(task) for task, can in zip(tasks, able, strict=True) if not can],
            "chosen": [reference for reference, can in zip(task, able, strict=True) if can],
        }
        return render("select_sure.html", shown, granted)
    act = _act(granted[Tasks], change, words.strip())
    verdicts = [_done(granted[Tasks], act, task_id, version) for task_id, version in chosen]
    refused = sum(refusal is not None for _, refusal in verdicts)
    values = {"change": change.value, "verdicts": verdicts, "done": len(verdicts) - refused, "refused": refused}
    return render("select_done.html", values, granted)


def _choice(granted: Session, wanted: TaskFilter, *, marked: bool) -> Response:
    page = granted[Tasks].page(wanted, None, MAX_CHOSEN)
    changeable = [task for task in page.items if set(task.available_actions) & {*Change}]
    values = {
        "wanted": wanted,
        "states": FILTER_STATES,
        "choices": [(f"{task.id}:{task.version}", row_of(task)) for task in changeable],
        "marked": marked,
        "all_url": filter_url("/select", wanted, marked="all"),
        "none_url": filter_url("/select", wanted),
        "more": page.next_cursor is not None,
        "most": MAX_CHOSEN,
    }
    return render("select.html", values, granted)


def _act(tasks: Tasks, change: Change, words: str) -> Callable[[str, int], TaskView]:
    """Return the action on one task, given its id and version. words: the answer or reason. Raises Invalid for an empty
    answer."""
    match change:
        case Change.CANCEL:
            return lambda ref, version: tasks.cancel(ref, versions=version)
        case Change.RESTART:
            return lambda ref, version: tasks.restart(ref, RestartRequest(), versions=version)
        case Change.ANSWER:
            answer = read_fields(AnswerRequest, {"text": words})
            return lambda ref, version: tasks.answer(ref, answer, versions=version)
        case Change.APPROVE:
            approval = read_fields(ApproveRequest, {"reason": words})
            return lambda ref, version: tasks.approve(ref, approval, versions=version)
        case Change.REJECT:
            rejection = read_fields(RejectRequest, {"reason": words})
            return lambda ref, version: tasks.reject(ref, rejection, versions=version)


def _done(tasks: Tasks, act: Callable[[str, int], TaskView], task_id: str, version: int) -> tuple[TaskRow, str | None]:
    """Act on the version that was shown. Return the task, and if nothing was done, why, and the remedy."""
    try:
        return row_of(act(task_id, version)), None
    except (StaleVersion, Conflict, Invalid) as refusal:
        return row_of(tasks.get(task_id)), f"{refusal.detail} {remedy_text(refusal)}"
