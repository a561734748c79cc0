"""What is in use, and what that keeps from starting whichever agents are free: slots, directories, threads, caps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.coded import TaskRef
from claudomator_py.domain.principal import OWN
from claudomator_py.scheduler.slots import NONE_IN_USE, InUse, pool_of
from claudomator_py.scheduler.snapshot import AgentState, DayLeft, Kept, QueueHead, Rules, Snapshot
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What is in use."""

    now: int
    """Epoch milliseconds."""
    here: InUse
    """Slots of runs that need a processor here."""
    busy: Mapping[str, int]
    """Live runs by directory."""
    disk_low: bool
    """There is too little room to start."""
    drained: bool = False
    """Nothing is to be started."""
    threads: frozenset[str] = frozenset()
    """Those in which a run is live."""
    in_turn: Mapping[str, str] = field(default_factory=dict)
    """By thread, the task that continues it first."""
    day: DayLeft | None = None
    kept: tuple[Kept, ...] = ()
    """Directories that are kept for tasks which need input."""
    capped: Mapping[str, int] = field(default_factory=dict)
    """Live runs by rule of the policy that limits their number."""
    remote: InUse = NONE_IN_USE
    """Slots of runs on remote agents, where these have their own."""

    def no_slot(self, tenant: str, rules: Rules, *, remote: bool) -> Blocked | None:
        """Return why a run of that tenant gets no slot here or, if remote, none on a remote agent; None: it gets
        one."""
        in_use = self.remote if remote and rules.remote is not None else self.here
        return in_use.obstacle(tenant, pool_of(rules, remote=remote))

    def with_slot(self, tenant: str, rules: Rules, *, remote: bool) -> "Load":
        """Return the same with one more run of that tenant. remote: see ``no_slot``."""
        if remote and rules.remote is not None:
            return replace(self, remote=self.remote.with_one_of(tenant))
        return replace(self, here=self.here.with_one_of(tenant))

    def seen_by(self, tenant: str, agents: Sequence[AgentState], rules: Rules) -> tuple[AgentState, ...]:
        """Return the agents as they are for that tenant: closed where it gets no slot for a run on them."""
        found = {remote: self.no_slot(tenant, rules, remote=remote) for remote in {agent.remote for agent in agents}}
        if not any(found.values()):
            return tuple(agents)
        return tuple(agent.model_copy(update={"closed": found[agent.remote]}) for agent in agents)

    def obstacle(self, head: QueueHead, rules: Rules, agents: Sequence[AgentState]) -> Blocked | None:
        """Return what keeps the task from starting whichever agents are free; None: nothing. agents: those that it may
        know of, as they are for its tenant."""
        if self.drained:
            return blocked(BlockCode.DRAINED)
        if self.disk_low:
            return blocked(BlockCode.DISK_LOW)
        if self.day is not None and self.day.spent:
            return blocked(BlockCode.DAY_BUDGET, figures=self.day.figures, until=self.day.until)
        if (closed := all_closed(agents)) is not None:
            return closed
        if head.dir_key and self.busy.get(head.dir_key, 0) >= rules.per_workdir:
            return blocked(BlockCode.WORKDIR, directory=head.dir_key)
        kept = self._kept_from(head)
        if kept and self.busy.get(head.dir_key, 0) + len(kept) >= rules.per_workdir:
            tasks = tuple(TaskRef(name=other.name, id=other.task_id) for other in kept)
            return blocked(BlockCode.KEPT, directory=head.dir_key, tasks=tasks, until=kept[0].until)
        if (full := self.full_cap(head)) is not None:
            return full
        if head.exclusive in self.threads or self.in_turn.get(head.exclusive, head.task_id) != head.task_id:
            return blocked(BlockCode.CONVERSATION)
        return None

    def taken(self, rules: Rules) -> "Taken":
        """Return what of this keeps tasks from starting, whoever could run them."""
        kept_by_directory = Counter(kept.dir_key for kept in self.kept)
        full = {key for key in (*self.busy, *kept_by_directory) if self._is_full(key, kept_by_directory[key], rules)}
        return Taken(
            dir_keys=frozenset(full),
            keepers=frozenset(
                kept.task_id
                for kept in self.kept
                if kept.dir_key in full and not self._is_full(kept.dir_key, kept_by_directory[kept.dir_key] - 1, rules)
            ),
            threads=self.threads | self.in_turn.keys(),
            in_turn=frozenset(task for thread, task in self.in_turn.items() if thread not in self.threads),
        )

    def _is_full(self, dir_key: str, kept: int, rules: Rules) -> bool:
        """Whether nobody can begin there beside those for whom it is kept. kept: how many these are."""
        return self.busy.get(dir_key, 0) + kept >= rules.per_workdir

    def full_cap(self, head: QueueHead) -> Blocked | None:
        """Return the rule of the policy by which as many tasks run as may; None: another one may begin."""
        for cap in head.constraints.caps:
            if (active := self.capped.get(cap.rule, 0)) >= cap.most:
                return blocked(BlockCode.RULE_FULL, rule=cap.rule, active=active, slots=cap.most)
        return None

    def _kept_from(self, head: QueueHead) -> tuple[Kept, ...]:
        """What is kept for other tasks in the directory of this one: that which ends soonest first."""
        others = (kept for kept in self.kept if kept.dir_key == head.dir_key and kept.task_id != head.task_id)
        return tuple(sorted(others, key=lambda kept: (kept.until, kept.task_id)))


