"""A2A agent cards of 0.3 and 1.0, read into ours and written from it; no field is lost on the way, but for signatures
of what is no longer said.

Source: a2a-protocol.org, specification 1.0, section 4.4 (AgentCard, AgentSkill, AgentInterface), and the same of 0.3.
A card keeps the document that it was read from (``extra``, under ``a2a``), and what is written is that document, with
what was changed since. What A2A has no place for is in an extension of its capabilities, and read from there.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urljoin, urlsplit

from claudomator_py.domain.card import Card, id_from
from claudomator_py.domain.errors import Problem, shown
from claudomator_py.domain.remote import Scheme
from claudomator_py.schema.a2a_security import security_of_0_3, security_of_1_0
from claudomator_py.schema.validation import odd_values, validate

Version = Literal["0.3", "1.0"]
"""Of A2A."""

EXTENSION: Final = "urn:claudomator:card:1"
"""Its parameters are a whole card of ours."""
KEPT: Final = "a2a"
"""Under which ``Card.extra`` has the document that it was read from."""
_ONLY_IN_A2A: Final = frozenset(
    {
        "supportedInterfaces",
        "protocolVersion",
        "preferredTransport",
        "additionalInterfaces",
        "defaultInputModes",
        "defaultOutputModes",
        "securitySchemes",
        "supportsAuthenticatedExtendedCard",
    }
)
"""Keys that tell a card of A2A from one of ours. A card without a version is one of 0.3, where it has a default."""
_SPOKEN: Final = "JSONRPC"
A2A_FIELDS: Final = frozenset({"id", "name", "description", "version", "url", "capabilities", "skills", "extra"})
"""Keys of ours that mean something else in a card of A2A, or the same."""
_TEXT: Final = ["text/plain"]
_SKILL_FIELDS: Final = ("id", "name", "description", "tags", "examples")


def is_a2a(document: Mapping[str, Any]) -> bool:
    """Whether it is a card of A2A rather than one of ours."""
    return "id" not in document and (
        not _ONLY_IN_A2A.isdisjoint(document) or isinstance(document.get("capabilities"), Mapping)
    )


def version_of(document: Mapping[str, Any]) -> Version:
    """Of which version an A2A card is; one that serves clients of both is of the newer."""
    return "1.0" if "supportedInterfaces" in document else "0.3"


def with_whole_addresses(document: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return the card with addresses that are relative to where it was fetched from, ``base``, written out."""

    def whole(part: Any) -> Any:
        url = part.get("url") if isinstance(part, Mapping) else None
        return {**part, "url": urljoin(base, url)} if isinstance(url, str) and url else part

    found = whole(dict(document))
    for key in ("supportedInterfaces", "additionalInterfaces"):
        if isinstance(found.get(key), list):
            found[key] = [whole(one) for one in found[key]]
    return dict(found)


def unreachable(document: Mapping[str, Any]) -> list[Problem]:
    """Return why nobody here can speak with the agent of that A2A card, if so."""
    interfaces = list(_interfaces_of(document))
    field = "supportedInterfaces" if "supportedInterfaces" in document else "url"
    spoken = [one for one in interfaces if one.binding == _SPOKEN]
    if not spoken:
        offered = ", ".join(dict.fromkeys(shown(one.binding) for one in interfaces))
        message = f"offers {offered}, and {_SPOKEN} alone is spoken here" if offered else "names no interface"
        remedy = f"have the agent serve A2A over {_SPOKEN} as well, or write a card with its `url` and `protocol`"
        return [Problem(field=field, message=message, remedy=remedy)]
    if all(one.version is None for one in spoken):
        offered = ", ".join(dict.fromkeys(shown(one.said) for one in spoken))
        message = f"offers A2A {offered}, and 1.0 and 0.3 are spoken here"
        return [Problem(field=field, message=message, remedy="have the agent serve one of these as well")]
    interface = spoken_interface(document)
    if interface is not None and not urlsplit(interface.url).scheme:
        message = f"`{shown(interface.url)}` is relative, and the card comes from a file"
        return [Problem(field=field, message=message, remedy="import it from its address, or write the whole address")]
    return []


def has_own_id(document: Mapping[str, Any]) -> bool:
    """Return whether the id of an A2A card is written in it, as one of ours has it, or only follows from its name."""
    return _own_card(document) is not None


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
        "id": id_from(str(name or "")),
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


@dataclass(frozen=True, slots=True)
class Interface:
    """A way to speak with an agent, as its A2A card has it."""

    url: str
    binding: str
    """Such as ``JSONRPC``."""
    said: str
    """The version of A2A, as it is written."""

    @property
    def version(self) -> Version | None:
        """The version that is spoken here; None: it is another one."""
        return "1.0" if self.said.split(".")[0] == "1" else "0.3" if self.said.startswith("0.3") else None


def spoken_interface(document: Mapping[str, Any]) -> Interface | None:
    """Return the interface that is used, the best first; None: there is none for JSON-RPC."""
    spoken = [one for one in _interfaces_of(document) if one.binding == _SPOKEN]
    return next((one for version in ("1.0", "0.3", None) for one in spoken if one.version == version), None)


def _interfaces_of(document: Mapping[str, Any]) -> Iterator[Interface]:
    for one in _objects(document, "supportedInterfaces"):
        if isinstance(one.get("url"), str):
            said = one.get("protocolVersion")
            yield Interface(one["url"], str(one.get("protocolBinding")), said if isinstance(said, str) else "1.0")
    said = document.get("protocolVersion")
    old = said if isinstance(said, str) else "0.3.0"
    if isinstance(document.get("url"), str):
        yield Interface(document["url"], str(document.get("preferredTransport") or _SPOKEN), old)
    for one in _objects(document, "additionalInterfaces"):
        if isinstance(one.get("url"), str):
            yield Interface(one["url"], str(one.get("transport")), old)


def _address(document: Mapping[str, Any]) -> str | None:
    interface = spoken_interface(document)
    return None if interface is None else interface.url


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
