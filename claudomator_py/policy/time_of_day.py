"""What a condition asks of the present: ``now`` is a group of values, and no timestamp with functions.

The language has ``timestamp(TEXT).getHours()`` and its like, so people write ``now.getHours()``; and other systems have
``now.month``. Each of them has something here that stands for it.
"""

import re
from collections.abc import Iterator
from typing import Final

_CLOCK: Final = {"hour": "write `now.hour`, from 0 to 23", "minute": "write `now.minute`, from 0 to 59"}
_WEEKDAY: Final = "write `now.weekday`, which is 1 on Monday and 7 on Sunday"
_DATE: Final = 'write `now.date`, a text, as in now.date >= "2026-12-24" or now.date.startsWith("2026-12")'
_FINER: Final = "rules know the time to the minute: write `now.minute`, or leave it out"
_ANY: Final = "write `now.hour`, `now.minute`, `now.weekday` or `now.date`"
_INSTEAD: Final = {
    **_CLOCK,
    **dict.fromkeys(("dayofweek", "weekday", "day_of_week", "isoweekday"), _WEEKDAY),
    **dict.fromkeys(("date", "day", "dayofmonth", "dayofyear", "month", "year", "fullyear", "today"), _DATE),
    **dict.fromkeys(("second", "millisecond", "microsecond", "nanosecond"), _FINER),
}
_OF_TEXTS: Final = frozenset({"contains", "endsWith", "matches", "size", "startsWith"})
_METHOD: Final = re.compile(r"(?<![\w.])now((?:\s*\.\s*[A-Za-z_]\w*)*?)\s*\.\s*([A-Za-z_]\w*)\s*\(")
_FUNCTION: Final = re.compile(
    r"(?<![\w.])(?:(timestamp|duration|get[A-Z]\w*)\s*\(\s*now\b|(int|double|string)\s*\(\s*now\b(?!\s*[.\[]))"
)
_NOW: Final = r"(?<![\w.])now\b(?!\s*[.\[(])"
_OPERATOR: Final = r"(?:[<>=!]=|[<>+-])"
_AS_INSTANT: Final = re.compile(rf"{_NOW}\s*{_OPERATOR}|{_OPERATOR}\s*{_NOW}|(?<![\w.])now\s*\(")


def instead_of(name: str) -> str | None:
    """Return what to write for a name that is not here, as in ``now.month``, ``getHours`` or ``hour`` alone."""
    return _INSTEAD.get(name.lower().removeprefix("get").removesuffix("s"))


def misuses(code: str) -> Iterator[tuple[str, str]]:
    """Yield where the condition takes ``now`` for a timestamp, with the remedy. code: without texts and comments."""
    for found in _METHOD.finditer(code):
        members, name = "".join(found[1].split()), found[2]
        if name not in _OF_TEXTS:
            yield f"calls `now{members}.{name}()`, but `now` is no timestamp", instead_of(name) or _ANY
    for found in _FUNCTION.finditer(code):
        name = found[1] or found[2]
        yield f"calls `{name}()` with `now`, which is no timestamp", instead_of(name) or _ANY
    if _AS_INSTANT.search(code):
        yield "takes `now` for a timestamp, but it is a group of values", _ANY
