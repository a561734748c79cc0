"""The states of a task, the events that change them, and when a task may start. Illegal states cannot be
constructed."""

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator

from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.task import Priority
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.values import dataclass

ENDED: Final = ("COMPLETED", "FAILED", "CANCELLED")
"""The states in which nothing more happens to a task by itself."""
UNENDED: Final = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT")
"""All other states."""
UNSUCCESSFUL: Final = ("FAILED", "CANCELLED")
"""The end states in which a task has not done what others wait for."""


class WaitReason(StrEnum):
    """Why a task is not ready."""

    DEPENDENCY = "dependency"
    TIME = "time"
    BACKOFF = "backoff"
    BUDGET = "budget"


class QueueReason(StrEnum):
    """What keeps a ready task from starting."""

    READY = "ready"
    LIMITED = "limited"


class Phase(StrEnum):
    """The phase of a running task."""

    STARTING = "starting"
    RUNNING = "running"
    CHECKING = "checking"
    STOPPING = "stopping"


class InputKind(StrEnum):
    """The kind of input that a person is asked for."""

    APPROVAL = "approval"
    QUESTION = "question"
    CLARIFICATION = "clarification"
    LOGIN = "login"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The task itself is not ready. until: epoch milliseconds, if known."""

    reason: WaitReason
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Queued:
    """Ready; only slots or holds delay it."""

    reason: QueueReason = QueueReason.READY
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """The task has a live run."""

    phase: Phase = Phase.STARTING


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """A person has to act. until: epoch milliseconds of the deadline, after which the task fails; None if there is
    none."""

    kind: InputKind
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """Done, and the check passed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Ended without success, for this reason."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Ended by an operator."""


State = Waiting | Queued | Running | NeedsInput | Completed | Failed | Cancelled
Ready = Waiting | Queued | NeedsInput

StateName = Literal["WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "COMPLETED", "FAILED", "CANCELLED"]


def _known_state(value: object) -> object:
    return value if value in get_args(StateName) else None


KnownState = Annotated[StateName | None, BeforeValidator(_known_state)]
"""The state of another task; None if there is none, or it is none of these."""

STATE_NAMES: dict[type[State], StateName] = {
    Waiting: "WAITING",
    Queued: "QUEUED",
    Running: "RUNNING",
    NeedsInput: "NEEDS_INPUT",
    Completed: "COMPLETED",
    Failed: "FAILED",
    Cancelled: "CANCELLED",
}


@dataclass(frozen=True, slots=True)
class BecameReady:
    """What the task waited for has happened."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The task turned out not to be ready."""

    reason: WaitReason
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run of the task was committed."""


@dataclass(frozen=True, slots=True)
class PhaseReached:
    """The run reached this phase."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The run and its check succeeded."""


@dataclass(frozen=True, slots=True)
class Failing:
    """The task ended for this reason, and no further attempt follows."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Retrying:
    """The run failed, and another attempt follows at this time (epoch milliseconds)."""

    until: int


@dataclass(frozen=True, slots=True)
class Requeued:
    """The run ended without using up an attempt: it met a limit, never started, handed the task off, or its
    specialist's agent was gone."""

    reason: QueueReason = QueueReason.READY
    until: int | None = None


@dataclass(frozen=True, slots=True)
class InputAsked:
    """A person must act before the task can continue. until: see ``NeedsInput``."""

    kind: InputKind
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelling:
    """An operator cancelled the task, and it has no live run."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """A new generation begins through a restart or changed content, in the state ``into``."""

    into: Ready


@dataclass(frozen=True, slots=True)
class Answered:
    """A person gave the requested input; the task continues in the state ``into``."""

    into: Waiting | Queued


Event = (
    BecameReady
    | Deferred
    | Started
    | PhaseReached
    | Succeeded
    | Failing
    | Retrying
    | Requeued
    | InputAsked
    | Cancelling
    | Renewed
    | Answered
)


class IllegalTransition(Exception):
    """The event cannot happen in this state."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{type(event).__name__} cannot happen to a task that is {STATE_NAMES[type(state)]}")
        self.state = state
        self.event = event


_FAILS_WHILE: dict[type[State], frozenset[Reason] | None] = {
    Waiting: frozenset({Reason.DEPENDENCY_FAILED, Reason.EXPIRED}),
    Queued: frozenset({Reason.REJECTED}),
    NeedsInput: frozenset({Reason.REJECTED, Reason.EXPIRED}),
    Running: None,
}


