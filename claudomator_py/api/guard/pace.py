"""How much of the daemon's processor those may take who were given a token, whatever they ask for and over however many
connections: each principal its share, and all of them together theirs. The operator waits for nobody.

What goes beyond is not refused, it waits: nothing more is read from those connections until there is room.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final, TypeVar

from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CpuShare:
    """Of one processor. of_one: in the long run; burst_s: seconds at once after a pause."""

    of_one: float
    burst_s: float


ONE_PRINCIPAL: Final = CpuShare(0.15, 0.5)
ALL_PRINCIPALS: Final = CpuShare(0.3, 0.75)
MAX_WAITING: Final = 32
"""Requests of one principal; each takes one of the server's connections."""
MAX_ALL_WAITING: Final = 128
MAX_WAITING_THEN: Final = 4
"""Of one principal, where all together have that many."""
_CALL_S: Final = 0.005
"""What a call is expected to cost."""
_REQUEST_S: Final = 0.0015
"""What it costs to read any request and to send its answer."""
_DESK_S: Final = 0.1
MAX_AHEAD_S: Final = 0.25
"""So long at most an answer to the operator keeps others from beginning: it may wait for something else itself."""
MAX_BEHIND_S: Final = 0.1
"""So long at most others wait for such answers, however many there are, until as long is theirs."""
_MAX_STRAIN: Final = 4.0
_STRAIN_MEMORY: Final = 0.98
_MAX_COMMON_DEBT_S: Final = 0.5
"""Of all together: nobody waits long for what others have cost that was not known before. Whoever it was owes it."""


class PrincipalBusy(Exception):
    """Too many requests of the principal wait already."""


class ComputeQueue:
    """Where one at a time is served beside the loop: of several threads that compute, each keeps the loop waiting.

    Nobody begins while the operator waits for an answer, but for a moment now and then: see ``behind``.
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
        """Wait until the operator waits for nothing; where it asks all the time, others have every other moment."""
        if not self._clear.is_set():
            await self._clear.wait()

    @contextmanager
    def ahead(self) -> Iterator[Callable[[], None]]:
        """Keep others from beginning until the end, or sooner: by what is yielded, or after a moment."""
        self._ahead += 1
        if self._ahead == 1:
            self._shut()
        is_ahead = True

        def leave() -> None:
            nonlocal is_ahead
            if is_ahead:
                is_ahead = False
                self._ahead -= 1
                if not self._ahead:
                    self._open()

        timer = asyncio.get_running_loop().call_later(MAX_AHEAD_S, leave)
        try:
            yield leave
        finally:
            timer.cancel()
            leave()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for it, and give it up at the end; sooner by what is yielded, or after a moment: who takes longer waits
        for something else than the processor."""
        await self._lock.acquire()
        try:
            await self.behind()
        except asyncio.CancelledError:
            self._lock.release()
            raise
        held = True

        def leave() -> None:
            nonlocal held
            if held:
                held = False
                self._lock.release()

        timer = asyncio.get_running_loop().call_later(_DESK_S, leave)
        try:
            yield leave
        finally:
            timer.cancel()
            leave()

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
    """How many times as long as it computes the loop is at something: other threads and programs take their turns.

    A share of a processor is worth as much less where there is no whole one to be had: on a machine with as much work
    again as it has processors, those who were given a token would else take nearly all that the daemon gets of it.
    """

    def __init__(self) -> None:
        self._passed_s = self._computed_s = 1e-4

    @property
    def factor(self) -> float:
        """1 where the loop has a processor for itself."""
        return min(_MAX_STRAIN, max(1.0, self._passed_s / self._computed_s))

    def saw(self, passed_s: float, computed_s: float) -> None:
        """Take account of something on the loop that waited for nothing."""
        self._passed_s = self._passed_s * _STRAIN_MEMORY + passed_s
        self._computed_s = self._computed_s * _STRAIN_MEMORY + computed_s


class Account:
    """Seconds of processor time that are left of a share. It may be overdrawn, as costs are known afterwards."""

    def __init__(self, share: CpuShare, clock: Callable[[], float], max_debt_s: float = math.inf) -> None:
        """max_debt_s: what is owed beyond it is forgiven."""
        self._share = share
        self._clock = clock
        self._max_debt_s = max_debt_s
        self._left_s = share.burst_s
        self._since = clock()
        self.line = asyncio.Lock()
        """Held by whoever is next."""
        self.waiting = 0
        """Requests that wait for their turn."""

    def charge(self, seconds: float) -> None:
        """Take so many, or give them back where that is negative."""
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
    """That of one principal. On the loop."""

    def __init__(self, own: Account, common: Account, desk: ComputeQueue, strain: Strain) -> None:
        self._own = own
        self._common = common
        self._desk = desk
        self.strain = strain

    async def turn(self, expected_s: float) -> None:
        """Wait until it is this one's turn, and charge what it is expected to cost. Among one principal's connections,
        and among principals, each is next once."""
        async with self._own.line:
            await self._own.even()
            async with self._common.line:
                await self._common.even()
                await self._desk.behind()
                self.charge(expected_s)

    async def served(self, call: Callable[[], T], run: Callable[[Callable[[], T]], Awaitable[T]]) -> T:
        """Return what the call returns or raises, which ``run`` has done on another thread; its processor time is
        charged."""
        spent_s = 0.0

        def timed() -> T:
            nonlocal spent_s
            began_s = time.thread_time()
            try:
                return call()
            finally:
                spent_s = time.thread_time() - began_s

        # In advance, so that no other connection of the same principal takes that time for free.
        self.charge(_CALL_S)
        try:
            async with self._desk.place():
                return await run(timed)
        finally:
            self.charge(spent_s - _CALL_S)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Callable[[], None]]:
        """Serve a request in its turn; what is yielded is to be called once its answer begins, and the rest is free.

        It is charged with what the whole process has computed meanwhile: more than its own where others work. Raises
        Busy.
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
        """Charge what something cost more than was expected; negative: less."""
        strained_s = seconds * self.strain.factor
        self._own.charge(strained_s)
        self._common.charge(strained_s)

    @property
    def is_next(self) -> bool:
        """Whether it may be seen to at once: the operator waits for nothing."""
        return self._desk.is_clear

    @property
    def is_even(self) -> bool:
        """Whether nothing is owed."""
        return self._own.wait_s == 0 and self._common.wait_s == 0


class Paces:
    """Those of all principals. On the loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = 4_096) -> None:
        """most: how many are told apart; those not asked for longest are forgotten."""
        self._clock = clock
        self._most = most
        self._common = Account(ALL_PRINCIPALS, clock, _MAX_COMMON_DEBT_S)
        self.desk = ComputeQueue()
        """Where all but the operator are served."""
        self._strain = Strain()
        self._own: OrderedDict[Principal, Account] = OrderedDict()

    def of(self, by: Principal) -> Pace | None:
        """Return that of the principal; None: it waits for nobody."""
        if by == OPERATOR:
            return None
        own = self._own.pop(by, None) or Account(ONE_PRINCIPAL, self._clock)
        self._own[by] = own
        if len(self._own) > self._most:
            self._own.popitem(last=False)
        return Pace(own, self._common, self.desk, self._strain)
