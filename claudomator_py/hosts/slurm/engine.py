"""Slurm's commands: submit, list, end. Their answers are hints for when to look; the run directory is the truth.

Jobs are identified by name, which is the key of a run: once Slurm's controller has forgotten a job, it gives the job's
id to another one.
"""

import json
import logging
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from claudomator_py.domain.host import HostSpec
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.hosts.local.launcher import interpreter
from claudomator_py.hosts.shim import spec
from claudomator_py.hosts.slurm import EngineSilent, ask, refusal, submission, words_of
from claudomator_py.hosts.slurm.archive import supervisor_in
from claudomator_py.hosts.slurm.nodes import Nodes
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

PREFIX: Final = "cl-"
"""Prefix of our jobs' names."""
WAITING: Final = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")

_FAILED_TO_START: Final = "launch failed requeued held"
_WANTS_TOO_LONG: Final = "PartitionTimeLimit"
_LOG: Final = "slurm.log"
_LOOK_EVERY_S: Final = 1.0
_RECENT_S: Final = 10.0
_THREADS: Final = 4
_REFUSAL_S: Final = 300.0
_MAX_PATIENCE: Final = 10


@dataclass(frozen=True, slots=True)
class Job:
    """One of our jobs, as Slurm lists it."""

    name: str
    state: str
    reason: str
    nodes: str

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return self.state in WAITING

    @property
    def is_suspended(self) -> bool:
        """Whether its processes are stopped, as for a job of higher priority."""
        return self.state in ("SUSPENDED", "STOPPED")

    @property
    def has_failed_to_start(self) -> bool:
        """Whether Slurm holds it since its start failed on a node; it never starts by itself."""
        return self.waits and self.reason == _FAILED_TO_START

    @property
    def wants_too_long(self) -> bool:
        """Whether the partition's time limit was lowered since its submission, so that it never starts."""
        return self.waits and self.reason == _WANTS_TOO_LONG

    @property
    def has_failed(self) -> bool:
        """Whether it is over, and not because somebody wanted that."""
        return self.state in _FAILED

    @property
    def end(self) -> str:
        """How it has ended, in Slurm's words: ``FAILED (JobLaunchFailure)``."""
        return f"{self.state} ({self.reason})"

    @property
    def why(self) -> str:
        """Why it has no node, in plain words followed by Slurm's: ``no node has room (Resources)``."""
        reasons = words_of("reasons")
        code = max((code for code in reasons if self.reason.startswith(code)), key=len, default=None)
        return self.reason if code is None else f"{reasons[code]} ({self.reason})"


@dataclass(frozen=True, slots=True)
class JobList:
    """Our jobs by name. asked_at: time before the query, on the monotonic clock. over: those that have ended and that
    Slurm has not forgotten."""

    asked_at: float
    jobs: Mapping[str, Job]
    over: Mapping[str, Job]

    @property
    def waiting(self) -> Sequence[Job]:
        """The jobs that have no node yet."""
        return [job for job in self.jobs.values() if job.waits]


