"""How much of the daemon's processor the holders of tokens may use, whatever they ask for and over however many
connections: a share for each principal, and a share for all of them together. The operator never waits.

Requests beyond a share are not refused, they wait: nothing more is read from those connections until it is their turn.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final, TypeVar

from claudomator_py.api.guard.limits import UnfinishedInput
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CpuShare:
    """A share of one processor. of_one: in the long run. burst_s: seconds at once after a pause."""

    of_one: float
    burst_s: float


ONE_PRINCIPAL: Final = CpuShare(0.15, 0.5)
ALL_PRINCIPALS: Final = CpuShare(0.3, 0.75)
MAX_WAITING: Final = 32
"""Waiting requests of one principal; each occupies one of the server's connections."""
MAX_ALL_WAITING: Final = 128
MAX_WAITING_THEN: Final = 4
"""Waiting requests of one principal once all together have ``MAX_ALL_WAITING``."""
_CALL_S: Final = 0.005
"""The expected cost of a call."""
_REQUEST_S: Final = 0.0015
"""The cost of reading any request and sending its answer."""
_DESK_S: Final = 0.1
MAX_AHEAD_S: Final = 0.25
"""How long an answer to the operator keeps others from beginning. Longer ones are waiting for something themselves."""
MAX_BEHIND_S: Final = 0.1
"""How long others wait for the operator at a time; then as much time is theirs."""
_MAX_STRAIN: Final = 4.0
_STRAIN_MEMORY: Final = 0.98
_MAX_COMMON_DEBT_S: Final = 0.5
"""The most that all together can owe, so that nobody waits long for another's unexpected cost. The principal that
caused it owes it all."""


class PrincipalBusy(Exception):
    """Too many requests of the principal are waiting."""


@contextmanager
def _once(leave: Callable[[], None], patience_s: float) -> Iterator[Callable[[], None]]:
    """Call ``leave`` once: when the yielded function is called, after that time, or else at the end of the context."""
    pending = [leave]

    def leave_once() -> None:
        if pending:
            pending.pop()()

    timer = asyncio.get_running_loop().call_later(patience_s, leave_once)
    try:
        yield leave_once
    finally:
        timer.cancel()
        leave_once()


