"""The instants at which a cron expression fires in a time zone, and which of them to act on.

The rule for clock changes is Claudomator's own. It is close to that of Debian's cron, which differs in that it treats a
``*`` in the minutes like one in the hours, and makes up for each time of a skipped hour rather than once:

- A fixed time of day fires once a day, at the first instant at which the clock shows that time or a later one. So a
  time skipped when clocks go forward fires right after the change, 02:30 at 03:00, and a time repeated when they go
  back fires on its first occurrence. Of several times skipped together, one fires.
- An hour field of ``*`` or ``*/n`` means hours that pass, not a time of day: every occurrence on the clock fires, a
  repeated one again, and a skipped one not at all.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from claudomator_py.domain.cron import parse_cron
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.values import dataclass

_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_NO_TIME: Final = timedelta()
_LAST_YEAR: Final = 9_998
"""Nothing fires later: in any zone this is still a year that ``datetime`` supports."""


class Recurrence:
    """The instants at which an expression fires in a zone. Raises BadCron.

    Between two offset changes a zone's clock runs evenly, so finding the next time is calendar arithmetic. At a change,
    what the clock has already shown decides; see the rule above.
    """

    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._cron = parse_cron(expression)
        self._zone = zone
        self._times = [time(hour, minute) for hour in sorted(self._cron.hours) for minute in sorted(self._cron.minutes)]

    def next_after(self, at_ms: int) -> int | None:
        """Return the first instant after the given one, both in epoch milliseconds; None if there is none."""
        begin = datetime.fromtimestamp(at_ms // 1_000, UTC) + _SECOND
        shown = self._shown_before(begin)
        while True:
            offset = self._offset(begin)
            clock = begin.replace(tzinfo=None) + offset
            due = self._at_or_after(clock if self._cron.every_hour else shown)
            if due is None:
                return None
            fires = begin + max(due - clock, _NO_TIME)
            change = self._first_change(begin, fires)
            if change is None:
                return int(fires.timestamp()) * 1_000
            shown = max(shown, change.replace(tzinfo=None) + offset)
            begin = change

    def _at_or_after(self, clock: datetime) -> datetime | None:
        """The next clock reading that matches the expression, as if clocks never changed."""
        if clock.second or clock.microsecond:
            clock = clock.replace(second=0, microsecond=0) + _MINUTE
        day, first = clock.date(), bisect_left(self._times, clock.time())
        while day.year <= _LAST_YEAR:
            if day.month not in self._cron.months:
                day = (day.replace(day=1) + 31 * _DAY).replace(day=1)
            elif first < len(self._times) and self._cron.has_day(day):
                return datetime.combine(day, self._times[first])
            else:
                day += _DAY
            first = 0
        return None

    def _shown_before(self, instant: datetime) -> datetime:
        """The latest reading that the clock had shown before the instant; after the clock was set back, this is later
        than its current reading for a while."""
        begin = instant - 2 * _DAY  # No zone shifts by more than a day.
        shown = begin.replace(tzinfo=None) + self._offset(begin)
        while begin < instant:
            end = self._first_change(begin, instant) or instant
            shown = max(shown, end.replace(tzinfo=None) + self._offset(begin))
            begin = end
        return shown

    def _first_change(self, after: datetime, until: datetime) -> datetime | None:
        """When the zone's offset first changes, after the first instant and no later than the second; None if it does
        not."""
        begin = after
        while begin < until:
            end = min(begin + _DAY, until)
            offset = self._offset(begin)
            if self._offset(end) != offset:
                while end - begin > _SECOND:
                    middle = begin + (end - begin) // (2 * _SECOND) * _SECOND
                    if self._offset(middle) == offset:
                        begin = middle
                    else:
                        end = middle
                return end
            begin = end
        return None

    def _offset(self, at: datetime) -> timedelta:
        offset = at.astimezone(self._zone).utcoffset()
        return offset if offset is not None else _NO_TIME


LATE_MS: Final = MINUTE_MS
"""A time no older than this does not count as missed, for example after a restart of the daemon."""
MAX_CAUGHT_UP: Final = 1_000
STAMP_LENGTH: Final = len(".20261122t030000z")
_SPANS_MS: Final = (HOUR_MS, DAY_MS, 32 * DAY_MS, 366 * DAY_MS)


class CatchUp(StrEnum):
    """What happens to times that passed while no daemon ran."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Overlap(StrEnum):
    """What happens to a time at which a task of the schedule has not ended yet."""

    SKIP = "skip"
    """The time is skipped. A task that waits for a person blocks the schedule for ``MAX_HELD_UP_MS``, or until its own
    deadline."""
    QUEUE = "queue"
    """Its task is created anyway."""
    REPLACE = "replace"
    """Its task replaces one that has not begun or waits for a person; while one runs, the time is skipped."""


MAX_HELD_UP_MS = DAY_MS
"""How long a task that waits for a person without a deadline blocks its schedule."""


@dataclass(frozen=True, slots=True)
class Due:
    """The times to act on now, oldest first. missed: the newest time that is permanently skipped; None if none is."""

    times: tuple[int, ...]
    missed: int | None = None


def due(
    next_after: Callable[[int], int | None], last_ms: int, now_ms: int, catch_up: CatchUp, most: int = MAX_CAUGHT_UP
) -> Due:
    """Return which of the times after last_ms, up to and including now_ms, to act on. next_after: the schedule's first
    time after another, None after its last. most: maximum number of times caught up on at once."""
    wanted = most if catch_up is CatchUp.ALL else 1
    times = _newest(next_after, last_ms, now_ms, wanted + 1)
    met = [at for at in times if at > now_ms - LATE_MS]
    late = times[: len(times) - len(met)]
    caught = late[-max(0, wanted - len(met)) :] if catch_up is not CatchUp.SKIP and len(met) < wanted else []
    passed_over = late[: len(late) - len(caught)]
    return Due((*caught, *met), passed_over[-1] if passed_over else None)


def _newest(next_after: Callable[[int], int | None], last_ms: int, now_ms: int, most: int) -> Sequence[int]:
    """The newest times in (last_ms, now_ms], at most this many, without iterating over a long absence."""
    times: deque[int] = deque(maxlen=most)
    for span_ms in (*_SPANS_MS, None):
        start_ms = last_ms if span_ms is None else max(last_ms, now_ms - span_ms)
        times.clear()
        at = next_after(start_ms)
        while at is not None and at <= now_ms:
            times.append(at)
            at = next_after(at)
        if len(times) == most or start_ms == last_ms:
            break
    return tuple(times)


def fire_name(name: str, at_ms: int) -> str:
    """Return the name of the task for the schedule's time: the name plus the time in UTC, which no clock change makes
    ambiguous: ``nightly.20261122t0200z``, with seconds unless they are zero."""
    date, _, clock = format_instant(at_ms // SECOND_MS * SECOND_MS).partition("T")
    digits = clock[:8].replace(":", "")
    return f"{name}.{date.replace('-', '')}t{digits.removesuffix('00') if len(digits) == 6 else digits}z"
