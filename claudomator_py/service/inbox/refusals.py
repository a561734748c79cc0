"""The refused files of all inboxes, as they can be asked for at any time, newest first and in parts."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from claudomator_py.core.problem import Problem

MOST_PROBLEMS = 50

Clean = Callable[[tuple[Problem, ...]], tuple[Problem, ...]]


def as_they_are(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Where nothing is known to be a secret."""
    return problems


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused file. number: rises with each refusal. path: of any bytes, as ``os.fsdecode`` gives them."""

    number: int
    path: str
    problems: tuple[Problem, ...]


class Refusals:
    """Why which file was refused. Every method may be called from any thread."""

    def __init__(self, clean: Clean = as_they_are) -> None:
        """clean: takes secrets out of what is said of a file, such as a value in the line that is wrong."""
        self.clean = clean
        self._lock = threading.Lock()
        self._refused: dict[str, Refusal] = {}  # in the order of their numbers
        self._last = 0

    def __len__(self) -> int:
        return len(self._refused)

    def put(self, path: str, problems: Sequence[Problem]) -> None:
        """The file is refused, for these reasons."""
        with self._lock:
            self._last += 1
            self._refused.pop(path, None)
            self._refused[path] = Refusal(self._last, path, tuple(problems))

    def drop(self, path: str) -> None:
        """The file is good or gone."""
        with self._lock:
            self._refused.pop(path, None)

    def clear(self) -> None:
        """Other folders are watched now."""
        with self._lock:
            self._refused.clear()

    def page(self, before: int | None = None, limit: int | None = None) -> list[Refusal]:
        """The refused files, the last one refused first. before: the number to go on behind; limit: so many at most."""
        with self._lock:
            found = (one for one in reversed(self._refused.values()) if before is None or one.number < before)
            return list(islice(found, limit))


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
