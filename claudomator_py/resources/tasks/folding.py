"""Tasks of a list that say the same, so that they are one line of it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from claudomator_py.resources.tasks import TaskView
from claudomator_py.values import dataclass

MIN_FOLDED = 3
"""So many that say the same become one line."""
_SAID = {"WAITING": "wait", "QUEUED": "wait", "FAILED": "failed", "NEEDS_INPUT": "ask"}
"""What tasks in such a state are said to do, if several are one line."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """What says the same; one that stands by itself is alone in it. key: in which they are alike. unlisted: how many
    more there are that the list does not have."""

    rows: tuple[T, ...]
    key: Hashable = None
    unlisted: int = 0

    @property
    def size(self) -> int:
        """Return how many tasks these are."""
        return len(self.rows) + self.unlisted


def said_together(task: TaskView) -> str | None:
    """Return what a task is said to do where it is one of several with the same reason; None: it stands by itself, as
    a question does, to which there is an answer of its own."""
    return None if task.asks is not None and task.asks.kind == "question" else _SAID.get(task.state)


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
