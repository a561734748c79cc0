"""Read a limit's message: when the limit resets (an epoch, a clock time, a date, or a span of time), and which model it
applies to."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.values import regex

_EPOCH = regex(r"(?:\||\breset[a-z_-]*['\"]?\s*[:=])\s*['\"]?(\d{10}|\d{13})\b", re.IGNORECASE)
_AGAIN = r"(?:resets?(?: time)?|renews?|refresh(?:es)?|restored|continue|try again|retry|(?:available|back)(?: again)?)"
_LEAD = rf"(?:{_AGAIN}|until)(?:\s+(?:at|on|by|after|from|until|@))?:?\s+"
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
    r"|\s*(?P<bare>(?:UTC|GMT)(?:\s?[+-]\d{1,2}(?::?\d\d)?)?\b|[+-]\d\d:\d\d|[A-Z]{2,4}\b))?"
)
_SEPARATOR = r"(?:,?\s+at\s+|[,\s]+|(?=\W|\Z))"
_WHEN = regex(rf"{_LEAD}(?:{_NAMED_DAY}{_SEPARATOR})?(?:{_DATE}{_SEPARATOR})?(?:{_CLOCK}{_ZONE})?", re.IGNORECASE)
_OFFSET = regex(r"(?:UTC|GMT)?\s?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?", re.IGNORECASE)
_ZONES = {
    "utc": "UTC",
    "gmt": "UTC",
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
    "jst": "+09:00",
    "kst": "+09:00",
    "aest": "+10:00",
    "aedt": "+11:00",
}
"""Unambiguous abbreviations of zones, as an IANA name or an offset."""
_DAYS_END = "24"
"""The hour that ends a day, as in 24:00 (ISO 8601-1)."""
_ISO = regex(rf"{_LEAD}(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?){_ZONE}", re.IGNORECASE)
_UNIT = r"(?:ms|mo(?:nths?)?|milliseconds?|(?:s|m|h|d|w)|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?)"
_SPAN = regex(
    rf"(?:{_AGAIN}\s+(?:in|after)|\bwait(?:\s+for)?)\s+(?:about\s+|around\s+|approximately\s+|less\s+than\s+|~\s*)?"
    rf"(?P<span>(?:(?:[\d.]+|an?|one)\s*{_UNIT}\b[\s,]*(?:and\s+)?)+|[\d.]+[a-z][\d.a-z]*)",
    re.IGNORECASE,
)
_SPAN_PART = regex(rf"(\d{{1,9}}(?:\.\d{{1,6}})?|\b(?:an?|one)\b)\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_SECONDS = regex(
    r"\bretry[-_]?(?:after|delay)(?:[-_]seconds)?['\"]?\s*[:=]\s*['\"]?(\d{1,8}(?:\.\d{1,9})?)s?(?![\w:/-])",
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
    if span := _SPAN.search(text):
        return _after(span["span"], now_ms)
    if seconds := _SECONDS.search(text):
        return now_ms + round(float(seconds[1]) * SECOND_MS)
    if (iso := _ISO.search(text)) and (instant := _instant(iso[1], _zone_named(iso) or zone)) is not None:
        return instant
    resets = (_next(when, now_ms, zone) for when in _WHEN.finditer(text))
    return next((at for at in resets if at is not None), None)


def find_model(text: str) -> str | None:
    """Return the full name of the one model that the message says is limited; None: it names none."""
    match = _MODEL.search(text)
    if match is None:
        return None
    return "-".join((match["name"] or match["limited"] or match["whose"]).lower().split())


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
        total += (float(amount) if amount[0].isdigit() else 1.0) * size
    return now_ms + round(total) if 0 < total < 400 * DAY_MS else None


def _instant(text: str, zone: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(text.upper().replace(" ", "T"))
    except ValueError:
        return None
    return _in_zone(moment, _zone(zone)) if moment.tzinfo is None else round(moment.timestamp() * SECOND_MS)


def _next(when: re.Match[str], now_ms: int, zone: str | None) -> int | None:
    clock = _time_of(when)
    if clock is None:
        return None
    there = _zone(("UTC" if when["utc"] else _zone_named(when)) or zone)
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


def _has_date(when: re.Match[str]) -> bool:
    return any(when[form] for form in ("month", "then_month", "iso", "dotted", "slashed"))


def _time_of(when: re.Match[str]) -> time | None:
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


def _days(when: re.Match[str], today: date) -> Iterable[date]:
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


def _zone_named(when: re.Match[str]) -> str | None:
    """Return the zone that follows a time: any in parentheses, else only a known one."""
    bare = when["bare"]
    known = bare is not None and (bare.lower() in _ZONES or _OFFSET.fullmatch(bare) is not None)
    return when["zone"] or (bare if known else None)


def _zone(name: str | None) -> tzinfo | None:
    """Return the zone; None, and an unknown name: this machine's, where the message was printed."""
    if name is None:
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
