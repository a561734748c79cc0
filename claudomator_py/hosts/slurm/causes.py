"""Why a run was interrupted, in Slurm's words. They decide no run's fate, but give its end a reason: a supervisor that
is told to stop learns nothing else."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.hosts.slurm.engine import JobList
from claudomator_py.private_files import write_new

FILE: Final = "cause"
"""File in the directory of an interrupted run: the state in which Slurm then listed its job; empty if that says
nothing. Written once, so that the run's reason does not change when Slurm forgets the job."""
_REQUEUED: Final = "REQUEUED"
_CAUSES: Final[Mapping[str, tuple[Reason, str]]] = {
    "PREEMPTED": (Reason.PREEMPTED, "Slurm ended its job, because another one of higher priority needed the node"),
    _REQUEUED: (Reason.REQUEUED, "Slurm ended its job to start it again, as after `scontrol requeue`"),
    "NODE_FAIL": (Reason.LOST, "Slurm reports that its node has failed"),
    "BOOT_FAIL": (Reason.LOST, "Slurm reports that its node has not started"),
    "TIMEOUT": (Reason.TIMEOUT, "Slurm ended its job at the time limit of its partition or account"),
    "DEADLINE": (Reason.TIMEOUT, "Slurm ended its job at its deadline"),
    "CANCELLED": (Reason.INTERRUPTED, "its job was cancelled in Slurm, as by `scancel`"),
}
FROM_THE_CLUSTER: Final = frozenset({"PREEMPTED", _REQUEUED, "NODE_FAIL", "BOOT_FAIL"})
"""Causes after which other hosts are better for some time."""


def cause(jobs: JobList, key: str) -> str | None:
    """Return why the job of an interrupted run was ended, as this list shows; empty if it says nothing, None if Slurm
    still lists the job as running."""
    if key in jobs.over:
        state = jobs.over[key].state
        return state if state in _CAUSES else ""
    job = jobs.jobs.get(key)
    if job is None:
        return ""
    return _REQUEUED if job.waits else None


def is_noted(path: str) -> bool:
    """Return whether the cause was noted in that run directory."""
    return os.path.exists(f"{path}/{FILE}")


def note(path: str, state: str) -> None:
    """Note the cause, unless one was noted before. Raises OSError."""
    with suppress(FileExistsError):
        write_new(Path(path) / FILE, state.encode())


def noted(path: str) -> str:
    """Return the noted cause; empty if there is none."""
    with suppress(OSError, ValueError):
        return (Path(path) / FILE).read_text()
    return ""


def with_cause(outcome: Outcome, state: str) -> Outcome:
    """Return the outcome of an interrupted or lost run with Slurm's reason for it."""
    if outcome.status is OutcomeStatus.SUCCEEDED or outcome.reason not in (Reason.INTERRUPTED, Reason.LOST):
        return outcome
    reason, words = _CAUSES.get(state, (outcome.reason, outcome.detail))
    if outcome.status is OutcomeStatus.LOST and reason is Reason.INTERRUPTED:
        reason = Reason.LOST
    return outcome.model_copy(update={"reason": reason, "detail": words})
