"""Events, from their rows to the shape in which they are shown."""

from collections.abc import Mapping, Sequence, Set
from typing import Final

from sqlalchemy import Connection

from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.inputs import request_in_event
from claudomator_py.domain.outcome import RefusedHandoff
from claudomator_py.domain.principal import Principal
from claudomator_py.resources.concealment import concealed, unnamed
from claudomator_py.resources.events.shape import EventView
from claudomator_py.store import specialist_rows, task_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Event
from claudomator_py.tasks.decisions import ROUTED
from claudomator_py.tasks.handing_on import HANDED_ON

_SPECIALISTS: Final[Mapping[str, tuple[str, ...]]] = {ROUTED: ("specialist",), HANDED_ON: ("from", "to")}
"""Keys under which events of a kind name specialists, whoever chose these."""


def event_views(connection: Connection, found: Sequence[Event], by: Principal) -> tuple[EventView, ...]:
    """Return events, without the specialists that do not exist for that principal, and the agents that these are."""
    told = (event.data.get(key) for event in found for key in _SPECIALISTS.get(event.kind, ()))
    named = [one for one in told if isinstance(one, str)]
    hidden = specialist_rows.hidden(connection, named, by)
    names = task_rows.names_of(connection, {event.task_id for event in found if event.task_id is not None})
    return concealed(connection, [_event_view(event, names, hidden) for event in unnamed(connection, found, by)], by)


def _event_view(event: Event, names: Mapping[str, str], hidden: Set[str]) -> EventView:
    data = {**event.data, **_budget_words(event), **_words(event)}
    for coded in ("asked", "meant"):
        data.pop(coded, None)
    concealed = {
        key for key in _SPECIALISTS.get(event.kind, ()) if isinstance(data.get(key), str) and data[key] in hidden
    }
    if concealed:
        data = {key: value for key, value in data.items() if key not in concealed | {"skill", "constraints"}}
    return EventView.of(event, data=data, task_name=names.get(event.task_id or ""))


def _words(event: Event) -> dict[str, str]:
    """Return what is asked and answered, and why a task was not handed on, in the places where earlier versions have
    stored the words."""
    told: dict[str, str] = {}
    if (asked := request_in_event(event.data)) is not None:
        told["asks"] = asked.words
    if (meant := event.data.get("meant")) is not None:
        told["answer"] = meant
    if (refused := event.data.get("refused_handoff")) is not None:
        why = readable(RefusedHandoff, refused)
        told |= {} if why is None else {"detail": why.text}
    return told


def _budget_words(event: Event) -> dict[str, str]:
    """Return the words for the budget that is used up, in the place where earlier versions have stored them."""
    budget = event.data.get("budget")
    if budget is None or event.kind not in ("over_budget", "budget_spent", "state"):
        return {}
    spent = readable(SpentBudget, budget)
    if spent is None:
        return {}
    if event.kind == "budget_spent":
        return {"figures": spent.figures.text}
    if event.kind == "over_budget":
        return {"why": spent.text}
    return {"detail": ". ".join(part for part in (spent.text, event.data.get("detail")) if part)}
