"""Connections of agents, and the runs that are assigned to them, as the hub keeps them in memory."""

import asyncio
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from claudomator_py.protocols.hub.mailbox import End, ProgressAllowance
from claudomator_py.values import dataclass


class AgentRefused(Exception):
    """The agent answered a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AgentGone(Exception):
    """The agent is no longer connected, or did not answer in time."""


class HubPeer(Protocol):
    """The agent's end of a connection. Used on the loop."""

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        """Return the agent's answer to the request. Raises AgentRefused, AgentGone."""

    def close(self, code: int, reason: str) -> None:
        """Close the connection with a WebSocket code."""


@dataclass(eq=False, slots=True)
class AgentConnection:
    """A registered connection of an agent, which may have several."""

    agent_id: str
    instance_id: str
    most: int
    """The maximum number of simultaneous assignments."""
    peer: HubPeer
    runs: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Assignment:
    """A live run. link: the connection that has accepted it or is being offered it."""

    run_id: str
    task_id: str
    agent_id: str
    allowance: ProgressAllowance
    """How much progress may still be stored."""
    link: AgentConnection | None = None
    accepted: bool = False
    end: End | None = None
    free_s: float = 0.0
    """Loop time since which no connection has it: one was lost, or the daemon started."""
    not_before_s: float = 0.0
    """Loop time before which it is not offered."""
    refusals: int = 0
    wake_by_s: float | None = None
    """Loop time by which the agent, which is being woken, must connect."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its end is written."""
