"""What is in use, and what that blocks whichever agents are free: slots, directories, threads, caps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.principal import OWN, tenant_named
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.wording import TaskRef
from claudomator_py.scheduler.snapshot import AgentState, DayLeft, KeptDirectory, QueueHead, Rules, Snapshot
from claudomator_py.values import dataclass

SHARES: Final = frozenset({BlockCode.ORGANISATION_SLOTS, BlockCode.KEPT_SLOTS})
"""Block codes of a limit on tenants, rather than of a lack of free slots as such."""
NEWCOMER: Final = "new"
"""Stands for any tenant without live runs. No actual tenant has this name, as their names begin differently."""
KEPT: Final = 1
"""Slots that all tenants together leave to the operator, if there are more than that."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Slots of one type: those for runs that need a processor on this machine, or those for runs on remote agents."""

    total: int
    share: int | None
    """Maximum per tenant; None if unlimited, and then none are kept for the operator."""
    full: BlockCode
    """Block code when all slots are in use."""
    setting: str
    """Configuration key of the number of slots."""
    share_setting: str
    """Configuration key of the share."""

    @property
    def for_tenants(self) -> int:
        """Maximum for all tenants together."""
        return max(1, self.total - KEPT)


@dataclass(frozen=True, slots=True)
class InUse:
    """Slots of a pool that are in use. tenants: per tenant, without the operator's own."""

    live: int = 0
    tenants: Mapping[str, int] = field(default_factory=dict)

    def with_one_of(self, tenant: str) -> "InUse":
        """Return a copy with one more run of that tenant."""
        tenants = self.tenants if tenant == OWN else {**self.tenants, tenant: self.tenants.get(tenant, 0) + 1}
        return InUse(self.live + 1, tenants)

    def obstacle(self, tenant: str, pool: Pool) -> Blocked | None:
        """Return why the tenant gets no further slot of the pool; None if it gets one. The narrowest bound is reported:
        for a tenant that has used up its share, the end of another tenant's run would not help."""
        if tenant != OWN and pool.share is not None:
            active, theirs = self.tenants.get(tenant, 0), sum(self.tenants.values())
            if active >= pool.share:
                share = {"active": active, "slots": pool.share, "setting": pool.share_setting}
                return blocked(BlockCode.ORGANISATION_SLOTS, **tenant_named(tenant), **share)
            if theirs >= pool.for_tenants:
                share = {"active": theirs, "slots": pool.for_tenants, "setting": pool.setting}
                return blocked(BlockCode.KEPT_SLOTS, **share)
        return blocked(pool.full, active=self.live, slots=pool.total) if self.live >= pool.total else None


NONE_IN_USE: Final = InUse()


def pool_of(rules: Rules, *, remote: bool) -> Pool:
    """Return the pool for runs that need a processor on this machine or, if remote, for runs on remote agents."""
    if remote and rules.remote is not None:
        names = "concurrency.remote", "concurrency.remote_per_organisation"
        return Pool(rules.remote, rules.remote_per_organisation, BlockCode.REMOTE_SLOTS, *names)
    names = "concurrency.total", "concurrency.per_organisation"
    return Pool(rules.total, rules.per_organisation, BlockCode.SLOTS, *names)


