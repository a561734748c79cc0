"""Keeps a run within its reach: each call that the agent asks about is read as other agents' hooks read theirs."""

import os
import shlex
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from claudomator_py.agents.acp_client.tools import ToolCall

_FOLDERS: Final = ("workdir", "dir_path", "directory", "cwd")
_NAMES: Final = {"edit": "edit", "read": "read", "fetch": "WebFetch", "search": "search"}
"""Names of tools of which ``acts`` knows what they do, by the protocol's kinds of tools."""


class FencedCall(NamedTuple):
    """What the fence says of a call. beyond: what of it goes too far; empty: nothing does."""

    beyond: str = ""
    rule: str | None = None
    """What a person grants to allow exactly this call."""
    granted: bool = False
    """Whether a person has allowed it."""


def judge(order: Mapping[str, Any], call: ToolCall) -> FencedCall:
    """Return what the fence says of the call. One that cannot be judged is beyond any reach."""
    # Read for whoever asks for something, and not for every run that starts.
    from claudomator_py.acts.tool_calls import rule_for
    from claudomator_py.agents.fence_hook.main import judge as judged

    tool, given = _acting(call)
    if not given:
        return FencedCall("nothing is known of the call")
    try:
        event = {"tool_name": tool, "tool_input": given, "cwd": os.getcwd()}  # noqa: PTH109
        far, granted = judged(order, event)
    except Exception as error:
        return FencedCall(f"the call could not be judged ({type(error).__name__})")
    return FencedCall(granted=granted) if far is None else FencedCall(far.does, rule_for(tool, given, far.digest))


def _acting(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The call as ``acts`` reads calls: a tool's name, and what it is given."""
    tool = call.name or _NAMES.get(call.kind) or call.tool
    folder = {name: call.given[name] for name in _FOLDERS if isinstance(call.given.get(name), str)}
    if call.kind == "execute" or call.command is not None:
        return tool, {**folder, "command": call.command or call.subject} if call.command or call.subject else {}
    places = call.places or ((call.subject,) if call.subject else ())
    if call.kind in ("delete", "move") and places:
        return tool, {"command": f"rm -r -- {shlex.join(places)}"}
    if call.kind in ("edit", "read") and places:
        patch = "\n".join(f"*** Update File: {place}" for place in places)
        return _NAMES[call.kind], {"path": places[0], **({"input": patch} if call.kind == "edit" else {})}
    return tool, dict(call.given) or ({"title": call.title} if call.title else {})
