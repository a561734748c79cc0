"""Signals: the first TERM or INT stops the daemon in order, the second at once; HUP reloads the configuration.

Closing a terminal sends HUP as well; for a daemon started in that terminal, it means stop.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping

from claudomator_py.domain import crashpoint
from claudomator_py.log import get_logger

log = get_logger("claudomator")

EXIT_AT_ONCE = 1


def handle_signals(
    loop: asyncio.AbstractEventLoop,
    *,
    stop: Callable[[], None],
    reload: Callable[[], None],
    leave: Callable[[], None],
) -> None:
    """Have signals call ``stop`` and ``reload`` on the loop, for the rest of the process's life. Handlers installed by
    the loop would be removed with it, and a second signal during the shutdown would then look like a kill.

    The second stop signal ends the process at once, even if the loop hangs; nothing is lost by that. leave: withdraws,
    at once and without a lock, what announces the daemon to others.
    """
    asked = False
    had_terminal = os.isatty(0)

    def soon(do: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(do)

    def begin_to_stop() -> None:
        log.info("stopping", note="a second signal ends it at once")
        stop()

    def on_stop(*_: object) -> None:
        nonlocal asked
        if asked:
            leave()
            os._exit(EXIT_AT_ONCE)
        asked = True
        soon(begin_to_stop)

    def on_hangup(*_: object) -> None:
        if had_terminal and not os.isatty(0):
            on_stop()
        else:
            soon(reload)

    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    signal.signal(signal.SIGHUP, on_hangup)


def ignore_signals() -> None:
    """Let no further signal change how this process ends, as it only has to exit."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


VARIABLE = "CLAUDOMATOR_CRASH_AT"


def install_crash_hook(environ: Mapping[str, str]) -> None:
    """End this process at the n-th passing of the crash point in the variable (``name`` or ``name:n``), if it is
    set."""
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
