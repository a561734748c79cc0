"""What the service manager sees of the daemon: signs of life, and its counts in one line."""

import asyncio

from sqlalchemy import Connection

from claudomator_py.service.ports import Clock
from claudomator_py.service.process.pulse import Pulse
from claudomator_py.service.process.systemd import Notifier
from claudomator_py.store import hold_rows, queue, switch_rows
from claudomator_py.store.database import Database, StoreUnavailable

_COUNTED = (("RUNNING", "running"), ("QUEUED", "queued"), ("WAITING", "waiting"), ("NEEDS_INPUT", "needs you"))


class Supervision:
    """Tells a notifier of completed ticks."""

    def __init__(self, notifier: Notifier, database: Database, clock: Clock, pulse: Pulse) -> None:
        self._pulse = pulse
        self._notifier = notifier
        self._database = database
        self._clock = clock

    async def ticked(self) -> None:
        """A tick came to its end. On the daemon's loop, so that no other thread vouches for one that hangs."""
        if self._pulse.steady:
            self._notifier.alive()
        if self._notifier.wanted:
            self._notifier.status(await asyncio.to_thread(self._text))

    def _text(self) -> str:
        try:
            return self._database.read(self._counts)
        except StoreUnavailable as error:
            return f"the store is not available: {error.reason}"

    def _counts(self, connection: Connection) -> str:
        counts = queue.counts(connection)
        parts = [", ".join(f"{word} {counts.get(state, 0)}" for state, word in _COUNTED)]
        if limited := sorted({hold.bucket.label for hold in hold_rows.in_force(connection, self._clock())}):
            parts.append(f"limited: {', '.join(limited)}")
        if switch_rows.find(connection, switch_rows.DRAIN) is not None:
            parts.insert(0, "drained")
        return "; ".join(parts)
