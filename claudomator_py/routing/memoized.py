"""What was found in the last few texts, which each step of a decision asks for again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

T = TypeVar("T")

_MAX_ENTRIES: Final = 64
_MAX_TEXT_LENGTH: Final = 20_000
"""Characters of a text that is kept: 64 of a million would be as much memory as the daemon has otherwise."""


def memoized(find: Callable[[str], T]) -> Callable[[str], T]:
    """Remember what is found in texts, but for very long ones."""
    known = lru_cache(maxsize=_MAX_ENTRIES)(find)

    @wraps(find)
    def found(text: str) -> T:
        return known(text) if len(text) <= _MAX_TEXT_LENGTH else find(text)

    return found
