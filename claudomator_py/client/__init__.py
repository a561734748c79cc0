"""A typed HTTP client of the daemon: every operation of the API is a method that returns views and raises refusals.

>>> from claudomator_py.client import RestartRequest, ServiceProblem, TaskFilter, TaskSpec, connect
>>> client = connect()  # this user's daemon, as the command line finds it; or Client(url, token)

A request with an idempotency key can be sent again when its answer was lost, and is not executed again:

>>> hello = TaskSpec(name="hello", instructions="Say hello.")
>>> task = client.submit(hello, idempotency_key="hello of 2026-12-01")
>>> client.submit(hello, idempotency_key="hello of 2026-12-01").id == task.id
True

To wait for a task, follow its events, or ask now and then whether it has changed:

>>> import time
>>> while task.state not in ("COMPLETED", "FAILED", "CANCELLED"):
...     time.sleep(0.1)
...     task = client.task_unless(task.id, task.version) or task
>>> task.state
'COMPLETED'

What its runs did and wrote:

>>> run = client.runs("hello")[-1]
>>> run.outcome.status.value, len(client.log(run.id).data) > 0
('succeeded', True)

Lists are fetched page by page, as they are read:

>>> [task.name for task in client.all_tasks(TaskFilter(state="COMPLETED"))]
['hello']

A change can be limited to the version that was seen. A refusal says what to do:

>>> client.restart("hello", RestartRequest(reason="once more"), if_version=task.version).generation
2
>>> try:
...     client.cancel("hello", if_version=task.version)
... except ServiceProblem as refusal:
...     print(refusal.code, "-", refusal.remedy)
stale_version - Fetch it again and retry with its current version.
>>> client.close()

The other names are imported on first use, so that the command line can start without an HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from claudomator_py.client.discovery import Endpoint, discover
    from claudomator_py.client.http import Client, connect
    from claudomator_py.domain.requests import HoldRequest, ReleaseRequest, RestartRequest, TaskFilter
    from claudomator_py.domain.retention import CleanupRequest
    from claudomator_py.domain.shape import Page, ProblemDetails
    from claudomator_py.domain.task import TaskSpec
    from claudomator_py.resources.runs import RunView
    from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, RejectRequest, TaskView

__all__ = [
    "AnswerRequest", "ApproveRequest", "CleanupRequest", "Client", "ClientError", "ConnectionLost", "DaemonNotRunning",
    "DiscoveryFailed", "Endpoint", "HoldRequest", "NotAuthorised", "Page", "RejectRequest", "ReleaseRequest",
    "RestartRequest", "RunView", "ServiceProblem", "TaskFilter", "TaskSpec", "TaskView", "UnexpectedAnswer", "connect",
    "discover",
]  # fmt: skip

_MODULES = {
    "client.discovery": ("Endpoint", "discover"),
    "client.http": ("Client", "connect"),
    "domain.retention": ("CleanupRequest",),
    "domain.task": ("TaskSpec",),
    "domain.requests": ("HoldRequest", "ReleaseRequest", "RestartRequest", "TaskFilter"),
    "domain.shape": ("Page",),
    "resources.runs": ("RunView",),
    "resources.tasks": ("AnswerRequest", "ApproveRequest", "RejectRequest", "TaskView"),
}


T = TypeVar("T")
START_IT = "Start it with `claudomator serve`, or set CLAUDOMATOR_URL to where it runs."


class ClientError(Exception):
    """The base of what is raised when a request to the daemon fails. detail: what happened. remedy: what to do next."""

    def __init__(self, detail: str, *, remedy: str) -> None:
        super().__init__(f"{detail} {remedy}")
        self.detail = detail
        self.remedy = remedy


class DiscoveryFailed(ClientError):
    """The daemon could not be located: the configuration is invalid, or not trusted."""


class DaemonNotRunning(ClientError):
    """Nobody listens at the URL, or nobody answers."""


class NotStarted(DaemonNotRunning):
    """No daemon has announced itself: none was started, or the last one was stopped properly."""


class ConnectionLost(DaemonNotRunning):
    """The request was sent, at least in part, without an answer: whether it was executed is unknown."""


class NotAuthorised(ClientError):
    """There is no token, or the daemon does not know it."""


class UnexpectedAnswer(ClientError):
    """The answer is not from this API: it is another program, or another version."""


class ServiceProblem(ClientError):
    """The daemon refused the request. details: its problem document.

    retry_after_s: seconds to wait before the next try; None: not given.
    """

    def __init__(self, details: "ProblemDetails", *, retry_after_s: int | None = None) -> None:
        super().__init__(details.detail, remedy=details.remedy)
        self.details = details
        self.retry_after_s = retry_after_s

    @property
    def code(self) -> str:
        """The stable name of the refusal, such as ``not_found``."""
        return self.details.code


def unless_missing(call: "Callable[[str], T]", ref: str) -> "T | None":
    """Return what the call returns for that reference; None if there is no such thing."""
    try:
        return call(ref)
    except ServiceProblem as problem:
        if problem.code != "not_found":
            raise
        return None


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"claudomator_py.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
