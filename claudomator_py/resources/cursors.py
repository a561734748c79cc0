"""Cursors: where a list continues, in a form that only this service reads.
A cursor names the last item seen, so items inserted later shift nothing. Its checksum covers the list and its filters
too, and so detects a cursor that was changed, truncated or used on another list. It is not a secret: a position reveals
nothing.
"""

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from claudomator_py.domain.errors import BadCursor
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.store.reads import Position

T = TypeVar("T")

_CHECK_BYTES = 8
_MAX_NUMBER = 2**63

Listed = Mapping[str, Any]
"""A list: its name and its filters."""


def part(rows: Sequence[T], limit: int, behind: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """Return one page of a list, and the cursor after it if more follows.
    rows: one item more than limit, if there are as many. behind: returns the cursor after an item.
    """
    items = rows[:limit]
    return items, behind(items[-1]) if len(rows) > limit else None


def write(position: Position, wanted: TaskFilter) -> str:
    """Return the cursor after that task of that list."""
    return _written(position, _tasks(wanted))


def read(cursor: str, wanted: TaskFilter) -> Position:
    """Return the task. Raises BadCursor unless ``write`` returned the cursor for this list."""
    match _read(cursor, _tasks(wanted)):
        case [int(created_ms), str(task_id)] if 0 <= created_ms < _MAX_NUMBER and _is_id(task_id):
            return created_ms, task_id
    raise _bad()


def write_number(number: int, listed: Listed) -> str:
    """Return the cursor after the item with that number."""
    return _written((number,), listed)


def read_number(cursor: str, listed: Listed) -> int:
    """Return the item's number. Raises BadCursor unless ``write_number`` returned the cursor for this list."""
    match _read(cursor, listed):
        case [int(number)] if 0 <= number < _MAX_NUMBER:
            return number
    raise _bad()


def write_text(text: str, listed: Listed) -> str:
    """Return the cursor after the item with that text as its key."""
    return _written((text,), listed)


def read_text(cursor: str, listed: Listed) -> str:
    """Return the item's key. Raises BadCursor unless ``write_text`` returned the cursor for this list."""
    match _read(cursor, listed):
        case [str(text)] if "\0" not in text and text.isascii():
            return text
    raise _bad()


def write_time(at_ms: int, key: str, listed: Listed) -> str:
    """Return the cursor after the item with that time, in epoch milliseconds, and that key."""
    return _written((at_ms, key), listed)


def read_time(cursor: str, listed: Listed) -> Position:
    """Return the item's time and key. Raises BadCursor unless ``write_time`` returned the cursor for this list."""
    match _read(cursor, listed):
        case [int(at_ms), str(key)] if 0 <= at_ms < _MAX_NUMBER and "\0" not in key and key.isascii():
            return at_ms, key
    raise _bad()


def _tasks(wanted: TaskFilter) -> Listed:
    return {"list": "tasks", **wanted.model_dump(mode="json", exclude_none=True)}


def _written(position: Sequence[int | str], listed: Listed) -> str:
    payload = json.dumps(position, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(payload, listed) + payload).decode()


def _read(cursor: str, listed: Listed) -> object:
    try:
        payload = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)[_CHECK_BYTES:]
        position = json.loads(payload)
        if isinstance(position, list) and _written(position, listed) == cursor:
            return position
    except (ValueError, TypeError, RecursionError, binascii.Error):
        pass
    raise _bad()


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


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
