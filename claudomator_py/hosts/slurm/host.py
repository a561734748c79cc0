"""The host of runs on this machine and on clusters: a run's files are read in the same way everywhere; only starting
and ending its supervisor differ.

The fate of a run on a cluster is decided as on this machine, by its directory and its lock. Slurm may start a job
twice, forget a job that it has accepted, or report a live one as dead. Therefore a directory is submitted only once,
and Slurm's answers are only hints for when to look.
"""

import errno
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.host import LOCAL, HostSpec, HostView, choose_host
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.report import RunReport
from claudomator_py.domain.run import ExitRecord, LaunchRequest, RunConflict, RunFate, RunSpec, RunStatus, Swept
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.directory import CHECK
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.local.sweep import sweep
from claudomator_py.hosts.reporting import RedactorOf
from claudomator_py.hosts.shim import record
from claudomator_py.hosts.shim.record import now_ms
from claudomator_py.hosts.slurm import SUBMITTED, EngineSilent, cancelling, causes
from claudomator_py.hosts.slurm.archive import remove_others, supervisor_in
from claudomator_py.hosts.slurm.clones import Clones, with_fault
from claudomator_py.hosts.slurm.cluster import SlurmCluster
from claudomator_py.hosts.slurm.engine import Slurm, job_name, run_of
from claudomator_py.hosts.slurm.fate import ABSENT_S, FORCE_S, Fates
from claudomator_py.hosts.slurm.polling import EndPoll
from claudomator_py.ports import AgentKind, Clock
from claudomator_py.private_files import create_file, flush_files
from claudomator_py.schema.zones import local_zone

_TOOK_S: Final = 300.0
"""For this long after a host has taken a node from a run, other hosts are preferred."""
_ZONE: Final = "TZ"
"""Variable with the time zone of a run: nodes may have another one, in which its program would print when a limit ends.
"""
_FLUSHERS: Final = 5
"""As many as a run directory has files to flush."""

log = logging.getLogger(__name__)


