"""One cluster: its configuration, its engine, its clocks, and whether it takes runs."""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from claudomator_py.domain.host import HostSpec, HostType, HostView
from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.hosts.slurm import SUBMITTED, EngineSilent, refusal
from claudomator_py.hosts.slurm.engine import Slurm, run_of
from claudomator_py.hosts.slurm.first_use import FirstUse
from claudomator_py.ports import Clock

_MAX_NODES: Final = 100
_NS_PER_MS: Final = 1_000_000
_MAX_SKEWS: Final = 50
"""Number of runs whose nodes' clocks are remembered; as many may end together and wait to be reported."""


class SlurmCluster:
    """A host that is a cluster. Safe to use from many threads."""

    def __init__(self, name: str, spec: HostSpec, *, begin: str, clock: Clock, news: Callable[[], None]) -> None:
        """begin: see ``Slurm``. news: called on another thread when the host may take runs after all."""
        self.name = name
        self.spec = spec
        self.root = os.path.realpath(spec.root)
        self.engine = Slurm(spec, begin)
        self.skew = ClockSkew(clock)
        self._first_use = FirstUse(name, spec, news)

    def close(self) -> None:
        """Stop trying and querying."""
        self._first_use.close()
        self.engine.close()

    def obstacle(self) -> str | None:
        """Return why it takes no new runs, as a clause that follows its name; None if it does. A host is tried before
        its first run, and one that refuses a run takes none for some minutes."""
        return self._first_use.obstacle() or self.engine.refusal or self.engine.outage

    def view(self, live: int, *, ask: bool, host_of: Callable[[str], str]) -> HostView:
        """Return its current state. live: number of live runs. ask: whether to query Slurm. host_of: returns the host
        of a run, because several hosts may be partitions of one cluster."""
        engine = self.engine
        view = HostView(name=self.name, kind=HostType.SLURM, live=live, clock_skew=self.skew.seconds)
        try:
            jobs, listed = (engine.list(), engine.nodes.list()) if ask else (engine.listed(), engine.nodes.listed())
        except EngineSilent as silence:
            plain = refusal(str(silence))
            return view.model_copy(update={"problem": f"{plain} ({silence})" if plain else str(silence)})
        waiting = () if jobs is None else jobs.waiting
        waits = Counter(job.why for job in waiting if host_of(run_of(job.name)) == self.name)
        problem = self._first_use.words or engine.refusal or engine.outage or engine.problem
        view = view.model_copy(update={"problem": problem, "waits": waits})
        if listed is None:
            return view
        return view.model_copy(
            update={
                "nodes": Counter(node.state for node in listed.nodes),
                "cpus": listed.cpus,
                "cpus_used": listed.cpus_used,
                "unusable": tuple(listed.unusable[:_MAX_NODES]),
                "version": listed.version,
            }
        )


class ClockSkew:
    """The times of a cluster's runs on this machine's clock, and by how much its nodes' clocks differ at least from it.

    A run begins after its submission and ends before its end is seen. If its own times contradict that, its node's
    clock is wrong by at least the difference.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: dict[str, int] = {}
        """By job: by how much the clock of its node is ahead, in milliseconds."""

    def mark(self, submitted: int) -> None:
        """Give the mark of a submission, an open file, this machine's time: a file server may have another."""
        now_ns = self._clock() * _NS_PER_MS
        with suppress(OSError):  # a file system without such times
            os.utime(submitted, ns=(now_ns, now_ns))

    def corrected(self, key: str, path: str, end: ExitRecord) -> ExitRecord:
        """Return the exit record of the job in that directory with the least correction of its times that makes them
        possible. Repeating it changes nothing."""
        if key not in self._latest:
            submitted_ms = end.started_ms
            with suppress(OSError):  # as if the run has removed it
                submitted_ms = os.stat(f"{path}/{SUBMITTED}").st_mtime_ns // _NS_PER_MS
            behind_ms = min(max(submitted_ms - end.started_ms, 0), self._clock() - end.ended_ms)
            self._latest = dict([*self._latest.items(), (key, -behind_ms)][-_MAX_SKEWS:])
        ahead_ms = self._latest[key]
        return replace(end, started_ms=end.started_ms - ahead_ms, ended_ms=end.ended_ms - ahead_ms)

    @property
    def seconds(self) -> float | None:
        """The largest difference, to a tenth of a second, positive if the node's clock is ahead; None until a run has
        ended."""
        return round(max(self._latest.values(), key=abs) / SECOND_MS, 1) if self._latest else None
