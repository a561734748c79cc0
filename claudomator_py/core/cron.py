"""Cron expressions: five fields, read strictly; what a field allows is a set of numbers."""

from dataclasses import dataclass
from typing import Final

from claudomator_py.core.problem import shown, suggestion

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
    """When a clock shows one of these. weekdays: 0 is Sunday, 6 Saturday.

    either_day: both kinds of day were restricted, and a day that is in one of them is enough, as cron has it.
    every_hour: the hour was not restricted, so that an hour which the clock shows twice counts twice.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    every_hour: bool


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
            raise BadCron(f"`{shown(part)}` has a step, and no range", f"write {span}-{self.high}/{step_text}")
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
        raise BadCron(f"`{text.strip()}` is not taken", f'write "{_SHORTHANDS[text.strip()]}"')
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
