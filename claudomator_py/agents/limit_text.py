"""Read a limit's message: when the limit resets (an epoch, a clock time, a date, or a span of time), and which model it
applies to."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.values import dataclass, regex, toml_data

_FIELD = r"\breset[a-z_-]*['\"]?\s*[:=]\s*['\"]?"
"""A field of a reset time, in JSON or a header."""
_EPOCH = regex(rf"(?:\|\s*['\"]?|{_FIELD}|\bresets?\s+(?:at|on)\s+)(\d{{10}}|\d{{13}})\b", re.IGNORECASE)
_AGAIN = (
    r"(?:(?:be )?reset(?:s|ting)?(?: time)?|renew(?:s|ed)?|refresh(?:es|ed)?|refill(?:s|ed)?|replenish(?:es|ed)?"
    r"|lift(?:s|ed)?|unlock(?:s|ed)?|restored|continue|retry|again|available|back)"
)
_LEAD = rf"(?:{_AGAIN}|until)(?:[\s-]+(?:at|on|by|after|from|until|@))?:?\s+"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMED_DAY = (
    r"(?:(?P<named>today|tonight|tomorrow)"
    r"|(?:next\s+)?(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?)\b\.?"
)
_MONTH_NAME = rf"(?:{'|'.join(_MONTHS)})[a-z]*"
_DATE = (
    rf"(?:(?P<month>{_MONTH_NAME})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
    rf"|(?P<first_day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?P<then_month>{_MONTH_NAME})\b\.?"
    r"|(?P<iso>20\d\d(?P<mark>[-/])\d\d(?P=mark)\d\d)\b|(?P<dotted>\d{1,2}\.\d{1,2}\.20\d\d)\b"
    r"|(?P<slashed>\d{1,2}/\d{1,2}/20\d\d)\b)(?:,?\s+(?P<year>20\d\d)\b(?!:))?"
)
_CLOCK = (
    r"(?:(?P<word>midnight|noon)\b"
    r"|(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap]\.?m\b\.?)?(?P<utc>Z\b)?)"
)
_ZONE = (
    r"(?:\s*\((?P<zone>[A-Za-z][\w+\-:]*(?:/[\w+\-]+)*)\)"
    r"|\s*(?P<bare>(?:UTC|GMT)(?:\s?[+-]\d{1,2}(?::?\d\d)?)?\b|[+-]\d\d:?\d\d\b"
    r"|\(?(?:Pacific|Mountain|Central|Eastern)\b(?=\)|\s(?:standard |daylight )?time)|[A-Z]{2,4}\b))?"
)
_SEPARATOR = r"(?:,?\s+at\s+|[,\s]+|(?=\W|\Z))"
_WHEN = regex(rf"{_LEAD}(?:{_NAMED_DAY}{_SEPARATOR})?(?:{_DATE}{_SEPARATOR})?(?:{_CLOCK}{_ZONE})?", re.IGNORECASE)
_DAY_AFTER = regex(rf"(?:,?\s*\bon\s+|[,\s]*)(?:{_NAMED_DAY}{_SEPARATOR})?(?:{_DATE})?{_ZONE}", re.IGNORECASE)
"""A day that follows a time, as in ``9am on Monday``."""
_OFFSET = regex(r"(?:UTC|GMT)?\s?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?", re.IGNORECASE)
_ZONES = {
    "utc": "UTC",
    "gmt": "UTC",
    "pacific": "America/Los_Angeles",
    "mountain": "America/Denver",
    "central": "America/Chicago",
    "eastern": "America/New_York",
    "pt": "America/Los_Angeles",
    "mt": "America/Denver",
    "ct": "America/Chicago",
    "et": "America/New_York",
    "pst": "-08:00",
    "pdt": "-07:00",
    "mst": "-07:00",
    "mdt": "-06:00",
    "cdt": "-05:00",
    "est": "-05:00",
    "edt": "-04:00",
    "bst": "+01:00",
    "cet": "+01:00",
    "cest": "+02:00",
    "eet": "+02:00",
    "eest": "+03:00",
    "msk": "+03:00",
    "hkt": "+08:00",
    "sgt": "+08:00",
    "jst": "+09:00",
    "kst": "+09:00",
    "aest": "+10:00",
    "aedt": "+11:00",
}
"""Unambiguous abbreviations of zones, as an IANA name or an offset."""
_DAYS_END = "24"
"""The hour that ends a day, as in 24:00 (ISO 8601-1)."""
_ISO = regex(
    rf"(?:{_LEAD}|{_FIELD})(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?){_ZONE}",
    re.IGNORECASE,
)
_UNIT = r"(?:ms|mo(?:nths?)?|milliseconds?|(?:s|m|h|d|w)|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?)"
_NUMBERS = {
    "half an": 0.5, "half a": 0.5, "an": 1.0, "a": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0,
    "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0, "ten": 10.0, "twelve": 12.0, "fifteen": 15.0, "twenty": 20.0,
    "thirty": 30.0,
}  # fmt: skip
_NUMBER = "|".join(_NUMBERS)
_ABOUT = (
    r"(?:(?:about|around|approximately|roughly|another|under|over|up\s+to|at\s+least|(?:less|more)\s+than)\s+|~\s*)?"
)
_AMOUNT = rf"(?:(?<![\d.])\d{{1,9}}(?:\.\d{{1,6}})?|\b(?:{_NUMBER})\b)"
_SOME_SPAN = rf"(?:{_AMOUNT}\s{{0,9}}{_UNIT}\b[\s,]{{0,9}}(?:and\s{{1,9}})?){{1,5}}"
"""Bounded, as it may begin anywhere in a long text."""
_SPAN = regex(
    rf"(?:{_AGAIN}\s+(?:in|after|within)|\bwait(?:\s+for)?|\bcool(?:ing)?[- ]?down(?:\s+for)?|\btime\s+until\s+reset"
    rf"|\btime\s+remaining):?\s+{_ABOUT}(?P<span>{_SOME_SPAN}|[\d.]+[a-z][\d.a-z]*)"
    rf"|(?P<first>{_SOME_SPAN})(?:until|before|till)\s+(?:\w+\s+){{0,3}}reset",
    re.IGNORECASE,
)
_SPAN_PART = regex(rf"(\d{{1,9}}(?:\.\d{{1,6}})?|\b(?:{_NUMBER})\b)\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_COUNTDOWN = regex(
    rf"(?:{_AGAIN}\s+in|\bretry[- ]after|\bwait(?:\s+for)?):?\s+(\d{{1,3}}):([0-5]\d):([0-5]\d)\b", re.IGNORECASE
)
_SECONDS = regex(
    r"\b(?:retry[-_]?(?:after|delay)|resets?[-_]?(?:in|after)|ratelimit-reset)(?:[-_]?(?P<unit>ms|milliseconds|seconds))?"
    r"['\"]?\s*[:=]\s*['\"]?(?P<number>\d{1,8}(?:\.\d{1,9})?)s?(?![\w:/-])",
    re.IGNORECASE,
)
_WORD_NAME = r"[a-z]\w*(?:[.:/-]+\w+)*"
_NAME = rf"{_WORD_NAME}(?: \d[\w.]*\w|(?-i: \d))?(?:(?-i: [A-Z][a-z]+))*"
_MODEL = regex(
    r"\b(?:model['\"]?\s*[:=]\s*"
    r"|(?:limit|quota|messages|requests) (?:reached |exceeded )?(?:for|on) (?:the )?(?:model )?)[`'\"]?"
    rf"(?P<name>(?=[\w.:/]*[\d-]|\w+ \d){_NAME})"
    rf"|\byour (?:(?:daily|weekly|monthly) )?(?P<limited>(?=[\w.:/-]*\d|\w+ \d){_NAME})"
    r" (?:\w+ ){0,2}(?:limit|quota)\b"
    rf"|(?:^|[.:!] )(?P<whose>(?=[\w.:/-]*\d){_WORD_NAME}) (?:\w+ ){{0,2}}(?:limit|quota) (?:reached|exceeded)",
    re.IGNORECASE,
)
"""``usage limit for gpt-6-codex``, ``your gpt-6-codex limit``, ``gpt-6-codex limit reached``, or a quota's dimension
``model: gemini-3-pro``. A name has a digit or a hyphen, unlike words such as "today". Capitalised words after it belong
to it: ``GPT-6 Sol``."""
_DELAY = regex(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*")
_MAX_WAIT_MS = 400 * DAY_MS
_SPAN_UNITS = {
    "ms": 1,
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
    "mo": 30 * DAY_MS,
    "month": 30 * DAY_MS,
    "months": 30 * DAY_MS,
}


def find_reset(text: str, now_ms: int, zone: str | None = None) -> int | None:
    """Return the reset time in the message, in epoch milliseconds; None if it has none.

    now_ms: when the message was printed. zone: the IANA zone of times without one; None: this machine's. A clock time
    without a date is the next such time, or the current minute. An ambiguous date, without a year or as 12/3, is the
    one nearest to now.
    """
    if epoch := _EPOCH.search(text):
        return epoch_ms(int(epoch[1]))
    if countdown := _COUNTDOWN.search(text):
        hours, minutes, seconds = map(int, countdown.groups())
        return now_ms + hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS
    if (span := _SPAN.search(text)) and (end := _after(span["span"] or span["first"], now_ms)) is not None:
        return end
    if seconds_of := _SECONDS.search(text):
        unit_ms = 1 if (seconds_of["unit"] or "")[:1] in ("m", "M") else SECOND_MS
        return now_ms + round(float(seconds_of["number"]) * unit_ms)
    if (iso := _ISO.search(text)) and (instant := _instant(iso[1], _zone_of(iso, zone))) is not None:
        return instant
    resets = (_next(_whole(when), now_ms, zone) for when in _WHEN.finditer(text))
    found = next((at for at in resets if at is not None), None)
    if found is None and (english := _in_english(text)) is not None:
        return find_reset(english, now_ms, zone)
    return found


def find_model(text: str) -> str | None:
    """Return the full name of the one model that the message says is limited; None: it names none."""
    match = _MODEL.search(text)
    if match is None:
        return None
    return "-".join((match["name"] or match["limited"] or match["whose"]).lower().split())


def retry_at(value: str, now_ms: int, unit_ms: int = SECOND_MS) -> int | None:
    """Return the time, in epoch milliseconds, that a ``Retry-After`` header names: a number of units from now, or an
    HTTP date; None: neither. Source: RFC 9110, 10.2.3. It has no fractions; services send them anyway."""
    if delay := _DELAY.fullmatch(value):
        at_ms = now_ms + round(float(delay[1]) * unit_ms)
    else:
        try:
            at_ms = round(parsedate_to_datetime(value).timestamp() * SECOND_MS)
        except (ValueError, OverflowError):
            return None
    return at_ms if at_ms - now_ms < _MAX_WAIT_MS else None


def epoch_ms(seconds: object) -> int | None:
    """Return a reset time given in epoch seconds or, by its size, milliseconds; None if it cannot be one."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if 1e9 <= seconds < 5e9:
        return int(seconds * SECOND_MS)
    if 1e12 <= seconds < 5e12:
        return int(seconds)
    return None


