"""What the words of a limit's message say: when it resets (an epoch, a clock time, a date, or a span of time), and of
which model it is."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_EPOCH = re.compile(r"\|\s*(\d{10}|\d{13})\b")
_LEAD = r"(?:resets?|reset at|try again|retry|available again)(?:\s+(?:at|on|by))?\s+"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = (
    rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<year>20\d\d))?(?:,|\s+at)?\s+"
)
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap]\.?m\b\.?)?(?P<utc>Z\b)?"
_ZONE = r"(?:\s*\((?P<zone>[A-Za-z][\w+\-]*(?:/[\w+\-]+)*)\))?"
_WHEN = re.compile(rf"{_LEAD}(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?(?:{_DATE})?{_CLOCK}{_ZONE}", re.IGNORECASE)
_ISO = re.compile(rf"{_LEAD}(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)", re.IGNORECASE)
_SPAN = re.compile(
    r"(?:resets?|try again|retry|available again)\s+(?:in|after)\s+(?P<span>(?:[\d.]+\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_SPAN_PART = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)", re.IGNORECASE)
_NAME = r"[a-z]\w*(?:[.:/-]+\w+)*"
_MODEL = re.compile(
    r"\b(?:model['\"]?\s*[:=]\s*|limit (?:reached |exceeded )?(?:for|on) (?:the )?(?:model )?)[`'\"]?"
    rf"(?P<name>(?=[\w.:/]*[\d-]){_NAME})"
    rf"|\byour (?P<limited>(?=[\w.:/-]*\d){_NAME}) (?:\w+ )?limit\b",
    re.IGNORECASE,
)
"""``usage limit for gpt-6-codex``, ``your gpt-6-codex limit``, or the dimension of a quota, ``model: gemini-3-pro``:
a name with a number or a hyphen, which words such as "today" have not."""
_SPAN_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


def find_reset(text: str, now_ms: int, zone: str | None = None) -> int | None:
    """Return the reset time that the message gives, in epoch milliseconds; None if it gives none.

    now_ms: when the message was printed. zone: IANA name of the zone of a time that does not name its own; None: this
    machine's. A clock time without a date is the next such time there, the minute that is just passing included; a date
    without a year is the one nearest to now.
    """
    if epoch := _EPOCH.search(text):
        return epoch_ms(int(epoch[1]))
    if span := _SPAN.search(text):
        return _after(span["span"], now_ms)
    if iso := _ISO.search(text):
        return _instant(iso[1], zone)
    if when := _WHEN.search(text):
        return _next(when, now_ms, zone)
    return None


def find_model(text: str) -> str | None:
    """Return the one model, by its full name, that the message says is limited; None: it names none."""
    found = _MODEL.search(text)
    return (found["name"] or found["limited"]).lower() if found is not None else None


def epoch_ms(seconds: object) -> int | None:
    """Return a reset time given in epoch seconds (or, by its size, in milliseconds); None if it cannot be one."""
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
        total += float(amount) * size
    return now_ms + round(total) if 0 < total < 400 * DAY_MS else None


def _instant(text: str, zone: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(text.upper().replace(" ", "T"))
    except ValueError:
        return None
    return _in_zone(moment, _zone(zone)) if moment.tzinfo is None else round(moment.timestamp() * SECOND_MS)


def _next(when: re.Match[str], now_ms: int, zone: str | None) -> int | None:
    hour = _hour(when["hour"], when["half"])
    minute = int(when["minute"] or 0)
    if hour is None or minute > 59:
        return None
    there = UTC if when["utc"] else _zone(when["zone"] or zone)
    today = datetime.fromtimestamp(now_ms / SECOND_MS, tz=UTC).astimezone(there).date()
    if when["month"] is not None:
        days = _days(when, today)
        return min(_candidates(days, hour, minute, there), key=lambda at: abs(at - now_ms), default=None)
    if when["half"] is None and when["minute"] is None:
        return None  # a bare number is no time of day
    near = [today + timedelta(days=offset) for offset in (-1, 0, 1, 2)]
    return min((at for at in _candidates(near, hour, minute, there) if at + MINUTE_MS > now_ms), default=None)


def _hour(digits: str, half: str | None) -> int | None:
    hour = int(digits)
    if half is None:
        return hour if hour <= 23 else None
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half[0] in "pP" else 0)


def _days(when: re.Match[str], today: date) -> Iterable[date]:
    month = _MONTHS.index(when["month"].lower()) + 1
    years = [int(when["year"])] if when["year"] else [today.year - 1, today.year, today.year + 1]
    for year in years:
        try:
            yield date(year, month, int(when["day"]))
        except ValueError:
            continue  # 29 February


def _candidates(days: Iterable[date], hour: int, minute: int, there: tzinfo | None) -> Iterable[int]:
    """On each day; twice where the clock is set back over this time."""
    for day in days:
        for fold in (0, 1):
            yield _in_zone(datetime.combine(day, time(hour, minute, fold=fold)), there)


def _zone(name: str | None) -> tzinfo | None:
    """None: this machine's. A name that is not known is taken for it, as that is where the message was printed."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _in_zone(moment: datetime, there: tzinfo | None) -> int:
    """A moment there (None: this machine) in epoch milliseconds."""
    return round(moment.replace(tzinfo=there).timestamp() * SECOND_MS)
