"""Whether the loop comes round: how long ago it last did, what it is held up by, and what it has not got to."""

import time
from collections.abc import Callable

from claudomator_py.core.units import SECOND_MS, format_duration
from claudomator_py.core.views import CheckView
from claudomator_py.service.faults import Item
from claudomator_py.service.ports import Clock
from claudomator_py.service.tick.reconciler import Unserved

LATE_S = 60.0
"""A tick takes milliseconds; one that ends what a lost run left behind, some seconds."""
_REMEDY = "see `dmesg` and the mount that it works on; if this lasts, restart the daemon: runs carry on without it"


class Pulse:
    """Safe to ask from any thread. doing: the item that the tick works on at this moment.

    monotonic: in seconds; time in which the machine slept does not count.
    """

    def __init__(
        self, doing: Callable[[], Item | None], clock: Clock, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._doing = doing
        self._clock = clock
        self._monotonic = monotonic
        self._round_s = monotonic()
        self.unserved: Unserved | None = None
        """The oldest request to cancel or restart that the last tick left untouched."""

    def came_round(self, unserved: Unserved | None) -> None:
        """A tick was completed."""
        self._round_s = self._monotonic()
        self.unserved = unserved

    def check(self) -> CheckView:
        """Whether a tick was completed lately, and has seen to what was asked for."""
        since_s = self._monotonic() - self._round_s
        if since_s > LATE_S:
            doing = self._doing()
            what = "" if doing is None else f"; it is {doing.doing.value} {doing.name or doing.id}"
            detail = f"no tick was completed for {format_duration(int(since_s) * SECOND_MS)}{what}"
            return CheckView(name="scheduler", ok=False, detail=detail, remedy=_REMEDY)
        if (left := self.unserved) is not None and self._clock() - left.since_ms > LATE_S * SECOND_MS:
            detail = f"that {left.name} is to be stopped was asked for at {left.since}, and nothing was done about it"
            return CheckView(name="scheduler", ok=False, detail=detail, remedy="restart the daemon, and report a bug")
        return CheckView(name="scheduler", ok=True, detail="the last tick was completed")

    @property
    def steady(self) -> bool:
        """Whether the service manager may be told that all is well."""
        return self.check().ok
