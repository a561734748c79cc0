"""How much one client may ask: token buckets for changes and for failed logins, and the size and pace of a request.

The defaults hinder nobody who works: a loop that submits a hundred tasks a second may run forever. They bound what a
program gone wild, or one that guesses tokens, takes of the daemon. Requests that only read are not counted.
"""

import ipaddress
import math
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from claudomator_py.api.problem import Refused
from claudomator_py.values import dataclass

MAX_REQUESTS = 512
MAX_SOCKETS = 2_000
_REQUESTS_SHARE = 4
_SOCKETS_SHARE = 8
"""Connections take at most such a part of the files that the process may have open: runs need some, too."""


class LimitedConnection(Protocol):
    """A connection, as far as its limit concerns it."""

    def may_go(self) -> bool:
        """Return whether it waits for a client that has shown no credentials yet, or has nothing at hand."""
        ...

    def drop(self) -> None:
        """Close it at once."""
        ...


class ConnectionLimit:
    """How many connections a server has, and which go first when there are too many. For one event loop.

    most: how many there may be. Up to half of them may have a request at hand before clients without credentials are
    refused, and up to three quarters before all are.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most if most is not None else _affordable(MAX_REQUESTS, _REQUESTS_SHARE)
        self._all: set[LimitedConnection] = set()
        self._waiting: dict[LimitedConnection, None] = {}

    def enter(self, member: LimitedConnection) -> bool:
        """Return a new connection, which waits for its client. False if there is no room, whoever else goes."""
        self._all.add(member)
        self._waiting[member] = None
        if len(self._all) <= self.most or self.make_room(member):
            return True
        self.leave(member)
        return False

    def leave(self, member: LimitedConnection) -> None:
        """Note that it is closed."""
        self._all.discard(member)
        self._waiting.pop(member, None)

    def waits(self, member: LimitedConnection) -> None:
        """Note that it waits for its client; if it did already, its place in the order stays."""
        if member in self._all:
            self._waiting.setdefault(member)

    def spoke(self, member: LimitedConnection) -> None:
        """Put it behind the others that wait: they have been silent for longer."""
        if member in self._waiting:
            del self._waiting[member]
            self._waiting[member] = None

    def works(self, member: LimitedConnection) -> None:
        """Note that it has a whole request at hand, or is kept for another reason."""
        self._waiting.pop(member, None)

    def make_room(self, newcomer: LimitedConnection | None = None) -> bool:
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


def socket_limit() -> ConnectionLimit:
    """Return the limit of WebSockets, which stay: beside that of requests, so that neither takes the other's files."""
    return ConnectionLimit(_affordable(MAX_SOCKETS, _SOCKETS_SHARE))


def _affordable(most: int, share: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else max(1, min(most, files // share))


_IPV6_NETWORK = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """per_second: how many in the long run; burst: how many at once after a pause."""

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
    """How many are told apart."""
    target_bytes: int = 8_192
    """Of path and query."""
    body_s: float = 30.0
    """Seconds until a body must be there."""
    login_body_s: float = 5.0
    """The same for clients without credentials."""


class TokenBucket:
    """A token bucket, full at first."""

    __slots__ = ("_clock", "_level", "_rate", "_since")

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._rate = rate
        self._clock = clock
        self._level = float(rate.burst)
        self._since = clock()

    def take(self, count: int = 1) -> float:
        """Take so many tokens; 0, or the seconds until there are as many, and then none was taken."""
        now = self._clock()
        self._level = min(self._rate.burst, self._level + (now - self._since) * self._rate.per_second)
        self._since = now
        missing = max(0.0, count - self._level)
        self._level -= 0 if missing else count
        return missing / self._rate.per_second


class Buckets:
    """One token bucket for each client. Of very many, those not asked for longest are forgotten."""

    def __init__(self, rate: Rate, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._rate = rate
        self._most = most
        self._clock = clock
        self._of: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, client: str) -> float:
        """Take a token; 0, or the seconds until there is one, and then none was taken."""
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
        """Count that a known client changes something. Raises Refused."""
        if wait := self._changes.take(client):
            raise _too_many("This client sends changes faster than the daemon can apply them.", wait)

    def failure(self, client: tuple[str, int] | None) -> None:
        """Count that a token or code that is wrong came from that address. Raises Refused if many did.

        To be called only when it was found to be wrong: the right one passes however many wrong ones come from the same
        address, which all users of this machine share. They are too long to be guessed; the answer costs less.
        """
        if client is None:
            return  # over the Unix socket, which no other user can reach; nor does it wait for what others do over TCP
        if wait := self._failures.take(_network(client[0])):
            raise _too_many("Too many failed logins from this address.", wait)

    def check_target(self, raw_path: bytes, query: bytes) -> None:
        """Raise Refused for a path and query that are too long."""
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
    """What one client has at its command: an IPv4 address, a network of IPv6 addresses."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, _IPV6_NETWORK), strict=False)) if known.version == 6 else address
