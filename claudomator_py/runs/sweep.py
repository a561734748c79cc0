"""Removing run directories that no run in the store knows."""

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from claudomator_py.core.run import RunFate, Swept
from claudomator_py.runs.directory import NEW_SUFFIX, TRASH_SUFFIX, RunAlive, RunDirectory, remove_tree
from claudomator_py.runs.settle import settle
from claudomator_py.runs.survivors import kill_survivors

_LIVE = (RunFate.STARTING, RunFate.ALIVE)


def sweep(root: Path, known_run_ids: Collection[str], *, grace_ms: int) -> list[Swept]:
    """Remove the directories under root that belong to no known run; processes of such a run are ended first.

    One that cannot be removed is left where it is, and the others are removed. What a crash left half made or half
    removed is named only if it is stuck. Not to be called while a run is being prepared: its directory is made before
    its row. Raises OSError if root cannot be read.
    """
    swept = []
    for path in sorted(root.iterdir()):
        if path.name in known_run_ids:
            continue
        try:
            if path.is_symlink() or not path.is_dir():
                continue
            if path.name.startswith(".") and path.suffix in (NEW_SUFFIX, TRASH_SUFFIX):
                remove_tree(path)
            else:
                swept.append(Swept(path.name, _sweep_run(RunDirectory(path), grace_ms)))
        except OSError as error:
            swept.append(Swept(path.name, "stuck", error))
    return swept


def _sweep_run(directory: RunDirectory, grace_ms: int) -> Literal["removed", "cancelled", "unkillable"]:
    alive = [part for part in (directory, *directory.checks()) if settle(part.path).fate in _LIVE]
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
