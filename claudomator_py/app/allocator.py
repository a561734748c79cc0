"""The C library's allocator: memory that is no longer used goes back to the system."""

import ctypes
from typing import Final

LARGE: Final = 2**20
"""Bytes from which on a block is mapped by itself, and unmapped once it is free."""
_M_MMAP_THRESHOLD: Final = -3


def give_back() -> None:
    """Fix which blocks are large.

    Left alone, glibc raises that to the size of whatever was freed last, up to 32 MiB, and keeps twice as much in the
    heap of each thread that has ever needed it. The matrix of all cards is such a block, and made again by whichever
    thread asks first after a card has changed: 300 agents that connected cost 75 MiB more. Elsewhere it does nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE)
