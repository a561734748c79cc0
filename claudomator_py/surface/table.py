"""A table as columns of a shape, declared once for terminal and page alike.

    TOKENS = Table[TokenView](
        Column("NAME", lambda token: token.name, flexible=True),
        Column("CREATED", lambda token: ago(token.created_at)),
    )

Declare it in the ``cli.py`` of the resource, or beside its shape where the page shows it as well. A command writes rows
with ``cli.output.write_table``, or ``table_text`` for a part of what it writes; a page with the macro ``shape_table``.
A cell is a value: both know how to show texts, numbers and instants, and leave out a column that is empty.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from claudomator_py.values import dataclass

T = TypeVar("T")
MIN_FOLDED = 3
"""So many rows that say the same become one line."""


@dataclass(frozen=True, slots=True)
class Time:
    """An instant; whoever shows the table words it."""

    instant: str
    """RFC 3339, UTC."""
    show: Literal["ago", "for", "until", "at"]
    """Time elapsed since then, in a sentence or as a mere length; time left until then; or date and time."""


Cell = str | int | Time | None
"""Value of a cell; None: empty."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table with such rows."""

    title: str
    cell: Callable[[T], Cell]
    """Returns a row's cell."""
    flexible: bool = False
    """Whether cells may be cut when space is short."""
    least: int = 8
    """Minimum number of characters that a cell is cut to, as long as a column can be dropped instead."""
    spare: int = 0
    """Which column is dropped first where others would be cut to less than their ``least``: the one with the highest
    number; 0: none is."""
    wide: bool = False
    """Whether the column is shown only with ``-o wide``."""
    right: bool = False
    """Whether the column is aligned to the right, like numbers."""


class Table(Generic[T]):
    """A table's columns, in order."""

    def __init__(self, *columns: Column[T]) -> None:
        self.columns = columns


def ago(instant: str | None) -> Time | None:
    """Return a cell that shows how long ago it was; None without an instant."""
    return None if instant is None else Time(instant, "ago")


def age(instant: str | None) -> Time | None:
    """Return a cell that shows how old something is that is from then; None without an instant."""
    return None if instant is None else Time(instant, "for")


def until(instant: str | None) -> Time | None:
    """Return a cell that shows how long it is until then; None without an instant."""
    return None if instant is None else Time(instant, "until")


def at(instant: str | None) -> Time | None:
    """Return a cell that says date and time; None without an instant."""
    return None if instant is None else Time(instant, "at")


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """What says the same; one that stands by itself is alone in it. key: in which they are alike. unlisted: how many
    more there are that the list does not have."""

    rows: tuple[T, ...]
    key: Hashable = None
    unlisted: int = 0

    @property
    def size(self) -> int:
        """Return how many these are."""
        return len(self.rows) + self.unlisted


def folded(
    rows: Sequence[T], key: Callable[[T], Hashable], task_id: Callable[[T], str], unlisted: Mapping[str, int]
) -> tuple[Fold[T], ...]:
    """Return the rows in their order, those with an equal key together at the place of their first. key: None for what
    stands by itself. unlisted: how many more there are like one of these, by its id."""
    alike: dict[Hashable, list[T]] = {}
    for row in rows:
        same = key(row)
        alike.setdefault(task_id(row) if same is None else (same,), []).append(row)
    folds: list[Fold[T]] = []
    for found in alike.values():
        same = key(found[0])
        more = 0 if same is None else sum(unlisted.get(task_id(row), 0) for row in found)
        if len(found) + more < MIN_FOLDED:
            folds += [Fold((row,)) for row in found]
        else:
            folds.append(Fold(tuple(found), same, more))
    return tuple(folds)
