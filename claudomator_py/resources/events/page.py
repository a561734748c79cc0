"""What happened to a task, event by event, in words."""

from collections.abc import Sequence

from claudomator_py.api.page.formatting import short_line
from claudomator_py.api.page.rows import TONES
from claudomator_py.domain.event_words import TITLES, event_detail, event_title
from claudomator_py.domain.units import format_instant
from claudomator_py.resources.events import EventView
from claudomator_py.values import dataclass

KINDS = tuple(TITLES)
"""All kinds of events: a browser has to ask for each by its name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One event."""

    at: str
    """An instant."""
    title: str
    tone: str
    detail: str | None
    until: str | None
    """An instant, where the event names one."""


def timeline_of(events: Sequence[EventView]) -> tuple[Moment, ...]:
    """Return the moments, newest first."""
    return tuple(_moment(event) for event in reversed(events))


def _moment(event: EventView) -> Moment:
    until, state = event.data.get("until"), event.data.get("state")
    tone = TONES.get(state, "off") if event.kind == "state" and isinstance(state, str) else "off"
    # What was asked for says who asked; what follows from it does not name them again.
    who = [f"by {event.by}"] if event.by is not None and event.kind != "state" else []
    detail = short_line(", ".join([one for one in (event_detail(event.data), *who) if one]))
    at = format_instant(until) if isinstance(until, int) else None
    return Moment(event.at, event_title(event.kind, event.data), tone, detail, at)
