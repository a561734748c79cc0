"""Cron expressions, read strictly: what they allow, or why they cannot be read and what to write instead.

Source: crontab(5) of Debian's cron 3.0pl1, without its shorthands but with ranges of weekdays that end on Sunday.
Extensions of other programs (Quartz, Spring, AWS, Jenkins, Kubernetes) are refused by name.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from claudomator_py.domain.errors import InvalidText, shown, suggestion
from claudomator_py.domain.units import counted
from claudomator_py.values import dataclass, regex

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MAX_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class BadCron(InvalidText):
    """The expression is no cron expression."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The clock times at which it fires."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday, 6 is Saturday."""
    either_day: bool
    """True if days of both kinds were restricted; as in cron, a day that matches either one is enough."""
    every_hour: bool
    """True if the hour field begins with ``*``, so that every occurrence on the clock fires."""

    def has_day(self, day: date) -> bool:
        """Return whether it fires on that day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields."""

    name: str
    low: int
    high: int
    whole: str
    """Name of the next larger unit, with which the numbers start again."""
    step: str
    """An example step, as people write it."""
    names: tuple[str, ...] = ()
    """Names of its numbers, starting at ``low``."""

    def read(self, text: str) -> frozenset[int]:
        """The numbers that the text allows. Raises BadCron."""
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
        if last == 0 < first and self.high == _SUNDAY:
            last = _SUNDAY
        step = self._step(part, step_text) if slash else 1
        if slash and span != "*" and not dash:
            raise BadCron(f"`{shown(part)}` has a step but no range", f"write {span}-{self.high}/{step_text}")
        if last < first:
            message = f"the range `{shown(span)}` in the {self.name} field runs backwards"
            raise BadCron(message, f"write {self._around(first, last, step, named=not last_text.isdigit())}")
        return set(range(first, last + 1, step))

    def _around(self, first: int, last: int, step: int, *, named: bool) -> str:
        """How to write a range that runs past the end of the field and continues at its start, in the field's words."""
        begin = 1 if self.high == _SUNDAY else self.low  # Sunday, as 7, is already the end

        def word(number: int) -> str:
            return self.names[(number - self.low) % len(self.names)] if named and self.names else str(number)

        if step > 1:
            numbers = [*range(first, self.high + 1), *range(begin, last + 1)]
            return ",".join(word(number) for number in numbers[::step])
        ranges = ((first, self.high), (begin, last))
        return ",".join(word(low) if low == high else f"{word(low)}-{word(high)}" for low, high in ranges)

    def _step(self, part: str, text: str) -> int:
        longest = min(self.high, len(self.names) or self.high)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
        if 0 < number <= longest:
            return number
        message = f"`{shown(part)}` has a step that is not a number from 1 to {longest}"
        remedy = f"write such as {self.step}; counting begins again with each {self.whole}"
        if self.name == "minute" and number and number % 60 == 0 and number < 24 * 60:
            remedy = f"write 0 for the minute and */{number // 60} for the hour"
        raise BadCron(message, remedy)

    def _number(self, word: str, text: str) -> int:
        if word.isascii() and word.isdigit() and len(word) <= 9:
            if self.low <= (number := int(word)) <= self.high:
                return number
            remedy = f"write a number from {self.low} to {self.high}"
            raise BadCron(f"{number} is out of range in the {self.name} field", remedy)
        if word.lower() in self.names:
            return self.low + self.names.index(word.lower())
        for sign, what, remedy in _ELSEWHERE:
            if sign.fullmatch(word):
                raise BadCron(f"`{shown(word)}` in the {self.name} field is {what}, which cron does not have", remedy)
        remedy = f"write numbers from {self.low} to {self.high}, ranges such as 1-5, steps such as {self.step}, or *"
        if self.names and word.isalpha():
            short = word[:3].lower()
            remedy = f"write `{short}`" if short in self.names and len(word) > 3 else suggestion(short, self.names)
        raise BadCron(f"`{shown(word or text)}` cannot be read in the {self.name} field", remedy)


