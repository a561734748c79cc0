"""When a task may start, and in which order: ranks, backoff and readiness."""

import hashlib
from collections.abc import Sequence

from claudomator_py.domain.lifecycle import UNSUCCESSFUL, Failing, InputKind, NeedsInput, Queued, Waiting, WaitReason
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.task import Priority
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.values import dataclass

MAX_BACKOFF_MS = HOUR_MS
JITTER_SHARE = 0.1


def rank(priority: Priority, created_ms: int) -> int:
    """Return the queue's order: lower first.

    A task ages by one level per 24 hours. As all tasks age alike, the order between two never changes with time, so
    the rank is a constant that an index can hold: the time at which a task of the lowest level would be its equal.
    """
    return created_ms - int(priority) * DAY_MS


def backoff_ms(base_ms: int, attempt: int, run_id: str, *, longest_ms: int = MAX_BACKOFF_MS) -> int:
    """Pause after the attempt (1 is the first): doubled each time up to longest_ms, plus up to a tenth of jitter.

    The jitter derives from the run's id, so the same state plans the same time.
    """
    pause = min(base_ms << min(attempt - 1, 30), max(base_ms, longest_ms))
    fraction = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4], "big") / 2**32
    return pause + int(pause * JITTER_SHARE * fraction)


@dataclass(frozen=True, slots=True)
class DependencyState:
    """A dependency by name. state: the bound task's state name, None while no task of that name was seen."""

    name: str
    state: str | None


def readiness(
    dependencies: Sequence[DependencyState],
    not_before_ms: int | None,
    backoff_until_ms: int | None,
    now_ms: int,
    *,
    approved: bool = True,
    spent: bool = False,
) -> Queued | Waiting | NeedsInput | Failing:
    """Return whether the task itself is ready: its dependencies, then its earliest start, then its pause after a
    failure.

    spent: whether its budget is used up, in which case no time makes it ready.
    approved: whether no person has to approve it first. That is asked last, once nothing else is in its way.
    """
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
    return Queued() if approved else NeedsInput(InputKind.APPROVAL)