def _after(span: str, now_ms: int) -> int | None:
    total = 0.0
    for amount, unit in _SPAN_PART.findall(span):
        size = _SPAN_UNITS.get(unit.lower()) or _SPAN_UNITS.get(unit.lower()[0])
        if size is None:
            break
        total += (float(amount) if amount[0].isdigit() else _NUMBERS[amount.lower()]) * size
    return now_ms + round(total) if 0 < total < _MAX_WAIT_MS else None


def _instant(text: str, there: tzinfo | None) -> int | None:
    try:
        moment = datetime.fromisoformat(text.upper().replace(" ", "T"))
    except ValueError:
        return None
    return _in_zone(moment, there) if moment.tzinfo is None else round(moment.timestamp() * SECOND_MS)


_Parts = Mapping[str, Any]
"""The parts of a time by the name of their group."""


def _whole(when: re.Match[str]) -> _Parts:
    """Return the parts of a time, with a day that follows it."""
    parts = when.groupdict()
    has_day = _has_date(parts) or parts["named"] or parts["weekday"]
    if has_day or not (parts["hour"] or parts["word"]):
        return parts
    after = _DAY_AFTER.match(when.string, when.end())
    if after is None or not (_has_date(after) or after["named"] or after["weekday"]):
        return parts
    return parts | {name: value for name, value in after.groupdict().items() if value}