_SUNDAY: Final = 7
"""Also 0."""
_FIELDS: Final = (
    _Field("minute", 0, 59, "hour", "*/15"),
    _Field("hour", 0, 23, "day", "*/2"),
    _Field("day", 1, 31, "month", "*/2"),
    _Field("month", 1, 12, "year", "*/3", _MONTHS),
    _Field("weekday", 0, _SUNDAY, "week", "*/2", _DAYS),
)
_ELSEWHERE: Final = (
    (regex(r"\?"), "`no value` of Quartz", "write *"),
    (regex(r"[Hh](\(.*\))?"), "the hash of Jenkins", "write a number of your own, such as 17"),
    (regex(r"(?:[Ll]|[Ll]-\d+|[Ll][Ww])"), "the last day of Quartz", "write 28 or 1, which every month has"),
    (
        regex(r"\w+[Ll]"),
        "the last weekday of Quartz",
        "write the weekday, and let the task see which it is",
    ),
    (regex(r"\d+[Ww]"), "the nearest working day of Quartz", "write the day, or weekdays such as mon-fri"),
    (regex(r"\w+#\d"), "the weekday of a week of Quartz", "write the weekday, and let the task see which it is"),
)
"""Syntax of other programs: what it looks like, what it means there, and what to write here."""

_ZONE_BEFORE: Final = regex(r"(?:CRON_TZ|TZ)\s*=\s*(\S+)\s*(.*)", re.DOTALL | re.IGNORECASE)
_AROUND_COMMA: Final = regex(r"\s*,\s*")
_ZONE_BEHIND: Final = regex(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+|UTC|GMT|Z")
_OF_A_FIELD: Final = regex(r"[\d*?,/#LWH-]+|[a-z]{3}([-,][a-z]{3})*", re.IGNORECASE)


def parse_cron(text: str) -> Cron:
    """Return what the five fields allow: minute, hour, day, month, weekday. Raises BadCron. In the weekday field 0 and
    7 are Sunday. Months and weekdays are named by their first three letters."""
    words = text.split()
    if len(words) != len(_FIELDS) or _ZONE_BEFORE.match(text.strip()):
        raise _not_five(text.strip(), words)
    minutes, hours, days, months, weekdays = (field.read(word) for field, word in zip(_FIELDS, words, strict=True))
    if not any(day <= _MAX_MONTH[month - 1] for day in days for month in months):
        raise BadCron(f"`{shown(text)}` names a day that none of its months has", "correct the day or the month")
    # As in cron, a field that begins with a star does not restrict, whatever its step.
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


def _not_five(text: str, words: Sequence[str]) -> BadCron:
    """Why the text is not an expression of five fields, taking syntax of other programs into account."""
    known = _SHORTHANDS.get(text.lower())
    if known is not None:
        return BadCron(f"`{text}` is not supported", f'write "{known}"')
    shorthand, _, behind = text.partition(" ")
    if shorthand.lower() in _SHORTHANDS and _ZONE_BEHIND.fullmatch(behind.strip()):
        known, zone_name = _SHORTHANDS[shorthand.lower()], behind.strip()
        return BadCron(
            f"`{shown(text)}` is not supported", f'write `timezone: {zone_name}`, and the schedule as "{known}"'
        )
    if text.startswith("@"):
        remedy = 'write minute, hour, day, month and weekday, such as "*/15 * * * *" for every 15 minutes'
        return BadCron(f"`{shown(text)}` is not supported", remedy)
    if zone := _ZONE_BEFORE.match(text):
        message = f"`{shown(text[: zone.start(2)].strip())}` is no part of an expression"
        five = _SHORTHANDS.get(zone[2].strip().lower(), zone[2]) or "0 3 * * *"
        return BadCron(message, f'write `timezone: {shown(zone[1])}`, and the schedule as "{shown(five)}"')
    count = f"`{shown(text)}` has {counted(len(words), 'field')} instead of five"
    remedy = 'write minute, hour, day, month and weekday, such as "0 3 * * *" for 3 o\'clock every day'
    if len(words) < len(_FIELDS):
        return BadCron(count, remedy)
    five, rest = " ".join(words[:5]), " ".join(words[5:])
    if _ZONE_BEHIND.fullmatch(rest):
        return BadCron(count, f'write `timezone: {rest}`, and the schedule as "{five}"')
    joined = _AROUND_COMMA.sub(",", text)
    if joined != text and len(joined.split()) == len(_FIELDS):
        return BadCron(count, f'write "{shown(joined)}": a list has no blanks')
    if not all(_OF_A_FIELD.fullmatch(word) for word in words):
        return BadCron(count, f'write "{shown(five)}"; the command belongs under `instructions`')
    if len(words) == 6 and "?" in (words[2], words[4]):
        return BadCron(count, f'write minute, hour, day, month and weekday, without a year: "{five.replace("?", "*")}"')
    without = " ".join(words[1:6]).replace("?", "*")
    return BadCron(count, f'write minute, hour, day, month and weekday, without seconds: "{without}"')
