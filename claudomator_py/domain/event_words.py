"""What happened, event by event, in words: the same on the page's timeline and on the command line."""

from collections.abc import Iterator, Mapping
from typing import Final

from claudomator_py.domain.units import short_id
from claudomator_py.values import regex, toml_data

TITLES: Final[Mapping[str, str]] = toml_data("claudomator_py.domain", "event_titles.toml")
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
        if key in _SILENT or value in (None, "", {}, [], False):
            continue
        if key == "bucket" and value == data.get("agent"):
            continue
        if key in ("generation", "attempt"):
            yield from _counted(key, value)
            continue
        parts_of = [f"{k} {_word(v)}" for k, v in value.items()] if isinstance(value, Mapping) else value
        words = ", ".join(map(_word, parts_of)) if isinstance(parts_of, list | tuple) else _word(value)
        yield words if key in _PLAIN else f"{_WORDS.get(key, key.replace('_', ' '))} {words}"


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
