"""Agents as cards, beside the overview and on a page of their own, with buttons to hold and release them."""

from collections.abc import Sequence

from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.rendering import button, render
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.wording import Piece, Sentence
from claudomator_py.resources.agents import (
    AgentCalls,
    AgentCondition,
    AgentView,
    BudgetView,
    HoldView,
    NearLimitView,
    WindowView,
)
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.daemon.service import Hosts
from claudomator_py.values import dataclass

_TONES = {
    AgentCondition.READY: "good",
    AgentCondition.FULL: "busy",
    AgentCondition.TRYING: "busy",
    AgentCondition.SPENT: "ask",
    AgentCondition.LIMITED: "ask",
    AgentCondition.HELD: "ask",
    AgentCondition.BROKEN: "bad",
}


routes = UnlistedRoutes("/agents")


@routes.get("", "listAgents")
def show(granted: Allowed) -> Response:
    shown = {"agents": cards_of(granted[Agents].all()), "hosts": granted[Hosts].last_known()}
    return render("agents.html", {**shown, "place": "/agents"}, granted)


button(routes, "/{name}/release", AgentCalls.release, Agents, "/#agents", stays=True)
button(routes, "/{name}/hold", AgentCalls.hold, Agents, "/#agents", stays=True)


@dataclass(frozen=True, slots=True)
class WindowMeter:
    """A window of a card. is_used_up: whether the agent is limited by it. is_before: whether the agent has met a limit
    of an unknown window since its share was reported."""

    view: WindowView
    is_used_up: bool
    is_before: bool


@dataclass(frozen=True, slots=True)
class AgentCard:
    """The card of an agent, and its state in words."""

    view: AgentView
    tone: str
    near: Sentence | None
    """A limit that is nearly reached."""
    spent: Sentence | None
    """What it has spent today, if that is limited."""
    windows: tuple[WindowMeter, ...]


def _meter(window: WindowView, holds: Sequence[HoldView]) -> WindowMeter:
    limits = [
        hold
        for hold in holds
        if hold.reason is Reason.RATE_LIMITED and not hold.probing and hold.family in (None, window.family)
    ]
    return WindowMeter(
        window,
        is_used_up=any(hold.window == window.name for hold in limits),
        is_before=any(hold.window is None and hold.since >= window.said_at for hold in limits),
    )


def cards_of(agents: Sequence[AgentView]) -> tuple[AgentCard, ...]:
    """Return the agents' cards in order."""
    return tuple(map(_card, agents))


def _card(agent: AgentView) -> AgentCard:
    near = _near(agent.near_limit) if agent.near_limit is not None else None
    windows = tuple(_meter(window, agent.holds) for window in agent.windows)
    return AgentCard(agent, _TONES[agent.condition], near, spent_of(agent.budget), windows)


def spent_of(budget: BudgetView | None) -> Sentence | None:
    """Return how much of a day's budget is spent and, once it is used up, until when; None without a budget."""
    if budget is None or not (budget.reached or budget.text):
        return None
    if budget.reached is None:
        return (Piece(f"today {budget.text}"),)
    used = Piece(f"nothing starts: {budget.reached} used")
    return (used,) if budget.until is None else (used, Piece(", until "), Piece(instant=budget.until))


def _near(near: NearLimitView) -> Sentence:
    window = window_text(near.window) if near.window is not None else "limit"
    used = f" is {near.used:.0%} used" if near.used is not None else " is nearly used up"
    return (Piece(f"{window}{used}; it resets "), Piece(instant=near.until))
