"""Our tasks as A2A objects, in either version.

Source: a2a-protocol.org, specification 1.0, section 4.1 (as ProtoJSON), and 0.3, section 6.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from claudomator_py.domain.requests import StateSelection
from claudomator_py.domain.shape import Page
from claudomator_py.resources.tasks import TaskView

Version = Literal["1.0", "0.3"]

ENDS: Final = frozenset({"completed", "failed", "canceled", "rejected"})
STANDINGS: Final[Mapping[str, tuple[StateSelection, ...]]] = MappingProxyType(
    {
        "submitted": (StateSelection(state="WAITING", begun=False), StateSelection(state="QUEUED", begun=False)),
        "working": (
            StateSelection(state="RUNNING"),
            StateSelection(state="WAITING", begun=True),
            StateSelection(state="QUEUED", begun=True),
        ),
        "completed": (StateSelection(state="COMPLETED"),),
        "failed": (StateSelection(state="FAILED", rejected=False),),
        "canceled": (StateSelection(state="CANCELLED"),),
        "input-required": (StateSelection(state="NEEDS_INPUT"),),
        "rejected": (StateSelection(state="FAILED", rejected=True),),
        "auth-required": (),
    }
)
"""Our tasks that are in each A2A state. Names are those of 0.3, in the order in which 1.0 numbers them from 1."""


def context_of(task: TaskView) -> str:
    """Return the context id: the client's own, else the task's thread."""
    return task.context or task.thread or task.id


def state_of(task: TaskView) -> str:
    """Return the task's A2A state by its 0.3 name."""
    return next(
        state
        for state, standings in STANDINGS.items()
        if any(standing.includes(task.state, runs=task.runs, reason=task.reason) for standing in standings)
    )


def name_of(state: str) -> str:
    """Return the 1.0 name of the state."""
    return f"TASK_STATE_{state.upper().replace('-', '_')}"


def is_settled(task: TaskView) -> bool:
    """Return whether the task has ended or waits for a person."""
    return state_of(task) in ENDS or task.state == "NEEDS_INPUT"


def whole(task: TaskView, version: Version) -> dict[str, Any]:
    """Return the ``Task`` object."""
    document: dict[str, Any] = {
        "id": task.id,
        "contextId": context_of(task),
        "status": _status(task, version),
        "metadata": _metadata(task),
    }
    if (result := _artifact(task, version)) is not None:
        document["artifacts"] = [result]
    return {"kind": "task", **document} if version == "0.3" else document


def page(tasks: Page[TaskView], total: int, size: int, *, artifacts: bool) -> dict[str, Any]:
    """Return the result of ``ListTasks``, which only 1.0 has. size: the page size. artifacts: include results."""
    documents = [whole(task, "1.0") for task in tasks.items]
    if not artifacts:
        documents = [{key: value for key, value in document.items() if key != "artifacts"} for document in documents]
    return {"tasks": documents, "nextPageToken": tasks.next_cursor or "", "pageSize": size, "totalSize": total}


def answer(task: TaskView, version: Version) -> dict[str, Any]:
    """Return the task as the result of a message."""
    return whole(task, version) if version == "0.3" else {"task": whole(task, version)}


def changes(task: TaskView, version: Version) -> list[dict[str, Any]]:
    """Return the stream events for a changed task. The result comes first: clients stop reading at the final status."""
    artifacts: list[dict[str, Any]] = []
    named = {"taskId": task.id, "contextId": context_of(task)}
    if (result := _artifact(task, version)) is not None:
        piece = {**named, "artifact": result, "append": False, "lastChunk": True}
        artifacts.append({"kind": "artifact-update", **piece} if version == "0.3" else {"artifactUpdate": piece})
    status = {**named, "status": _status(task, version), "metadata": _metadata(task)}
    if version == "0.3":
        artifacts.append({"kind": "status-update", **status, "final": is_settled(task)})
    else:
        artifacts.append({"statusUpdate": status})
    return artifacts


def mark(task: TaskView) -> tuple[str, str | None]:
    """Return a value that changes whenever clients are to be sent the task's changes."""
    return state_of(task), _words(task)


def _status(task: TaskView, version: Version) -> dict[str, Any]:
    state = state_of(task)
    document: dict[str, Any] = {
        "state": state if version == "0.3" else name_of(state),
        "timestamp": task.updated_at,
    }
    if words := _words(task):
        message = {
            "messageId": f"{task.id}-{task.version}",
            "role": "agent" if version == "0.3" else "ROLE_AGENT",
            "parts": [_part(words, version)],
            "taskId": task.id,
            "contextId": context_of(task),
        }
        document["message"] = {"kind": "message", **message} if version == "0.3" else message
    return document


def _words(task: TaskView) -> str | None:
    if task.asks is not None:
        return task.asks.text
    return None if task.state == "COMPLETED" else task.reason_text or task.reason


def _artifact(task: TaskView, version: Version) -> dict[str, Any] | None:
    if task.state != "COMPLETED" or not task.result_text:
        return None
    return {"artifactId": "result", "name": "result", "parts": [_part(task.result_text, version)]}


def _part(text: str, version: Version) -> dict[str, Any]:
    return {"kind": "text", "text": text} if version == "0.3" else {"text": text}


def _metadata(task: TaskView) -> dict[str, Any]:
    """Return our own names for things, and the usage in the form that our A2A client reads."""
    usage = {"input_tokens": task.tokens.input, "output_tokens": task.tokens.output, "cost_usd": task.cost_usd}
    used = {key: value for key, value in usage.items() if value is not None}
    named = {"task": task.name, "state": task.state, "executor": task.specialist or task.agent}
    return {**{key: value for key, value in named.items() if value is not None}, **({"usage": used} if used else {})}
