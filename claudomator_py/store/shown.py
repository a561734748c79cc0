"""Columns whose values people may see: whatever is written to them is written without secrets.

This is where all that happens comes together on its way into the store, so that no writer of an event or a hold can
forget it. What a run needs as it was given, such as a task's content, is in columns of another type.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Dialect, String, TypeDecorator

from claudomator_py.domain.redaction import Redactor, clean
from claudomator_py.store.stored_json import StoredJson

Clean = Callable[[Any], Any]

_SHAPES = Redactor()
_clean: ContextVar[Clean] = ContextVar("clean", default=lambda value: clean(value, _SHAPES))


class ShownText(TypeDecorator[str]):
    """Text, stored without secrets."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text without secrets."""
        return None if value is None else _clean.get()(value)


class ShownJson(StoredJson):
    """JSON, stored without secrets."""

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """The value without secrets."""
        return None if value is None else _clean.get()(value)


def cleaned(text: str) -> str:
    """The text as such a column would hold it; inside a write, where it is to be shortened."""
    found: str = _clean.get()(text)
    return found


@contextmanager
def cleaned_with(known: Clean) -> Iterator[None]:
    """While the block lasts, what this thread writes is cleaned with that. known: the value, without any secret."""
    token = _clean.set(known)
    try:
        yield
    finally:
        _clean.reset(token)
