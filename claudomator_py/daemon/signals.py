"""Signals: the first TERM or INT stops in order, a second one at once; HUP reloads the configuration.

A terminal that is closed sends HUP as well. To who started the daemon there, that is its end.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping

from claudomator_py.domain import crashpoint
from claudomator_py.log import get_logger

log = get_logger("claudomator")

EXIT_AT_ONCE = 1


def handle_signals(loop: asyncio.AbstractEventLoop, *, stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Have the loop call these. The second signal to stop ends the process where it is, which loses nothing either."""
    asked = False
    had_terminal = os.isatty(0)

    def on_hangup() -> None:
        if had_terminal and not os.isatty(0):
            on_stop()
        else:
            reload()

    def on_stop() -> None:
        nonlocal asked
        if asked:
            os._exit(EXIT_AT_ONCE)
        asked = True
        log.info("stopping", note="a second signal ends it at once")
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_stop)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)


VARIABLE = "CLAUDOMATOR_CRASH_AT"


def install_crash_hook(environ: Mapping[str, str]) -> None:
    """If the variable names a point: end this process at the n-th passing of it. ``name`` or ``name:n``."""
    wanted, _, count = environ.get(VARIABLE, "").partition(":")
    if not wanted:
        return
    left = int(count or 1)

    def hook(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    crashpoint.install(hook)