class Slurm:
    """One cluster. Safe to call from many threads."""

    def __init__(self, host: HostSpec, begin: str = "") -> None:
        """begin: code with which each supervisor begins; see ``Launcher``."""
        self._host = host
        self._begin = begin
        self._submissions = ThreadPoolExecutor(_THREADS, "slurm-submission")
        """Apart from queries and cancellations: the clone that is prepared before a submission may take minutes."""
        self._queries = ThreadPoolExecutor(_THREADS, "slurm")
        self.nodes = Nodes(host, self._queries)
        self._looking: Future[None] | None = None
        self._next_look = 0.0
        self._listed: JobList | None = None
        self._silence: str | None = None
        self._refusal: tuple[float, str, str] | None = None
        """The latest: when, what was printed, and of which job."""
        self._in_vain: Counter[tuple[str, ...]] = Counter()
        """How often in a row Slurm has not taken a job that asked for this."""
        self._patience: dict[str, int] = {}
        """See ``patience``, by job."""

    def close(self) -> None:
        """Start no more commands, and wait for those in progress."""
        for pool in (self._submissions, self._queries):
            pool.shutdown(cancel_futures=True)

    def submit(self, key: str, path: str, first: Callable[[], object] | None = None) -> "Future[None]":
        """Submit a supervisor for that run directory, on a thread. Once the future is done, ``list`` may have the job.
        first: called on that thread before the submission."""
        return self._submissions.submit(self._submit, key, path, first)

    def listed(self) -> JobList | None:
        """Return the latest list of jobs at once, None if there is none yet. A thread refreshes it at most once a
        second."""
        now = time.monotonic()
        if now >= self._next_look and (self._looking is None or self._looking.done()):
            self._next_look = now + _LOOK_EVERY_S
            self._looking = self._queries.submit(self._look)
        return self._listed

    def keep_listed(self) -> None:
        """Have a thread refresh the list if it is old. While all runs are alive nobody needs it to decide anything, but
        people are told from it why a run stands still."""
        if self._listed is None or time.monotonic() > self._listed.asked_at + _RECENT_S:
            self.listed()

    def list(self) -> JobList:
        """Return our jobs as Slurm lists them now. Raises EngineSilent."""
        asked_at = time.monotonic()
        text = ask("squeue", "--me", "--noheader", "--states=all", "--format=%j|%T|%r|%N")
        jobs: dict[str, Job] = {}
        over: dict[str, Job] = {}
        for line in text.splitlines():
            name, _, rest = line.partition("|")
            state, _, rest = rest.partition("|")
            reason, _, nodes = rest.rpartition("|")
            if not name.startswith(PREFIX):
                continue
            # A job that is COMPLETING has not ended: some of its processes may still live.
            (over if state in _OVER else jobs)[name] = Job(name, state, reason, nodes)
        if (refusal := self._refusal) is not None and refusal[2] in jobs:
            self._refusal = None  # Slurm took it after all: only its answer was late.
        self._listed = JobList(asked_at, jobs, over)
        return self._listed

    def confirmed(self) -> Mapping[str, str]:
        """Return the states of the jobs, by name, that this program has submitted, as their comments confirm: a user
        may have other jobs whose names begin with ``cl-``. Raises EngineSilent."""
        lines = ask("squeue", "--me", "--noheader", "--format=%j|%T|%k").splitlines()
        jobs = [line.split("|", 2) for line in lines if line.startswith(PREFIX)]
        return {job[0]: job[1] for job in jobs if job[0] == job[-1] and len(job) > 2}

    @property
    def outage(self) -> str | None:
        """Why no node has taken runs for some time, as a clause that follows the host's name; None if one has."""
        listed = self._listed
        if listed is None or time.monotonic() > listed.asked_at + _RECENT_S:
            return self.nodes.outage(is_awaited=False)
        is_awaited = any(job.waits for job in listed.jobs.values())
        return self.nodes.outage(is_awaited=is_awaited or any(job.has_failed for job in listed.over.values()))

    @property
    def problem(self) -> str | None:
        """Why Slurm cannot be queried, or what it refused within the last minutes; None if neither."""
        if self._silence is not None:
            return self._silence
        if self._refusal is not None and time.monotonic() - self._refusal[0] < _REFUSAL_S:
            return self._refusal[1]
        return None

    @property
    def refusal(self) -> str | None:
        """Why Slurm has taken no job with the host's settings within the last minutes, as a clause; None if it may take
        one."""
        problem = self.problem
        plain = None if problem is None else refusal(problem)
        return None if plain is None else f"refuses runs: {plain} ({problem})"

    def patience(self, key: str) -> int:
        """Return how many times as long as usual a job that Slurm does not list is waited for: longer each time that
        Slurm has taken none that asks for the same, as one that no node can satisfy would else be submitted again and
        again."""
        return self._patience.get(key, 1)

    def interrupt(self, key: str) -> "Future[None]":
        """Ask the supervisor of that job to end its run, or cancel the job if it still waits, on a thread."""
        return self._queries.submit(self._interrupt, key)

    def end(self, key: str) -> "Future[None]":
        """End the job of that name and all its processes, on a thread."""
        self._patience.pop(key, None)
        return self._queries.submit(self._try, "scancel", "--me", f"--name={key}")

    def call(self, work: Callable[[], object]) -> None:
        """Call the work on one of the threads that query Slurm."""
        self._queries.submit(work)

    def _submit(self, key: str, path: str, first: Callable[[], object] | None) -> None:
        wanted: tuple[str, ...] = ()
        try:
            if first is not None:
                first()
            python, archive = self._host.python or sys.executable, supervisor_in(self._host.root)
            command = interpreter(self._begin, "main", "main_with_file", path, python=python, library=archive)
            script = f"#!/bin/sh\nexec {shlex.join(command)}\n"
            wanted = tuple(self._asked(json.loads((Path(path) / spec.FILE).read_bytes())))
            options = [f"--exclude={','.join(avoided)}"] if (avoided := self.nodes.avoided) else []
            ask(*submission(self._host, key, f"{path}/{_LOG}"), f"--comment={key}", *options, *wanted, text=script)
            self._refusal = None
            self._in_vain.pop(wanted, None)
        except (OSError, ValueError, LookupError) as problem:
            self._refusal = time.monotonic(), str(problem), key
            self._patience[key] = min(2 ** self._in_vain[wanted], _MAX_PATIENCE)
            self._in_vain[wanted] += 1
            # Not "not submitted": the job is looked up by name, and the run is revoked under its lock if it is absent.
            log.warning("whether Slurm took the job %s is unknown: %s", key, problem)

    def _asked(self, order: Mapping[str, Any]) -> Iterator[str]:
        """Yield the options for what a run requires of its node. Slurm's time limit, in whole minutes, is later than
        the run's own, unless the partition allows less. order: content of ``spec.json``. Raises LookupError."""
        limits, node = order["limits"], order.get("node") or {}
        if limits["timeout_ms"] is not None:
            total: int = limits["timeout_ms"] + limits["grace_ms"] + self._host.time_margin
            # Slurm would keep a job waiting forever that wants more than its partition allows.
            allowed_min = self.nodes.allowed_min()
            wanted_min = -(-total // MINUTE_MS)
            yield f"--time={wanted_min if allowed_min is None else min(wanted_min, allowed_min)}"
        if (license_ := self._host.licenses.get(node.get("agent") or "")) is not None:
            yield f"--licenses={license_}:1"
        needs = node.get("needs") or {}
        if needs:
            yield from ("--nodes=1", "--ntasks=1")
        if (gpus := needs.get("gpus")) is not None:
            yield f"--gres=gpu:{gpus}"
        if (cpus := needs.get("cpus")) is not None:
            yield f"--cpus-per-task={cpus}"
        if (memory := needs.get("memory")) is not None:
            yield f"--mem={-(-memory // (1 << 20))}M"

    def _interrupt(self, key: str) -> None:
        # The supervisor of a suspended job stands still, so Slurm has to end it: it lets it run, and tells it to stop.
        for state in ("PENDING", "SUSPENDED"):
            self._try("scancel", "--me", f"--name={key}", f"--state={state}")
        self._try("scancel", "--me", f"--name={key}", "--state=RUNNING", "--batch", "--signal=TERM")

    def _look(self) -> None:
        try:
            self.list()
        except EngineSilent as problem:
            if self._silence is None:
                log.warning("Slurm does not list its jobs, so nothing is decided about them: %s", problem)
            self._silence = str(problem)
        else:
            self._silence = None

    def _try(self, *command: str) -> None:
        try:
            ask(*command)
        except EngineSilent as problem:
            log.warning("%s", problem)


_OVER: Final = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
)  # fmt: skip


_FAILED: Final = ("BOOT_FAIL", "FAILED", "NODE_FAIL")


def job_name(run_id: str, step: int) -> str:
    """Return the name of the job for a run or check, which is its key."""
    return f"{PREFIX}{run_id}-{step}"


def run_of(key: str) -> str:
    """Return the id of the run whose job has that name."""
    return key.removeprefix(PREFIX).rpartition("-")[0]


def step_of(key: str) -> int | None:
    """Return the step of the job that has that name; None if the name is not one of ours."""
    step = key.rpartition("-")[2]
    return int(step) if step.isdecimal() else None
