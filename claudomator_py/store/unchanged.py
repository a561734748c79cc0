"""What was read last, until something is written: nearly all that people look at says the same as a moment ago."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Connection

T = TypeVar("T")

COMMITS: Final = "commits"
"""Of a snapshot: how often something had been written before it was taken. It has at least that, so what it says holds
for as long as the number stays the same."""


class Unchanged:
    """What was read last for each of some keys, until something is written. Safe to use from any thread.

    A key says all that the answer depends on besides the rows, and whose rows they are above all.
    """

    def __init__(self, most: int = 64) -> None:
        """most: so many keys are kept."""
        self._most = most
        self._kept: tuple[int, dict[Hashable, Any]] = 0, {}

    def read(
        self, connection: Connection, key: Hashable, read: Callable[[], T], keeps: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Return what was read last under that key, if nothing has been written since, and what is read now otherwise.

        connection: the snapshot that is read, see ``Database.read``; any other keeps nothing. keeps: whether that is
        kept, and not too much.
        """
        commits = connection.info.get(COMMITS)
        if commits is None:
            return read()
        kept = self._kept
        if kept[0] == commits and key in kept[1]:
            return cast(T, kept[1][key])
        if kept[0] != commits or len(kept[1]) >= self._most:
            # A new one, and both in one step: whoever has the old one at hand goes on with that.
            kept = self._kept = commits, {}
        found = read()
        if keeps(found):
            kept[1][key] = found
        return found
