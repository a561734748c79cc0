"""What is shown, without the agents that are remote specialists whose cards are hidden from whoever asks.

Such an agent is called ``hub:ID`` or ``http:ID``, after its card. The name is in rows, in reasons with their words, in
candidates, in the data of events and in sentences; it is taken out of the finished shape, so that no place is left out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.card import REMOTE_AGENT
from claudomator_py.domain.principal import Principal
from claudomator_py.store import specialist_rows

Shape = TypeVar("Shape", bound=BaseModel)

_CONTENT = frozenset({"spec"})
"""Fields with what a task says itself, which is no secret to those who see the task."""


def concealed(connection: Connection, shapes: Sequence[Shape], by: Principal) -> tuple[Shape, ...]:
    """The shapes as that principal may see them: of a hidden agent, how it is reached alone, such as ``hub``."""
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

    def without(text: str) -> str:
        return REMOTE_AGENT.sub(lambda match: match[1] if match[2] in hidden else match[0], text)

    return tuple(_each(shape, without) for shape in shapes)


def _each(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; the same object where none is."""
    if isinstance(value, str):
        changed = change(value)
        return value if changed == value else changed
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields if name not in _CONTENT}
        changes = _changes(fields, change)
        return value.model_copy(update=changes) if changes else value
    if isinstance(value, Mapping):
        told = {_each(key, change): _each(one, change) for key, one in value.items()}
        return value if told == value else told
    if isinstance(value, Collection) and not isinstance(value, bytes):
        items = [_each(one, change) for one in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)  # type: ignore[call-arg]
    return value


def _changes(fields: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """What is to be changed of them."""
    told = {name: _each(one, change) for name, one in fields.items()}
    return {name: one for name, one in told.items() if one is not fields[name]}