def transition(state: State, event: Event) -> State:
    """Return the state after the event. Raises IllegalTransition if the state table has no such transition."""
    match state, event:
        case Waiting(), BecameReady():
            return Queued()
        case ((Waiting() | Queued()), Deferred(reason, until)):
            return Waiting(reason, until)
        case Queued(), Started():
            return Running(Phase.STARTING)
        case Running(), PhaseReached(phase):
            return Running(phase)
        case Running(), Succeeded():
            return Completed()
        case ((Waiting() | Queued() | NeedsInput() | Running()), Failing(reason)):
            allowed = _FAILS_WHILE[type(state)]
            if allowed is None or reason in allowed:
                return Failed(reason)
        case Running(), Retrying(until):
            return Waiting(WaitReason.BACKOFF, until)
        case Running(), Requeued(reason, until):
            return Queued(reason, until)
        case ((Running() | Waiting() | Queued()), InputAsked(kind, until)):
            return NeedsInput(kind, until)
        case ((Waiting() | Queued() | NeedsInput() | Running()), Cancelling()):
            return Cancelled()
        case ((Waiting() | Queued() | NeedsInput() | Completed() | Failed() | Cancelled()), Renewed(into)):
            return into
        case NeedsInput(), Answered(into):
            return into
    raise IllegalTransition(state, event)


def available_actions(state: State, *, begun: bool = True) -> tuple[str, ...]:
    """Return what an operator can do with a task in this state. A forced restart of a running task cancels it first.
    begun: True if a run of it asks; before the first run there is nobody to answer."""
    match state:
        case Waiting():
            return ("cancel", "restart")
        case NeedsInput(InputKind.APPROVAL):
            return (*(("approve", "answer") if begun else ("approve",)), "reject", "cancel", "restart")
        case NeedsInput(InputKind.QUESTION | InputKind.CLARIFICATION):
            return ("answer", "reject", "cancel", "restart")
        case NeedsInput():
            return ("cancel", "restart")
        case Queued():
            return ("cancel",)
        case Running():
            return ("cancel", "restart_force")
        case Failed(Reason.DEPENDENCY_FAILED):
            return ()  # it is revived by the restart of what failed first
        case Completed() | Failed() | Cancelled():
            return ("restart",)


MAX_BACKOFF_MS = HOUR_MS
JITTER_SHARE = 0.1


def rank(priority: Priority, created_ms: int) -> int:
    """Return the position in the queue; lower comes first.

    A task ages by one priority level per 24 hours. As all tasks age alike, the order between any two never changes, so
    the rank is a constant that an index can hold: the time at which a task of the lowest level would rank equally.
    """
    return created_ms - int(priority) * DAY_MS


def backoff_ms(base_ms: int, attempt: int, run_id: str, *, longest_ms: int = MAX_BACKOFF_MS) -> int:
    """Return the pause after the attempt (1 is the first), in milliseconds: it doubles each time up to longest_ms, plus
    up to a tenth of jitter. The jitter is derived from the run's id, so the same state always plans the same time."""
    pause = min(base_ms << min(attempt - 1, 30), max(base_ms, longest_ms))
    fraction = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4], "big") / 2**32
    return pause + int(pause * JITTER_SHARE * fraction)


@dataclass(frozen=True, slots=True)
class DependencyState:
    """A dependency by name. state: state name of the bound task; None if no task of that name has been seen."""

    name: str
    state: str | None


def readiness(
    dependencies: Sequence[DependencyState],
    not_before_ms: int | None,
    backoff_until_ms: int | None,
    now_ms: int,
    *,
    spent: bool = False,
) -> Queued | Waiting | Failing:
    """Return whether the task itself is ready: first its dependencies, then its earliest start, then its pause after a
    failure. spent: True if its budget is used up; it then does not become ready with time."""
    if any(dependency.state in UNSUCCESSFUL for dependency in dependencies):
        return Failing(Reason.DEPENDENCY_FAILED)
    if any(dependency.state != "COMPLETED" for dependency in dependencies):
        return Waiting(WaitReason.DEPENDENCY)
    if spent:
        return Waiting(WaitReason.BUDGET)
    if not_before_ms is not None and not_before_ms > now_ms:
        return Waiting(WaitReason.TIME, not_before_ms)
    if backoff_until_ms is not None and backoff_until_ms > now_ms:
        return Waiting(WaitReason.BACKOFF, backoff_until_ms)
    return Queued()
