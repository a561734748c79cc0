"""Read a remote agent's card: which version of A2A it speaks, at which address, and whether it streams.

Source: a2a-protocol.org, specification 1.0, section 8 (the well-known address, the order of interfaces); 0.3 for cards
with a ``url`` at the top, which some of 1.0 have as well.
"""

import json
from typing import Any, Final

from claudomator_py.agents.a2a_client.connection import HttpAnswer, Origin, RemoteServer, address, refusal
from claudomator_py.agents.a2a_client.wire import V0_3, V1
from claudomator_py.agents.client_output import End
from claudomator_py.json_fields import event_of, objects_of, text_of
from claudomator_py.values import dataclass

WELL_KNOWN: Final = "/.well-known/agent-card.json"


@dataclass(frozen=True)
class AgentInterface:
    """Where and how to reach the agent."""

    version: str
    path: str
    """With the query."""
    streams: bool
    tenant: str = ""
    """Sent with every request; empty: the card names none."""
    agent: str = ""
    """The agent's name in its card."""


def discover(server: RemoteServer, path: str) -> AgentInterface:
    """Return the interface that the card names. The card is looked for at the path, below it, and at the host's root.
    Raises as ``RemoteServer.request``, and End."""
    base = path.partition("?")[0].rstrip("/")
    places = [base] if base.endswith(".json") else list(dict.fromkeys([f"{base}{WELL_KNOWN}", WELL_KNOWN]))
    for place in places:
        answer = server.request("GET", place, headers={"Accept": "application/json"})
        if answer.status not in (404, 405, 501):
            return _chosen(server, _card(server, answer))
    error = f"{server.origin} has no card where the run's log says; set `protocol` to what it speaks: 1.0, 0.3 or post"
    raise End("setup", error, elsewhere=" and ".join(places))


def _card(server: RemoteServer, answer: HttpAnswer) -> dict[str, Any]:
    if (refused := refusal(server, answer)) is not None:
        raise refused
    try:
        card = json.loads(answer.body)
    except (ValueError, RecursionError):
        card = None
    if not isinstance(card, dict):
        raise End("setup", f"the card of {server.origin} is not a JSON object")
    return card


def _chosen(server: RemoteServer, card: dict[str, Any]) -> AgentInterface:
    streams = event_of(card, "capabilities").get("streaming") is True
    for version in (V1, V0_3):
        for url, tenant in _interfaces(card, version):
            origin, path = _address(url)
            if origin != server.origin:
                # Another host would get the prompt, and a loopback address would be one of this machine: whoever
                # configures the agent has to confirm that.
                error = "its card names another host, which the run's log has; configure that address if it is meant"
                raise End("setup", error, elsewhere=url)
            return AgentInterface(version, path, streams, tenant, text_of(card, "name") or "")
    raise End("setup", f"the card of {server.origin} names no interface for JSON-RPC in A2A 1.0 or 0.3")


def _address(url: str) -> tuple[Origin, str]:
    try:
        return address(url)
    except End as refused:
        error = "its card names an address that is not allowed; the run's log says which and why"
        raise End("setup", error, elsewhere=str(refused)) from None


def _interfaces(card: dict[str, Any], version: str) -> list[tuple[str, str]]:
    """Return the (address, tenant) pairs for JSON-RPC in that version, best first."""
    interfaces = [
        (text_of(interface, "url"), text_of(interface, "tenant"))
        for interface in objects_of(card, "supportedInterfaces")
        if interface.get("protocolBinding") == "JSONRPC" and _is_of(interface, version, V1)
    ]
    if _is_of(card, version, V0_3):
        if card.get("preferredTransport") in (None, "", "JSONRPC"):
            interfaces.append((text_of(card, "url"), None))
        further = objects_of(card, "additionalInterfaces")
        interfaces += [
            (text_of(interface, "url"), None) for interface in further if interface.get("transport") == "JSONRPC"
        ]
    return [(url, tenant or "") for url, tenant in interfaces if url is not None]


def _is_of(part: dict[str, Any], version: str, otherwise: str) -> bool:
    """Whether it says the same major version; before 1.0, the same minor version. otherwise: what saying none means."""
    number = (text_of(part, "protocolVersion") or "").strip().removeprefix("v") or otherwise
    return number.split(".")[0] == "1" if version == V1 else number.startswith("0.3")
