"""What happened to a task, event by event, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claudomator_py.api.page.rows import TONES, words_of
from claudomator_py.api.page.words import short_line
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import EventView

_TITLES = {
    "state": "State changed",
    "accepted": "Accepted",
    "cancel_requested": "Cancel requested",
    "restart_requested": "Restart requested",
    "content_changed": "Content changed",
    "renamed": "Renamed with its file",
    "answered": "Answered",
    "approved": "Approved",
    "rejected": "Rejected",
    "classified": "Tier classified",
    "routed": "Routed",
    "handed_on": "Handed on",
    "question_asked": "Question asked",
    "progress": "Progress",
    "subtask_created": "Task created by its run",
    "dependency_bound": "Dependency found",
    "hold": "Agent held",
    "released": "Agent released",
    "over_budget": "Stopped: over its budget",
    "budget_spent": "Daily budget spent",
    "drained": "Drain started",
    "undrained": "Drain ended",
    "conversation_given_up": "Conversation given up",
    "worktree": "Work tree created",
    "schedule_added": "Schedule added",
    "schedule_changed": "Schedule changed",
    "schedule_ended": "Schedule ended",
    "schedule_paused": "Schedule paused",
    "schedule_resumed": "Schedule resumed",
    "schedule_fired": "Created by a schedule",
    "schedule_skipped": "Scheduled time skipped",
    "schedule_held_up": "Holds up its schedule, as it waits for a person",
    "schedule_missed": "Scheduled times missed",
    "specialist_registered": "Specialist registered",
    "specialist_changed": "Specialist changed",
    "specialist_removed": "Specialist removed",
    "specialist_granted": "Specialist shared",
    "specialist_admitted": "Specialist admitted to the work of others",
    "specialist_dismissed": "Specialist's admission taken back",
    "specialist_revoked": "Sharing of a specialist revoked",
    "channel_created": "Channel created",
    "channel_changed": "Channel changed",
    "message_posted": "Message posted",
    "learning_frozen": "Learning stopped",
    "learning_unfrozen": "Learning resumed",
    "learning_reset": "Learned data deleted",
    "backup_made": "Database copied",
    "cleaned_up": "Cleaned up",
    "token_created": "Token created",
    "token_revoked": "Token revoked",
    "session_started": "Browser logged in",
    "session_ended": "Browser logged out",
    "notification_retried": "Notification retried",
    "config_reloaded": "Configuration reloaded",
}
KINDS = tuple(_TITLES)
"""All kinds of events: a browser has to ask for each by its name."""
# What says nothing to a person, or is said by the title or by words beside it.
_SILENT = frozenset({"event", "state", "phase", "status", "source", "name", "budget"})
_COUNTED = frozenset({"generation", "revision", "attempt"})
_PLAIN = frozenset({"reason", "detail", "why", "asks", "answer"})


@dataclass(frozen=True, slots=True)
class Moment:
    """One event. ``at`` is an instant; so is ``until``, where the event names one."""

    at: str
    title: str
    tone: str
    detail: str | None
    until: str | None


def timeline_of(events: Sequence[EventView]) -> tuple[Moment, ...]:
    """The moments, newest first."""
    return tuple(_moment(event) for event in reversed(events))


def _moment(event: EventView) -> Moment:
    data = dict(event.data)
    until = data.pop("until", None)
    tone = "off"
    if event.kind == "state" and isinstance(state := data.get("state"), str):
        title, tone = words_of(str(data.get("phase") or state)).capitalize(), TONES.get(state, "off")
    else:
        title = _TITLES.get(event.kind, event.kind.replace("_", " ").capitalize())
    # What was asked for says who asked; what follows from it does not name them again.
    if event.by is not None and event.kind != "state":
        data["by"] = event.by
    detail = short_line(_detail(data))
    return Moment(event.at, title, tone, detail, format_instant(until) if isinstance(until, int) else None)


def _detail(data: Mapping[str, object]) -> str:
    parts = []
    for key, value in data.items():
        if key in _SILENT or value in (None, "", {}, [], False) or (key in _COUNTED and value == 1):
            continue
        parts_of = [f"{k} {v}" for k, v in value.items()] if isinstance(value, Mapping) else value
        words = ", ".join(map(str, parts_of)) if isinstance(parts_of, list | tuple) else str(value)
        parts.append(words if key in _PLAIN else f"{key.replace('_', ' ')} {words}")
    return ", ".join(parts)
