"""/v1/tasks: submit, list, look at, cancel and restart tasks, and say what one needs to hear."""

from typing import Annotated

from fastapi import Path, Query, Response

from claudomator_py.api.conditional import NOT_MODIFIED, IdempotencyKey, IfMatch, IfNoneMatch
from claudomator_py.api.operation import Allowed, Operations, Tagged, body, links, location, task_document
from claudomator_py.api.request import PageQuery
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views.base import Page
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.runs.shape import RunView
from claudomator_py.resources.tasks.shape import AnswerRequest, ApproveRequest, RejectRequest, TaskView, WhyView
from claudomator_py.service.task_service import TaskService
from claudomator_py.surface.operation import OPERATE, READ, READ_OWN

tasks = Operations("tasks")

Ref = Annotated[str, Path(max_length=128, description="A task's id, a unique prefix of it, or its name.")]


class TaskQuery(TaskFilter, PageQuery):
    """What to list, and how much of it."""


_LOCATION = location("URL of the task")
_NEXT = {
    "getTask": "The task as it is now",
    "explainTask": "Why it is in its state",
    "listRuns": "Its runs",
    "cancelTask": "Its end",
    "restartTask": "A new generation of it",
    "answerTask": "The answer to its question",
    "approveTask": "Approve what it asks for",
    "rejectTask": "Reject it, if it needs input",
}
_LINKS = links("ref", "$response.body#/id", **_NEXT)
_LATER = "Requested: it may take effect a little later"

_Document = Annotated[
    TaskSpec,
    task_document(
        the_least={"name": "update-changelog", "instructions": "Bring CHANGELOG.md up to date with the commits."},
        with_a_check={
            "name": "fix-login-redirect",
            "instructions": "The login page redirects to /home twice. Find out why and fix it.",
            "priority": "high",
            "agent": {"tier": "powerful"},
            "timeout": "45m",
            "retry": {"max_attempts": 2, "backoff": "1m"},
            "check": ["make test"],
            "tags": ["shop", "login"],
        },
        after_another={
            "name": "describe-login",
            "instructions": "Describe in docs/login.md how the login works now.",
            "depends_on": ["fix-login-redirect"],
        },
    ),
]


@tasks.operation(
    "POST /v1/tasks",
    "submitTask",
    OPERATE,
    "Submit a task",
    status=201,
    told="Accepted: it is durable",
    headers=_LOCATION,
    links=_LINKS,
)
def submit(granted: Allowed, spec: _Document, key: IdempotencyKey, tagged: Tagged, response: Response) -> TaskView:
    """Accept a task, as a task file would write it. It is durable once this answers."""
    return _located(tagged(granted[TaskService].submit(spec, key=key)), response)


@tasks.operation(
    "GET /v1/tasks",
    "listTasks",
    READ,
    "List tasks, newest first",
    links=links("ref", "$response.body#/items/0/id", **_NEXT),
)
def list_tasks(granted: Allowed, query: Annotated[TaskQuery, Query()]) -> Page[TaskView]:
    """A part of the list; all conditions count together. Tasks that come meanwhile move nothing in later parts."""
    wanted = TaskFilter(**query.model_dump(exclude={"cursor", "limit"}))
    return granted[Queries].tasks(wanted, query.cursor, query.limit)


@tasks.operation(
    "GET /v1/tasks/{ref}",
    "getTask",
    READ_OWN,
    "One task",
    refuses=(404, 409),
    responses={304: NOT_MODIFIED},
    response_model=TaskView,
)
def get_task(granted: Allowed, ref: Ref, if_none_match: IfNoneMatch, tagged: Tagged) -> TaskView | Response:
    """The task with its content. With If-None-Match, 304 says that it has not been changed since."""
    return tagged.unless(if_none_match, granted[Queries].task(ref))


@tasks.operation(
    "POST /v1/tasks/{ref}/cancel",
    "cancelTask",
    OPERATE,
    "Cancel a task",
    status=202,
    refuses=(404, 409),
    told=_LATER,
    links=_LINKS,
)
def cancel(granted: Allowed, ref: Ref, if_match: IfMatch, key: IdempotencyKey, tagged: Tagged) -> TaskView:
    """Ask for its end. A running task ends a little later, when its agent has; 409 for one that has ended."""
    return tagged(granted[TaskService].cancel(ref, if_version=if_match, key=key))


