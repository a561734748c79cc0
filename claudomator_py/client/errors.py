"""Why a request to the daemon failed, and what to do next. Cheap to import, so that anyone can catch them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claudomator_py.domain.shape import ProblemDetails


class ClientError(Exception):
    """Base of all. detail: what happened; remedy: what to do next."""

    def __init__(self, detail: str, *, remedy: str) -> None:
        super().__init__(f"{detail} {remedy}")
        self.detail = detail
        self.remedy = remedy


class DiscoveryFailed(ClientError):
    """Where the daemon is could not be told: the configuration is wrong, or not to be trusted."""


class DaemonNotRunning(ClientError):
    """Nobody listens at that URL, or nobody answers."""


class NotStarted(DaemonNotRunning):
    """No daemon has said where it listens: none was started, or the last one was stopped in order."""


class ConnectionLost(DaemonNotRunning):
    """The request was sent, or begun, and no answer came: whether it was done is not known."""


class NotAuthorised(ClientError):
    """There is no token, or the daemon does not know it."""


class UnexpectedAnswer(ClientError):
    """What answered does not speak this API: another program, or another version."""


class ServiceProblem(ClientError):
    """The daemon refused the request; ``details`` is what it said.

    retry_after_s: how many seconds it asked to wait before the next try; None if it did not say.
    """

    def __init__(self, details: "ProblemDetails", *, retry_after_s: int | None = None) -> None:
        super().__init__(details.detail, remedy=details.remedy)
        self.details = details
        self.retry_after_s = retry_after_s

    @property
    def code(self) -> str:
        """The stable name of the refusal, such as ``not_found``."""
        return self.details.code
