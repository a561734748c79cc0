"""The system calls that the standard library lacks: becoming a subreaper and punching holes into files."""

from __future__ import annotations

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_libc.prctl.argtypes = (ctypes.c_int,) + (ctypes.c_ulong,) * 4


def become_subreaper() -> None:
    """Have orphaned descendants become children of this process. Raises OSError."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def punch_hole(fd: int, start: int, end: int) -> None:
    """Give back the space of the bytes from start to end; they read as zeros, and the size stays. Raises OSError."""
    _check(_libc.fallocate(fd, _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE, start, end - start))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
