"""The state of agents for planning: their live runs, the holds on them, and the slots in use.

After a limit resets, a single run, the probe, goes first; others follow as models answer. The same ramp applies when a
limit is tried before its reset. Everything is read from rows.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache

from sqlalchemy import Connection

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.limits import Bucket, Hold, RanOn, ramp, try_pause_ms
from claudomator_py.domain.principal import tenant_of
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.scheduler.load import InUse, pool_of
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState, Rules
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.tables import Run
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """A bucket whose limit is over. allowed: how many runs that began since may be live at once; room: how many more
    may begin."""

    hold: Hold
    allowed: int
    room: int


def ran_on(run: Run) -> RanOn:
    """Return the agent, account and model whose limits the run draws on."""
    return RanOn(run.agent, run.kind, run.account, run.model, run.ran_model)


def begun_since(hold: Hold, run: Run) -> bool:
    """Return whether the run began on the hold's bucket after the hold expired."""
    return hold.until_ms is not None and run.started_ms >= hold.until_ms and hold.is_on(ran_on(run))


def begun_under(hold: Hold, run: Run) -> bool:
    """Return whether the run began on the hold's bucket in spite of the hold."""
    return run.started_ms > hold.created_ms and hold.is_on(ran_on(run))


def probed(
    connection: Connection, live: Sequence[Run], now_ms: int, expired: Sequence[Hold] | None = None
) -> Sequence[Probed]:
    """Return the buckets whose use ramps up again. expired: holds as of ``hold_rows.expired``; None to read them."""
    holds = hold_rows.expired(connection, now_ms) if expired is None else expired
    states = []
    for hold in holds:
        since_ms = hold.until_ms if hold.until_ms is not None else now_ms
        answered = [run for run in run_rows.answered_since(connection, since_ms) if hold.is_on(run)]
        allowed = ramp(len(answered))
        # A probe of an earlier limit whose model has not answered yet still counts as the probe of this one.
        earlier_ms = hold_rows.first_expiry(connection, hold.bucket, now_ms) or since_ms
        living = sum(
            hold.is_on(ran_on(run)) and (run.started_ms >= since_ms or (_silent(run) and run.started_ms >= earlier_ms))
            for run in live
        )
        states.append(Probed(hold, allowed, max(0, allowed - living)))
    return states


def _silent(run: Run) -> bool:
    """Return whether its model has not answered yet."""
    return run.answered_ms is None


def tries(connection: Connection, live: Sequence[Run], in_force: Sequence[Hold], now_ms: int) -> Mapping[Bucket, int]:
    """Return how many runs may begin on each limited bucket anyway: a single one at growing intervals while they meet
    the limit, and more once a model has answered."""
    rooms = {}
    for hold in in_force:
        met, last_ms = hold_rows.hits(connection, hold.bucket, now_ms)
        if not met:
            continue
        answered = sum(1 for run in run_rows.answered_since(connection, last_ms) if hold.is_on(run))
        living = sum(1 for run in live if run.started_ms >= last_ms and hold.is_on(ran_on(run)))
        rests = not answered and now_ms < last_ms + try_pause_ms(met)
        rooms[hold.bucket] = 0 if rests else max(0, ramp(answered) - living)
    return rooms


def close_ramped(connection: Connection, agents: Sequence[AgentSpec], now_ms: int) -> None:
    """End the ramp of buckets that allow as many runs as the agents that draw on them have slots."""
    for probe in probed(connection, (), now_ms):
        bucket = probe.hold.bucket
        drawing = (agent for agent in agents if bucket.is_of(agent.name, agent.kind, agent.quota_account))
        if probe.allowed >= sum(agent.max_concurrent for agent in drawing):
            hold_rows.close(connection, probe.hold, now_ms)


def note_answer(connection: Connection, run: Run, agents: Sequence[AgentSpec], now_ms: int) -> None:
    """Store that the run's model has answered, which lets more runs begin."""
    if run_rows.change(connection, run, answered_ms=now_ms):
        close_ramped(connection, agents, now_ms)


@dataclass(frozen=True, slots=True)
class SlotsInUse:
    """Slots of live runs: local runs and checks that are about to begin, and remote runs."""

    here: InUse
    remote: InUse
    waiting: dict[str, Blocked]
    """Why a check gets no slot, by run id."""


