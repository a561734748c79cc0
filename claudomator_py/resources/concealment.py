"""Removes from responses the specialists whose cards are hidden from the caller.

The agent of a remote specialist, ``hub:ID`` or ``http:ID``, and its host are unlike any other word. They occur in rows,
reasons, candidates, event data and sentences, and in the responses of servers, so they are removed from the finished
shape, where no place is missed.

The id of a card alone may be any word, such as ``plumber``. Sentences with such an id are therefore not stored: rows
hold their parts, and the names are removed from the parts first.
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
Named = TypeVar("Named", EarlierFailure, HandedOn)

SOMEBODY: Final = "somebody else"
"""Stands for a hidden specialist."""
_ITS_SERVER: Final = "its server"
"""Stands for the address of a hidden specialist."""
_PATH: Final = r"(?:[^\s\"'<>()]*[^\s\"'<>().,;:!?])?"
"""The path after a host; trailing punctuation belongs to the sentence."""
_COLUMNS: Final[Mapping[type, str]] = {Event: "data", Run: "outcome", Task: "asks"}
"""Table to the column that holds the parts of sentences."""

_CONTENT = frozenset({"spec"})
"""Fields that the task itself defines; whoever sees the task may see them."""


def concealed(connection: Connection, shapes: Sequence[Shape], by: Principal) -> tuple[Shape, ...]:
    """Return the shapes as the principal may see them: a hidden agent is shown as its protocol, such as ``hub``."""
    if by.sees_all:
        return tuple(shapes)
    names: set[str] = set()

    def note(text: str) -> str:
        names.update(match[2] for match in REMOTE_AGENT.finditer(text))
        return text

    for shape in shapes:
        _each(shape, note)
    hidden = specialist_rows.hidden(connection, names, by)
    if not hidden:
        return tuple(shapes)

    places = _places(specialist_rows.addresses(connection, hidden))

    def without(text: str) -> str:
        named = REMOTE_AGENT.sub(lambda match: match[1] if match[2] in hidden else match[0], text)
        return named if places is None else places.sub(_ITS_SERVER, named)

    return tuple(_each(shape, without) for shape in shapes)


def without_hidden(connection: Connection, rows: Sequence[Row], by: Principal) -> list[Row]:
    """Return the rows with the specialists that are hidden from the principal removed from the parts of sentences."""
    if by.sees_all:
        return list(rows)
    named = {name for row in rows for name in _named_in(_part(row))}
    hidden = specialist_rows.hidden(connection, named, by)

    def visible(row: Row) -> Row:
        part = _part(row)
        new = _without(part, hidden)
        return row if new is part else type(row)(**{**dict(row), _COLUMNS[type(row)]: new})

    return [visible(row) for row in rows]


def _part(row: Event | Run | Task) -> Mapping[str, Any]:
    """Return the parts of the row's sentences."""
    return getattr(row, _COLUMNS[type(row)]) or {}


def visible_handoff(connection: Connection, document: Handoff, by: Principal) -> Handoff:
    """Return the document as the principal may see it. A run sees all of its own."""
    if by.role is Role.RUN:
        return document
    before, failures = document.before, document.failures
    named = {document.specialist, *document.escalation, *(failure.specialist for failure in failures)}
    hidden = specialist_rows.hidden(connection, named | {before.specialist if before is not None else None}, by)
    changes: dict[str, object] = {
        "escalation": tuple(specialist for specialist in document.escalation if specialist not in hidden),
        "failures": tuple(_anonymous(failure, hidden) for failure in failures),
        "before": None if before is None else _anonymous(before, hidden),
    }
    if document.specialist in hidden:
        changes |= {"specialist": None, "skill": None}
    return concealed(connection, [document.model_copy(update=changes)], by)[0]


def _anonymous(entry: Named, hidden: Collection[str]) -> Named:
    return entry.model_copy(update={"specialist": None}) if entry.specialist in hidden else entry


def _named_in(part: Mapping[str, Any]) -> set[str]:
    """Return the specialists that the parts name; see ``Outcome`` and ``InputRequest``."""
    named = {*part.get("candidates", ()), part.get("meant", "")} - {""}
    if part.get("refused_handoff") is not None:
        refused = RefusedHandoff.model_validate(part["refused_handoff"])
        named |= {refused.to} | refused.why.named
    if part.get("unclear") is not None:
        named |= Rationale.model_validate(part["unclear"]).named
    return named | (_named_in(part["asked"]) if part.get("asked") is not None else set())


def _without(part: Mapping[str, Any], hidden: Collection[str]) -> Mapping[str, Any]:
    """Return the parts without the hidden specialists; the same object if they name none."""
    if _named_in(part).isdisjoint(hidden):
        return part

    def name(specialist: str) -> str:
        return SOMEBODY if specialist in hidden else specialist

    shown = dict(part)
    if "candidates" in part:
        shown["candidates"] = [specialist for specialist in part["candidates"] if specialist not in hidden]
    if "meant" in part:
        shown["meant"] = name(part["meant"])
    if part.get("refused_handoff") is not None:
        refused = RefusedHandoff.model_validate(part["refused_handoff"])
        shown["refused_handoff"] = refused.hiding(name).model_dump(mode="json", exclude_defaults=True)
    if part.get("unclear") is not None:
        unclear = Rationale.model_validate(part["unclear"])
        if unclear.code not in SAID_BY_THE_TASK:
            shown["unclear"] = unclear.naming(name).model_dump(mode="json")
    if part.get("asked") is not None:
        shown["asked"] = _without(part["asked"], hidden)
    return shown


def _places(urls: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern of these addresses, in any spelling; None if there are none."""
    forms = sorted({_origin(urlsplit(url)) for url in urls if url.startswith("http")})
    if not forms:
        return None
    return re.compile(rf"(?:{'|'.join(forms)})(?![\w-]|\.\w)(?:/{_PATH})?", re.IGNORECASE)


def _origin(url: SplitResult) -> str:
    """Return a pattern of the server. A server on this machine is matched only with its port."""
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
        mapping = {_each(key, change): _each(item, change) for key, item in value.items()}
        return value if mapping == value else mapping
    if isinstance(value, list | tuple | set | frozenset):
        items = [(item, _each(item, change)) for item in value]
        same = all(new is old for old, new in items)
        return value if same else type(value)([new for _, new in items])
    return value


def _changes(fields: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that change."""
    changed = {name: _each(value, change) for name, value in fields.items()}
    return {name: value for name, value in changed.items() if value is not fields[name]}