def _next(when: _Parts, now_ms: int, zone: str | None) -> int | None:
    clock = _time_of(when)
    if clock is None:
        return None
    there = UTC if when["utc"] else _zone_of(when, zone)
    today = datetime.fromtimestamp(now_ms / SECOND_MS, tz=UTC).astimezone(there).date()
    past_midnight = timedelta(days=when["hour"] == _DAYS_END)
    if _has_date(when):
        days = [day + past_midnight for day in _days(when, today)]
        return min(_candidates(days, clock, there), key=lambda at: abs(at - now_ms), default=None)
    near = [today + timedelta(days=offset) for offset in range(-1, 9)]
    if when["named"]:
        near = [today + timedelta(days=when["named"].lower() == "tomorrow") + past_midnight]
    elif when["weekday"]:
        near = [day + past_midnight for day in near if day.weekday() == _WEEKDAYS.index(when["weekday"].lower())]
    return min((at for at in _candidates(near, clock, there) if at + MINUTE_MS > now_ms), default=None)


def _has_date(when: _Parts | re.Match[str]) -> bool:
    return any(when[form] for form in ("month", "then_month", "iso", "dotted", "slashed"))


def _time_of(when: _Parts) -> time | None:
    """Return the time of day, midnight for a date alone; None: there is none."""
    has_day = _has_date(when) or bool(when["weekday"]) or (when["named"] or "").lower() == "tomorrow"
    if when["word"]:
        return time(12 if when["word"].lower() == "noon" else 0)
    if when["hour"] is None:
        return time(0) if has_day else None
    if when["hour"] == _DAYS_END and when["half"] is None:
        return time(0) if when["minute"] == "00" else None
    hour, minute = _hour(when["hour"], when["half"]), int(when["minute"] or 0)
    is_bare = when["half"] is None and when["minute"] is None  # a number alone is no time of day
    if hour is None or minute > 59 or (is_bare and not has_day):
        return None
    return time(hour, minute)


