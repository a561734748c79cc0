"""Which of a schedule's times are met, and what the tasks are called that meet them. Times are epoch milliseconds."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from claudomator_py.core.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant

LATE_MS: Final = MINUTE_MS
"""A time that is no older was not missed, such as during a restart of the daemon."""
MOST_CAUGHT_UP: Final = 1_000
STAMP_LENGTH: Final = len(".20261122t030000z")
_SPANS_MS: Final = (HOUR_MS, DAY_MS, 32 * DAY_MS, 366 * DAY_MS)


class CatchUp(StrEnum):
    """What becomes of the times that passed while no daemon ran."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of a time at which a task of the schedule has not ended yet."""

    SKIP = "skip"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Due:
    """The times to meet now, oldest first. missed: the newest time that is passed over for good; None: none is."""

    times: tuple[int, ...]
    missed: int | None = None


def due(
    next_after: Callable[[int], int | None], last_ms: int, now_ms: int, catch_up: CatchUp, most: int = MOST_CAUGHT_UP
) -> Due:
    """What is to be met of the times after last_ms, up to and including now_ms.

    next_after: the schedule's first time after another, None after its last. most: how many are caught up at once.
    """
    wanted = most if catch_up is CatchUp.ALL else 1
    times = _newest(next_after, last_ms, now_ms, wanted + 1)
    met = [at for at in times if at > now_ms - LATE_MS]
    late = times[: len(times) - len(met)]
    caught = late[-max(0, wanted - len(met)) :] if catch_up is not CatchUp.SKIP and len(met) < wanted else []
    passed_over = late[: len(late) - len(caught)]
    return Due((*caught, *met), passed_over[-1] if passed_over else None)


def _newest(next_after: Callable[[int], int | None], last_ms: int, now_ms: int, most: int) -> Sequence[int]:
    """The newest times in (last_ms, now_ms], at most so many, without a walk through all of a long absence."""
    found: deque[int] = deque(maxlen=most)
    for span_ms in (*_SPANS_MS, None):
        start_ms = last_ms if span_ms is None else max(last_ms, now_ms - span_ms)
        found.clear()
        at = next_after(start_ms)
        while at is not None and at <= now_ms:
            found.append(at)
            at = next_after(at)
        if len(found) == most or start_ms == last_ms:
            break
    return tuple(found)


def fire_name(name: str, at_ms: int) -> str:
    """The name of the task that meets the schedule's time: the name, and the time in UTC, which no change of clocks
    makes ambiguous: ``nightly.20261122t0200z``, with seconds unless they are zero."""
    date, _, clock = format_instant(at_ms // SECOND_MS * SECOND_MS).partition("T")
    digits = clock[:8].replace(":", "")
    return f"{name}.{date.replace('-', '')}t{digits.removesuffix('00') if len(digits) == 6 else digits}z"
