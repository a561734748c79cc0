"""Cursors: where a list continues, in a form that only this service reads.
A cursor names the last item seen, so items inserted later shift nothing. Its checksum covers the list and its filters
too, and so detects a cursor that was changed, truncated or used on another list. It is not a secret: a position reveals
nothing.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from claudomator_py.domain.errors import BadCursor
from claudomator_py.domain.shape import Page
from claudomator_py.store.reads import Position

T = TypeVar("T")
V = TypeVar("V")

_CHECK_BYTES = 8
_MAX_NUMBER = 2**63

Listed = Mapping[str, Any]
"""A list: its name and its filters."""


def part(
    rows: Sequence[T], limit: int, listed: Listed, position: Callable[[T], Sequence[int | str]]
) -> tuple[Sequence[T], str | None]:
    """Return one page of a list, and the cursor after it if more follows.
    rows: one item more than limit, if there are as many. position: returns what the list is ordered by, of an item.
    """
    items = rows[:limit]
    return items, write(position(items[-1]), listed) if len(rows) > limit else None


def page(
    rows: Sequence[T],
    limit: int,
    listed: Listed,
    position: Callable[[T], Sequence[int | str]],
    shown: Callable[[Sequence[T]], Iterable[V]],
) -> Page[V]:
    """Return one page of a list, as ``part``. shown: returns the shapes of its rows."""
    items, following = part(rows, limit, listed, position)
    return Page(items=tuple(shown(items)), next_cursor=following)


def write(position: Sequence[int | str], listed: Listed) -> str:
    """Return the cursor after the item at that position."""
    payload = json.dumps(position, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(payload, listed) + payload).decode()


def read_number(cursor: str | None, listed: Listed) -> int | None:
    """Return the number in the cursor; None without one. Raises BadCursor unless it was written for this list."""
    match _read(cursor, listed):
        case [int(number)]:
            return number
        case None:
            return None
    raise _bad()


def read_text(cursor: str | None, listed: Listed) -> str | None:
    """Return the text in the cursor; see ``read_number``."""
    match _read(cursor, listed):
        case [str(text)]:
            return text
        case None:
            return None
    raise _bad()


def read_time(cursor: str | None, listed: Listed) -> Position | None:
    """Return the time, in epoch milliseconds, and the key in the cursor; see ``read_number``."""
    match _read(cursor, listed):
        case [int(at_ms), str(key)]:
            return at_ms, key
        case None:
            return None
    raise _bad()


def _read(cursor: str | None, listed: Listed) -> Sequence[int | str] | None:
    if cursor is None:
        return None
    try:
        payload = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)[_CHECK_BYTES:]
        position = json.loads(payload)
        if isinstance(position, list) and all(map(_is_sound, position)) and write(position, listed) == cursor:
            return position
    except (ValueError, TypeError, RecursionError, binascii.Error):
        pass
    raise _bad()


def _is_sound(part: object) -> bool:
    """Return whether it is a number or a text as ``write`` gets them; a cursor may be forged."""
    if isinstance(part, str):
        return "\0" not in part and part.isascii()
    return isinstance(part, int) and 0 <= part < _MAX_NUMBER


def _bad() -> BadCursor:
    return BadCursor(
        "The cursor does not belong to this list with these filters.",
        remedy="Send next_cursor as it was given, with the same filters, or start again without a cursor.",
    )


def _check(payload: bytes, listed: Listed) -> bytes:
    filters = json.dumps(dict(listed), sort_keys=True).encode()
    digest = hashlib.blake2b(digest_size=_CHECK_BYTES)
    digest.update(len(filters).to_bytes(8, "big") + filters + payload)
    return digest.digest()