class ComputeQueue:
    """Serves one request at a time beside the loop, as several computing threads would each delay the loop.

    Nobody begins while the operator waits for an answer, except now and then: see ``behind``.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._ahead = 0
        self._clear = asyncio.Event()
        self._clear.set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_clear(self) -> bool:
        """Whether others may begin."""
        return self._clear.is_set()

    async def behind(self) -> None:
        """Wait until no request of the operator is pending; if one always is, others get every other moment."""
        if not self._clear.is_set():
            await self._clear.wait()

    @contextmanager
    def ahead(self) -> Iterator[Callable[[], None]]:
        """Keep others from beginning until the context ends, the yielded function is called, or a moment has passed."""
        self._ahead += 1
        if self._ahead == 1:
            self._shut()
        with _once(self._step_back, MAX_AHEAD_S) as leave:
            yield leave

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the place and hold it until the context ends, the yielded function is called, or a moment has
        passed: a longer request is waiting for something other than the processor."""
        await self._lock.acquire()
        try:
            await self.behind()
        except asyncio.CancelledError:
            self._lock.release()
            raise
        with _once(self._lock.release, _DESK_S) as leave:
            yield leave

    def _step_back(self) -> None:
        self._ahead -= 1
        if not self._ahead:
            self._open()

    def _shut(self) -> None:
        self._clear.clear()
        self._timer = asyncio.get_running_loop().call_later(MAX_BEHIND_S, self._let_through)

    def _let_through(self) -> None:
        self._clear.set()
        self._timer = asyncio.get_running_loop().call_later(MAX_BEHIND_S, self._shut)

    def _open(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._clear.set()


class Strain:
    """The ratio of elapsed time to processor time on the loop, as other threads and programs take their turns.

    A cost is multiplied by it: on a machine with twice as much work as it has processors, the holders of tokens would
    otherwise get nearly all of the daemon's processor time.
    """

    def __init__(self) -> None:
        self._passed_s = self._computed_s = 1e-4

    @property
    def factor(self) -> float:
        """At least 1, which means that the loop has a processor to itself."""
        return min(_MAX_STRAIN, max(1.0, self._passed_s / self._computed_s))

    def saw(self, passed_s: float, computed_s: float) -> None:
        """Take in a measurement of something on the loop that did not wait."""
        self._passed_s = self._passed_s * _STRAIN_MEMORY + passed_s
        self._computed_s = self._computed_s * _STRAIN_MEMORY + computed_s


class Account:
    """The processor time, in seconds, left of a share. It may be overdrawn, as costs are known only afterwards."""

    def __init__(self, share: CpuShare, clock: Callable[[], float], max_debt_s: float = math.inf) -> None:
        """max_debt_s: debts beyond it are forgiven."""
        self._share = share
        self._clock = clock
        self._max_debt_s = max_debt_s
        self._left_s = share.burst_s
        self._since = clock()
        self.line = asyncio.Lock()
        """Held by the request that is next."""
        self.waiting = 0
        """The number of requests that wait for their turn."""

    def charge(self, seconds: float) -> None:
        """Charge seconds; negative ones are given back."""
        self._refill()
        self._left_s = min(self._share.burst_s, max(-self._max_debt_s, self._left_s - seconds))

    @property
    def wait_s(self) -> float:
        """Seconds until nothing is owed."""
        self._refill()
        return max(0.0, -self._left_s) / self._share.of_one

    async def even(self) -> None:
        """Wait until nothing is owed."""
        while (wait_s := self.wait_s) > 0:  # noqa: ASYNC110 - it passes with time alone
            await asyncio.sleep(wait_s)

    def _refill(self) -> None:
        now = self._clock()
        self._left_s = min(self._share.burst_s, self._left_s + (now - self._since) * self._share.of_one)
        self._since = now


class Pace:
    """The pace of one principal. For the event loop."""

    def __init__(
        self, own: Account, common: Account, desk: ComputeQueue, strain: Strain, hold: Callable[[int], bool]
    ) -> None:
        """hold: counts so many bytes more, or fewer, of its incomplete messages; False if they are too many."""
        self.hold = hold
        self._own = own
        self._common = common
        self._desk = desk
        self.strain = strain

    async def turn(self, expected_s: float) -> None:
        """Wait for this principal's turn, and charge the expected cost. Connections of a principal take turns, and so
        do principals."""
        async with self._own.line:
            await self._own.even()
            async with self._common.line:
                await self._common.even()
                await self._desk.behind()
                self.charge(expected_s)

    async def served(self, call: Callable[[], T], run: Callable[[Callable[[], T]], Awaitable[T]]) -> T:
        """Return what the call returns or raises. ``run`` executes it on another thread; its processor time is
        charged."""
        spent_s = 0.0

        def timed() -> T:
            nonlocal spent_s
            began_s = time.thread_time()
            try:
                return call()
            finally:
                spent_s = time.thread_time() - began_s

        # Charged in advance, so that the principal's other connections do not get that time for free.
        self.charge(_CALL_S)
        try:
            async with self._desk.place():
                return await run(timed)
        finally:
            self.charge(spent_s - _CALL_S)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Callable[[], None]]:
        """Serve a request in its turn. The yielded function ends the charging; call it when the answer begins.

        The charge is what the whole process has computed meanwhile, which includes the work of others. Raises
        PrincipalBusy.
        """
        full = self._common.waiting >= MAX_ALL_WAITING
        if self._own.waiting >= (MAX_WAITING_THEN if full else MAX_WAITING):
            raise PrincipalBusy
        accounts = (self._own, self._common)
        for account in accounts:
            account.waiting += 1
        async with AsyncExitStack() as stack:
            try:
                await self.turn(_REQUEST_S + _CALL_S)
                leave = await stack.enter_async_context(self._desk.place())
            finally:
                for account in accounts:
                    account.waiting -= 1
            began_s, computed_s = time.perf_counter(), time.process_time()
            is_over = False

            def end() -> None:
                nonlocal is_over
                leave()
                if not is_over:
                    is_over = True
                    spent_s = min(time.perf_counter() - began_s, time.process_time() - computed_s)
                    self.charge(spent_s - _CALL_S)

            stack.callback(end)
            yield end

    def charge(self, seconds: float) -> None:
        """Charge a cost beyond what was expected; negative: below it."""
        strained_s = seconds * self.strain.factor
        self._own.charge(strained_s)
        self._common.charge(strained_s)

    @property
    def is_next(self) -> bool:
        """Whether it may be served at once: no request of the operator is pending."""
        return self._desk.is_clear

    @property
    def is_even(self) -> bool:
        """Whether nothing is owed."""
        return self._own.wait_s == 0 and self._common.wait_s == 0


class Paces:
    """The paces of all principals. For the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = 4_096) -> None:
        """most: how many principals are tracked; beyond it, the one used least recently is dropped."""
        self._clock = clock
        self._most = most
        self._common = Account(ALL_PRINCIPALS, clock, _MAX_COMMON_DEBT_S)
        self.desk = ComputeQueue()
        """Where everybody but the operator is served."""
        self._strain = Strain()
        self._own: OrderedDict[Principal, Account] = OrderedDict()
        self._unfinished = UnfinishedInput()

    def of(self, by: Principal) -> Pace | None:
        """Return the principal's pace; None: it never waits."""
        if by == OPERATOR:
            return None
        own = self._own.pop(by, None) or Account(ONE_PRINCIPAL, self._clock)
        self._own[by] = own
        if len(self._own) > self._most:
            self._own.popitem(last=False)
        return Pace(own, self._common, self.desk, self._strain, self.hold(by))

    def hold(self, client: Principal | str | None) -> Callable[[int], bool]:
        """Return what counts the bytes of a client's incomplete input, and returns whether it may have so many. client:
        the principal, or the address of one without credentials. The operator may have any number."""
        return (lambda _size: True) if client == OPERATOR else partial(self._unfinished.add, client)
