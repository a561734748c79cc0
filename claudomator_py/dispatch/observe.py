"""Reads the rows that a plan depends on into a snapshot, and plans."""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from sqlalchemy import Connection

from claudomator_py.dispatch import lanes
from claudomator_py.dispatch.agent_states import CheckSlots, agent_states, probed, slots_in_use, tries
from claudomator_py.dispatch.heads import HeadReader, QueuedTask
from claudomator_py.dispatch.spending import Budgets, DaySpending
from claudomator_py.domain.host import LOCAL
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Faults
from claudomator_py.ports import Clock
from claudomator_py.scheduler.plan import Action, Planner, StartRun
from claudomator_py.scheduler.snapshot import (
    ActiveHold,
    KeptDirectory,
    Rules,
    Snapshot,
)
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import (
    hold_rows,
    queue,
    run_rows,
    spending_rows,
    tick_rows,
)
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot and the plan for it."""

    snapshot: Snapshot
    actions: tuple[Action, ...]
    """The plan, in the order of the snapshot's heads."""
    tasks: Mapping[str, QueuedTask]
    """The tasks of the actions, by id."""
    again_ms: int | None = None
    """When the next task that waits for its preferred agent may use another, in epoch milliseconds."""

    @property
    def starts(self) -> list[StartRun]:
        """The runs to start."""
        return [action for action in self.actions if isinstance(action, StartRun)]

    def without(self, task_ids: Set[str]) -> "Observation":
        """Return a copy without the starts of these tasks."""
        kept = [
            action for action in self.actions if not (isinstance(action, StartRun) and action.head.task_id in task_ids)
        ]
        return replace(self, actions=tuple(kept))

    @property
    def questions(self) -> list[AskTier]:
        """The tiers to ask for."""
        return [action for action in self.actions if isinstance(action, AskTier)]


class Observer:
    """Reads the current state and plans.

    rules: returns those in force. disk_low: returns whether the disk is too full to start anything. budgets: None for
    no limits. faults: of starts; None for none. closed_hosts: see ``RunHost.closed``.
    """

    def __init__(
        self,
        registry: AgentRegistry,
        rules: Callable[[], Rules],
        clock: Clock,
        disk_low: Callable[[], bool],
        budgets: Budgets | None = None,
        faults: Faults | None = None,
        closed_hosts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._registry = registry
        self._closed_hosts = closed_hosts
        self._rules = rules
        self._clock = clock
        self._disk_low = disk_low
        self._budgets = budgets or Budgets()
        self._faults = faults or Faults(clock)
        self.reader = HeadReader(registry, rules, self._faults)
        """Reads queued tasks for planning."""
        self.check_slots = CheckSlots(rules)
        """Slots of checks."""

    @property
    def accounts(self) -> Set[tuple[str, str]]:
        """Kinds and accounts of the configured agents."""
        return {(agent.kind, agent.quota_account) for agent in self._registry.agents}

    def observe(self, connection: Connection) -> Observation | None:
        """Return the current state and the plan; None if no task is queued. Of the queue, the snapshot holds only the
        tasks that the plan starts or asks a tier for."""
        queued = queue.number(connection, lanes.LOOK)
        if not queued:
            return None
        present = self.present(connection)
        planner = Planner(present)
        walk = lanes.LaneWalk(connection, planner, present.rules, self.reader, self._faults, self._clock, queued)
        planned = [] if planner.exhausted else list(walk.starts())
        if present.rules.classifier and (planner.exhausted or planner.slots_used) and not present.drained:
            planned += walk.ahead(without={queued.task.id for queued, _ in planned})
        return Observation(
            present.model_copy(update={"heads": tuple(queued.head for queued, _ in planned)}),
            tuple(action for _, action in planned),
            {queued.task.id: queued for queued, _ in planned},
            min(walk.again_ms, default=None),
        )

    @property
    def routes(self) -> bool:
        """Whether tasks are routed, or judged by a policy."""
        return self._rules().routing

    @property
    def budgets(self) -> Budgets:
        """The budgets in force."""
        return self._budgets

    def day_end(self, now_ms: int) -> int | None:
        """Return when the current day of the budgets ends, in epoch milliseconds; None if there are no budgets."""
        limited = any(agent.budget.units for agent in self._registry.agents) or self._budgets.total.units
        return self._budgets.day(now_ms).end_ms if limited else None

    def present(self, connection: Connection) -> Snapshot:
        """Return the current state without the queue."""
        now_ms = self._clock()
        live = run_rows.live(connection)
        if any(agent.hosts != (LOCAL,) for agent in self._registry.configured):
            drained = {
                name: f"takes no new runs until `claudomator undrain --host {name}`"
                for name in hold_rows.drained_hosts(connection)
            }
            self._registry.closed_hosts = {**self._closed_hosts(), **drained}
        spent = self._budgets.spent(connection, now_ms) if self.day_end(now_ms) is not None else None
        rare, rules = tick_rows.present(connection, now_ms), self._rules()
        in_force, expired = hold_rows.in_force_and_expired(connection, now_ms) if rare.holds else ((), ())
        if rules.routing and not rules.policed and not rare.specialists:
            rules = rules.model_copy(update={"routing": False})
        slots = slots_in_use(live, rules, self.check_slots.to_check)
        spent_holds = self._spent_holds(connection, spent, now_ms)
        narrow = [hold.bucket.family for hold in (*in_force, *expired)]
        narrow += [hold.family for holds in spent_holds.values() for hold in holds]
        return Snapshot(
            now=now_ms,
            rules=rules,
            agents=agent_states(
                self._registry,
                live,
                in_force,
                tries(connection, live, in_force, now_ms) if rules.when_all_limited == "try" else {},
                probed(connection, live, now_ms, expired),
                run_rows.warned(connection, now_ms) if rare.warned else frozenset(),
                spent_holds,
                self._default_models(connection) if any(narrow) else {},
            ),
            live=slots.here.live,
            tenants=dict(sorted(slots.here.tenants.items())),
            remote_live=slots.remote.live,
            remote_tenants=dict(sorted(slots.remote.tenants.items())),
            busy=dict(sorted(Counter(run.dir_key for run in live if run.dir_key).items())),
            kept=tuple(KeptDirectory(**columns) for columns in tick_rows.kept(connection, now_ms)) if rare.kept else (),
            capped=dict(sorted(queue.caps_in_use(connection).items())) if rules.policed else {},
            threads=tuple(sorted(run.thread or run.task_id for run in live)),
            in_turn=tick_rows.in_turn(connection) if rare.in_turn else {},
            disk_low=self._disk_low(),
            drained=rare.drained,
            day=None if spent is None else self._budgets.day_left(spent),
        )

    def _default_models(self, connection: Connection) -> dict[str, str | None]:
        """Return the model that each agent last chose for a run that named none."""
        return {agent.name: run_rows.default_model(connection, agent.name) for agent in self._registry.agents}

    def _spent_holds(self, connection: Connection, day: DaySpending | None, now_ms: int) -> dict[str, list[ActiveHold]]:
        """Return the holds by the agents' own budgets, by agent."""
        by_agent: dict[str, list[ActiveHold]] = {}
        for agent in self._registry.agents:
            holds = [] if day is None else self._budgets.day_holds(agent, day)
            if self._budgets.keeps_windows(agent):
                windows = spending_rows.windows(connection, agent.kind, agent.quota_account)
                holds += self._budgets.window_holds(agent, windows, now_ms)
            by_agent[agent.name] = holds
        return by_agent
