"""Removing run directories that no run in the store knows."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from claudomator_py.runs.directory import NEW_SUFFIX, TRASH_SUFFIX, RunAlive, RunDirectory, remove_tree
from claudomator_py.runs.settle import RunState, settle
from claudomator_py.runs.survivors import kill_survivors


@dataclass(frozen=True, slots=True)
class Swept:
    """What was done about a directory: removed; or its run was alive and has been asked to end; or some of its
    processes cannot be ended. The latter two are left for the next sweep."""

    run_id: str
    action: Literal["removed", "cancelled", "unkillable"]


def sweep(root: Path, known_run_ids: Collection[str], *, min_age_ms: int, grace_ms: int) -> list[Swept]:
    """Remove the directories under root that belong to no known run; processes of such a run are ended first.

    min_age_ms: younger ones are spared, for a directory is made before its run is committed. Raises OSError.
    """
    swept = []
    for path in sorted(root.iterdir()):
        if path.name in known_run_ids or not path.is_dir() or path.is_symlink() or _age_ms(path) < min_age_ms:
            continue
        if path.name.startswith(".") and path.suffix in (NEW_SUFFIX, TRASH_SUFFIX):
            remove_tree(path)
        else:
            swept.append(Swept(path.name, _sweep_run(RunDirectory(path), grace_ms)))
    return swept


def _sweep_run(directory: RunDirectory, grace_ms: int) -> Literal["removed", "cancelled", "unkillable"]:
    parts = [part for part in (directory.check, directory) if part.path.is_dir()]
    alive = [part for part in parts if settle(part.path).state is RunState.ALIVE]
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


def _age_ms(path: Path) -> float:
    return time.time() * 1000 - path.stat().st_ctime_ns / 1_000_000
