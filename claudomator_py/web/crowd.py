"""The connections of one server, and which of them goes when there are too many.

Anyone on this machine can open connections and say nothing. So there is room for the latest comer as long as any
connection waits for its client: the one that has waited longest goes. What a client has asked for and may ask for is
never cut off for another one.
"""

import resource
from typing import Protocol

MOST = 512
_SHARE_OF_FILES = 4
"""Connections take at most this part of the files that the process may have open: runs need some, too."""


class Member(Protocol):
    """A connection, as the crowd sees it."""

    def may_go(self) -> bool:
        """Whether it waits for a client that has shown no credentials yet, or has nothing at hand."""
        ...

    def drop(self) -> None:
        """Close it at once."""
        ...


class Crowd:
    """All connections of a server. For one event loop.

    most: how many there may be. Up to half of them may have a request at hand before clients without credentials are
    refused, and up to three quarters before all are.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most if most is not None else _affordable()
        self._all: set[Member] = set()
        self._waiting: dict[Member, None] = {}

    def enter(self, member: Member) -> bool:
        """A new connection, which waits for its client. False if there is no room, whoever else goes."""
        self._all.add(member)
        self._waiting[member] = None
        if len(self._all) <= self.most or self.make_room(member):
            return True
        self.leave(member)
        return False

    def leave(self, member: Member) -> None:
        """It is closed."""
        self._all.discard(member)
        self._waiting.pop(member, None)

    def waits(self, member: Member) -> None:
        """It waits for its client; if it did already, its place in the order stays."""
        if member in self._all:
            self._waiting.setdefault(member)

    def works(self, member: Member) -> None:
        """It has a whole request at hand."""
        self._waiting.pop(member, None)

    def make_room(self, newcomer: Member | None = None) -> bool:
        """Drop the connection that has waited longest. False if there is none but the newcomer's."""
        for member in self._waiting:
            if member is not newcomer and member.may_go():
                self.leave(member)
                member.drop()
                return True
        return False

    @property
    def crowded(self) -> bool:
        """Whether only clients with credentials are served."""
        return 2 * self._at_hand > self.most

    @property
    def full(self) -> bool:
        """Whether nobody is served but who asks for health."""
        return 4 * self._at_hand > 3 * self.most

    @property
    def _at_hand(self) -> int:
        return len(self._all) - len(self._waiting)


def _affordable() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(1, min(MOST, files // _SHARE_OF_FILES))
