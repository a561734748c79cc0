"""The daemon's own process: the memory that it gives back, and the files that it may open."""

import ctypes
import gc
import resource
from typing import Final

LARGE: Final = 2**20
"""Bytes from which on a block is mapped by itself, and unmapped once it is free."""
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
ARENAS: Final = 2
"""Heaps for all threads together. They hold the interpreter while they ask for memory, so they hardly ever meet."""

_FULL_AFTER: Final = 30
"""Collections of what is a little older; Python's own number is 10. With 100, a crowd's garbage took 7 MiB more."""


def collect_all_rarely() -> None:
    """Have the interpreter look through all objects a third as often.

    With a thousand connections that takes 40 to 130 ms, in which nobody is answered. Young ones are collected as ever.
    """
    young, older, _ = gc.get_threshold()
    gc.set_threshold(young, older, _FULL_AFTER)


def limit_heaps() -> None:
    """Limit what the C library keeps for itself: large blocks are given back once they are free, and heaps are few.

    Left alone, glibc raises the size of such a block to that of whatever was freed last, up to 32 MiB, and keeps twice
    as much in the heap of each thread that has ever needed it. The matrix of all cards is such a block, and made again
    by whichever thread asks first after a card has changed: 300 agents that connected cost 75 MiB more. And it gives
    each thread a heap of its own, up to eight for each processor, which are never given back. Elsewhere it does
    nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE)
        mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give the system what is free by now, objects that nothing refers to any more included, which takes a moment.

    glibc keeps the pages that the small blocks of a thousand connections were in. Elsewhere it does nothing.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def raise_open_files() -> int:
    """Raise the limit of open files as far as this process may; return what it was, which is what runs get.

    The usual 1,024 are for programs that wait with select(2), and agents may be such; connections and runs of the
    daemon want more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def lower_open_files(soft: int) -> None:
    """Set the limit of open files back to what it was."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
