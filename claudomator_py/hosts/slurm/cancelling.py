"""Ending jobs that have no work left. Slurm keeps a job that it has requeued and holds until somebody releases it."""

import logging
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from claudomator_py.hosts.local.fate import held_lock
from claudomator_py.hosts.shim import record
from claudomator_py.hosts.slurm import OVER, EngineSilent
from claudomator_py.hosts.slurm.engine import WAITING, Slurm, run_of, step_of

log = logging.getLogger(__name__)

EVERY_S: Final = 60.0
"""Pause between two searches for waiting jobs of runs that are over."""
_ASK_AGAIN_S: Final = 0.25


def end_waiting(engine: Slurm, place: Callable[[str, int], str], live: Collection[tuple[str, int]]) -> None:
    """End the jobs that wait for a node although their runs are over. If such a job started, its supervisor would quit
    at once. Never raises.

    place: returns the directory of a run and step. live: runs and steps whose fate is not decided yet; they keep their
    jobs, and so do runs without a directory.
    """
    try:
        waiting = [name for name, state in engine.confirmed().items() if state in WAITING]
    except EngineSilent as problem:
        log.debug("jobs of runs that are over are not looked for: %s", problem)
        return
    for key in waiting:
        run_id, step = run_of(key), step_of(key)
        if step is not None and (run_id, step) not in live and _is_over(place(run_id, step)):
            log.info("the job %s waits in Slurm although its run is over, and is cancelled", key)
            engine.end(key)


def end_unknown(engine: Slurm, root: str, known: Collection[str]) -> None:
    """End the jobs of runs that are not among the known ones: by way of their supervisors if they have a directory.
    Raises EngineSilent."""
    for key in engine.confirmed():
        if (run_id := run_of(key)) not in known:
            is_there = os.path.isdir(f"{root}/{run_id}")
            (engine.interrupt if is_there else engine.end)(key).result()


def end_all(engine: Slurm, run_id: str, within_s: float) -> bool:
    """End all jobs of a run. Return whether Slurm lists none any more; False if that takes longer, or is unknown."""
    deadline = time.monotonic() + within_s
    try:
        while left := [key for key in engine.list().jobs if run_of(key) == run_id]:
            for key in left:
                engine.end(key).result()
            if time.monotonic() > deadline:
                return False
            time.sleep(_ASK_AGAIN_S)
    except EngineSilent as problem:
        log.warning("whether jobs of run %s are left is unknown: %s", run_id, problem)
        return False
    return True


def _is_over(path: str) -> bool:
    """Return whether the run in that directory has begun or was revoked, and nobody holds it any more. A missing
    directory says nothing."""
    with suppress(OSError), held_lock(path) as is_free:
        return is_free and any(os.path.exists(f"{path}/{name}") for name in (record.STARTED, *OVER))
    return False
