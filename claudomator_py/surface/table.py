"""A table as columns of a shape, declared once for terminal and page alike.

    TOKENS = Table[TokenView](
        Column("NAME", lambda token: token.name, flexible=True),
        Column("CREATED", lambda token: ago(token.created_at)),
    )

Declare it in the ``cli.py`` of the resource, or in ``shape.py`` where the page shows it as well. A command writes rows
with ``cli.output.write_table``, or ``table_text`` for a part of what it writes; a page with the macro ``shape_table``.
A cell is a value: both know how to show texts, numbers and instants, and leave out a column that is empty.
"""

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from claudomator_py.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Time:
    """An instant, worded by whoever shows it."""

    instant: str
    """RFC 3339, UTC."""
    show: Literal["ago", "until", "at"]
    """How long ago it was, how long it is until then, or date and time."""


Cell = str | int | Time | None
"""What stands in a row; None: nothing."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table of such rows."""

    title: str
    cell: Callable[[T], Cell]
    """What a row has there."""
    flexible: bool = False
    """Whether it may be cut when space is short."""
    least: int = 8
    """To how many characters it may be cut."""
    spare: bool = False
    """Whether it is left out where the others would be cut to nothing."""
    wide: bool = False
    """Whether it is shown only with ``-o wide``."""
    right: bool = False
    """Whether it is aligned to the right, as numbers are."""


class Table(Generic[T]):
    """Columns, in their order."""

    def __init__(self, *columns: Column[T]) -> None:
        self.columns = columns


def ago(instant: str | None) -> Time | None:
    """Return a cell that says how long ago it was; None without an instant."""
    return None if instant is None else Time(instant, "ago")


def until(instant: str | None) -> Time | None:
    """Return a cell that says how long it is until then; None without an instant."""
    return None if instant is None else Time(instant, "until")


def at(instant: str | None) -> Time | None:
    """Return a cell that says date and time; None without an instant."""
    return None if instant is None else Time(instant, "at")
