"""Quantities: durations as people write them, instants as RFC 3339, histograms of measurements. Internally, times are
whole milliseconds."""

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import sha1
from itertools import accumulate
from typing import Self

from claudomator_py.domain.errors import shown
from claudomator_py.values import dataclass, regex

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_SHORT_ID = 8
_UNIT_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_PART = regex(r"(\d{1,9})(ms|s|m|h|d)")
_DURATION = regex(r"(?:\d{1,9}(?:ms|s|m|h|d))+", re.ASCII)


@lru_cache(maxsize=256)
def parse_duration(text: str) -> int:
    """Return the milliseconds in a duration such as ``90s``, ``45m``, ``2h``, ``1d`` or ``1h30m``. Raises ValueError
    for anything else, including a bare number, whose unit would be a guess."""
    stripped = text.strip()
    if not _DURATION.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a duration; write a number and a unit, such as 90s, 45m, 2h or 1d")
    return sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(stripped))


@lru_cache(maxsize=256)
def format_duration(milliseconds: int) -> str:
    """Return the duration as ``parse_duration`` reads it, largest units first: 5400000 becomes ``1h30m``."""
    if milliseconds <= 0:
        return "0s"
    parts = []
    rest = milliseconds
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNIT_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_passing_instant(epoch_ms: int) -> str:
    """Return the same as ``format_instant``, without caching it: for an instant that is shown once, as in a log."""
    instant = datetime.fromtimestamp(epoch_ms / 1000, tz=UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def format_instant(epoch_ms: int) -> str:
    """Return the instant in RFC 3339, UTC, with milliseconds."""
    return format_passing_instant(epoch_ms)


def parse_instant(text: str) -> int:
    """Return the epoch milliseconds of an RFC 3339 instant. Raises ValueError."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND_MS)


_TIME_OF_DAY = regex(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_DURATION_LIKE = regex(r"[0-9]+[a-z][0-9a-z]*")


def past_instant(text: str, now_ms: int, zone: tzinfo | None = None) -> int:
    """Return the past time that ``22:00``, ``12h``, ``2026-11-27`` or ``2026-11-27T22:00`` means, in epoch
    milliseconds.

    A time of day is the last such time. zone: of times that name none; None is that of this process. Raises ValueError
    with a remedy.
    """
    stripped = text.strip()
    try:
        if (clock_time := _TIME_OF_DAY.fullmatch(stripped)) is not None:
            here = datetime.fromtimestamp(now_ms / SECOND_MS, zone)
            at = here.replace(hour=int(clock_time[1]), minute=int(clock_time[2]), second=0, microsecond=0)
            # Where clocks are set back, a time of day comes twice.
            twice = [(at - timedelta(days=days)).replace(fold=fold) for days in (0, 1) for fold in (0, 1)]
            at_ms = max(past for time in twice if (past := round(time.timestamp() * SECOND_MS)) <= now_ms)
        elif _DURATION_LIKE.fullmatch(stripped):
            at_ms = now_ms - parse_duration(stripped)
        else:
            at = datetime.fromisoformat(stripped)
            at_ms = round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * SECOND_MS)
    except (ValueError, OverflowError):
        at_ms = -1
    if at_ms < 0:
        raise ValueError(f"{stripped!r} is not a time; write 22:00, 12h, 2026-11-27 or 2026-11-27T22:00")
    return at_ms


_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def named_id(space: bytes, name: str) -> str:
    """Return the UUID that a name has in that namespace, as ``str(uuid.uuid5(...))`` in a third of its time."""
    digits = sha1(space + name.encode(), usedforsecurity=False).hexdigest()
    variant = _VARIANTS[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


_UNIT_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = regex(r"(\d{1,12}) ?(B|KiB|MiB|GiB|TiB|kB|MB|GB)", re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes in a size such as ``256MiB`` or ``1GB``. Raises ValueError for anything else, including a bare
    number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write a number and a unit, such as 512KiB, 256MiB or 2GiB")
    return int(match[1]) * _UNIT_BYTES[match[2]]


def format_size(count: int) -> str:
    """Return the exact size as ``parse_size`` reads it, in the largest binary unit that divides it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % _UNIT_BYTES[unit] == 0:
            return f"{count // _UNIT_BYTES[unit]}{unit}"
    return f"{count}B"


def size_text(count: int) -> str:
    """Return the approximate size for people, in the largest binary unit with a value of at least one: ``48.1 GiB``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count >= _UNIT_BYTES[unit]:
            return f"{count / _UNIT_BYTES[unit]:.1f} {unit}"
    return f"{count} B"


_WHOLE = regex(r"-?[0-9]{1,19}")
_DECIMAL = regex(r"-?[0-9]{1,19}(?:\.[0-9]{1,19})?")


def number_fault(text: str, *, whole: bool) -> tuple[str, str] | None:
    """Return what is wrong with the text of a number, and the remedy; None if it is valid.

    Only the digits 0 to 9 are accepted, with a decimal point unless it must be whole: the conversion functions would
    also accept ``1_0``, `` 10``, ``10.0`` as a whole number, ``1e3`` and digits of other scripts.
    """
    if (_WHOLE if whole else _DECIMAL).fullmatch(text):
        return None
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit():
        return f"has {len(text.removeprefix('-'))} digits", "write at most 19"
    kind, remedy = ("a whole number", "write digits only") if whole else ("a number", "write digits, such as 12 or 0.5")
    return f"is the text `{shown(text)}`, but must be {kind}", remedy


def unknown_zone(name: str) -> str:
    """Return the problem with a name that no time zone has."""
    return f"there is no time zone `{shown(name)}`"


def zone_remedy(name: str, known: Iterable[str]) -> str:
    """Return a remedy naming the intended zone if it can be guessed, from its full name or its city."""
    by_folded = {zone.casefold(): zone for zone in sorted(known)}
    folded = name[:100].casefold().replace(" ", "_")
    for zone in by_folded:
        if folded and zone.rpartition("/")[2] == folded:
            return f"did you mean `{by_folded[zone]}`?"
    nearest = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.85)
    return f"did you mean `{by_folded[nearest[0]]}`?" if nearest else "write a name such as Europe/Berlin or UTC"


def short_id(whole: str) -> str:
    """Return the start of the id of a task, run or decision, which is enough for people."""
    return whole[:_SHORT_ID]


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: ``1 commit``, ``2,000 repositories``, ``3 branches``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def are(number: int, noun: str) -> str:
    """Return the beginning of a clause: ``1 file is``, ``2 files are``."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'}"


def enumerated(names: Sequence[str]) -> str:
    """Return the names as a part of a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many observations were at or below each bound, and their sum.

    bounds: rising upper bounds, inclusive; counts: observations per bound, followed by those above all bounds.

    An observer replaces the whole value, so that a reader on another thread never sees a partial change.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> Self:
        """Return a histogram without observations."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def plus(self, value: float) -> Self:
        """Return the histogram with one more observation."""
        place = bisect_left(self.bounds, value)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return type(self)(self.bounds, counts, self.total + value)

    def merged(self, other: Self) -> Self:
        """Return the observations of both. Raises ValueError if the bounds differ."""
        if self.bounds != other.bounds:
            raise ValueError("histograms of different bounds cannot be merged")
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        return replace(self, counts=counts, total=self.total + other.total)

    def cumulative(self) -> list[tuple[float, int]]:
        """Return for each bound the number of observations at or below it; infinity comes last."""
        return list(zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True))
