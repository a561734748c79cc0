"""Configure a session before its prompt: the mode in which the agent asks for permission, the model and the effort."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol

from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.acp_client.peer import RequestRefused
from claudomator_py.agents.client_output import End, Output
from claudomator_py.json_fields import Event, event_of, objects_of, text_of

_WANTED: Final = {"default": "ask", "acceptEdits": "edits", "plan": "plan", "bypassPermissions": "all"}
_ASKING: Final = ("ask", "default", "manual", "read-only", "normal")
"""Names of asking modes, for agents that nothing is known about."""
_AMBIGUOUS: Final = ("ask", "read-only")
"""Some agents answer questions in such a mode, and change nothing: the description tells."""
_PERMISSION: Final = re.compile(r"permission|approv|confirm|prompts?\b", re.IGNORECASE)
"""What describes a mode in which an agent asks before it acts."""
_UNASKED: Final = re.compile(r"auto|yolo|bypass|full|accept|dangerous|review|never|dont", re.IGNORECASE)
"""Names of modes in which the agent, or a model, grants permissions itself."""
_MAX_NAMED: Final = 8


class Settable(Protocol):
    """A session with settings."""

    def set(self, method: str, **params: Any) -> Event:
        """Send a request about the session and return its result."""


def choose_mode(session: Settable, order: TurnOrder, state: Mapping[str, Any], output: Output) -> None:
    """Choose a mode in which the agent asks; the client then decides. Only ``plan`` is a mode of the agent. Raises End
    if the agent would grant itself permissions and has no asking mode."""
    wanted = _WANTED.get(order.mode, "ask")
    if order.fence and wanted != "plan":
        wanted = "ask"  # the fence sees only what the agent asks about
    offered, current, option = _modes(state)
    name = order.modes.get(wanted) or order.modes.get("ask")
    choice = _match(name, offered) if name else _asking_mode(offered, current)
    if wanted == "plan":
        choice = _match(order.modes.get("plan", "plan"), offered)
        if choice is None:
            raise End("mode", f"it has no planning mode{_offer_text(offered)}")
    if choice is None and name is None and current is not None and not _UNASKED.search(current):
        choice = current
    if choice is None and wanted != "all" and offered:
        raise End("mode", f"it has no mode in which it asks before it acts{_offer_text(offered)}")
    if choice is not None and choice != current:
        _set(session, "mode", option, choice)
        output.event("notice", text=f"mode: {choice}")
    for key, value in order.options.items():
        if _option(state, "id", key) is not None:
            _set(session, "mode", key, value)


def _set(session: Settable, what: str, option: str | None, value: str) -> None:
    """Set an option, or the mode or model by its own method. Raises End if the agent refuses."""
    method, name = ("session/set_mode", "modeId") if what == "mode" else ("session/set_model", "modelId")
    try:
        if option is None:
            session.set(method, **{name: value})
        else:
            session.set("session/set_config_option", configId=option, value=value)
    except RequestRefused as refused:
        raise End(what, f"it does not take {value!r}: {refused.message}") from None


def choose_model(session: Settable, order: TurnOrder, state: Mapping[str, Any], output: Output) -> None:
    """Choose the model. Raises End if the agent does not offer it."""
    if not order.model:
        return
    option = _option(state, "id", "model") or _option(state, "category", "model")
    available = objects_of(event_of(state, "models"), "availableModels")
    listed = [(str(model.get("modelId")), str(model.get("name"))) for model in available]
    offered = listed if option is None else list(_values(option))
    value = _named_value(order.model, offered)
    if value is None and option is None and order.model_by == "unchecked":
        value = order.model
    if value is None:
        raise End("model", f"it offers no model {order.model!r}{_offer_text([name for name, _ in offered])}")
    _set(session, "model", None if option is None else str(option.get("id")), value)
    output.event("notice", text=f"model: {value}")


def choose_effort(session: Settable, order: TurnOrder, state: Mapping[str, Any], output: Output) -> None:
    """Choose the effort, if the agent has such a setting. Raises End if it does not offer this effort."""
    if not order.effort:
        return
    option = _option(state, "category", "thought_level")
    if option is None:
        output.event("notice", text=f"it has no setting for effort, so {order.effort!r} is ignored")
        return
    offered = list(_values(option))
    value = _named_value(order.effort, offered)
    if value is None:
        raise End("model", f"it offers no effort {order.effort!r}{_offer_text([name for name, _ in offered])}")
    _set(session, "model", str(option.get("id")), value)


def _modes(state: Mapping[str, Any]) -> tuple[dict[str, str], str | None, str | None]:
    """Return the modes offered with their descriptions, the current one, and the option that sets it; None: a method
    does."""
    option = _option(state, "id", "mode") or _option(state, "category", "mode")
    if option is not None:
        offered = {entry["value"]: text_of(entry, "description") or "" for entry in _entries(option)}
        return offered, text_of(option, "currentValue"), str(option.get("id"))
    modes = event_of(state, "modes")
    listed = objects_of(modes, "availableModes")
    return (
        {str(mode.get("id")): text_of(mode, "description") or "" for mode in listed},
        text_of(modes, "currentModeId"),
        None,
    )


def _match(name: str | None, offered: Iterable[str]) -> str | None:
    return next((mode for mode in offered if mode == name or (name and mode.endswith(f"#{name}"))), None)


def _asking_mode(offered: Mapping[str, str], current: str | None) -> str | None:
    """Return the asking mode of an agent that nothing is known about."""
    by_name = {mode.rpartition("#")[2].lower(): mode for mode in offered}
    named = ((name, by_name[name]) for name in _ASKING if name in by_name)
    mode = next((mode for name, mode in named if _asks(name, offered[mode])), None)
    return current if mode is None and current is not None and not _UNASKED.search(current) else mode


def _asks(name: str, description: str) -> bool:
    return name not in _AMBIGUOUS or not description or _PERMISSION.search(description) is not None


def _option(state: Mapping[str, Any], key: str, value: str) -> Mapping[str, Any] | None:
    return next((option for option in objects_of(state, "configOptions") if option.get(key) == value), None)


def _values(option: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return an option's (value, name) pairs, grouped or not."""
    return ((entry["value"], str(entry.get("name"))) for entry in _entries(option))


def _entries(option: Mapping[str, Any]) -> Iterator[Event]:
    for entry in objects_of(option, "options"):
        if isinstance(entry.get("options"), list):
            yield from _entries(entry)
        elif isinstance(entry.get("value"), str):
            yield entry


def _named_value(wanted: str, offered: list[tuple[str, str]]) -> str | None:
    by_value = next((value for value, _ in offered if value == wanted), None)
    return by_value or next((value for value, name in offered if name == wanted), None)


def _offer_text(offered: Collection[str]) -> str:
    return f"; it has {', '.join(islice(offered, _MAX_NAMED))}" if offered else ""
