"""Notifications to the service manager, by systemd's notify protocol, and its watchdog."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping

from sqlalchemy import Connection

from claudomator_py.daemon.health import Pulse
from claudomator_py.ports import Clock
from claudomator_py.store import hold_rows, tick_rows
from claudomator_py.store.database import Database, StoreUnavailable

log = logging.getLogger("claudomator.systemd")

SOCKET = "NOTIFY_SOCKET"
WATCHDOG = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"
VARIABLES = (SOCKET, WATCHDOG, WATCHDOG_PID)


class Notifier:
    """Sends datagrams to the service manager, if there is one. A failure to send never stops the daemon.

    watchdog_s: maximum seconds between two signs of life, half of what the manager allows; None: no watchdog. Safe to
    use from any thread.
    """

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        """address: a path, or ``@`` and a name for an abstract socket."""
        self.watchdog_s = watchdog_s
        self._address = _packed(address)
        self._status: str | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Notifier":
        """Make a notifier from the variables that the manager set, if any."""
        return cls(environ.get(SOCKET) or None, _watchdog_s(environ))

    def ready(self) -> None:
        """Tell that the start, or a reload, is complete."""
        self._send("READY=1", f"MAINPID={os.getpid()}")

    def reloading(self) -> None:
        """Tell that a reload begins; ``ready`` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Tell that the daemon begins to stop."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Work goes forward; to be called only when some was done."""
        if self.watchdog_s is not None:
            self._send("WATCHDOG=1")

    def extend_timeout(self, seconds: int) -> None:
        """Ask for more time: the start or stop in progress may take that many seconds from now on."""
        self._send(f"EXTEND_TIMEOUT_USEC={seconds * 1_000_000}")

    def status(self, text: str) -> None:
        """Send one line for ``systemctl status``, unless it equals the last one."""
        if text != self._status:
            self._status = text
            self._send("STATUS=" + " ".join(text.split()))

    @property
    def enabled(self) -> bool:
        """Whether there is a service manager to notify."""
        return self._address is not None

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sock:
                sock.sendto("\n".join(lines).encode(), socket.MSG_NOSIGNAL, self._address)
        except OSError as error:
            log.warning("the service manager could not be told %s: %s", lines[0].partition("=")[0], error)


def _packed(address: str | None) -> str | None:
    if address is None or address.startswith("/"):
        return address
    if address.startswith("@") and len(address) > 1:
        return "\0" + address[1:]
    log.warning("%s is not an address of this machine, so the service manager is not notified", SOCKET)
    return None


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    meant = environ.get(WATCHDOG_PID) in (None, "", str(os.getpid()))
    allowed = environ.get(WATCHDOG, "")
    if not meant or not allowed.isascii() or not allowed.isdigit() or int(allowed) == 0:
        return None
    return int(allowed) / 2_000_000


_COUNTED = (("RUNNING", "running"), ("QUEUED", "queued"), ("WAITING", "waiting"), ("NEEDS_INPUT", "needs you"))


class Supervision:
    """Reports completed ticks to a notifier."""

    def __init__(self, notifier: Notifier, database: Database, clock: Clock, pulse: Pulse) -> None:
        self._pulse = pulse
        self._notifier = notifier
        self._database = database
        self._clock = clock

    async def ticked(self) -> None:
        """Tell that a tick completed. Call on the loop that serves requests, so that ticks do not vouch for it if it
        hangs."""
        if self._pulse.steady:
            self._notifier.alive()
        if self._notifier.enabled:
            self._notifier.status(await asyncio.to_thread(self._text))

    def _text(self) -> str:
        try:
            return self._database.read(self._counts)
        except StoreUnavailable as error:
            return f"the store is not available: {error.reason}"

    def _counts(self, connection: Connection) -> str:
        counts = tick_rows.unended(connection)
        parts = [", ".join(f"{word} {counts.get(state, 0)}" for state, word in _COUNTED)]
        if limited := sorted({hold.bucket.label for hold in hold_rows.in_force(connection, self._clock())}):
            parts.append(f"limited: {', '.join(limited)}")
        if hold_rows.find_switch(connection, hold_rows.DRAIN) is not None:
            parts.insert(0, "drained")
        return "; ".join(parts)
