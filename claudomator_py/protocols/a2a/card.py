"""This daemon's public agent card.

Source: a2a-protocol.org, specification 1.0, section 4.4, and 0.3, section 5.5. Where the versions differ, as in
security, the card has the fields of both, so that one document serves all clients.
"""

from collections.abc import Sequence
from typing import Any, Final

from claudomator_py import __version__
from claudomator_py.domain.card import Card
from claudomator_py.protocols.a2a.messages import ANY_SKILL

MAX_EXAMPLES: Final = 5
_TEXT: Final = ["text/plain"]
_BEARER: Final = {"scheme": "bearer"}
_ANY: Final = {
    "id": ANY_SKILL,
    "name": "Do a task",
    "description": "Gives the task to the agent that suits it.",
    "tags": ["task"],
}


def agent_card(base: str, cards: Sequence[Card]) -> dict[str, Any]:
    """Return the card as JSON. base: the URL that the request was sent to. cards: the public specialists."""
    url = f"{base}/a2a"
    versions = ("1.0", "0.3")
    interfaces = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version} for version in versions]
    return {
        "name": "Claudomator",
        "description": "Dispatches tasks to coding agents, unattended. A task without `executor.name` goes to whoever "
        "suits it; `executor.name` in the message's metadata names one of the skills below, and `skill_used` a "
        "skill of that one.",
        "version": __version__,
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": False},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": _BEARER, "type": "http", **_BEARER}},
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "security": [{"token": []}],
        "defaultInputModes": _TEXT,
        "defaultOutputModes": _TEXT,
        "skills": [_ANY, *map(_skill, cards)],
        "url": url,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
    }


def _skill(card: Card) -> dict[str, Any]:
    """Return a specialist as an A2A skill; its own skills are listed in the description."""
    examples = [example for skill in card.skills for example in skill.examples][:MAX_EXAMPLES]
    able = ", ".join(f"{skill.name} (`{skill.id}`)" for skill in card.skills)
    return {
        "id": card.id,
        "name": card.title,
        "description": f"{card.description}{f' Skills, for `skill_used`: {able}.' if able else ''}",
        "tags": list(card.keywords) or [card.id],
        **({"examples": examples} if examples else {}),
    }
