"""Deciding what became of the runs on a cluster: from their directories first, from Slurm's list only where nobody
holds a run."""

import os
import time
from concurrent.futures import Future
from signal import SIGTERM
from typing import Final

from claudomator_py.domain.run import RunFate, RunStatus
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.shim import record
from claudomator_py.hosts.slurm import OVER, SUBMITTED, causes
from claudomator_py.hosts.slurm.engine import Slurm, run_of, step_of
from claudomator_py.hosts.slurm.nodes import OUTAGE_S

ABSENT_S: Final = 30.0
"""How long Slurm must have listed no job of a run before the run is revoked, as a submission may still be in progress;
longer for a job of a kind that Slurm has refused before, see ``Slurm.patience``."""
FORCE_S: Final = 30.0
"""How long after the grace period a cancelled run may live before its job is ended."""
_SETTLED_S: Final = 10.0
"""How long the record of a run that nobody holds any more may take to appear on this machine."""
_UNASKED_S: Final = 3.0
"""After its submission a run is left alone for this long: most have begun by then, so that Slurm need not be asked."""
_CAUSE_S: Final = 10.0
"""How long an interrupted run may wait for Slurm to say why."""
_SIGNS: Final = (record.STARTED, record.CANCEL, *OVER)


class Fates:
    """Decides the fate of runs on clusters, and remembers what that needs. Times are on the monotonic clock."""

    def __init__(self, absent_s: float) -> None:
        """absent_s: see ``ABSENT_S``."""
        self._absent_s = absent_s
        self._submitting: dict[str, Future[None]] = {}
        self._absent: dict[str, float] = {}
        """By job: when Slurm first did not list it."""
        self._asked_from: dict[str, float] = {}
        """By job: when its submission ended."""
        self._loose: dict[str, float] = {}
        """By job: when nobody was found to hold its run, which has begun and not ended."""
        self._asked_to_end: set[str] = set()
        """Jobs of such runs that were asked to end."""
        self._cancelled: dict[str, float] = {}

    def submitted(self, key: str, submitting: Future[None]) -> None:
        """Remember the submission of a job."""
        self._submitting[key] = submitting

    def submission(self, key: str) -> Future[None] | None:
        """Return the submission of a job, if its outcome still matters."""
        return self._submitting.get(key)

    def cancelled(self, key: str) -> bool:
        """Remember that the run of a job was cancelled. Returns whether that is new."""
        is_new = key not in self._cancelled
        if is_new:
            self._cancelled[key] = time.monotonic()
        return is_new

    def absent(self, run_id: str) -> list[str]:
        """Return the jobs of the run that were submitted, and of which nobody has seen yet that they have begun."""
        return [key for key in [*self._absent] if run_of(key) == run_id]

    def forget(self, key: str) -> None:
        """Forget a job."""
        for kept in (self._absent, self._asked_from, self._loose, self._cancelled, self._submitting):
            kept.pop(key, None)
        self._asked_to_end.discard(key)

    def decide(self, engine: Slurm, path: str, key: str, grace_ms: int) -> RunStatus:
        """Return what became of the run in that directory. Raises OSError."""
        if self._is_on_its_way(path, key):
            return RunStatus(RunFate.STARTING)
        status = decide_fate(path, awaited=lambda: True)
        match status.fate:
            case RunFate.STARTING:
                return self._starting(engine, path, key)
            case RunFate.UNFINISHED | RunFate.ORPHANED:
                return self._unfinished(engine, path, key)
            case RunFate.ALIVE:
                self._loose.pop(key, None)
                self._absent.pop(key, None)
                self._force(engine, path, key, grace_ms)
            case RunFate.ENDED if _is_interrupted(status, path) and not self._knows_cause(engine, path, key):
                return RunStatus(RunFate.ALIVE)
            case RunFate.ENDED if step_of(key) and causes.noted(path) in causes.FROM_THE_CLUSTER:
                # What Slurm did to a check says nothing of the work, whoever it told to stop first.
                self.forget(key)
                return RunStatus(RunFate.UNFINISHED)
            case RunFate.ENDED | RunFate.REVOKED:
                self.forget(key)
        return status

    def _is_on_its_way(self, path: str, key: str) -> bool:
        """Return whether it was submitted recently and has left no file yet. Each tick asks this, so no lock is
        taken."""
        submitting = self._submitting.get(key)
        if submitting is None:
            is_new = time.monotonic() < self._asked_from.get(key, -_UNASKED_S) + _UNASKED_S
        else:
            is_new = not submitting.done()
        return is_new and not any(os.path.exists(f"{path}/{name}") for name in _SIGNS)

    def _starting(self, engine: Slurm, path: str, key: str) -> RunStatus:
        """Decide about a run that has not begun. It is revoked under its lock, if Slurm does not list its job for long,
        or lists it as waiting for what may never come: somebody who releases it, or a node."""
        if os.path.exists(f"{path}/{record.CANCEL}") or not os.path.exists(f"{path}/{SUBMITTED}"):
            return decide_fate(path)
        submitting = self._submitting.get(key)
        if submitting is not None and not submitting.done():
            return RunStatus(RunFate.STARTING)
        if self._submitting.pop(key, None) is not None:
            self._absent[key] = self._asked_from[key] = time.monotonic()
        asked_s = time.monotonic() - self._asked_from.get(key, 0.0)
        if asked_s < _UNASKED_S:
            return RunStatus(RunFate.STARTING)
        listed = engine.listed()
        job = None if listed is None else listed.jobs.get(key)
        if listed is None or job is not None:
            self._absent[key] = time.monotonic()
            # A check needs the directory of its run, so it waits for this host's nodes.
            is_movable = step_of(key) == 0 and asked_s > OUTAGE_S
            # By then the partition's limit is asked for again, so the next job fits.
            is_too_long = job is not None and job.wants_too_long and asked_s > OUTAGE_S
            is_stuck = job is not None and job.waits and (job.has_failed_to_start or (is_movable and engine.outage))
            if not (is_stuck or is_too_long):
                return RunStatus(RunFate.STARTING)
        elif listed.asked_at - self._absent.setdefault(key, listed.asked_at) < self._absent_s * engine.patience(key):
            return RunStatus(RunFate.STARTING)
        status = decide_fate(path)
        if status.fate is RunFate.REVOKED:
            self.forget(key)
            if listed is not None and (over := listed.over.get(key)) is not None and over.has_failed:
                engine.nodes.avoid(over.nodes, over.end)
            # If the job starts later after all, its supervisor finds `revoked` and leaves.
            engine.end(key)
        return status

    def _unfinished(self, engine: Slurm, path: str, key: str) -> RunStatus:
        """Decide about a run that has begun, has not ended, and that nobody holds: it is over once Slurm lists no job
        of its name, and its record has not appeared. What Slurm says before that job is ended may be the cause."""
        since = self._loose.setdefault(key, time.monotonic())
        listed = engine.listed()
        if listed is None or listed.asked_at <= since:
            return RunStatus(RunFate.ALIVE)
        if key not in self._asked_to_end:
            self._asked_to_end.add(key)
            if not os.path.exists(f"{path}/{record.CANCEL}"):  # by which its job was ended
                causes.note(path, causes.cause(listed, key) or "")
            engine.end(key)
        is_settled = time.monotonic() - since >= min(_SETTLED_S, self._absent_s)
        return RunStatus(RunFate.ALIVE if key in listed.jobs or not is_settled else RunFate.UNFINISHED)

    def _knows_cause(self, engine: Slurm, path: str, key: str) -> bool:
        """Return whether it is known why a run was interrupted, or will not be known."""
        if causes.is_noted(path):
            return True
        since = self._loose.setdefault(key, time.monotonic())
        listed = engine.listed()
        cause = None if listed is None or listed.asked_at <= since else causes.cause(listed, key)
        if cause is None and time.monotonic() - since < _CAUSE_S:
            return False
        causes.note(path, cause or "")
        # It may have been requeued; if it starts again, its supervisor finds `started` and leaves.
        engine.end(key)
        return True

    def _force(self, engine: Slurm, path: str, key: str, grace_ms: int) -> None:
        """End the job of a cancelled run that does not end, for example because its node does not see the file."""
        if not os.path.exists(f"{path}/{record.CANCEL}"):
            return
        since = self._cancelled.setdefault(key, time.monotonic())
        if time.monotonic() - since > grace_ms / SECOND_MS + FORCE_S:
            self._cancelled[key] = time.monotonic()
            engine.end(key)


def _is_interrupted(status: RunStatus, path: str) -> bool:
    """Return whether the supervisor was told to stop, and not by us, or its program was: with ``proctrack/linuxproc``,
    Slurm tells both, and the program may be gone first."""
    end = status.exit
    has_stopped = end is not None and (
        end.ended_by == "interrupt" or (end.ended_by is None and end.exit_code == -SIGTERM)
    )
    return has_stopped and not os.path.exists(f"{path}/{record.CANCEL}")
