"""Memory is given back, what large matrices took and what a crowd took that has left; heaps are on huge pages, and
SQLite does not count what it allocates."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_ENABLED = _SWITCH.read_text() if _SWITCH.exists() else "[never]"

PROGRAM = """
import sys
import threading
from pathlib import Path

import numpy as np

from claudomator_py.daemon import limit_heaps

if sys.argv[1] == "fixed":
    limit_heaps()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def make() -> None:
    for _ in range(3):
        rows = [np.ones((1_000, 4_096), dtype=np.float32) for _ in range(2)]
        del rows
    turn.wait()
    end.wait()


before = resident()
turn, end = threading.Barrier(5), threading.Event()
threads = [threading.Thread(target=make) for _ in range(4)]
for thread in threads:
    thread.start()
turn.wait()
print((resident() - before) // 2**20)
end.set()
"""


def kept_mib(how: str) -> int:
    """MiB that a process keeps after each of four threads has had 32 of them several times."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_large_blocks_are_given_back() -> None:
    kept = kept_mib("fixed")
    assert kept < 16, kept


CROWD = """
from pathlib import Path

from claudomator_py.daemon import give_back


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


blocks = [bytes(1_000) for _ in range(60_000)]
kept = blocks[::1_000]
full = resident()
del blocks
give_back()
print((full - resident()) // 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_small_blocks_are_given_back_where_some_among_them_are_kept() -> None:
    ran = subprocess.run([sys.executable, "-c", CROWD], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 40, ran.stdout


def test_what_nothing_refers_to_any_more_is_given_back_in_whatever_circles_it_refers_to_itself() -> None:
    program = """
import gc, weakref
from claudomator_py.daemon import give_back

class Node: pass

gc.disable()
seen = []
for length in range(1, 9):
    ring = [Node() for _ in range(length)]
    for one, other in zip(ring, ring[1:] + ring[:1]):
        one.next = other
    seen.append(weakref.ref(ring[0]))
del ring, one, other
give_back()
assert not any(one() for one in seen), seen
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_full_heaps_are_moved_to_huge_pages_and_sparse_ones_are_left() -> None:
    program = """
import mmap
from pathlib import Path

from claudomator_py.daemon import use_huge_pages

size, page = 8 * 2**20, 4096


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * page


full, sparse = (mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2))
full.write(b"x" * size)
for begin in range(0, size, 8 * page):
    sparse[begin] = 1
before = resident()
moved = use_huge_pages()
print(moved, (resident() - before) * 100 // size, full[:] == b"x" * size, use_huge_pages() >= moved)
"""
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    moved, grown, *rest = completed.stdout.split()
    assert rest == ["True", "True"]
    assert int(grown) < 20, "unused pages were allocated"
    if tuple(map(int, platform.release().split("-")[0].split(".")[:2])) >= (6, 1) and "[never]" not in _ENABLED:
        assert int(moved) >= 3, "a mapping of 8 MiB has at least three whole huge pages"


_SQLITE = """
import _sqlite3
import ctypes
import sqlite3

from claudomator_py.daemon import skip_sqlite_statistics

if not skip_sqlite_statistics():
    raise SystemExit
connection = sqlite3.connect(":memory:")
assert connection.execute("SELECT 1").fetchall() == [(1,)]
print(ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, symbols are looked up differently")
def test_sqlite_does_not_count_its_memory() -> None:
    ran = subprocess.run([sys.executable, "-c", _SQLITE], capture_output=True, text=True, check=True)
    if not ran.stdout:
        pytest.skip("SQLite is part of this interpreter")
    assert ran.stdout == "0\n"
