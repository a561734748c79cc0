"""Ending the processes of runs that are unknown or have lost their shim, and removing unknown directories."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.run import RunFate, Swept
from claudomator_py.hosts.local.directory import NEW_SUFFIX, TRASH_SUFFIX, RunAlive, RunDirectory, remove_tree
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.stop import end_all
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Survivors:
    """Number of ended processes, and pids of those that survived; a retry has to wait until there are none."""

    ended: int
    left: tuple[int, ...]


def survivors(run_id: str) -> list[procfs.Process]:
    """Return the run's live processes."""
    processes = [process for process in procfs.of_run(run_id, procfs.snapshot()) if process.alive]
    return processes or procfs.newcomers(run_id)


def kill_survivors(run_id: str, *, grace_ms: int, give_up_ms: int = 30_000) -> Survivors:
    """End the run's processes by TERM, then KILL, until none is left. Blocks until then.

    give_up_ms: how long to wait for processes that survive KILL. A process that has cleared its environment is found
    only if an ancestor of it in the run still lives.
    """
    deadline = time.monotonic() + (grace_ms + give_up_ms) / 1000
    stopped = end_all(lambda: survivors(run_id), grace_ms / 1000, _pause, deadline)
    crashpoint("survivors-ended")
    return Survivors(stopped.signalled, tuple(process.pid for process in stopped.left))


def _pause(seconds: float) -> None:
    crashpoint("survivors-signalled")
    time.sleep(seconds)


_LIVE = (RunFate.STARTING, RunFate.ALIVE)


def sweep(root: Path, known_run_ids: Collection[str], *, grace_ms: int) -> list[Swept]:
    """Remove the directories under root that belong to no known run, after ending the processes of such runs.

    A directory that cannot be removed is kept, and does not prevent the removal of others. Partial directories left by
    a crash are reported only if they cannot be removed. Do not call this while a run is being prepared, because its
    directory is created before its row. Raises OSError if root cannot be read.
    """
    swept = []
    for path in sorted(root.iterdir()):
        if path.name in known_run_ids:
            continue
        try:
            if path.is_symlink() or not path.is_dir():
                continue
            if path.name.startswith("."):
                # Not a run: what a crash has left of one, or the folder of a trial of a cluster.
                if path.suffix in (NEW_SUFFIX, TRASH_SUFFIX):
                    remove_tree(path)
            else:
                swept.append(Swept(path.name, _sweep_run(RunDirectory(path), grace_ms)))
        except OSError as error:
            swept.append(Swept(path.name, "stuck", error))
    return swept


def _sweep_run(directory: RunDirectory, grace_ms: int) -> Literal["removed", "cancelled", "unkillable"]:
    alive = [part for part in (directory, *directory.checks()) if decide_fate(part.path).fate in _LIVE]
    for part in alive:
        part.request_cancel()
    if alive:
        return "cancelled"
    if kill_survivors(directory.path.name, grace_ms=grace_ms).left:
        return "unkillable"
    try:
        directory.remove()
    except RunAlive:
        return "cancelled"
    return "removed"
