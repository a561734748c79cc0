"""A2A agent cards of 0.3 and 1.0, read into ours and written from it; no field is lost on the way, but for signatures
of what is no longer said.

Source: a2a-protocol.org, specification 1.0, section 4.4 (AgentCard, AgentSkill, AgentInterface), and the same of 0.3.
A card keeps the document that it was read from (``extra``, under ``a2a``), and what is written is that document, with
what was changed since. What A2A has no place for is in an extension of its capabilities, and read from there.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.remote import Scheme
from claudomator_py.schema.a2a_security import security_of_0_3, security_of_1_0
from claudomator_py.schema.validation import odd_values, validate

Version = Literal["0.3", "1.0"]
"""Of A2A."""

EXTENSION: Final = "urn:claudomator:card:1"
"""Its parameters are a whole card of ours."""
KEPT: Final = "a2a"
"""Under which ``Card.extra`` has the document that it was read from."""
A2A_FIELDS: Final = frozenset({"id", "name", "description", "version", "url", "capabilities", "skills", "extra"})
"""Keys of ours that mean something else in a card of A2A, or the same."""
_TEXT: Final = ["text/plain"]
_LONGEST_ID: Final = 64
_NOT_IN_IDS = re.compile(r"[^a-z0-9._-]+")
_SKILL_FIELDS: Final = ("id", "name", "description", "tags", "examples")


def is_a2a(document: Mapping[str, Any]) -> bool:
    """Whether it is a card of A2A rather than one of ours."""
    return "id" not in document and ("supportedInterfaces" in document or "protocolVersion" in document)


def version_of(document: Mapping[str, Any]) -> Version:
    """Of which version an A2A card is; one that serves clients of both is of the newer."""
    return "1.0" if "supportedInterfaces" in document else "0.3"


def read_a2a(document: Mapping[str, Any], *, secret: str | None = None) -> Card | list[Problem]:
    """The card, or what is wrong with it. secret: name of the daemon's variable with the secret that the agent asks
    for."""
    if odd := odd_values(dict(document), {}):
        return odd
    own = _own_card(document)
    fields = dict(own) if own is not None else _fields(document)
    if secret is not None:
        fields["authentication"] = _authentication(document, secret)
    extra = fields.get("extra")
    fields["extra"] = {**(extra if isinstance(extra, dict) else {}), KEPT: copy.deepcopy(dict(document))}
    return validate(Card, fields, {})


def write_a2a(card: Card, version: Version, url: str) -> dict[str, Any]:
    """The card as A2A has it. url: where an agent of this daemon is asked, for a specialist without an address."""
    kept = card.extra.get(KEPT)
    before = read_a2a(kept) if isinstance(kept, dict) else None
    if isinstance(kept, dict) and isinstance(before, Card):
        found = copy.deepcopy(kept)
        if version_of(found) != version:
            found = _converted(found, version)
        found = _changed(found, before, card, version)
        if found != kept:
            found.pop("signatures", None)  # which are of the document as it was
        return found
    return _made(card, version, card.url or url)


def _own_card(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ours, where it has come from us and says the same as the rest of the document."""
    for extension in _objects(_object(document, "capabilities"), "extensions"):
        params = extension.get("params")
        if extension.get("uri") == EXTENSION and isinstance(params, dict):
            return params
    return None


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    name = document.get("name")
    fields: dict[str, Any] = {
        "id": _NOT_IN_IDS.sub("-", str(name or "").lower()).strip("-._")[:_LONGEST_ID] or "agent",
        "name": name,
        "description": document.get("description"),
        "url": _address(document),
        "skills": [_skill(one) for one in _objects(document, "skills")],
    }
    if "version" in document:
        fields["version"] = document["version"]
    return {key: value for key, value in fields.items() if value is not None}


def _skill(skill: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: skill[key] for key in _SKILL_FIELDS if skill.get(key) is not None}
    for key in ("tags", "examples"):  # A2A lets them be said twice
        if isinstance(found.get(key), list):
            found[key] = list(dict.fromkeys(map(str, found[key])))
    return found


def _address(document: Mapping[str, Any]) -> str | None:
    """Of the first interface for JSON-RPC, the best first."""
    for one in _objects(document, "supportedInterfaces"):
        if one.get("protocolBinding") == "JSONRPC" and isinstance(one.get("url"), str):
            return str(one["url"])
    url = document.get("url")
    if document.get("preferredTransport") in (None, "JSONRPC") and isinstance(url, str):
        return url
    for one in _objects(document, "additionalInterfaces"):
        if one.get("transport") == "JSONRPC" and isinstance(one.get("url"), str):
            return str(one["url"])
    return None