def slots_in_use(live: Iterable[Run], rules: Rules, to_check: Set[str]) -> SlotsInUse:
    """Return the slots in use. live: runs, oldest first. to_check: runs of remote agents that have ended and whose
    checks are to begin, which get free slots before any task."""
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
    return rules.remote is not None and run.state != "checking" and _is_remote(run.kind)


@cache
def _is_remote(kind: str) -> bool:
    return AgentSpec(name=kind, kind=kind).info.remote


class CheckSlots:
    """Assigns slots to checks of runs on remote agents. Safe to use from many threads."""

    def __init__(self, rules: Callable[[], Rules]) -> None:
        """rules: returns those in force."""
        self._rules = rules
        self._live: dict[str, Run] = {}
        self._to_check: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def to_check(self) -> Set[str]:
        """The runs whose checks are to begin."""
        return self._to_check

    def replace_live(self, live: Sequence[Run]) -> None:
        """Replace the live runs."""
        with self._lock:
            self._live = {run.id: run for run in live}
            self._to_check = self._to_check.intersection(self._live)

    def release(self, run: Run) -> None:
        """Free the slot of a run that has ended."""
        with self._lock:
            self._live.pop(run.id, None)
            self._to_check -= {run.id}

    def obstacle(self, run: Run) -> Blocked | None:
        """Request a slot for the check of an ended run. Return why it has to wait, or None if it may begin."""
        if not _is_elsewhere(run, self._rules()):
            return None
        with self._lock:
            self._to_check |= {run.id}
        return self.waits(run.id)

    def waits(self, run_id: str) -> Blocked | None:
        """Return why the run's check waits for a slot, or None if it does not."""
        with self._lock:
            return slots_in_use(self._live.values(), self._rules(), self._to_check).waiting.get(run_id)


def agent_states(
    registry: AgentRegistry,
    live: Sequence[Run],
    holds: Sequence[Hold],
    tries: Mapping[Bucket, int],
    probed: Sequence[Probed],
    warned: Set[tuple[str, str]],
    spent: Mapping[str, Sequence[ActiveHold]],
    default_models: Mapping[str, str | None],
) -> tuple[AgentState, ...]:
    """Return the state of each configured agent, ordered by name.

    holds: the holds in force. tries: how many runs may begin on a limited bucket anyway. probed: buckets whose limit is
    over. warned: kinds and accounts with a warning of a limit. spent: holds by an agent's own budgets, by agent.
    default_models: the model that each agent last chose for a run that named none.
    """
    active = Counter(run.agent for run in live)
    return tuple(
        AgentState(
            name=agent.name,
            kind=agent.kind,
            active=active[agent.name],
            max_concurrent=agent.max_concurrent,
            auto_select=agent.auto_select,
            problem=registry.health(agent.name).problem,
            holds=(
                *_holds_seen(
                    agent, [*((hold, None) for hold in holds), *((probe.hold, probe.room) for probe in probed)], tries
                ),
                *spent.get(agent.name, ()),
            ),
            near_limit=(agent.kind, agent.quota_account) in warned,
            default_model=default_models.get(agent.name),
            models=agent.models,
            default_tier=agent.default_tier,
            fallback_model=agent.fallback_model,
            specialist=agent.specialist,
            remote=agent.info.remote,
            unfenced=registry.unfenced(agent),
        )
        for agent in sorted(registry.agents, key=lambda agent: agent.name)
    )


def _holds_seen(
    agent: AgentSpec, holds: Sequence[tuple[Hold, int | None]], tries: Mapping[Bucket, int]
) -> tuple[ActiveHold, ...]:
    return tuple(
        ActiveHold(
            bucket=hold.bucket.label,
            reason=hold.reason,
            until=hold.until_ms,
            provenance=hold.provenance,
            source=hold.source,
            family=hold.bucket.family,
            window=hold.window,
            room=room,
            tries=tries.get(hold.bucket) if room is None else None,
        )
        for hold, room in holds
        if hold.bucket.is_of(agent.name, agent.kind, agent.quota_account)
    )
