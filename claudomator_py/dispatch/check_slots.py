"""The slots that live runs use, and the checks that wait for one: those of runs on remote agents, which had none."""

import threading
from collections.abc import Iterable, Sequence, Set

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.principal import tenant_of
from claudomator_py.scheduler.slots import InUse, pool_of
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.store.tables import Run
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class SlotsInUse:
    """Slots of runs that need a processor here, with those that checks are about to get, and of the others."""

    here: InUse
    remote: InUse
    waiting: dict[str, Blocked]
    """By run, why its check gets no slot."""


def slots_in_use(live: Iterable[Run], rules: Rules, to_check: Set[str] = frozenset()) -> SlotsInUse:
    """Return what live runs use, the oldest first. to_check: those on remote agents that have ended, and whose checks
    are to begin: each gets a slot before any task does, if it gets one at all."""
    here = remote = InUse()
    waiting: dict[str, Blocked] = {}
    asking = []
    for run in live:
        if not _is_elsewhere(run, rules):
            here = here.with_one_of(_tenant(run))
        elif run.id in to_check:
            asking.append(run)
        else:
            remote = remote.with_one_of(_tenant(run))
    for run in asking:
        why = here.obstacle(_tenant(run), pool_of(rules, remote=False))
        if why is None:
            here = here.with_one_of(_tenant(run))
        else:
            remote, waiting[run.id] = remote.with_one_of(_tenant(run)), why
    return SlotsInUse(here, remote, waiting)


def _tenant(run: Run) -> str:
    return tenant_of(run.creator, run.organisation)


def _is_elsewhere(run: Run, rules: Rules) -> bool:
    return rules.remote is not None and run.state != "checking" and AgentSpec(name=run.agent, kind=run.kind).info.remote


class CheckSlots:
    """Which checks of runs on remote agents may begin. The tick asks, once it has looked at all live runs; whoever
    explains a task may ask from any thread."""

    def __init__(self) -> None:
        self._live: dict[str, Run] = {}
        self._to_check: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def to_check(self) -> Set[str]:
        """The runs whose checks are to begin."""
        return self._to_check

    def look_only_at(self, live: Sequence[Run]) -> None:
        """Forget all other runs: these are all the live runs there are."""
        with self._lock:
            self._live = {run.id: run for run in live}
            self._to_check &= self._live.keys()

    def over(self, run: Run) -> None:
        """Free its slot: the run has ended."""
        with self._lock:
            self._live.pop(run.id, None)
            self._to_check -= {run.id}

    def obstacle(self, run: Run, rules: Rules) -> Blocked | None:
        """Return why the check of the run has to wait; None: it may begin, as it does then."""
        if not _is_elsewhere(run, rules):
            return None
        with self._lock:
            self._to_check |= {run.id}
            return slots_in_use(self._live.values(), rules, self._to_check).waiting.get(run.id)

    def waits(self, run_id: str, rules: Rules) -> Blocked | None:
        """Return why the check of that run waits; None: it does not."""
        with self._lock:
            return slots_in_use(self._live.values(), rules, self._to_check).waiting.get(run_id)
