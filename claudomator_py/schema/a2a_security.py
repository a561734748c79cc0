"""Converts the authentication part of an A2A card between versions.

Source: a2a-protocol.org, specification 1.0, section 4.5 (SecurityScheme, SecurityRequirement), and 0.3, section 5.5.3.
Unknown keys are kept, as both versions ignore them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

_SCHEMES: Final = {
    "apiKey": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}
"""The ``type`` of a scheme in 0.3, and in 1.0 the only key of the object that contains the scheme."""
_EXTENDED: Final = ("supportsAuthenticatedExtendedCard", "extendedAgentCard")


def security_of_1_0(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the 0.3 card with its authentication in the form of 1.0."""
    converted = _with(card, "security", "securityRequirements", _requirement_of_1_0)
    converted = _with_schemes(converted, _scheme_of_1_0)
    old, new = _EXTENDED
    if old in converted:
        converted["capabilities"] = {**(converted.get("capabilities") or {}), new: converted.pop(old)}
    return converted


def security_of_0_3(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the 1.0 card with its authentication in the form of 0.3."""
    converted = _with(card, "securityRequirements", "security", _requirement_of_0_3)
    converted = _with_schemes(converted, _scheme_of_0_3)
    old, new = _EXTENDED
    capabilities = converted.get("capabilities")
    if isinstance(capabilities, dict) and new in capabilities:
        converted[old] = capabilities[new]
        converted["capabilities"] = {key: value for key, value in capabilities.items() if key != new}
    return converted


def _with(card: Mapping[str, Any], old: str, new: str, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """The card with its requirements, and those of its skills, moved to the other key."""

    def moved(part: Any) -> Any:
        if not isinstance(part, dict) or not isinstance(part.get(old), list):
            return part
        return {(new if key == old else key): value for key, value in part.items()} | {
            new: [convert(item) for item in part[old]]
        }

    converted: dict[str, Any] = moved(dict(card))
    if isinstance(converted.get("skills"), list):
        converted["skills"] = [moved(skill) for skill in converted["skills"]]
    return converted


def _with_schemes(card: dict[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    schemes = card.get("securitySchemes")
    if not isinstance(schemes, dict):
        return card
    return {**card, "securitySchemes": {name: convert(scheme) for name, scheme in schemes.items()}}


def _scheme_of_1_0(scheme: Any) -> Any:
    kind = _SCHEMES.get(scheme["type"]) if isinstance(scheme, dict) and isinstance(scheme.get("type"), str) else None
    if kind is None:
        return scheme
    fields = {key: value for key, value in scheme.items() if key != "type"}
    if "in" in fields:
        fields["location"] = fields.pop("in")
    return {kind: fields}


def _scheme_of_0_3(scheme: Any) -> Any:
    if not isinstance(scheme, dict):
        return scheme
    for kind, key in _SCHEMES.items():
        if isinstance(scheme.get(key), dict):
            fields = {**{name: value for name, value in scheme.items() if name != key}, **scheme[key]}
            if "location" in fields:
                fields["in"] = fields.pop("location")
            return {"type": kind, **fields}
    return scheme


def _requirement_of_1_0(requirement: Any) -> Any:
    if not isinstance(requirement, dict) or not all(isinstance(scopes, list) for scopes in requirement.values()):
        return requirement
    return {"schemes": {name: {"list": scopes} for name, scopes in requirement.items()}}


def _requirement_of_0_3(requirement: Any) -> Any:
    schemes = requirement.get("schemes") if isinstance(requirement, dict) else None
    if not isinstance(schemes, dict):
        return requirement
    return {name: (scopes.get("list") or []) if isinstance(scopes, dict) else [] for name, scopes in schemes.items()}