class ClusterRunHost(LocalRunHost):
    """This machine, and clusters by name. Safe to call from many threads, but for ``watch``."""

    def __init__(
        self,
        root: Path,
        launcher: Launcher,
        *,
        hosts: Mapping[str, HostSpec],
        grace_ms: int,
        kinds: Mapping[str, AgentKind] = MappingProxyType({}),
        redactor: RedactorOf = lambda *_: Redactor(),
        clock: Clock = now_ms,
        recorder: ChangeRecorder | None = None,
        clones: Clones | None = None,
        absent_s: float = ABSENT_S,
    ) -> None:
        """See ``LocalRunHost``. clones: handles repositories that nodes cannot see. absent_s: see ``ABSENT_S``.

        A cluster's folder is never created: if it is not mounted, an empty folder in its place would make every run
        seem missing, and start it again. Raises OSError.
        """
        super().__init__(
            root, launcher, grace_ms=grace_ms, kinds=kinds, redactor=redactor, clock=clock, recorder=recorder
        )
        self._clones = clones
        self._clusters = {
            name: SlurmCluster(name, spec, begin=launcher.begin, clock=clock, news=lambda: self.news())
            for name, spec in hosts.items()
        }
        self._hosts: dict[str, str] = {}
        """Known host of each run."""
        self._choice = HostChoice({name: cluster.engine for name, cluster in self._clusters.items()})
        self._poll = EndPoll(self.place, lambda: self.news())
        self._next_tidying = 0.0
        self._fates = Fates(absent_s)
        self._flushers = ThreadPoolExecutor(_FLUSHERS, "flush")

    def close(self) -> None:
        super().close()
        self._poll.close()
        self._flushers.shutdown()
        for cluster in self._clusters.values():
            cluster.close()

    def host_of(self, run_id: str) -> str:
        known = self._hosts.get(run_id)
        if known is None:
            clusters = self._clusters.values()
            known = next((cluster.name for cluster in clusters if os.path.isdir(f"{cluster.root}/{run_id}")), LOCAL)
            if known != LOCAL:
                self._hosts[run_id] = known
        return known

    def place(self, run_id: str, step: int = 0) -> str:
        cluster = self._cluster_of(run_id)
        if cluster is None:
            return super().place(run_id, step)
        check = "" if step == 0 else f"/{CHECK}" + (f"-{step}" if step > 1 else "")
        return f"{cluster.root}/{run_id}{check}"

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        """See ``RunHost``. Chooses the run's host; equal conditions give the same host. A submitted directory is not
        created again, because its job may still start."""
        if step == 0 and order.run_id not in self._hosts and not self.has_directory(order.run_id):
            self._hosts[order.run_id] = self._choose(order)
        path = self.place(order.run_id, step)
        if os.path.exists(f"{path}/{SUBMITTED}"):
            raise RunConflict(f"the run in {path} was submitted before")
        if self._cluster_of(order.run_id) is not None:
            names = {*order.env_names, _ZONE, *record.OF_THE_MACHINE}
            order = replace(order, env_names=tuple(sorted(names)))
        super().prepare(order, step)

    def run_ids(self) -> list[str]:
        run_ids = super().run_ids()
        for cluster in self._clusters.values():
            with suppress(FileNotFoundError), os.scandir(cluster.root) as entries:
                run_ids += [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        return sorted(run_ids)

    def remove(self, run_id: str) -> None:
        if self._clones is not None:
            self._clones.forget(self.place(run_id))
        super().remove(run_id)
        self._hosts.pop(run_id, None)

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        """See ``RunHost``. The mark of the submission is durable before the submission, and so is what the supervisor
        reads, because a job may begin after this machine has lost power. The variables are in a file for the
        supervisor, which removes it before it starts anything."""
        cluster = self._cluster_of(run_id)
        if cluster is None:
            super().spawn(run_id, environment, step)
            return
        path, key = self.place(run_id, step), job_name(run_id, step)
        if any(os.path.exists(f"{path}/{name}") for name in (record.REVOKED, record.CANCEL, SUBMITTED)):
            return
        submitted = create_file(f"{path}/{SUBMITTED}", supervisor_in(cluster.root).encode())
        cluster.skew.mark(submitted)
        os.close(submitted)
        flush_files(path, self._flushers)
        ours = {name for name in record.OF_THE_MACHINE if environment.get(name) == os.environ.get(name)}
        variables = {_ZONE: local_zone()} | {name: text for name, text in environment.items() if name not in ours}
        # Not flushed: a supervisor that does not find the file exits.
        os.close(create_file(f"{path}/{record.VARIABLES}", json.dumps(variables).encode()))
        recording = self.to_do_first(run_id, step)

        def first() -> None:
            if self._clones is not None:
                self._clones.order(path, run_id, cluster.spec, returns=step == 0)
            if recording is not None:
                recording()

        self._fates.submitted(key, cluster.engine.submit(key, path, first))

    def reconcile(self, run_id: str, step: int = 0) -> RunStatus:
        """See ``RunHost``. On a cluster, ``exit.json`` means ended and a held lock means alive; Slurm's list matters
        only if nobody holds the lock. A run without a supervisor is not taken over, because it is on another machine:
        its job is ended instead."""
        cluster = self._cluster_of(run_id)
        if cluster is None:
            status = super().reconcile(run_id, step)
            self._missed(status)
            self._choice.note(run_id, status.fate)
            return status
        path, key = self.place(run_id, step), job_name(run_id, step)
        submitting = self._fates.submission(key)
        status = self._fates.decide(cluster.engine, path, key, self.grace_ms)
        self._choice.note(run_id, status.fate)
        if status.fate is RunFate.MISSING:
            self._missed(status)
            self._fates.forget(key)
        if status.exit is not None:
            status = replace(status, exit=cluster.skew.corrected(key, path, status.exit))
        if status.fate is RunFate.REVOKED:
            # No supervisor has taken them, and none will.
            with suppress(FileNotFoundError):
                os.unlink(f"{path}/{record.VARIABLES}")
                self._remove_start(path, submitting)
        return status

    def _remove_start(self, path: str, submitting: "Future[None] | None") -> None:
        """Remove the reference of a run that never begins from the address of its clone, once it was pushed, on a
        thread."""
        clones = self._clones
        if clones is None:
            return

        def remove(_: object) -> None:
            with suppress(RuntimeError):  # closed meanwhile
                self._recorders.submit(clones.remove_start, path)

        if submitting is None:
            remove(None)
        else:
            submitting.add_done_callback(remove)

    def watch_shims(self, live: Iterable[tuple[str, int]]) -> None:
        """See ``LocalRunHost``. Directories on a cluster are polled for their end."""
        steps = [(self.host_of(run_id), (run_id, step)) for run_id, step in live]
        super().watch_shims(step for host, step in steps if host == LOCAL)
        self._choice.count({run_id: host for host, (run_id, _) in steps})
        elsewhere = [step for host, step in steps if host != LOCAL]
        self._poll.watch(elsewhere)
        for name in {host for host, _ in steps} & self._clusters.keys():
            self._clusters[name].engine.keep_listed()
        if (now := time.monotonic()) >= self._next_tidying:
            self._next_tidying = now + cancelling.EVERY_S
            for cluster in self._clusters.values():
                tidying = partial(cancelling.end_waiting, cluster.engine, self.place, frozenset(elsewhere))
                cluster.engine.call(tidying)

    def cancel(self, run_id: str, step: int = 0) -> None:
        """See ``RunHost``. The file ends the run; Slurm speeds that up, or cancels a job that still waits."""
        super().cancel(run_id, step)
        cluster, key = self._cluster_of(run_id), job_name(run_id, step)
        if cluster is not None and self._fates.cancelled(key):
            cluster.engine.interrupt(key)

    def end_survivors(self, run_id: str) -> bool:
        """See ``RunHost``. A job counts as alive while Slurm lists it, or does not answer."""
        cluster, within_s = self._cluster_of(run_id), self.grace_ms / SECOND_MS + FORCE_S
        if cluster is not None and not cancelling.end_all(cluster.engine, run_id, within_s):
            return False
        return super().end_survivors(run_id)

    def record_changes(self, recorder: ChangeRecorder, run_id: str) -> RunChanges | None:
        """See ``LocalRunHost``. Commits of a clone are moved into the work tree first."""
        if self._clones is not None:
            self._clones.bring_home(self.place(run_id))
        return super().record_changes(recorder, run_id)

    def report(self, request: LaunchRequest, record: ExitRecord | None, step: int = 0) -> RunReport | None:
        """See ``RunHost``. A run whose work could not be brought back has failed."""
        report = super().report(request, record, step)
        if report is None or report.outcome is None:
            return report
        path = self.place(request.run_id)
        if state := causes.noted(path):
            if state in causes.FROM_THE_CLUSTER:
                self._choice.took(self.host_of(request.run_id))
            report = report.with_outcomes(lambda outcome: causes.with_cause(outcome, state))
        fault = None if self._clones is None else self._clones.fault(path)
        return report if fault is None else report.with_outcomes(lambda outcome: with_fault(outcome, fault))

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        """See ``RunHost``. Ends our jobs that belong to no known run first."""
        swept = super().sweep(known)
        for cluster in self._clusters.values():
            try:
                cancelling.end_unknown(cluster.engine, cluster.root, known)
            except EngineSilent as problem:
                log.warning("%s is not swept: %s", cluster.name, problem)
                continue
            swept += sweep(Path(cluster.root), known, grace_ms=self.grace_ms)
            with suppress(OSError):
                remove_others(cluster.root)
        return swept

    def hosts(self, *, ask: bool = True) -> list[HostView]:
        """See ``RunHost``. Queries Slurm if ``ask`` is set."""
        active = self._choice.active
        here = [view.model_copy(update={"live": active[LOCAL]}) for view in super().hosts()]
        clusters = self._clusters.values()
        return here + [cluster.view(active[cluster.name], ask=ask, host_of=self.host_of) for cluster in clusters]

    def conversation_obstacle(self, run_id: str, hosts: Sequence[str]) -> str | None:
        """See ``RunHost``. Agents store conversations in the home directory, by working directory. A conversation in a
        clone can therefore be continued only in a clone."""
        where = self.host_of(run_id)
        known = [name for name in hosts if name == LOCAL or name in self._clusters]
        at_home = [name for name in known if name == LOCAL or self._clusters[name].spec.shared_home]
        if where in hosts:
            return None if where in at_home else f"{where}, which has it, keeps no home directory for all of its nodes"
        alike = [name for name in at_home if name == LOCAL or not self._clusters[name].spec.clone]
        if alike and not os.path.exists(f"{self.place(run_id)}/{record.CLONE}"):
            return None
        return f"{where}, which has it, takes no runs of the task at present"

    def obstacle(self, run_id: str) -> str | None:
        """See ``RunHost``. Uses Slurm's latest answer, without waiting for another."""
        cluster = self._cluster_of(run_id)
        if cluster is None:
            return None
        listed = cluster.engine.listed()
        jobs = [] if listed is None else [job for job in listed.jobs.values() if run_of(job.name) == run_id]
        for job in jobs:
            if job.waits:
                return f"waits for {cluster.name}: {job.why}"
            if job.is_suspended:
                return f"stands still on {cluster.name}: Slurm has suspended its job ({job.state})"
        absent = self._fates.absent(run_id)
        if absent and (problem := cluster.engine.problem) is not None:
            return f"waits for {cluster.name}, which has not accepted it: {problem}"
        for over in () if listed is None else (listed.over[key] for key in absent if key in listed.over):
            where = f" on {over.nodes}" if over.nodes else ""
            return f"has not begun on {cluster.name}, where its job has ended{where}: {over.end}"
        return None

    def closed(self) -> Mapping[str, str]:
        reasons = {name: cluster.obstacle() for name, cluster in self._clusters.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _cluster_of(self, run_id: str) -> SlurmCluster | None:
        """Return the cluster of a run; None if the run is on this machine."""
        return self._clusters.get(self.host_of(run_id))

    def _choose(self, order: RunSpec) -> str:
        """Choose the host of a run. A run that continues the conversation of another run, or works in its folder, goes
        to the host of that run. If that host takes no runs, this machine sees the folder as well."""
        if order.scratch_of is not None:
            where = self.host_of(order.scratch_of)
            return LOCAL if LOCAL in order.hosts and where not in order.hosts else where
        preferred = None if order.resumes is None else self.host_of(order.resumes)
        return self._choice.among(order.hosts, preferred, order.run_id)

    def _missed(self, status: RunStatus) -> None:
        """Raise OSError for a missing run while the folder of a cluster is missing: the run may be there."""
        if status.fate is RunFate.MISSING:
            for cluster in self._clusters.values():
                if not os.path.isdir(cluster.root):
                    words = "the folder of a cluster's runs is not mounted"
                    raise FileNotFoundError(errno.ENOENT, words, cluster.root)


class HostChoice:
    """The hosts, and what matters for choosing among them."""

    def __init__(self, engines: Mapping[str, Slurm]) -> None:
        """engines: of the clusters, by name."""
        self._engines = engines
        self._live: dict[str, str] = {}
        """Host of each live run."""
        self._took: dict[str, float] = {}
        """By host: when its engine last took a node from a run."""

    @property
    def active(self) -> Counter[str]:
        """Number of live runs by host."""
        return Counter(self._live.values())

    def count(self, live: Mapping[str, str]) -> None:
        """Note the hosts of all live runs, by run."""
        self._live = dict(live)

    def note(self, run_id: str, fate: RunFate) -> None:
        """Note what a run came to: one that has ended takes no place from the one that begins in the same tick."""
        if fate is RunFate.ENDED:
            self._live.pop(run_id, None)

    def took(self, host: str) -> None:
        """Note that the host's engine has taken a node from a run."""
        self._took[host] = time.monotonic()

    def among(self, hosts: Sequence[str], preferred: str | None, run_id: str) -> str:
        """Return the host for the run: the preferred one if it is possible. Unknown hosts are ignored; this
        machine is chosen if there are no others."""
        allowed = [name for name in hosts if name == LOCAL or name in self._engines] or [LOCAL]
        chosen = preferred if preferred in allowed else allowed[0]
        if len(allowed) > 1 and chosen != preferred:
            chosen = choose_host(allowed, self.active, {name: self._waiting(name) for name in allowed})
        self._live[run_id] = chosen
        return chosen

    def _waiting(self, name: str) -> int:
        """Return how many runs the host has not placed; at least 1 if it should be avoided."""
        engine = self._engines.get(name)
        listed = None if engine is None else engine.listed()
        is_avoided = time.monotonic() < self._took.get(name, -_TOOK_S) + _TOOK_S
        is_avoided |= engine is not None and engine.problem is not None
        jobs = () if listed is None else listed.waiting
        # Several hosts may be partitions of one cluster, and a run may have ended since Slurm listed its job.
        return is_avoided + sum(self._live.get(run_of(job.name)) == name for job in jobs)
