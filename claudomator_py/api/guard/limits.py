"""How much a client may ask for: token buckets for changes and failed logins, and the size and pace of a request.

The defaults do not hinder normal use: a loop that submits a hundred tasks a second may run forever. They bound what a
runaway program, or one that guesses tokens, costs the daemon. Read requests are not counted.
"""

import ipaddress
import math
import resource
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol

from claudomator_py.api.problem import Refused
from claudomator_py.values import dataclass

MAX_REQUESTS = 512
MAX_SOCKETS = 2_000
_REQUESTS_SHARE = 4
_SOCKETS_SHARE = 8
"""Connections take at most one such part of the process's open files, as runs need some too."""


MAX_UNFINISHED_BYTES = 16 * 1024 * 1024
"""Bytes of one principal's bodies and messages that have begun to arrive and are incomplete."""
MAX_ALL_UNFINISHED_BYTES = 64 * 1024 * 1024
MAX_UNFINISHED_BYTES_THEN = 2 * 1024 * 1024
"""The same for one principal once all together have ``MAX_ALL_UNFINISHED_BYTES``."""


class UnfinishedInput:
    """Counts the bytes of incomplete bodies and messages that are held in memory. For one event loop."""

    def __init__(self) -> None:
        self._held: Counter[Hashable] = Counter()

    def add(self, whose: Hashable, size: int) -> bool:
        """Count so many more bytes of that client; negative: fewer. False if that is more than it may have, though
        they are counted."""
        self._held[whose] += size
        if not self._held[whose]:
            del self._held[whose]
        full = self._held.total() > MAX_ALL_UNFINISHED_BYTES
        return size <= 0 or self._held[whose] <= (MAX_UNFINISHED_BYTES_THEN if full else MAX_UNFINISHED_BYTES)


class LimitedConnection(Protocol):
    """A connection, as far as its limit is concerned."""

    def may_go(self) -> bool:
        """Return whether it may be closed: its client has shown no credentials, or no request is pending."""
        ...

    def drop(self) -> None:
        """Close it at once."""
        ...


class ConnectionLimit:
    """How many connections a server has, and which are closed first when there are too many. For one event loop.

    most: the maximum. When more than half of it have a pending request, clients without credentials are refused; when
    more than three quarters have one, all are.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most if most is not None else _affordable(MAX_REQUESTS, _REQUESTS_SHARE)
        self._all: set[LimitedConnection] = set()
        self._waiting: dict[LimitedConnection, None] = {}

    def enter(self, member: LimitedConnection) -> bool:
        """Add a new connection, which waits for its client. False if there is no room for it."""
        self._all.add(member)
        self._waiting[member] = None
        if len(self._all) <= self.most or self.make_room(member):
            return True
        self.leave(member)
        return False

    def leave(self, member: LimitedConnection) -> None:
        """Note that a connection is closed."""
        self._all.discard(member)
        self._waiting.pop(member, None)

    def waits(self, member: LimitedConnection) -> None:
        """Note that a connection waits for its client; if it did already, it keeps its place in the order."""
        if member in self._all:
            self._waiting.setdefault(member)

    def spoke(self, member: LimitedConnection) -> None:
        """Move a waiting connection to the end of the order: the others have been silent for longer."""
        if member in self._waiting:
            del self._waiting[member]
            self._waiting[member] = None

    def works(self, member: LimitedConnection) -> None:
        """Note that a connection has a complete request, or is kept for another reason."""
        self._waiting.pop(member, None)

    def make_room(self, newcomer: LimitedConnection | None = None) -> bool:
        """Drop the connection that has waited longest. False if there is none but the newcomer."""
        for member in self._waiting:
            if member is not newcomer and member.may_go():
                self.leave(member)
                member.drop()
                return True
        return False

    @property
    def crowded(self) -> bool:
        """Whether clients without credentials are refused."""
        return 2 * self._at_hand > self.most

    @property
    def full(self) -> bool:
        """Whether everything but health checks is refused."""
        return 4 * self._at_hand > 3 * self.most

    @property
    def _at_hand(self) -> int:
        return len(self._all) - len(self._waiting)


def socket_limit() -> ConnectionLimit:
    """Return the limit of WebSockets. They last, so they have a limit of their own beside that of requests."""
    return ConnectionLimit(_affordable(MAX_SOCKETS, _SOCKETS_SHARE))


def _affordable(most: int, share: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else max(1, min(most, files // share))


_IPV6_NETWORK = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """per_second: the long-term rate. burst: how many at once after a pause."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How much clients may ask for."""

    changes: Rate = Rate(200, 2_000)
    """Requests of one client that change something."""
    failures: Rate = Rate(5, 200)
    """Failed logins from one address."""
    clients: int = 4_096
    """How many clients are tracked."""
    target_bytes: int = 8_192
    """Length of path and query."""
    body_s: float = 30.0
    """Seconds that a body may take."""
    login_body_s: float = 5.0
    """The same for clients without credentials."""


