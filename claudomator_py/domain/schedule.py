"""Cron expressions, read strictly, and the instants at which they fire in a time zone.

The rule for a change of clocks is that of Debian's cron:

- A fixed time of day fires once a day, at the first instant at which the clock shows it or a later time. So one that
  is skipped when clocks are set forward fires right after the change, 02:30 at 03:00, and one that comes twice when
  they are set back fires at the first.
- Where the hour is ``*`` or ``*/n``, hours that pass are meant, not a time of day: every occurrence on the clock
  fires, a repeated one again, and a skipped one not at all.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from claudomator_py.domain.errors import shown, suggestion
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class BadCron(ValueError):
    """The expression cannot be read; the message says why, and ``remedy`` what to write."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Cron:
    """When a clock shows one of these."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday, 6 Saturday."""
    either_day: bool
    """Both kinds of day were restricted, and a day that is in one of them is enough, as cron has it."""
    every_hour: bool
    """The hour field begins with ``*``, so every occurrence on the clock fires."""

    def has_day(self, day: date) -> bool:
        """Whether it fires on that day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def read(self, text: str) -> frozenset[int]:
        allowed: set[int] = set()
        for part in text.split(","):
            allowed |= self._part(part, text)
        return frozenset(allowed)

    def _part(self, part: str, text: str) -> set[int]:
        span, slash, step_text = part.partition("/")
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = self.low, self.high
        else:
            first = self._number(first_text, text)
            last = self._number(last_text, text) if dash else first
        if slash and span != "*" and not dash:
            raise BadCron(f"`{shown(part)}` has a step but no range", f"write {span}-{self.high}/{step_text}")
        if last < first:
            remedy = f"write two ranges, {first}-{self.high},{self.low}-{last}"
            raise BadCron(f"the range `{shown(span)}` in the {self.name} field runs backwards", remedy)
        step = 1
        if slash:
            if not (step_text.isascii() and step_text.isdigit() and 0 < int(step_text[:9]) <= self.high):
                raise BadCron(f"`{shown(part)}` has a step that is not a number from 1", "write such as */15")
            step = int(step_text)
        return set(range(first, last + 1, step))

    def _number(self, word: str, text: str) -> int:
        if word.isascii() and word.isdigit() and len(word) <= 9:
            if self.low <= (number := int(word)) <= self.high:
                return number
            remedy = f"write a number from {self.low} to {self.high}"
            raise BadCron(f"{number} is out of range in the {self.name} field", remedy)
        if word.lower() in self.names:
            return self.low + self.names.index(word.lower())
        remedy = f"write numbers from {self.low} to {self.high}, ranges such as 1-5, steps such as */2, or *"
        if self.names and word.isalpha():
            remedy = suggestion(word.lower(), self.names)
        raise BadCron(f"`{shown(word or text)}` cannot be read in the {self.name} field", remedy)


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 7, _DAYS),
)


def parse_cron(text: str) -> Cron:
    """What the five fields allow: minute, hour, day, month, weekday. Raises BadCron.

    In the weekday field 0 and 7 are Sunday. Names of months and weekdays are their first three letters.
    """
    if text.strip() in _SHORTHANDS:
        raise BadCron(f"`{text.strip()}` is not supported", f'write "{_SHORTHANDS[text.strip()]}"')
    words = text.split()
    if len(words) != len(_FIELDS):
        remedy = 'write minute, hour, day, month and weekday, such as "0 3 * * *" for 3 o\'clock every day'
        raise BadCron(f"`{shown(text)}` has {len(words)} fields instead of five", remedy)
    minutes, hours, days, months, weekdays = (field.read(word) for field, word in zip(_FIELDS, words, strict=True))
    if not any(day <= _LONGEST_MONTH[month - 1] for day in days for month in months):
        raise BadCron(f"`{shown(text)}` names a day that none of its months has", "correct the day or the month")
    # A field that begins with a star is none that restricts, whatever its step: as cron has it.
    either = not words[2].startswith("*") and not words[4].startswith("*")
    return Cron(
        minutes,
        hours,
        days,
        months,
        frozenset(day % 7 for day in weekdays),
        either_day=either,
        every_hour=words[1].startswith("*"),
    )


_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_NO_TIME: Final = timedelta()
_LAST_YEAR: Final = 9_998
"""Nothing fires later: in any zone it is still a year that ``datetime`` has."""


class Recurrence:
    """The instants at which an expression fires in a zone. Raises BadCron.

    Between two changes of its offset a zone's clock runs straight, so finding the next time is calendar arithmetic.
    At a change, what the clock has shown before decides; see the rule above.
    """

    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._cron = parse_cron(expression)
        self._zone = zone
        self._times = [time(hour, minute) for hour in sorted(self._cron.hours) for minute in sorted(self._cron.minutes)]

    def next_after(self, at_ms: int) -> int | None:
        """The first instant after that one, both in epoch milliseconds; None: there is none."""
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
        """The next reading of a clock that the expression names, as if clocks were never set."""
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
        """The latest reading that the clock had reached before the instant; later than its present one for a while
        after it was set back."""
        begin = instant - 2 * _DAY  # No zone is set by more than a day.
        shown = begin.replace(tzinfo=None) + self._offset(begin)
        while begin < instant:
            end = self._first_change(begin, instant) or instant
            shown = max(shown, end.replace(tzinfo=None) + self._offset(begin))
            begin = end
        return shown

    def _first_change(self, after: datetime, until: datetime) -> datetime | None:
        """When the zone's offset first changes, after the one instant and up to the other; None: it does not."""
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
    """The times to meet now, oldest first. missed: the newest time that is passed over permanently; None: none is."""

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
