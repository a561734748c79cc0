"""Answers without the specialists whose cards are hidden from the caller.
The agent of a remote specialist, ``hub:ID`` or ``http:ID``, and the host it is reached at are unlike any other word.
They occur in rows, reasons, candidates, events' data and sentences, also in what a server answers; they are removed
from the finished shape, so that no place is missed.
The id of a card alone may be any word, such as ``plumber``. Sentences that name one are therefore not stored: rows hold
their parts, and the names are removed from those first.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.card import REMOTE_AGENT
from claudomator_py.domain.handoff import EarlierFailure, HandedOn, Handoff
from claudomator_py.domain.outcome import RefusedHandoff
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.rationale import SAID_BY_THE_TASK, Rationale
from claudomator_py.domain.remote import is_loopback
from claudomator_py.store import specialist_rows
from claudomator_py.store.tables import Event, Run, Task

Shape = TypeVar("Shape", bound=BaseModel)
Row = TypeVar("Row", Event, Run, Task)
Told = TypeVar("Told", EarlierFailure, HandedOn)

SOMEBODY: Final = "somebody else"
"""Stands for a hidden specialist."""
_ITS_SERVER: Final = "its server"
"""Stands for the place where a hidden specialist is reached."""
_PATH: Final = r"(?:[^\s\"'<>()]*[^\s\"'<>().,;:!?])?"
"""The path after a host; punctuation at its end belongs to the sentence."""
_COLUMNS: Final[Mapping[type, str]] = {Event: "data", Run: "outcome", Task: "asks"}
"""The column that holds such parts."""

_CONTENT = frozenset({"spec"})
"""Fields with what a task itself says, which is no secret from those who see the task."""


def concealed(connection: Connection, shapes: Sequence[Shape], by: Principal) -> tuple[Shape, ...]:
    """Return the shapes as the principal may see them: of a hidden agent, just its protocol, such as ``hub``."""
    if by.sees_all:
        return tuple(shapes)
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(match[2] for match in REMOTE_AGENT.finditer(text))
        return text

    for shape in shapes:
        _each(shape, note)
    hidden = specialist_rows.hidden(connection, found, by)
    if not hidden:
        return tuple(shapes)

    places = _places(specialist_rows.addresses(connection, hidden))

    def without(text: str) -> str:
        named = REMOTE_AGENT.sub(lambda match: match[1] if match[2] in hidden else match[0], text)
        return named if places is None else places.sub(_ITS_SERVER, named)

    return tuple(_each(shape, without) for shape in shapes)


def unnamed(connection: Connection, rows: Sequence[Row], by: Principal) -> list[Row]:
    """Return the rows without the specialists that are hidden from the principal, in the parts that sentences are made
    of."""
    if by.sees_all:
        return list(rows)
    named = {name for row in rows for name in _named_in(_part(row))}
    hidden = specialist_rows.hidden(connection, named, by)

    def told(row: Row) -> Row:
        part = _part(row)
        new = _without(part, hidden)
        return row if new is part else type(row)(**{**dict(row), _COLUMNS[type(row)]: new})

    return [told(row) for row in rows]


def _part(row: Event | Run | Task) -> Mapping[str, Any]:
    """Return the part that sentences are made of."""
    return getattr(row, _COLUMNS[type(row)]) or {}


def visible_handoff(connection: Connection, document: Handoff, by: Principal) -> Handoff:
    """Return the document as the principal may see it. A run itself sees all that it was told."""
    if by.role is Role.RUN:
        return document
    before, failures = document.before, document.failures
    named = {document.specialist, *document.escalation, *(one.specialist for one in failures)}
    hidden = specialist_rows.hidden(connection, named | {before.specialist if before is not None else None}, by)
    changes: dict[str, object] = {
        "escalation": tuple(one for one in document.escalation if one not in hidden),
        "failures": tuple(_of_nobody(one, hidden) for one in failures),
        "before": None if before is None else _of_nobody(before, hidden),
    }
    if document.specialist in hidden:
        changes |= {"specialist": None, "skill": None}
    return concealed(connection, [document.model_copy(update=changes)], by)[0]


def _of_nobody(one: Told, hidden: Collection[str]) -> Told:
    return one.model_copy(update={"specialist": None}) if one.specialist in hidden else one


def _named_in(part: Mapping[str, Any]) -> set[str]:
    """Return the specialists that such a part names; see ``Outcome`` and ``InputRequest``."""
    named = {*part.get("candidates", ()), part.get("meant", "")} - {""}
    if part.get("refused_handoff") is not None:
        refused = RefusedHandoff.model_validate(part["refused_handoff"])
        named |= {refused.to} | refused.why.named
    if part.get("unclear") is not None:
        named |= Rationale.model_validate(part["unclear"]).named
    return named | (_named_in(part["asked"]) if part.get("asked") is not None else set())


def _without(part: Mapping[str, Any], hidden: Collection[str]) -> Mapping[str, Any]:
    """Return the part without the hidden ones; the same object if it names none."""
    if _named_in(part).isdisjoint(hidden):
        return part

    def name(one: str) -> str:
        return SOMEBODY if one in hidden else one

    told = dict(part)
    if "candidates" in part:
        told["candidates"] = [one for one in part["candidates"] if one not in hidden]
    if "meant" in part:
        told["meant"] = name(part["meant"])
    if part.get("refused_handoff") is not None:
        refused = RefusedHandoff.model_validate(part["refused_handoff"])
        told["refused_handoff"] = refused.hiding(name).model_dump(mode="json", exclude_defaults=True)
    if part.get("unclear") is not None:
        unclear = Rationale.model_validate(part["unclear"])
        if unclear.code not in SAID_BY_THE_TASK:
            told["unclear"] = unclear.naming(name).model_dump(mode="json")
    if part.get("asked") is not None:
        told["asked"] = _without(part["asked"], hidden)
    return told


def _places(urls: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern of these places, however they are written; None if there are none."""
    forms = sorted({_origin(urlsplit(url)) for url in urls if url.startswith("http")})
    if not forms:
        return None
    return re.compile(rf"(?:{'|'.join(forms)})(?![\w-]|\.\w)(?:/{_PATH})?", re.IGNORECASE)


def _origin(url: SplitResult) -> str:
    """Return a pattern of the server. One on this machine is recognised by its port alone."""
    host = url.hostname or ""
    name = rf"\[{re.escape(host)}\]" if ":" in host else re.escape(host)
    if is_loopback(host):
        return rf"https?://{name}:{url.port or (443 if url.scheme == 'https' else 80)}"
    return rf"(?:https?://)?(?<![\w.-]){name}(?::\d+)?"


def _each(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with every text in it changed; the same object if none is."""
    if isinstance(value, str):
        changed = change(value)
        return value if changed == value else changed  # keeps the type of an enum
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields if name not in _CONTENT}
        changes = _changes(fields, change)
        return value.model_copy(update=changes) if changes else value
    if isinstance(value, Mapping):
        told = {_each(key, change): _each(one, change) for key, one in value.items()}
        return value if told == value else told
    if isinstance(value, list | tuple | set | frozenset):
        items = [(one, _each(one, change)) for one in value]
        same = all(new is old for old, new in items)
        return value if same else type(value)([new for _, new in items])
    return value


def _changes(fields: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that change."""
    told = {name: _each(one, change) for name, one in fields.items()}
    return {name: one for name, one in told.items() if one is not fields[name]}
