"""What the client is to do, as its command line says it: see ``agents/acp/kind.py``, which writes it."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from claudomator_py.agents.acp_client.tools import ToolPermissions

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Order(NamedTuple):
    """One run. The fields from ``usage`` on are from the agent's profile."""

    command: tuple[str, ...]
    session: str = ""
    """What is to be continued; empty: a new one."""
    mode: str = "default"
    """``permissions.mode`` of the task."""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    silence_s: float = 1_500.0
    """How long nothing may come of the agent while none of its tools is at work."""
    mcp_command: tuple[str, ...] = ()
    mcp_variables: tuple[str, ...] = ()
    """Names of variables that the MCP server gets from this environment."""
    fence: Mapping[str, Any] = _NONE
    """How far the run may reach, for ``agents.fence_hook``; empty: it has no fence."""
    profile: str = "generic"
    usage: str = "unknown"
    usage_file: Mapping[str, str] = _NONE
    """Where the agent keeps what a session has used: ``path``, ``input`` and ``output``."""
    modes: Mapping[str, str] = _NONE
    """The agent's names of modes: ``ask``, ``edits``, ``plan``, ``all``."""
    options: Mapping[str, str] = _NONE
    """Further options of a session that keep it asking."""
    noise: tuple[str, ...] = ()
    """Patterns of what its program says as if its model had."""
    kinds: Mapping[str, str] = _NONE
    """Patterns of titles of calls, and the kinds of tools that they mean."""
    model_by: str = "offered"
    """How a model is chosen: ``offered``, or ``unchecked``."""
    mcp: str = "stdio"
    """What MCP servers it takes: ``stdio``, ``http`` or ``none``."""
    load_waits: bool = False
    """Whether a session cannot be loaded in the minute of the clock in which it was made."""
    patience_s: float = 8.0
    """How long it has to end once its input has ended."""

    @property
    def permissions(self) -> ToolPermissions:
        """What the run may do."""
        return ToolPermissions(self.mode, self.allowed, self.disallowed)


def order_of(text: str) -> Order:
    """Return the order that the text holds."""
    given: Any = json.loads(text, object_pairs_hook=lambda pairs: {key: _frozen(value) for key, value in pairs})
    return Order(**given)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