class TokenBucket:
    """A token bucket, initially full."""

    __slots__ = ("_clock", "_level", "_rate", "_since")

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._rate = rate
        self._clock = clock
        self._level = float(rate.burst)
        self._since = clock()

    def take(self, count: int = 1) -> float:
        """Take tokens and return 0, or take none and return the seconds until there are enough."""
        now = self._clock()
        self._level = min(self._rate.burst, self._level + (now - self._since) * self._rate.per_second)
        self._since = now
        missing = max(0.0, count - self._level)
        self._level -= 0 if missing else count
        return missing / self._rate.per_second


class Buckets:
    """A token bucket for each client. Beyond the maximum, the one used least recently is dropped."""

    def __init__(self, rate: Rate, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._rate = rate
        self._most = most
        self._clock = clock
        self._of: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, client: str) -> float:
        """Take a token and return 0, or take none and return the seconds until there is one."""
        bucket = self._of.pop(client, None) or TokenBucket(self._rate, self._clock)
        self._of[client] = bucket
        if len(self._of) > self._most:
            self._of.popitem(last=False)
        return bucket.take()


class Throttle:
    """Refuses clients that ask for too much. For one event loop."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._changes = Buckets(limits.changes, limits.clients)
        self._failures = Buckets(limits.failures, limits.clients)

    def change(self, client: str) -> None:
        """Count a change by a known client. Raises Refused."""
        if wait := self._changes.take(client):
            raise _too_many("This client sends changes faster than the daemon can apply them.", wait)

    def failure(self, client: tuple[str, int] | None) -> None:
        """Count a wrong token or code from that address. Raises Refused after too many.

        Call it only for wrong ones: the right token passes however many wrong ones come from its address, which all
        users of this machine share. Tokens are too long to be guessed; this bounds the cost of the attempts.
        """
        if client is None:
            return  # the Unix socket, which no other user can reach, and which TCP clients must not slow down
        if wait := self._failures.take(_network(client[0])):
            raise _too_many("Too many failed logins from this address.", wait)

    def check_target(self, raw_path: bytes, query: bytes) -> None:
        """Raise Refused if path and query are too long."""
        if len(raw_path) + len(query) > self._limits.target_bytes:
            raise Refused(
                414,
                "uri_too_long",
                f"Path and query are longer than {self._limits.target_bytes} bytes.",
                "Refer to a task by its id; no filter needs to be that long.",
                headers={"Connection": "close"},
            )


def _too_many(detail: str, wait_s: float) -> Refused:
    seconds = max(1, math.ceil(wait_s))
    pause = "a second" if seconds == 1 else f"{seconds} seconds"
    return Refused(
        429, "too_many_requests", detail, f"Send it again after {pause}.", headers={"Retry-After": str(seconds)}
    )


def _network(address: str) -> str:
    """Return what one client may control: an IPv4 address, or a /64 network of IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, _IPV6_NETWORK), strict=False)) if known.version == 6 else address