@tasks.operation(
    "POST /v1/tasks/{ref}/restart",
    "restartTask",
    OPERATE,
    "Restart a task: the whole decision is made again",
    status=202,
    refuses=(404, 409),
    told=_LATER,
    headers=_LOCATION,
    links=_LINKS,
)
def restart(
    granted: Allowed,
    ref: Ref,
    request: Annotated[
        RestartRequest,
        body(
            RestartRequest,
            as_it_was={},
            with_a_stronger_model={"tier": "powerful", "reason": "The small model did not find the cause."},
            by_force={"force": True},
        ),
    ],
    if_match: IfMatch,
    key: IdempotencyKey,
    tagged: Tagged,
    response: Response,
) -> TaskView:
    """Begin a new generation. What the task pins stays pinned unless the body says otherwise.

    409 for a queued task, which starts by itself, and for a running one unless `force` is true.
    """
    return _located(tagged(granted[TaskService].restart(ref, request, if_version=if_match, key=key)), response)


@tasks.operation(
    "POST /v1/tasks/{ref}/answer",
    "answerTask",
    OPERATE,
    "Answer what its agent asks",
    status=202,
    refuses=(404, 409),
    told="Accepted; the agent will continue with the answer",
    links=_LINKS,
)
def answer(
    granted: Allowed,
    ref: Ref,
    request: Annotated[
        AnswerRequest, body(AnswerRequest, required=True, in_words={"text": "Blue, as on the old page."})
    ],
    if_match: IfMatch,
    key: IdempotencyKey,
    tagged: Tagged,
) -> TaskView:
    """The agent continues the conversation in which it asked; no attempt is used up. 409 if it asks nothing."""
    return tagged(granted[TaskService].answer(ref, request, if_version=if_match, key=key))


@tasks.operation(
    "POST /v1/tasks/{ref}/approve",
    "approveTask",
    OPERATE,
    "Allow what it asks for",
    status=202,
    refuses=(404, 409),
    told="Accepted; the task will continue",
    links=_LINKS,
)
def approve(
    granted: Allowed,
    ref: Ref,
    request: Annotated[
        ApproveRequest,
        body(ApproveRequest, what_it_asks_for={}, something_else={"tools": ["Bash(npm run build)", "Bash(npm test)"]}),
    ],
    if_match: IfMatch,
    key: IdempotencyKey,
    tagged: Tagged,
) -> TaskView:
    """Its first run, or the tools that its agent was denied: for this content, until it is restarted.

    409 if it asks for no approval, 422 for what its agent cannot be configured to allow.
    """
    return tagged(granted[TaskService].approve(ref, request, if_version=if_match, key=key))


@tasks.operation(
    "POST /v1/tasks/{ref}/reject",
    "rejectTask",
    OPERATE,
    "Reject a task that needs input, which ends it",
    status=202,
    refuses=(404, 409),
    told="Done: it has failed, with reason `rejected`",
    links=_LINKS,
)
def reject(
    granted: Allowed,
    ref: Ref,
    request: Annotated[
        RejectRequest, body(RejectRequest, without_a_reason={}, with_a_reason={"reason": "Not on a Friday."})
    ],
    if_match: IfMatch,
    key: IdempotencyKey,
    tagged: Tagged,
) -> TaskView:
    """It fails, and what depends on it. 409 if it asks nothing."""
    return tagged(granted[TaskService].reject(ref, request, if_version=if_match, key=key))


@tasks.operation("GET /v1/tasks/{ref}/why", "explainTask", READ, "Why it is so", refuses=(404, 409))
def why(granted: Allowed, ref: Ref) -> WhyView:
    """Why the task is where it is, in sentences, with the decisions and events behind them."""
    return granted[Queries].why(ref)


@tasks.operation(
    "GET /v1/tasks/{ref}/runs",
    "listRuns",
    READ,
    "A task's runs",
    refuses=(404, 409),
    links=links("run_id", "$response.body#/items/0/id", getRun="The oldest run", readLog="Its output"),
)
def runs(granted: Allowed, ref: Ref) -> Page[RunView]:
    """All runs of the task, oldest first."""
    return Page[RunView](items=tuple(granted[Queries].runs(ref)))


def _located(task: TaskView, response: Response) -> TaskView:
    response.headers["Location"] = f"/v1/tasks/{task.id}"
    return task
