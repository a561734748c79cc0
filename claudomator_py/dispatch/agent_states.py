"""Agents as planning sees them: what each does at present, and what keeps runs from beginning on it."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from claudomator_py.dispatch.probing import Probed
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState
from claudomator_py.store.tables import Run


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
    """Return the configured agents, by name.

    live: the runs that are. holds: those in force. tries: how many runs may begin on a bucket although it is limited.
    probed: buckets whose limit is over. warned: kinds and accounts that were warned of a limit. spent: by agent, what
    its own budgets keep from beginning. default_models: what it chose last for a run that asked for no model.
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
                    agent, [*((hold, None) for hold in holds), *((one.hold, one.room) for one in probed)], tries
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
