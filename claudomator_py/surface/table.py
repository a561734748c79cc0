"""A table as columns of a shape, declared once for terminal and page alike.

    TOKENS = Table[TokenView](
        Column("NAME", lambda token: token.name, flexible=True),
        Column("CREATED", lambda token: ago(token.created_at)),
    )

Declare it in the ``cli.py`` of the resource, or beside its shape where the page shows it as well. A command writes rows
with ``cli.output.write_table``, or ``table_text`` for a part of what it writes; a page with the macro ``shape_table``.
A cell is a value: both know how to show texts, numbers and instants, and leave out a column that is empty.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from claudomator_py.values import dataclass

T = TypeVar("T")
MIN_FOLDED = 3
"""Minimum number of rows that are folded into one line."""


@dataclass(frozen=True, slots=True)
class Time:
    """An instant, which the presentation turns into words."""

    instant: str
    """In RFC 3339, UTC."""
    show: Literal["ago", "for", "until", "at"]
    """Show the elapsed time, in a sentence or as a duration; the remaining time; or date and time."""


@dataclass(frozen=True, slots=True)
class Link:
    """Words, and the address of a page that they lead to; None: they are no link."""

    words: str
    url: str | None = None


Cell = str | int | Time | Link | None
"""Value of a cell; None for an empty cell."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table."""

    title: str
    cell: Callable[[T], Cell]
    """Returns a row's cell."""
    flexible: bool = False
    """Whether cells may be cut when space is short."""
    least: int = 8
    """Width below which a cell is not cut as long as a column can be dropped instead."""
    spare: int = 0
    """Order in which columns are dropped so that others keep their ``least`` width: the highest number first, 0
    never."""
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
    """Return a cell that shows the age of something from then; None without an instant."""
    return None if instant is None else Time(instant, "for")


def until(instant: str | None) -> Time | None:
    """Return a cell that shows the time left until then; None without an instant."""
    return None if instant is None else Time(instant, "until")


def at(instant: str | None) -> Time | None:
    """Return a cell that shows date and time; None without an instant."""
    return None if instant is None else Time(instant, "at")


def figure(value: float | None, form: str) -> str | None:
    """Return a number in a format of Python's, such as ``.2f``; None without one."""
    return None if value is None else format(value, form)


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """A line of a list."""

    rows: tuple[T, ...]
    """The folded rows, or a single row."""
    key: Hashable = None
    """What the rows have in common; None for a single row."""
    unlisted: int = 0
    """Number of further rows that the list does not contain."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.rows) + self.unlisted


def folded(
    rows: Sequence[T],
    key: Callable[[T], Hashable],
    task_id: Callable[[T], str],
    unlisted: Mapping[str, int],
    wider: Callable[[T], Hashable] = lambda _: None,
) -> tuple[Fold[T], ...]:
    """Return the rows in order, with those of an equal key folded at the position of the first.

    key: returns None for a row that cannot be folded. unlisted: number of further rows like a row, by its id. wider:
    key by which rows are folded of which too few have an equal key; None: not at all.
    """
    sizes: Counter[Hashable] = Counter()
    for row in rows:
        sizes[key(row)] += 1 + unlisted.get(task_id(row), 0)

    def key_of(row: T) -> Hashable:
        same = key(row)
        return same if sizes[same] >= MIN_FOLDED else wider(row) or same

    alike: dict[Hashable, list[T]] = {}
    for row in rows:
        same = key_of(row)
        alike.setdefault(task_id(row) if same is None else (same,), []).append(row)
    folds: list[Fold[T]] = []
    for group in alike.values():
        same = key_of(group[0])
        more = 0 if same is None else sum(unlisted.get(task_id(row), 0) for row in group)
        if len(group) + more < MIN_FOLDED:
            folds += [Fold((row,)) for row in group]
        else:
            folds.append(Fold(tuple(group), same, more))
    return tuple(folds)
