"""Choosing the host of a run that may go to several."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from claudomator_py.domain.host import LOCAL, choose_host
from claudomator_py.hosts.slurm.engine import Slurm, run_of

_TOOK_S: Final = 300.0
"""For this long after a host has taken a node from a run, other hosts are preferred."""


class HostChoice:
    """The hosts, and what matters for choosing among them."""

    def __init__(self, engines: Mapping[str, Slurm], host_of: Callable[[str], str]) -> None:
        """engines: of the clusters, by name. host_of: returns the host of a run."""
        self._engines = engines
        self._host_of = host_of
        self.active: Counter[str] = Counter()
        """Number of live runs by host."""
        self._took: dict[str, float] = {}
        """By host: when its engine last took a node from a run."""

    def count(self, hosts: Iterable[str]) -> None:
        """Note the hosts of all live runs."""
        self.active = Counter(hosts)

    def took(self, host: str) -> None:
        """Note that the host's engine has taken a node from a run."""
        self._took[host] = time.monotonic()

    def among(self, hosts: Sequence[str], preferred: str | None) -> str:
        """Return the host for the next run: the preferred one if it is possible. Unknown hosts are ignored; this
        machine is chosen if there are no others."""
        allowed = [name for name in hosts if name == LOCAL or name in self._engines]
        if preferred in allowed:
            return preferred
        if len(allowed) < 2:
            return allowed[0] if allowed else LOCAL
        chosen = choose_host(allowed, self.active, {name: self._waiting(name) for name in allowed})
        # Counted here until the next call of `count`.
        self.active[chosen] += 1
        return chosen

    def _waiting(self, name: str) -> int:
        """Return how many runs the host has not placed; at least 1 if it should be avoided."""
        engine = self._engines.get(name)
        listed = None if engine is None else engine.listed()
        is_avoided = time.monotonic() < self._took.get(name, -_TOOK_S) + _TOOK_S
        is_avoided |= engine is not None and engine.problem is not None
        jobs = () if listed is None else listed.waiting
        # Several hosts may be partitions of one cluster.
        return is_avoided + sum(self._host_of(run_of(job.name)) == name for job in jobs)