def _authentication(document: Mapping[str, Any], secret: str) -> dict[str, Any]:
    """By the first scheme that is understood, or else a bearer token."""
    schemes = _object(document, "securitySchemes")
    for scheme in schemes.values():
        if not isinstance(scheme, dict):
            continue
        key = scheme.get("apiKeySecurityScheme") or (scheme if scheme.get("type") == "apiKey" else None)
        if isinstance(key, dict) and (key.get("location") or key.get("in")) in (None, "header"):
            return {"scheme": Scheme.API_KEY.value, "secret": secret, "header": key.get("name")}
        if "httpAuthSecurityScheme" in scheme or scheme.get("type") == "http":
            break
    return {"scheme": Scheme.BEARER.value, "secret": secret}


def _made(card: Card, version: Version, url: str) -> dict[str, Any]:
    """Of a card that was never one of A2A."""
    extension = {"uri": EXTENSION, "description": "All that Claudomator knows of it.", "required": False}
    found: dict[str, Any] = {
        "name": card.title,
        "description": card.description,
        "version": card.version,
        "capabilities": {"streaming": True, "extensions": [{**extension, "params": card.document}]},
        "defaultInputModes": list(_TEXT),
        "defaultOutputModes": list(_TEXT),
        "skills": [_written(skill.model_dump(mode="json"), card) for skill in card.skills] or [_whole(card)],
    }
    return found | _interfaces(url, version)


def _written(skill: Mapping[str, Any], card: Card) -> dict[str, Any]:
    found = {key: skill[key] for key in _SKILL_FIELDS if skill.get(key)}
    # A2A requires both of every skill.
    return {**found, "description": found.get("description") or skill["name"], "tags": found.get("tags") or [card.id]}


def _whole(card: Card) -> dict[str, Any]:
    tags = list(card.keywords) or [card.id]
    return {"id": card.id, "name": card.title, "description": card.description, "tags": tags}


def _interfaces(url: str, version: Version) -> dict[str, Any]:
    if version == "1.0":
        return {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    return {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def _converted(document: dict[str, Any], version: Version) -> dict[str, Any]:
    """The same in the other version. What only one of them has stays as it is: both leave alone what they do not
    know."""
    url = _address(document) or ""
    if version == "1.0":
        old = ("url", "preferredTransport", "protocolVersion", "additionalInterfaces")
        further = [
            {"url": one.get("url"), "protocolBinding": one.get("transport"), "protocolVersion": "0.3"}
            for one in _objects(document, "additionalInterfaces")
            if one.get("url") != url
        ]
        kept = security_of_1_0({key: value for key, value in document.items() if key not in old})
        first = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
        return {**kept, "supportedInterfaces": [first, *further]}
    further = [
        {"url": one.get("url"), "transport": one.get("protocolBinding")}
        for one in _objects(document, "supportedInterfaces")
        if one.get("url") != url or one.get("protocolBinding") != "JSONRPC"
    ]
    kept = security_of_0_3({key: value for key, value in document.items() if key != "supportedInterfaces"})
    return {**kept, **_interfaces(url, "0.3"), **({"additionalInterfaces": further} if further else {})}


def _changed(found: dict[str, Any], before: Card, card: Card, version: Version) -> dict[str, Any]:
    """With what is different in our card since it was read."""
    for key in ("name", "description", "version"):
        if getattr(card, key) != getattr(before, key):
            found[key] = getattr(card, key) or card.title
    if card.url != before.url and card.url is not None:
        found |= _interfaces(card.url, version)
    if card.skills != before.skills:
        there = {one.get("id"): one for one in _objects(found, "skills")}
        skills = (skill.model_dump(mode="json") for skill in card.skills)
        found["skills"] = [{**there.get(skill["id"], {}), **_written(skill, card)} for skill in skills]
    if _own_card(found) is not None and _plain(card) != _plain(before):
        for extension in _objects(_object(found, "capabilities"), "extensions"):
            if extension.get("uri") == EXTENSION:
                extension["params"] = _plain(card)
    return found


def _plain(card: Card) -> dict[str, Any]:
    """Ours, without the document that it was read from."""
    document = card.document
    extra = {key: value for key, value in card.extra.items() if key != KEPT}
    document.pop("extra", None)
    return {**document, **({"extra": extra} if extra else {})}


def _object(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _objects(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = document.get(key)
    return list(_of_objects(value)) if isinstance(value, list) else []


def _of_objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        if isinstance(value, dict):
            yield value
