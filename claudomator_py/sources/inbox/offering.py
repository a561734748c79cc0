"""Offering files to the intake: so many at once that it takes about as long as a stop may wait, and one by one where
many at once fail."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from claudomator_py.domain.errors import Problem
from claudomator_py.sources.inbox.values import InboxReading, Intake
from claudomator_py.store.errors import StoreUnavailable

# Files are offered so many at once that it takes about this long, in seconds: a commit for each of few is slow, and a
# stop has to wait for very many.
_SHORTEST_S, _MAX_S = 0.25, 1.0
_MIN_BATCH = 16
_AT_FIRST = 64
MAX_BATCH = 256
"""Files that are offered at once at most."""

log = logging.getLogger("claudomator.inbox")


class Offering:
    """Hands readings to the intake. at_once: how many it should be given next."""

    def __init__(self, intake: Intake[Any], clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds, from any beginning."""
        self._intake = intake
        self._clock = clock
        self.at_once = _AT_FIRST

    def offer(self, readings: Sequence[InboxReading[Any]]) -> Sequence[Sequence[Problem]]:
        """Return what is wrong with each; nothing: it was accepted. Raises StoreUnavailable."""
        begin_s = self._clock()
        verdicts = self._take(readings)
        self._adapt(self._clock() - begin_s, len(readings))
        return verdicts

    def _adapt(self, took_s: float, count: int) -> None:
        if took_s > _MAX_S:
            self.at_once = max(_MIN_BATCH, count // 2)
        elif took_s < _SHORTEST_S:
            self.at_once = min(MAX_BATCH, max(self.at_once, count * 2))

    def _take(self, readings: Sequence[InboxReading[Any]]) -> Sequence[Sequence[Problem]]:
        if len(readings) > 1:
            try:
                return self._intake.take(readings)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("taking %d files at once failed; taking them one by one", len(readings))
        return [self._take_one(reading) for reading in readings]

    def _take_one(self, reading: InboxReading[Any]) -> Sequence[Problem]:
        try:
            return self._intake.take([reading])[0]
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("taking %s failed", reading.path)
            message = f"it is valid, but could not be taken ({type(error).__name__})"
            return [Problem(message=message, remedy="see the daemon's log; it is tried again at every rescan")]
