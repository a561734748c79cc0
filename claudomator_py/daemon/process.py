"""Resources of the daemon's own process: garbage collection, heaps and open files."""

import ctypes
import gc
import resource
from typing import Final

LARGE: Final = 2**20
"""Size in bytes from which a block gets its own mapping, which is unmapped when the block is freed."""
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
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


def give_back() -> None:
    """Collect garbage and give free memory back to the system, which takes a moment.

    glibc retains the pages that held the small blocks of a thousand connections. Does nothing with other C libraries.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


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
