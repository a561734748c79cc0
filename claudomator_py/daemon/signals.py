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


def handle_signals(
    loop: asyncio.AbstractEventLoop,
    *,
    stop: Callable[[], None],
    reload: Callable[[], None],
    leave: Callable[[], None],
) -> None:
    """Have the loop call the first two, for as long as this process lives: what the loop itself installs goes with it,
    and a second signal while all is closed would look like a kill.

    The second signal to stop ends the process where it is, even if the loop hangs, which loses nothing either. leave:
    takes back, at once and without a lock, what tells others that it runs.
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
    """Let no further signal change how this process ends, as all that is left for it to do is to exit."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


VARIABLE = "CLAUDOMATOR_CRASH_AT"


def install_crash_hook(environ: Mapping[str, str]) -> None:
    """End this process at the n-th passing of the point that the variable names, if it names one: ``name`` or
    ``name:n``."""
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
