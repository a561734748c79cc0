"""Instants for tables: how long ago, how long until; and why a task waits, with local times."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import typer

from claudomator_py.domain.blocked_words import brief_of, wait_of
from claudomator_py.domain.units import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    parse_duration,
    parse_instant,
    past_instant,
)
from claudomator_py.domain.wording import worded
from claudomator_py.resources.tasks import TaskView
from claudomator_py.values import regex

_UTC_TIME = regex(r"(?:(?P<date>\d{4}-\d\d-\d\d) )?\b(?P<time>\d\d:\d\d) UTC\b")
_JUST_NOW_MS = 2 * SECOND_MS
_DATE_AFTER_MS = 30 * DAY_MS


def now_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def ago(instant: str | None, now: int) -> str:
    """Return how long ago, such as ``3m ago``, or the date if that is long; empty without an instant."""
    if instant is None:
        return ""
    passed = now - parse_instant(instant)
    if passed < _JUST_NOW_MS:  # slightly different clocks must not show the future
        return "just now"
    return f"{_here(instant):%Y-%m-%d}" if passed > _DATE_AFTER_MS else f"{short_duration(passed)} ago"


def age(instant: str, now: int) -> str:
    """Return how long ago as a length: ``3m``; the date when that is long."""
    passed = max(0, now - parse_instant(instant))
    return f"{_here(instant):%Y-%m-%d}" if passed > _DATE_AFTER_MS else short_duration(passed)


def until(instant: str | None, now: int) -> str:
    """Return how long until, such as ``in 3m``; ``now`` when it is due; empty without an instant."""
    if instant is None:
        return ""
    left = parse_instant(instant) - now
    if left <= 0:
        return "now"
    return f"{_here(instant):%Y-%m-%d}" if left > _DATE_AFTER_MS else f"in {short_duration(left)}"


def clock(instant: str | None, now: int) -> str:
    """Return the local time, such as ``14:20 CET``, with its date unless it is today; empty without an instant."""
    if instant is None:
        return ""
    at, today = _here(instant), datetime.fromtimestamp(now / 1_000).astimezone()
    return f"{at:%H:%M %Z}" if at.date() == today.date() else f"{at:%Y-%m-%d %H:%M %Z}"


def moment(instant: str | None) -> str:
    """Return the local date and time, such as ``2026-11-27 15:10:56 CET``; empty without an instant."""
    return "" if instant is None else f"{_here(instant):%Y-%m-%d %H:%M:%S %Z}"


def past_time(text: str) -> int:
    """Return the past time that an option gives, see ``units.past_instant``. Raises BadParameter."""
    try:
        return past_instant(text, now_ms())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def time_option(help_text: str, *flags: str, parser: Callable[[str], Any] = past_time) -> Any:
    """Return an option that takes a past time, in epoch milliseconds. flags: as for ``NamedThings.option``."""
    return typer.Option(*flags, parser=parser, metavar="TIME", help=help_text)


def duration_option(help_text: str, *flags: str) -> Any:
    """Return an option that takes a duration, in milliseconds. flags: as for ``NamedThings.option``."""
    return typer.Option(*flags, parser=_duration, metavar="DURATION", help=help_text)


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as bad:
        raise typer.BadParameter(str(bad)) from None


def localized(text: str, now: int) -> str:
    """Return the text with the daemon's times, ``14:20 UTC`` and ``2026-11-27 14:20 UTC``, converted to local time."""

    def worded_here(match: re.Match[str]) -> str:
        date = match["date"] or f"{datetime.fromtimestamp(now / 1_000, UTC):%Y-%m-%d}"
        try:
            return clock(f"{date}T{match['time']}:00Z", now)
        except ValueError:
            return match[0]

    return _UTC_TIME.sub(worded_here, text)


def _here(instant: str) -> datetime:
    return datetime.fromisoformat(instant).astimezone()


def short_duration(milliseconds: int) -> str:
    """Return the duration in its largest unit, hours with minutes: ``45s``, ``12m``, ``1h30m``, ``2d``."""
    if milliseconds < MINUTE_MS:
        return f"{milliseconds // SECOND_MS}s"
    if milliseconds < HOUR_MS:
        return f"{milliseconds // MINUTE_MS}m"
    if milliseconds < DAY_MS:
        hours, rest = divmod(milliseconds, HOUR_MS)
        return f"{hours}h{rest // MINUTE_MS:02d}m"
    return f"{milliseconds // DAY_MS}d"


def why_words(task: TaskView, now: int, *, whole: bool = True) -> str:
    """Return the reason and its meaning: ``limited: claude is limited (5h window, reported) until 14:20``.

    now: epoch milliseconds. whole: in full; else as a clause.
    """
    sentence = wait_of(task.blocked, task.reason_text) if whole else brief_of(task.blocked, task.reason_short)
    sentence_text = (
        localized(worded(sentence, lambda instant: clock(instant, now)), now) if sentence is not None else ""
    )
    return ": ".join(part for part in (task.reason, sentence_text) if part)
