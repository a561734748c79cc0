"""A part of a list."""

from typing import Generic, TypeVar

from claudomator_py.core.view import View

T = TypeVar("T")


class Page(View, Generic[T]):
    """A part of a list. next_cursor: pass it as ``cursor`` for the next part; None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None
