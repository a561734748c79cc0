"""Why a request to the daemon failed, and the remedy. Cheap to import, so that anyone can catch these errors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claudomator_py.domain.shape import ProblemDetails


class ClientError(Exception):
    """The base of all errors. detail: what happened. remedy: what to do next."""

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