def _hour(digits: str, half: str | None) -> int | None:
    hour = int(digits)
    if half is None:
        return hour if hour <= 23 else None
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half[0] in "pP" else 0)


def _days(when: _Parts, today: date) -> Iterable[date]:
    if numbers := when["iso"] or when["dotted"] or when["slashed"]:
        first, second, third = map(int, re.split(r"\D", numbers))
        forms = [(first, second, third)] if when["iso"] else [(third, second, first)]
        if when["slashed"]:
            forms.append((third, first, second))
        for form in forms:
            with suppress(ValueError):  # not a month
                yield date(*form)
        return
    month = _MONTHS.index((when["month"] or when["then_month"]).lower()[:3]) + 1
    years = [int(when["year"])] if when["year"] else [today.year - 1, today.year, today.year + 1]
    for year in years:
        with suppress(ValueError):  # 29 February
            yield date(year, month, int(when["day"] or when["first_day"]))


def _candidates(days: Iterable[date], clock: time, there: tzinfo | None) -> Iterable[int]:
    """Yield that time on each day, twice where the clock is set back over it."""
    for day in days:
        for fold in (0, 1):
            yield _in_zone(datetime.combine(day, clock.replace(fold=fold)), there)


def _zone_of(when: _Parts | re.Match[str], own: str | None) -> tzinfo | None:
    """Return the zone that follows a time, if it is known, or else its own; None: this machine's."""
    bare = (when["bare"] or "").lstrip("(")
    is_known = bare.lower() in _ZONES or _OFFSET.fullmatch(bare) is not None
    return _zone(when["zone"]) or _zone(bare if is_known else None) or _zone(own)


def _zone(name: str | None) -> tzinfo | None:
    """Return the zone of that name; None: it is unknown."""
    if not name:
        return None
    name = _ZONES.get(name.lower(), name)
    if offset := _OFFSET.fullmatch(name):
        length = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        return timezone(length if offset["sign"] == "+" else -length) if length < timedelta(days=1) else None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _in_zone(moment: datetime, there: tzinfo | None) -> int:
    """Return epoch milliseconds. there None: this machine's zone."""
    return round(moment.replace(tzinfo=there).timestamp() * SECOND_MS)


@dataclass(frozen=True, slots=True)
class _Language:
    """How messages in a language say when a limit resets; see the file."""

    again: re.Pattern[str]
    units: Mapping[str, re.Pattern[str]]
    span: re.Pattern[str]
    at: re.Pattern[str]


_UNITS = {"days": "d", "hours": "h", "minutes": "m", "seconds": "s"}
_TIMES = r"(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?|\d{1,2}[:.h]\d\d(?!\d))"


@cache
def _languages() -> tuple[_Language, ...]:
    return tuple(
        _Language(
            again=regex(words["again"], re.IGNORECASE),
            units={
                letter: regex(rf"(?<=\d)\s*(?:{words[unit]})(?![a-z\u0430-\u044f])", re.IGNORECASE)
                for unit, letter in _UNITS.items()
            },
            span=regex(
                rf"(?:\b{words['in']}\s+)((?:\d+[dhms][\s,]*(?:\w\w?\w?\s+)?)+)"
                if words["in"]
                else rf"((?:\d+[dhms]\s*)+)(?:{words['after']})",
                re.IGNORECASE,
            ),
            at=regex(rf"(?:{words['at']})\s*{_TIMES}", re.IGNORECASE),
        )
        for words in toml_data(__package__, "limit_words.toml").values()
    )


def _in_english(text: str) -> str | None:
    """Return the reset in English, if the message says it in another language; None: it does not."""
    for language in _languages():
        if language.again.search(text) is None:
            continue
        short = text
        for letter, unit in language.units.items():
            short = unit.sub(letter, short)
        if (span := language.span.search(short)) is not None:
            return f"resets in {''.join(re.findall(r'[0-9]+[dhms]', span[1]))}"
        if (at := language.at.search(short)) is not None:
            return f"resets at {at[1] if '-' in at[1] else re.sub('[.h]', ':', at[1])}"
    return None
