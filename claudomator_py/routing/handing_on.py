"""Decides whether a run may hand its task off, pure: not in a circle, not too often, and only to permitted
specialists."""

from collections.abc import Mapping, Sequence

from claudomator_py.domain.card import Card
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.rationale import Rationale, RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.routing.ranking import Needs
from claudomator_py.scheduler.records import HandoffRecord, Route


def decide(
    asked: HandoffRequest,
    run_id: str,
    by: str | None,
    before: Sequence[HandoffRecord],
    cards: Mapping[str, Card],
    *,
    risk: Risk | None,
    max_handoffs: int,
    seen: bool = False,
) -> HandoffRecord:
    """Return the decision on that run's request.

    by: the specialist that has the task; None if there is none. before: the handoffs in this generation so far, in
    order. cards: the possible targets. seen: True if the requester can see a card of that name although it is not a
    possible target. Of the request only the name is used.
    """
    why = _obstacle(asked.to, by, before, cards, risk, max_handoffs)
    if why is not None and why.code is RationaleCode.NO_SPECIALIST and seen:
        why = rationale(RationaleCode.NOT_ADMITTED, specialist=asked.to)
    accepted = why is None
    return HandoffRecord(
        reason=why or rationale(RationaleCode.HANDED_ON, by=by, specialist=asked.to),
        risk=risk,
        route=Route.SPECIALIST if accepted else Route.HUMAN_REVIEW,
        specialist=asked.to if accepted else None,
        by=by,
        run_id=run_id,
        asked=asked,
        hop=len(before) + accepted,
        max_handoffs=max_handoffs,
    )


def fall_back(
    label: Route, run_id: str, by: str, before: Sequence[HandoffRecord], *, risk: Risk | None, max_handoffs: int
) -> HandoffRecord:
    """Return what happens to a task at which a specialist failed whose card names this route as fallback rather than
    another specialist.

    A task with more than a low risk does not fall to the default: a person is asked. The same applies once the maximum
    number of handoffs is reached. by, before: as for ``decide``.
    """
    may = risk in (None, Risk.LOW) and len(before) < max_handoffs
    route = Route.HUMAN_REVIEW if label is Route.DEFAULT and not may else label
    return HandoffRecord(
        reason=rationale(RationaleCode.FAILED_TWICE, by=by, specialist=route.value),
        risk=risk,
        route=route,
        specialist=None,
        by=by,
        run_id=run_id,
        asked=HandoffRequest(to=label.value),
        hop=len(before) + (route is Route.DEFAULT),
        max_handoffs=max_handoffs,
    )


def _obstacle(
    to: str,
    by: str | None,
    before: Sequence[HandoffRecord],
    cards: Mapping[str, Card],
    risk: Risk | None,
    max_handoffs: int,
) -> Rationale | None:
    card = cards.get(to)
    if card is None:
        return rationale(RationaleCode.NO_SPECIALIST, specialist=to)
    if to == by or any(to in (hop.by, hop.specialist) for hop in before):
        return rationale(RationaleCode.HANDOFF_LOOP, specialist=to)
    if len(before) >= max_handoffs:
        return rationale(RationaleCode.HANDOFF_LIMIT, most=max_handoffs)
    unmet = Needs(risk).unmet_by(card)
    return None if unmet is None else unmet.having(specialist=to)
