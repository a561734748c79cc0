"""Holds as people see them: on what, until when, how that is known, and how a limit that is over is tried."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from claudomator_py.dispatch.probing import probed
from claudomator_py.dispatch.spending import Budgets, Spent
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import on_hold
from claudomator_py.domain.blocked_words import predicate
from claudomator_py.domain.limits import Hold
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.units import format_instant, short_id
from claudomator_py.domain.wording import instant_text, worded
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.queries.budgets import agent_budget, spending_view
from claudomator_py.queries.explain import utc_clock
from claudomator_py.queries.views import agent_view
from claudomator_py.resources.agents.shape import AgentView, HoldView, NearLimitView
from claudomator_py.store import hold_rows, run_rows, specialist_rows
from claudomator_py.store.tables import Run

_SOURCE = 1_000


def hold_views(
    connection: Connection, agents: Sequence[AgentSpec], now_ms: int, by: Principal
) -> dict[str, tuple[HoldView, ...]]:
    """Each agent's holds that are not closed, the longest first.

    They are everybody's; in which run one was read is told only to who sees all runs.
    """
    open_now: list[tuple[Hold, int | None]] = [(hold, None) for hold in hold_rows.in_force(connection, now_ms)]
    tried = probed(connection, run_rows.live(connection), now_ms)
    all_of_them = [*open_now, *((one.hold, one.room) for one in tried)]
    return {
        agent.name: tuple(
            _hold_view(agent.name, hold, may_start, now_ms, by)
            for hold, may_start in all_of_them
            if hold.bucket.is_of(agent.name, agent.kind, agent.quota_account)
        )
        for agent in agents
    }


def agent_views(
    connection: Connection,
    registry: AgentRegistry,
    budgets: Budgets,
    now_ms: int,
    by: Principal,
    seen: tuple[Spent, Spent],
) -> list[AgentView]:
    """The agents that exist for whoever asks, as they are now. Their slots, holds and budgets are everybody's; what was
    spent is by the tasks that exist for whoever asks. seen: see ``Budgets.seen``."""
    today, own = seen
    # Once, as another thread may find a program that was installed meanwhile.
    agents = _seen(connection, registry.agents, by)
    active = Counter(run.agent for run in run_rows.live(connection))
    holds = hold_views(connection, agents, now_ms, by)
    warned = run_rows.warnings(connection, now_ms)
    return [
        agent_view(
            agent,
            registry,
            active[agent.name],
            holds[agent.name],
            _near_limit(agent, warned, by),
            spending_view(own.of(agent.name)),
            agent_budget(connection, agent, budgets, today, now_ms),
        )
        for agent in agents
    ]


def _seen(connection: Connection, agents: Sequence[AgentSpec], by: Principal) -> list[AgentSpec]:
    """But for those that are remote specialists whose card is hidden."""
    hidden = specialist_rows.hidden(connection, [agent.specialist for agent in agents], by)
    return [agent for agent in agents if agent.specialist not in hidden]


def hold_sentences(holds: Sequence[HoldView]) -> list[str]:
    """Of each hold: what it is on, and where it was read."""
    by_bucket = {hold.bucket: hold for hold in holds}
    return [_hold_sentence(hold) for hold in by_bucket.values()]


def _hold_sentence(hold: HoldView) -> str:
    if hold.reason is None:
        return f"An operator has held {hold.bucket} since {instant_text(hold.since)}."
    # Without a run it is one that the classifier met, or whose run is forgotten.
    read = f" from run {short_id(hold.run_id)}" if hold.run_id is not None else ""
    said = f": {_shown(hold.source)}" if hold.source else ""
    return f"The hold on {hold.bucket} ({hold.reason}) was read at {instant_text(hold.since)}{read}{said}."


def _hold_view(agent: str, hold: Hold, may_start: int | None, now_ms: int, by: Principal) -> HoldView:
    what = on_hold(
        agent,
        bucket=hold.bucket.label,
        reason=hold.reason,
        until=hold.until_ms,
        provenance=hold.provenance,
        source=hold.source,
        family=hold.bucket.family,
        window=hold.window,
        room=may_start,
        doubted=hold.doubted_ms,
    )
    return HoldView.of(
        hold,
        agent=agent,
        bucket=hold.bucket.label,
        family=hold.bucket.family,
        until=hold.until_ms,
        text=worded(predicate(what), utc_clock(now_ms)),
        blocked=what,
        since=hold.created_ms,
        run_id=hold.run_id if by.sees_all else None,
        probing=may_start is not None,
        may_start=may_start,
        doubted=hold.doubted_ms,
    )


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SOURCE else f"{line[:_SOURCE]}..."


def _near_limit(agent: AgentSpec, warned: Mapping[tuple[str, str], Run], by: Principal) -> NearLimitView | None:
    run = warned.get((agent.kind, agent.quota_account))
    if run is None or run.outcome is None or run.warned_until_ms is None:
        return None
    outcome = Outcome.model_validate(run.outcome)
    return NearLimitView(
        window=outcome.near_limit,
        used=outcome.near_limit_used,
        until=format_instant(run.warned_until_ms),
        since=format_instant(run.ended_ms or run.started_ms),
        run_id=run.id if by.sees_all else "",
    )
