"""The refused files of all inboxes, as they can be asked for at any time, by path and in parts."""

import heapq
import os
import threading
from collections.abc import Sequence

from claudomator_py.core.problem import Problem

MOST_PROBLEMS = 50

Refusal = tuple[str, tuple[Problem, ...]]


class Refusals:
    """Why which file was refused. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problems: dict[str, tuple[Problem, ...]] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def put(self, path: str, problems: Sequence[Problem]) -> None:
        """The file is refused, for these reasons."""
        with self._lock:
            self._problems[path] = tuple(problems)

    def drop(self, path: str) -> None:
        """The file is good or gone."""
        with self._lock:
            self._problems.pop(path, None)

    def page(self, after: str | None = None, limit: int | None = None) -> list[Refusal]:
        """The refused files in the order of their paths. after: the path to go on behind; limit: so many at most.

        Paths may hold any bytes, as ``os.fsdecode`` gives them; see ``readable``.
        """
        with self._lock:
            paths = [path for path in self._problems if after is None or path > after]
            chosen = sorted(paths) if limit is None else heapq.nsmallest(limit, paths)
            return [(path, self._problems[path]) for path in chosen]


def shortened(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """As many of the problems as are kept, and how many more there are."""
    if len(problems) <= MOST_PROBLEMS:
        return tuple(problems)
    more = len(problems) - MOST_PROBLEMS
    rest = Problem(message=f"and {more} more problems", remedy="correct these first")
    return (*problems[:MOST_PROBLEMS], rest)


def readable(path: str) -> str:
    """The path as it can be shown and sent, whatever bytes are in it."""
    return os.fsencode(path).decode(errors="backslashreplace")