@dataclass(frozen=True, slots=True)
class Taken:
    """Places in which nothing can begin now. dir_keys: directories; keepers: the tasks that may work in one of them
    anyway, as it is kept for them. threads: those in which a task has its turn; in_turn: the tasks which have it.
    """

    dir_keys: frozenset[str] = frozenset()
    keepers: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()
    in_turn: frozenset[str] = frozenset()


def all_closed(agents: Sequence[AgentState]) -> Blocked | None:
    """Return why the task that is looked at gets no slot on any of these, if it is the same for all; None: it gets one,
    there is no agent, or the reasons differ."""
    first = agents[0] if agents else None
    return first.closed if first is not None and all(agent.remote == first.remote for agent in agents) else None


@dataclass(frozen=True, slots=True)
class Shut:
    """What cannot start now, whatever else is asked for: lanes are left out by it, many at once."""

    hints: frozenset[str] = frozenset()
    """See ``admission.exhausted_hints``."""
    tenants: frozenset[str] = frozenset()
    """Those that get no further slot on any agent."""
    newcomers: bool = False
    """Whether no tenant but the operator gets one, whoever it is."""
    by_name: frozenset[str] = frozenset()
    """Tenants for whom only agents are free that a task has to name."""
    newcomers_by_name: bool = False
    """Whether that is so for each but the operator, whoever it is."""
    names: frozenset[str] = frozenset()
    """What names those agents, as a lane has it."""

    def leaves_out(self, tenant: str, lane: str) -> bool:
        """Return whether nothing of that lane can start, as it names no agent that is free. All that it could name one
        by is in its text: what it asks for, its constraints, and the conversation that it continues."""
        named_only = tenant in self.by_name or (self.newcomers_by_name and tenant != OWN)
        return named_only and not any(name in lane for name in self.names)


NOTHING_SHUT: Final = Shut()


def load_of(snapshot: Snapshot) -> Load:
    """Return what is in use in the snapshot."""
    return Load(
        now=snapshot.now,
        here=InUse(snapshot.live, snapshot.tenants),
        remote=InUse(snapshot.remote_live, snapshot.remote_tenants),
        busy=snapshot.busy,
        disk_low=snapshot.disk_low,
        drained=snapshot.drained,
        threads=frozenset(snapshot.threads),
        in_turn=snapshot.in_turn,
        day=snapshot.day,
        kept=snapshot.kept,
        capped=snapshot.capped,
    )
