"""Fields of JSON objects that others have written: each is read as what it should be, or counts as missing. Standard
library only."""

from collections.abc import Mapping
from typing import Any, NoReturn

Event = Mapping[str, Any]
"""A JSON object, such as an event."""
MAX_COUNT = 2**53
"""The largest integer that JSON carries exactly everywhere."""
MAX_DEPTH = 200
"""Events nest a few levels, tool arguments some more. Deeper values would exhaust the stack of a recursive walk."""


def text_of(event: Event, key: str) -> str | None:
    """Return the field if it is a non-empty string."""
    value = event.get(key)
    return value if isinstance(value, str) and value else None


def count_of(event: Event, key: str) -> int | None:
    """Return the field if it is an integer from 0 to MAX_COUNT."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def amount_of(event: Event, key: str) -> float | None:
    """Return the field if it is a number from 0 to MAX_COUNT."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return float(value)


def event_of(event: Event, key: str) -> Event:
    """Return the field if it is an object, else an empty one."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def list_of(event: Event, key: str) -> list[Any]:
    """Return the field if it is a list, else an empty one."""
    value = event.get(key)
    return value if isinstance(value, list) else []


def objects_of(event: Event, key: str) -> list[dict[str, Any]]:
    """Return the objects in the field if it is a list, else none."""
    return [item for item in list_of(event, key) if isinstance(item, dict)]


def is_deep(value: Any) -> bool:
    """Return whether the value nests deeper than MAX_DEPTH."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python reads as JSON: for ``parse_constant``. Raises ValueError."""
    raise ValueError(f"{name} is not JSON")
