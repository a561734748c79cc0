"""The shapes and operations of events, and what happened in words, for page and command line alike. Field order is the
order of the JSON."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field

from claudomator_py.domain.shape import Instant, Page, View
from claudomator_py.domain.units import short_id
from claudomator_py.surface import READ, Calls, Cursor, InQuery, Streamed, operation
from claudomator_py.values import regex, toml_data

MAX_EVENTS: Final = 500
"""The most events on one page of a list."""
_MAX_ID: Final = 2**53


class EventView(View):
    """An event. Ids increase in the order of events."""

    id: int
    at: Instant
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    data: dict[str, object] = Field(default_factory=dict)
    by: str | None = None
    """Who caused it, such as the name of a token; null: the daemon itself."""
    task_name: str | None = None
    """The task's name; null: it is about none, or the task was removed."""


_STREAM = Streamed(
    "Server-sent events: `id` is the event's id, `event` its kind, `data` the event as JSON. While nothing happens, a "
    "comment is sent every 15 seconds. An event of kind `reset` says that the position to continue from is unknown, or "
    "that events after it are no longer kept, and that the stream starts with what happens from now on.",
    'id: 12\nevent: state\ndata: {"id":12,"at":"2026-12-01T08:00:00.000Z","task_id":"…","run_id":null,"kind":"state",'
    '"data":{}}\n\n',
)


class EventCalls(Calls):
    """The operations on events, as the client calls them."""

    @operation(
        "GET /v1/events",
        "listEvents",
        READ,
        "What happened, oldest first; with Accept: text/event-stream, what happens from now on",
        refuses=(404, 409, 410),
        streamed=_STREAM,
    )
    def list_events(
        self,
        *,
        task: Annotated[str | None, InQuery("Only events of this task.", max=128)] = None,
        kind: Annotated[
            list[str] | None,
            InQuery("Only events of these kinds.", max=20),
        ] = None,
        by: Annotated[
            str | None, InQuery("Only events caused by this principal, such as a token's name.", max=128)
        ] = None,
        last: Annotated[
            int | None,
            InQuery("Only this many of the newest, oldest first. Not with `after` or `cursor`.", 1, MAX_EVENTS),
        ] = None,
        after: Annotated[int | None, InQuery("Start after this id; 0: from the beginning.", 0, _MAX_ID)] = None,
        cursor: Cursor = None,
        limit: Annotated[int, InQuery("Maximum number of events, 1 to 500.", 1, MAX_EVENTS)] = 100,
    ) -> Page[EventView]:
        """Ids increase in the order of events, and no event appears late: a stream continues after the last id seen."""

    def last_events(self, last: int, *, task: str | None = None, by: str | None = None) -> list[EventView]:
        """Return the newest events, oldest first. by: only those caused by this principal."""
        return list(self.list_events(task=task, by=by, last=last, limit=MAX_EVENTS).items)


TITLES: Final[Mapping[str, str]] = toml_data("claudomator_py.resources.events", "titles.toml")
"""Titles by kind of event."""
_ID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COMMIT_DIGITS = 10
_COMMIT = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Keys that mean nothing to a person, or that the title or the words beside it already cover.
_SILENT = frozenset(
    {"event", "state", "phase", "status", "source", "name", "budget", "by", "until", "revision", "text", "due"}
    | {"constraints"}
)
_PLAIN = frozenset({"reason", "detail", "why", "asks", "answer", "provenance"})
_WORDS: Final[Mapping[str, str]] = {"bucket": "held"}


def event_title(kind: str, data: Mapping[str, object]) -> str:
    """Return what happened in a few words: ``Running``, ``Restart requested``."""
    if kind == "state" and isinstance(state := data.get("state"), str):
        return str(data.get("phase") or state).replace("_", " ").capitalize()
    return TITLES.get(kind, kind.replace("_", " ").capitalize())


def event_detail(data: Mapping[str, object]) -> str:
    """Return the details; empty if the title says everything. A due time (``until``) is not included."""
    return ", ".join(_details(data))


def _details(data: Mapping[str, object]) -> Iterator[str]:
    for key, value in data.items():
        if _says_nothing(key, value):
            continue
        if key == "bucket" and value == data.get("agent"):
            continue
        if key in ("generation", "attempt"):
            yield from _counted(key, value)
            continue
        parts_of = value
        if isinstance(value, Mapping):
            parts_of = [k if v is True else f"{k} {_word(v)}" for k, v in value.items() if not _says_nothing(k, v)]
        words = ", ".join(map(_word, parts_of)) if isinstance(parts_of, list | tuple) else _word(value)
        if not words:
            continue
        yield words if key in _PLAIN else f"{_WORDS.get(key, key.replace('_', ' '))} {words}"


def _says_nothing(key: object, value: object) -> bool:
    return key in _SILENT or value in (None, "", {}, [], False)


def _word(value: object) -> str:
    """Return the value for people, who need only the start of an id or a commit."""
    text = str(value)
    if _COMMIT.fullmatch(text):
        return text[:_COMMIT_DIGITS]
    return short_id(text) if _ID.fullmatch(text) else text


def _counted(key: str, value: object) -> Iterator[str]:
    if not isinstance(value, int) or value == 1:
        return
    yield f"after restart {value - 1}" if key == "generation" else f"{key} {value}"
