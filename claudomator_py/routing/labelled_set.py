"""The lines of a labelled set: cards, and tasks of which is known who is right, or what else should come of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.routing import Risk
from claudomator_py.routing.handoff_evaluation import Demand, demand_of
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.decision import Route
from claudomator_py.schema.validation import first_problem

TO_SOMEBODY = (Route.SPECIALIST, Route.HUMAN_REVIEW)


@dataclass(frozen=True, slots=True)
class Case:
    """One task of the set."""

    id: str
    request: Request
    expected: frozenset[str] | None = None
    """Who would be right: any of these; empty: nobody. None: it has no label."""
    route: Route | None = None
    """Which way would be right; None: the set does not say."""
    risk: Risk | None = None
    """How risky it is; None: the set does not say."""
    mentions: tuple[str, ...] = ()
    """Whom it addresses."""
    tiers: tuple[Tier, ...] = ()
    """The tiers that will do; empty: the set does not say."""
    demand: Demand | None = None
    """What its handoffs have to be; None: the set does not say."""


def card_of(data: Mapping[str, Any]) -> Card:
    """The card that a line of a set describes: a card, or one with ``display_name`` and ``allowed_backends``.

    Raises ValueError.
    """
    renamed = dict(data)
    for old, new in ALIASES.items():
        if old in renamed:
            renamed.setdefault(new, renamed.pop(old))
    known = {name: value for name, value in renamed.items() if name in Card.model_fields}
    try:
        return Card.model_validate(known)
    except ValidationError as error:
        raise ValueError(first_problem(Card, error).render()) from None


def ignored(data: Mapping[str, Any]) -> list[str]:
    """The keys of such a line that say nothing of a card."""
    return sorted(set(data) - set(Card.model_fields) - set(ALIASES))


def case_of(data: Mapping[str, Any]) -> Case:
    """The case that a line of a set describes, of either kind: ``text``, with ``agent`` and ``oos`` as its label; or
    ``instructions``, ``name`` and ``tags``, with ``expected``. Raises ValueError.
    """
    identity, text = data.get("id"), data.get("instructions", data.get("text"))
    if not isinstance(identity, str) or not isinstance(text, str):
        raise ValueError("it needs an `id` and a `text` or `instructions`")
    tags = data.get("tags") or ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("`tags` is not a list of texts")
    request = Request(text, str(data.get("name") or ""), tuple(tags))
    label, demand = data.get("expected"), demand_of(data, text)
    if not isinstance(label, Mapping):
        return Case(identity, request, _expected(data), demand=demand)
    route, risk = label.get("route"), label.get("risk")
    return Case(
        identity,
        request,
        _expected(data),
        Route(route) if route in tuple(Route) else None,
        Risk(risk) if risk in tuple(Risk) else None,
        tuple(one for one in label.get("mentions") or () if isinstance(one, str)),
        tuple(Tier(one) for one in label.get("acceptable_tiers") or [label.get("tier")] if one in tuple(Tier)),
        demand,
    )


def _expected(data: Mapping[str, Any]) -> frozenset[str] | None:
    label = data.get("expected")
    if isinstance(label, Mapping):
        if label.get("route") not in TO_SOMEBODY:
            return frozenset()
        return frozenset(one for one in (label.get("specialist"), *(label.get("acceptable") or ())) if one)
    if "agent" not in data:
        return None
    return frozenset() if data.get("oos") or data["agent"] is None else frozenset({str(data["agent"])})
