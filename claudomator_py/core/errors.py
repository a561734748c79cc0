"""Refusals of the service: what was wrong, and what to do next. The border turns them into its own language."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from claudomator_py.core.problem import Problem

ErrorStatus = Literal[
    "not_found",
    "ambiguous",
    "not_permitted",
    "conflict",
    "stale_version",
    "invalid",
    "bad_cursor",
    "gone",
    "idempotency_key_in_use",
    "idempotency_key_reused",
    "unavailable",
]


class ServiceError(Exception):
    """A request that was refused. Nothing was changed.

    status: the stable name of this kind of refusal. detail: what was wrong with this request. remedy: what to do next.
    problems: each fault of a document, where it was one.
    """

    status: ClassVar[ErrorStatus]
    title: ClassVar[str]

    def __init__(self, detail: str, *, remedy: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(f"{detail} {remedy}")
        self.detail = detail
        self.remedy = remedy
        self.problems = tuple(problems)


class NotFound(ServiceError):
    """There is no such task, run or agent."""

    status = "not_found"
    title = "Not found"


class Ambiguous(ServiceError):
    """A prefix of an id that more than one task has."""

    status = "ambiguous"
    title = "More than one match"


class Forbidden(ServiceError):
    """Who asks may not do this."""

    status = "not_permitted"
    title = "Not permitted"


class Conflict(ServiceError):
    """The thing is in a state that does not allow it."""

    status = "conflict"
    title = "Not possible in this state"


class StaleVersion(ServiceError):
    """The version that the caller had seen (``if_version``) is no longer the current one."""

    status = "stale_version"
    title = "Changed in the meantime"


class Invalid(ServiceError):
    """The request itself is wrong."""

    status = "invalid"
    title = "Not valid"


class BadCursor(ServiceError):
    """A cursor that was not given out for this list, or not as it is now."""

    status = "bad_cursor"
    title = "Not a cursor of this list"


class Gone(ServiceError):
    """What is asked for was kept for a time, which is over."""

    status = "gone"
    title = "Not kept any more"


class KeyInUse(ServiceError):
    """The first request with this idempotency key is still in work."""

    status = "idempotency_key_in_use"
    title = "The first request is still in work"


class KeyReused(ServiceError):
    """The idempotency key names another request."""

    status = "idempotency_key_reused"
    title = "The key names another request"


class Unavailable(ServiceError):
    """The daemon cannot do it now, and may be able to later."""

    status = "unavailable"
    title = "Not available now"
