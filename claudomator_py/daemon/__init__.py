"""The daemon as a process: its garbage collection, heaps and open files, and its signals.

The first TERM or INT stops the daemon in order, the second at once; HUP reloads the configuration. Closing a terminal
sends HUP as well; for a daemon started in that terminal, it means stop.
"""

import _sqlite3
import asyncio
import ctypes
import gc
import os
import resource
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from claudomator_py.domain import crashpoint
from claudomator_py.log import get_logger

LARGE: Final = 2**20
"""Size in bytes from which a block gets its own mapping, which is unmapped when the block is freed."""
_MEMORY_STATISTICS: Final = 9
"""SQLITE_CONFIG_MEMSTATUS"""
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_MADV_COLLAPSE: Final = 25
"""From Linux 6.1 on."""
_HUGE: Final = 2**21
_FULL: Final = 0.9
"""Share of its pages from which a region is put on a huge page."""
_HUGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ARENAS: Final = 2
"""Maximum number of heaps, for all threads. Threads hold the GIL while they allocate, so they hardly ever contend."""


def limit_heaps() -> None:
    """Limit the memory that the C library retains: large blocks are returned once freed, and there are few heaps.

    By default glibc raises its mmap threshold to the size of the largest block freed so far, up to 32 MiB, and retains
    twice as much in each heap. The matrix of all cards is such a block, rebuilt by whichever thread asks first after a
    card has changed: 300 connected agents cost 75 MiB more. It also gives each thread its own heap, up to eight per
    processor, and never returns them. Does nothing with other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE)
        mallopt(_M_ARENA_MAX, ARENAS)


def skip_sqlite_statistics() -> bool:
    """Have SQLite not count the memory that it allocates, which takes a lock of the whole process each time: a thousand
    times per task. Return whether that was possible.

    Call it while no database is open. Does nothing if SQLite is part of the interpreter.
    """
    with suppress(AttributeError, OSError):
        # A symbol that the module's file lacks is looked up in the library that the module is linked with.
        library = ctypes.CDLL(_sqlite3.__file__)
        configure = library.sqlite3_config
        library.sqlite3_shutdown()
        done = bool(configure(_MEMORY_STATISTICS, 0) == 0)
        return library.sqlite3_initialize() == 0 and done
    return False


def give_back() -> None:
    """Collect garbage and give free memory back to the system, which takes a moment.

    glibc retains the pages that held the small blocks of a thousand connections. Does nothing with other C libraries.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def use_huge_pages() -> int:
    """Move the parts of the heaps that are in use to huge pages, as far as the kernel can, and return how many.

    A tick touches small objects all over the heaps, and looking up their pages takes longer than most of what is done
    with them. Regions with many unused pages stay as they are, because these pages would be allocated.
    """
    number = 0
    with suppress(OSError, AttributeError):
        if "[never]" in _HUGE_PAGES.read_text():
            return 0
        library = ctypes.CDLL(None)
        library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        library.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
        resident = ctypes.create_string_buffer(_HUGE // resource.getpagesize())
        for begin in _heap_regions():
            if library.mincore(begin, _HUGE, resident) == 0 and resident.raw.count(1) > len(resident) * _FULL:
                number += library.madvise(begin, _HUGE, _MADV_COLLAPSE) == 0
    return number


def _heap_regions() -> list[int]:
    """Return the addresses of this process's regions of the size of a huge page that only heaps use."""
    regions: list[int] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, access, _, _, _, *name = line.split(maxsplit=5)
        if access.startswith("rw") and name in ([], ["[heap]"]):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            regions += range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE)
    return regions


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard limit; return the former soft limit, which runs get.

    The usual 1,024 suits programs that use select(2), as agents may; the daemon's connections and runs need more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def lower_open_files(soft: int) -> None:
    """Set the soft limit of open files back to ``soft``."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


log = get_logger("claudomator")

EXIT_AT_ONCE = 1
_MAX_SIGNALS: Final = 4096
"""Signals that are read at a time, a byte for each."""


def handle_signals(
    loop: asyncio.AbstractEventLoop, *, stop: Callable[[], None], reload: Callable[[], None], leave: Callable[[], None]
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

    # Handlers run once this thread runs Python. One that waits for events is woken by the signal only if that reaches
    # this very thread, and after it has begun to wait; otherwise the next timer, minutes later, would be the first.
    heard, rung = os.pipe()  # open as long as the process, whatever becomes of the loop
    os.set_blocking(heard, False)
    os.set_blocking(rung, False)
    signal.set_wakeup_fd(rung, warn_on_full_buffer=False)
    loop.add_reader(heard, os.read, heard, _MAX_SIGNALS)
    for number, handler in ((signal.SIGTERM, on_stop), (signal.SIGINT, on_stop), (signal.SIGHUP, on_hangup)):
        signal.signal(number, handler)


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