@dataclass(frozen=True, slots=True)
class Load:
    """What is in use."""

    now: int
    """Epoch milliseconds."""
    here: InUse
    """Slots of runs that need a processor on this machine."""
    busy: Mapping[str, int]
    """Live runs by directory."""
    disk_low: bool
    """True if there is too little disk space to start a run."""
    drained: bool = False
    """True if nothing may be started."""
    threads: frozenset[str] = frozenset()
    """Threads with a live run."""
    in_turn: Mapping[str, str] = field(default_factory=dict)
    """By thread, the task that is next to continue it."""
    day: DayLeft | None = None
    kept: tuple[KeptDirectory, ...] = ()
    """Directories kept for tasks that need input."""
    capped: Mapping[str, int] = field(default_factory=dict)
    """Live runs by the policy rule that limits their number."""
    remote: InUse = NONE_IN_USE
    """Slots of runs on remote agents, if these have their own."""

    def no_slot(self, tenant: str, rules: Rules, *, remote: bool) -> Blocked | None:
        """Return why a run of that tenant gets no slot on this machine or, if remote, on a remote agent; None if it
        gets one."""
        in_use = self.remote if remote and rules.remote is not None else self.here
        return in_use.obstacle(tenant, pool_of(rules, remote=remote))

    def with_run(self, head: QueueHead, rules: Rules, *, remote: bool) -> "Load":
        """Return a copy with one more run of that tenant. remote: see ``no_slot``."""
        here, elsewhere, capped = self.here, self.remote, self.capped
        if remote and rules.remote is not None:
            elsewhere = elsewhere.with_one_of(head.tenant)
        else:
            here = here.with_one_of(head.tenant)
        if head.constraints.caps:
            capped = Counter(capped) + Counter(cap.rule for cap in head.constraints.caps)
        return replace(
            self,
            here=here,
            remote=elsewhere,
            busy={**self.busy, head.dir_key: self.busy.get(head.dir_key, 0) + 1} if head.dir_key else self.busy,
            threads=self.threads | {head.exclusive},
            day=None if self.day is None else self.day.with_run(),
            capped=capped,
        )

    def has_slot(self, tenant: str, agents: Iterable[AgentState], rules: Rules) -> bool:
        """Return whether that tenant gets a slot for a run on any of the agents, which are as they are for nobody."""
        places = {agent.remote for agent in agents if not agent.full}
        return any(self.no_slot(tenant, rules, remote=remote) is None for remote in places)

    def seen_by(self, tenant: str, agents: Sequence[AgentState], rules: Rules) -> tuple[AgentState, ...]:
        """Return the agents as they are for that tenant: closed if it gets no slot for a run on them."""
        verdicts = {remote: self.no_slot(tenant, rules, remote=remote) for remote in {agent.remote for agent in agents}}
        if not any(verdicts.values()):
            return tuple(agents)
        return tuple(agent.model_copy(update={"closed": verdicts[agent.remote]}) for agent in agents)

    def obstacle(self, head: QueueHead, rules: Rules, agents: Sequence[AgentState]) -> Blocked | None:
        """Return what keeps the task from starting whichever agents are free; None if nothing does. agents: those
        visible to the task, as they are for its tenant."""
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
        if (full := self.full_cap(head.constraints)) is not None:
            return full
        if head.exclusive in self.threads or self.in_turn.get(head.exclusive, head.task_id) != head.task_id:
            return blocked(BlockCode.CONVERSATION)
        return None

    def taken(self, rules: Rules) -> "Taken":
        """Return the directories and threads that keep tasks from starting, whichever agent could run them."""
        kept_by_directory = Counter(kept.dir_key for kept in self.kept)
        full = {key for key in (*self.busy, *kept_by_directory) if self._is_full(key, kept_by_directory[key], rules)}
        return Taken(
            dir_keys=frozenset(full),
            keepers=frozenset(
                kept.task_id
                for kept in self.kept
                if kept.dir_key in full and not self._is_full(kept.dir_key, kept_by_directory[kept.dir_key] - 1, rules)
            ),
            threads=self.threads.union(self.in_turn),
            in_turn=frozenset(task for thread, task in self.in_turn.items() if thread not in self.threads),
        )

    def _is_full(self, dir_key: str, kept: int, rules: Rules) -> bool:
        """True if only tasks for which the directory is kept can start there. kept: number of those tasks."""
        return self.busy.get(dir_key, 0) + kept >= rules.per_workdir

    def full_cap(self, constraints: Constraints) -> Blocked | None:
        """Return the policy rule whose maximum of concurrent tasks is reached; None if another one may start."""
        for cap in constraints.caps:
            if (active := self.capped.get(cap.rule, 0)) >= cap.most:
                return blocked(BlockCode.RULE_FULL, rule=cap.rule, active=active, slots=cap.most)
        return None

    def _kept_from(self, head: QueueHead) -> tuple[KeptDirectory, ...]:
        """Holds of other tasks on this task's directory, the one that ends soonest first."""
        others = (kept for kept in self.kept if kept.dir_key == head.dir_key and kept.task_id != head.task_id)
        return tuple(sorted(others, key=lambda kept: (kept.until, kept.task_id)))


@dataclass(frozen=True, slots=True)
class Taken:
    """Places where nothing can start now. dir_keys: directories; keepers: tasks that may work in one of them anyway, as
    it is kept for them. threads: those where a task has its turn; in_turn: the tasks whose turn it is."""

    dir_keys: frozenset[str] = frozenset()
    keepers: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()
    in_turn: frozenset[str] = frozenset()

    def leaves(self, task_id: str, dir_key: str, thread: str | None) -> bool:
        """Return whether a task can start there."""
        placed = dir_key not in self.dir_keys or task_id in self.keepers
        return placed and ((thread or task_id) not in self.threads or task_id in self.in_turn)


def all_closed(agents: Sequence[AgentState]) -> Blocked | None:
    """Return why the task in question gets no slot on any of these agents, if the reason is the same for all; None if
    it gets a slot, there are no agents, or the reasons differ."""
    first = agents[0] if agents else None
    return first.closed if first is not None and all(agent.remote == first.remote for agent in agents) else None


@dataclass(frozen=True, slots=True)
class Shut:
    """Tenants whose tasks with a certain demand cannot start now."""

    tenants: frozenset[str] = frozenset()
    newcomers: bool = False
    """True if it applies to all tenants except the operator."""

    def bars(self, tenant: str) -> bool:
        """Return whether that tenant is one of them."""
        return tenant in self.tenants or (self.newcomers and tenant != OWN)


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
