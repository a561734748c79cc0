#!/usr/bin/env bash
# filelock 4.3.1 (PyPI): a lock that two tasks of one event loop share keeps neither out, and one that is taken in a
# worker thread cannot be given back from another thread: release() does nothing, and says nothing.
#
# A lock object counts how often it was acquired, for each thread on its own. Two tasks of one loop are one thread that
# asks twice, so both are in `async with AsyncFileLock(path)` at the same time, as with FileLock. An object of its
# own for each task waits, and so does another process: a test with two processes passes.
# `await asyncio.to_thread(lock.acquire)` is how one waits for a FileLock without stopping the loop. The thread of the
# loop then holds nothing: is_locked is False, release() returns, and no other process gets the lock, also when the
# thread that took it has ended, until this process ends. thread_local=False makes release() work.
# Source: https://py-filelock.readthedocs.io/en/latest/
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check filelock==4.3.1 2>/dev/null
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import asyncio, subprocess, sys, threading

from filelock import AsyncFileLock, FileLock

FREE = "import filelock, sys; filelock.FileLock(sys.argv[1], timeout=0).acquire()"


def is_free(path):
    """Whether another process gets the lock."""
    return subprocess.run([sys.executable, "-c", FREE, path], stderr=-1).returncode == 0


async def most_at_once(locks):
    """How many of two tasks are behind their locks at the same time."""
    inside, most = 0, 0

    async def task(lock):
        nonlocal inside, most
        async with lock:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.1)
            inside -= 1

    await asyncio.gather(*map(task, locks))
    return most


def taken_in_a_thread(**options):
    """What is left of a lock that a thread took, and this one gives back."""
    path = f"{sys.argv[1]}/thread-{options}"
    lock = FileLock(path, **options)
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    before = lock.is_locked
    lock.release()
    return before, is_free(path)


one, two = f"{sys.argv[1]}/one", f"{sys.argv[1]}/two"
shared = AsyncFileLock(one)
seen = [
    asyncio.run(most_at_once([shared, shared])),
    asyncio.run(most_at_once([AsyncFileLock(two), AsyncFileLock(two)])),
    taken_in_a_thread(),
    taken_in_a_thread(thread_local=False),
]
print("tasks at once with one AsyncFileLock:", seen[0])
print("tasks at once with an AsyncFileLock each:", seen[1])
print("taken in a thread: is_locked here %s, free for another process after release() %s" % seen[2])
print("the same, thread_local=False: is_locked here %s, free for another process after release() %s" % seen[3])
assert seen == [2, 1, (False, False), (True, True)], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# tasks at once with one AsyncFileLock: 2
# tasks at once with an AsyncFileLock each: 1
# taken in a thread: is_locked here False, free for another process after release() False
# the same, thread_local=False: is_locked here True, free for another process after release() True
