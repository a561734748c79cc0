"""One cluster: its configuration, its engine, its clocks, and whether it takes runs."""

import os
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from claudomator_py.domain.host import HostSpec, HostType, HostView
from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.hosts.slurm import EngineSilent
from claudomator_py.hosts.slurm.engine import Slurm, run_of
from claudomator_py.hosts.slurm.first_use import FirstUse
from claudomator_py.ports import Clock

_MAX_NODES: Final = 100
_MAX_SKEWS: Final = 20


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
            return view.model_copy(update={"problem": str(silence)})
        waiting = () if jobs is None else jobs.waiting
        waits = Counter(job.why for job in waiting if host_of(run_of(job.name)) == self.name)
        problem = self._first_use.words or engine.refusal or engine.problem or engine.outage
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
    """By how much the clocks of a cluster's nodes differ at least from this machine's, as its latest runs show.

    A run begins after its submission and ends before its end is seen. If its own times contradict that, its node's
    clock is wrong by at least the difference.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._submitted: dict[str, int] = {}
        """By job: the time before its submission, in epoch milliseconds."""
        self._latest: deque[int] = deque(maxlen=_MAX_SKEWS)

    def submitting(self, key: str) -> None:
        """Note the time at which a job is submitted."""
        self._submitted[key] = self._clock()

    def over(self, key: str, exit_record: ExitRecord | None) -> None:
        """Compare the times in the exit record, if there is one, with this machine's. Repeating it changes nothing."""
        submitted_ms = self._submitted.pop(key, None)
        if submitted_ms is not None and exit_record is not None:
            ahead, behind = exit_record.ended_ms - self._clock(), exit_record.started_ms - submitted_ms
            self._latest.append(max(ahead, 0) or min(behind, 0))

    @property
    def seconds(self) -> float | None:
        """The largest difference, to a tenth of a second, positive if the node's clock is ahead; None until a run has
        ended."""
        return round(max(self._latest, key=abs) / SECOND_MS, 1) if self._latest else None
