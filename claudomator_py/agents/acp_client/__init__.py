"""The client of one ACP run: it starts the agent's program, sends the prompt, decides on permissions, and prints
events. It uses the standard library alone, started isolated.

Its order is one argument on the command line, which ``agents/acp/kind.py`` writes.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from claudomator_py.agents.acp_client.tools import ToolPermissions

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class TurnOrder(NamedTuple):
    """One run. The fields from ``profile`` on come from the agent's profile."""

    command: tuple[str, ...]
    session: str = ""
    """The session to continue; empty: a new one."""
    mode: str = "default"
    """The task's ``permissions.mode``."""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    silence_s: float = 1_500.0
    """How long the agent may be silent while none of its tools runs."""
    mcp_command: tuple[str, ...] = ()
    mcp_variables: tuple[str, ...] = ()
    """Environment variables that are passed to the MCP server."""
    fence: Mapping[str, Any] = _NONE
    """The run's reach, for ``agents.fence_hook``; empty: no fence."""
    profile: str = "generic"
    usage: str = "unknown"
    usage_file: Mapping[str, str] = _NONE
    """The file with the session's usage: ``path``, ``input`` and ``output``."""
    journal: Mapping[str, Any] = _NONE
    """What the agent writes down about its session, for ``Journal``."""
    modes: Mapping[str, str] = _NONE
    """The agent's names for the modes ``ask``, ``edits``, ``plan`` and ``all``."""
    options: Mapping[str, str] = _NONE
    """Further session options that make the agent ask."""
    noise: tuple[str, ...] = ()
    """Patterns of messages that come from the program, not from its model."""
    kinds: Mapping[str, str] = _NONE
    """The kind of tool by pattern of a call's title."""
    given_as_text: bool = False
    """Whether a call's arguments are the text of its content, as JSON, until it runs."""
    model_by: str = "offered"
    """``offered``: the model must be one that the agent lists; ``unchecked``: any."""
    mcp: str = "stdio"
    """The transport of the MCP servers that it accepts: ``stdio``, ``http`` or ``none``."""
    load_waits: bool = False
    """Whether a session cannot be loaded in the clock minute in which it was used."""
    patience_s: float = 8.0
    """How long the agent may take to end after its input was closed."""

    @property
    def permissions(self) -> ToolPermissions:
        """The run's permissions."""
        return ToolPermissions(self.mode, self.allowed, self.disallowed)


def order_of(text: str) -> TurnOrder:
    """Return the order in a JSON text."""
    given: Any = json.loads(text, object_pairs_hook=lambda pairs: {key: _frozen(value) for key, value in pairs})
    return TurnOrder(**given)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
