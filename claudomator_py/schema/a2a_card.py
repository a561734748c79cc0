"""Converts A2A agent cards of versions 0.3 and 1.0 to our cards and back, without losing any field, except signatures
of changed content.

Source: a2a-protocol.org, specification 1.0, section 4.4 (AgentCard, AgentSkill, AgentInterface), and its counterpart in
0.3.

A card keeps the document that it was read from (``extra``, under ``a2a``), and is written as that document with later
changes applied. What A2A has no place for is stored in an extension of its capabilities, and read from there.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import urljoin, urlsplit

from claudomator_py.domain.card import Card, Skill, id_from
from claudomator_py.domain.errors import Lines, Path, Problem, near, shown
from claudomator_py.domain.remote import Protocol, Scheme
from claudomator_py.json_fields import event_of, objects_of
from claudomator_py.schema.a2a_security import security_of_0_3, security_of_1_0
from claudomator_py.schema.taskfile import is_extra
from claudomator_py.schema.validation import problem_at, validate, value_problems
from claudomator_py.values import dataclass

WELL_KNOWN: Final = "/.well-known/agent-card.json"
"""Path of an agent's card, below the agent's address."""
Version = Literal["0.3", "1.0"]
"""Version of A2A."""

EXTENSION: Final = "urn:claudomator:card:1"
"""The parameters of this extension are a complete card of ours."""
KEPT: Final = "a2a"
"""The key in ``Card.extra`` that holds the document from which the card was read."""
_TELLING: Final = frozenset({
    "supportedInterfaces", "protocolVersion", "preferredTransport", "additionalInterfaces", "defaultInputModes",
    "defaultOutputModes", "securitySchemes", "supportsAuthenticatedExtendedCard", "supportsExtendedAgentCard",
})  # fmt: skip
"""Keys that identify a card written for A2A. A card without a version is one of 0.3, where the version has a
default."""
_BESIDE: Final = frozenset(
    {"provider", "iconUrl", "documentationUrl", "security", "securityRequirements", "signatures", "signature"}
)
"""Further A2A keys, which one of our cards may have as well."""
_IN_SKILLS: Final = frozenset({"inputModes", "outputModes", "security", "securityRequirements"})
"""Keys of an A2A skill that our skills do not have."""
_SHARED: Final = frozenset({"id", "name", "description", "version", "url", "skills"})
"""Keys common to both that are read with A2A's meaning."""
_SPOKEN: Final = "JSONRPC"
_NO_BINDING: Final = "an interface without a binding"
_TEXT: Final = ["text/plain"]
_SKILL_FIELDS: Final = ("id", "name", "description", "tags", "examples")
_OWN_SKILL_FIELDS: Final = tuple(name for name in Skill.model_fields if name not in _SKILL_FIELDS)
_ALIKE: Final = 0.7
"""Similarity from which a meaningless key is taken for a misspelt key of ours."""


def is_a2a(document: Mapping[str, Any]) -> bool:
    """Return whether a card has any key that only A2A knows; it may have our keys, too."""
    return (
        is_written_for_a2a(document)
        or not _BESIDE.isdisjoint(document)
        or any(not _IN_SKILLS.isdisjoint(skill) for skill in objects_of(document, "skills"))
    )


def is_written_for_a2a(document: Mapping[str, Any]) -> bool:
    """Return whether the document is an A2A card, which says where its agent is reached, rather than one of ours."""
    return not _TELLING.isdisjoint(document) or isinstance(document.get("capabilities"), Mapping)


def own_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an A2A card says in keys of ours."""
    fields = {key: document[key] for key in Card.model_fields.keys() - _SHARED if key in document}
    if isinstance(fields.get("capabilities"), Mapping):
        del fields["capabilities"]
    if "schemes" in event_of(document, "authentication"):  # as in A2A before 0.2
        del fields["authentication"]
    return fields


def unread_keys(document: Mapping[str, Any]) -> list[str]:
    """Return the keys of an A2A card that neither A2A nor we know: kept with the card, but never applied."""
    known = _TELLING | _BESIDE | Card.model_fields.keys()
    return sorted(key for key in document if key not in known and not is_extra(key))


def _unheeded(document: Mapping[str, Any], lines: Lines, *, strict: bool) -> list[Problem]:
    """Problems of keys that look like ours but would be ignored: a card meant to be private must not become public.
    strict: also report all other keys that neither A2A nor we know."""
    known = Skill.model_fields.keys() | _IN_SKILLS
    words: list[tuple[Path, Any]] = [((key,), Card.model_fields) for key in unread_keys(document)]
    for at, skill in enumerate(objects_of(document, "skills")):
        unknown = sorted(key for key in skill.keys() - known if not is_extra(key))
        words += [(("skills", at, key), Skill.model_fields) for key in unknown]
    otherwise = "remove it, or begin its name with `x-` to have it kept" if strict else None
    return [
        problem_at(lines, path, "is not a known key", remedy)
        for path, fields in words
        if (remedy := near(str(path[-1]), fields, alike=_ALIKE) or otherwise)
    ]


def version_of(document: Mapping[str, Any]) -> Version:
    """Return the version of an A2A card; the newer one if it serves clients of both."""
    return "1.0" if "supportedInterfaces" in document else "0.3"


def with_whole_addresses(document: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return the card with relative addresses resolved against ``base``, where it was fetched from."""

    def whole(part: Any) -> Any:
        url = part.get("url") if isinstance(part, Mapping) else None
        return {**part, "url": urljoin(base, url)} if isinstance(url, str) and url else part

    result = whole(dict(document))
    for key in ("supportedInterfaces", "additionalInterfaces"):
        if isinstance(result.get(key), list):
            result[key] = [whole(item) for item in result[key]]
    return dict(result)


def unreachable(document: Mapping[str, Any]) -> list[Problem]:
    """Return why the daemon cannot talk to the agent of that A2A card; empty if it can."""
    interfaces = list(_interfaces_of(document))
    field = "supportedInterfaces" if "supportedInterfaces" in document else "url"
    spoken = [endpoint for endpoint in interfaces if endpoint.binding == _SPOKEN]
    if not spoken:
        offered = ", ".join(dict.fromkeys(shown(endpoint.binding) for endpoint in interfaces))
        message = f"offers {offered}, and {_SPOKEN} alone is spoken here" if offered else "names no interface"
        remedy = f"have the agent serve A2A over {_SPOKEN} as well, or write a card with its `url` and `protocol`"
        return [Problem(field=field, message=message, remedy=remedy)]
    if all(endpoint.version is None for endpoint in spoken):
        offered = ", ".join(dict.fromkeys(shown(endpoint.said) for endpoint in spoken))
        message = f"offers A2A {offered}, and 1.0 and 0.3 are spoken here"
        return [Problem(field=field, message=message, remedy="have the agent serve one of these as well")]
    interface = spoken_interface(document)
    if interface is not None and not interface.url:
        return [Problem(field=field, message="is empty", remedy="write the whole address")]
    if interface is not None and not urlsplit(interface.url).scheme:
        message = f"`{shown(interface.url)}` is relative, and the card comes from a file"
        return [Problem(field=field, message=message, remedy="import it from its address, or write the whole address")]
    return []


def has_own_id(document: Mapping[str, Any]) -> bool:
    """Return whether an A2A card contains an explicit id, as our cards do, rather than one derived from its name."""
    return "id" in document or _own_card(document) is not None


def read_a2a(
    document: Mapping[str, Any],
    *,
    secret: str | None = None,
    default_id: str | None = None,
    lines: Lines | None = None,
    strict: bool = False,
) -> Card | list[Problem]:
    """Return the card, or what is wrong with it.

    secret: name of the daemon's variable that holds the secret required by the agent. default_id: for a card without an
    id, instead of one derived from its name. lines: of the document, for the problems. strict: any unknown key is a
    problem; otherwise only those that look like ours.
    """
    where = lines or {}
    if odd := value_problems(dict(document), where) or _unheeded(document, where, strict=strict):
        return odd
    own, beside = _own_card(document), own_keys(document)
    fields = (dict(own) if own is not None else _fields(document, default_id)) | beside
    if secret is not None:
        fields["authentication"] = _authentication(document, secret)
    extra = fields.get("extra")
    kept = {key: value for key, value in document.items() if key not in beside}
    fields["extra"] = {**(extra if isinstance(extra, dict) else {}), KEPT: copy.deepcopy(kept)}
    return validate(Card, fields, where)


def with_protocol(card: Card, document: Mapping[str, Any], address: str | None = None) -> Card:
    """Return the card with its interface's protocol set, if its runs could not otherwise find the A2A card that
    specifies it. address: where that card is; None if in a file."""
    interface = spoken_interface(document)
    if card.url is None or card.protocol is not Protocol.AUTO or interface is None or interface.version is None:
        return card
    if address in (card.url.rstrip("/") + WELL_KNOWN, urljoin(card.url, WELL_KNOWN)):
        return card
    return card.model_copy(update={"protocol": Protocol(interface.version)})


def write_a2a(card: Card, version: Version, url: str) -> dict[str, Any]:
    """Return the card in A2A form. url: the daemon's address for a specialist without an address of its own."""
    kept = card.extra.get(KEPT)
    before = read_a2a(kept) if isinstance(kept, dict) else None
    if isinstance(kept, dict) and isinstance(before, Card):
        result = copy.deepcopy(kept)
        if version_of(result) != version:
            result = _converted(result, version)
        result = _changed(result, before, card, version)
        if result != kept:
            result.pop("signatures", None)  # they sign the original document
        return result
    return _made(card, version, card.url or url)


def _own_card(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Our own card, if the document was written by us and its extension matches the rest."""
    for extension in objects_of(event_of(document, "capabilities"), "extensions"):
        params = extension.get("params")
        if extension.get("uri") == EXTENSION and isinstance(params, dict):
            return params
    return None


def _fields(document: Mapping[str, Any], default_id: str | None) -> dict[str, Any]:
    name = document.get("name")
    fields: dict[str, Any] = {
        "id": document["id"] if "id" in document else default_id or id_from(str(name or "")),
        "name": name,
        "description": document.get("description"),
        "url": _address(document),
        "skills": [_skill(skill) for skill in objects_of(document, "skills")],
    }
    if "version" in document:
        fields["version"] = document["version"]
    return {key: value for key, value in fields.items() if value is not None}


def _skill(skill: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: skill[key] for key in (*_SKILL_FIELDS, *_OWN_SKILL_FIELDS) if skill.get(key) is not None}
    for key in ("tags", "examples"):  # A2A allows duplicates
        if isinstance(fields.get(key), list):
            fields[key] = list(dict.fromkeys(map(str, fields[key])))
    return fields


@dataclass(frozen=True, slots=True)
class Interface:
    """A way to communicate with an agent, as given in its A2A card."""

    url: str
    binding: str
    """Transport, such as ``JSONRPC``."""
    said: str
    """The version of A2A, as written."""

    @property
    def version(self) -> Version | None:
        """The supported version; None for any other."""
        return "1.0" if self.said.split(".")[0] == "1" else "0.3" if self.said.startswith("0.3") else None


def spoken_interface(document: Mapping[str, Any]) -> Interface | None:
    """Return the interface to use, the best one first; None if there is none for JSON-RPC."""
    spoken = [endpoint for endpoint in _interfaces_of(document) if endpoint.binding == _SPOKEN]
    return next(
        (endpoint for version in ("1.0", "0.3", None) for endpoint in spoken if endpoint.version == version), None
    )


def _interfaces_of(document: Mapping[str, Any]) -> Iterator[Interface]:
    for item in objects_of(document, "supportedInterfaces"):
        if isinstance(item.get("url"), str):
            yield Interface(item["url"], str(item.get("protocolBinding") or _NO_BINDING), _version_in(item, "1.0"))
    old = _version_in(document, "0.3.0")
    if isinstance(document.get("url"), str):
        yield Interface(document["url"], str(document.get("preferredTransport") or _SPOKEN), old)
    for item in objects_of(document, "additionalInterfaces"):
        if isinstance(item.get("url"), str):
            yield Interface(item["url"], str(item.get("transport") or _NO_BINDING), old)


def _version_in(part: Mapping[str, Any], otherwise: str) -> str:
    """The A2A version; an empty text is what Protocol Buffers write for a missing one."""
    protocol_version = part.get("protocolVersion")
    return (
        protocol_version.strip().removeprefix("v")
        if isinstance(protocol_version, str) and protocol_version.strip()
        else otherwise
    )


def _address(document: Mapping[str, Any]) -> str | None:
    interface = spoken_interface(document)
    return None if interface is None else interface.url


def _authentication(document: Mapping[str, Any], secret: str) -> dict[str, Any]:
    """Authentication by the first supported scheme, or otherwise a bearer token."""
    schemes = event_of(document, "securitySchemes")
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
    """The A2A form of a card that was never an A2A card."""
    extension = {"uri": EXTENSION, "description": "All that Claudomator knows of it.", "required": False}
    fields: dict[str, Any] = {
        "name": card.title,
        "description": card.description,
        "version": card.version,
        "capabilities": {"streaming": True, "extensions": [{**extension, "params": card.document}]},
        "defaultInputModes": list(_TEXT),
        "defaultOutputModes": list(_TEXT),
        "skills": [_written(skill.model_dump(mode="json"), card) for skill in card.skills] or [_whole(card)],
    }
    return fields | _interfaces(url, version)


def _written(skill: Mapping[str, Any], card: Card) -> dict[str, Any]:
    fields = {key: skill[key] for key in _SKILL_FIELDS if skill.get(key)}
    # A2A requires both for every skill.
    return {
        **fields,
        "description": fields.get("description") or skill["name"],
        "tags": fields.get("tags") or [card.id],
    }


def _whole(card: Card) -> dict[str, Any]:
    tags = list(card.keywords) or [card.id]
    return {"id": card.id, "name": card.title, "description": card.description, "tags": tags}


def _interfaces(url: str, version: Version) -> dict[str, Any]:
    if version == "1.0":
        return {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    return {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def _converted(document: dict[str, Any], version: Version) -> dict[str, Any]:
    """The document in the other version. Keys that only one version has are kept, as both ignore unknown keys."""
    url = _address(document) or ""
    if version == "1.0":
        old = ("url", "preferredTransport", "protocolVersion", "additionalInterfaces")
        further = [
            {"url": interface.get("url"), "protocolBinding": interface.get("transport"), "protocolVersion": "0.3"}
            for interface in objects_of(document, "additionalInterfaces")
            if interface.get("url") != url
        ]
        kept = security_of_1_0({key: value for key, value in document.items() if key not in old})
        first = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
        return {**kept, "supportedInterfaces": [first, *further]}
    further = [
        {"url": interface.get("url"), "transport": interface.get("protocolBinding")}
        for interface in objects_of(document, "supportedInterfaces")
        if interface.get("url") != url or interface.get("protocolBinding") != "JSONRPC"
    ]
    kept = security_of_0_3({key: value for key, value in document.items() if key != "supportedInterfaces"})
    return {**kept, **_interfaces(url, "0.3"), **({"additionalInterfaces": further} if further else {})}


def _changed(fields: dict[str, Any], before: Card, card: Card, version: Version) -> dict[str, Any]:
    """The document with what has changed in our card since it was read."""
    for key in ("name", "description", "version"):
        if getattr(card, key) != getattr(before, key):
            fields[key] = getattr(card, key) or card.title
    if card.url != before.url and card.url is not None:
        fields |= _interfaces(card.url, version)
    if card.skills != before.skills:
        there = {skill.get("id"): skill for skill in objects_of(fields, "skills")}
        skills = (skill.model_dump(mode="json") for skill in card.skills)
        fields["skills"] = [{**there.get(skill["id"], {}), **_written(skill, card)} for skill in skills]
    if _own_card(fields) is not None and _plain(card) != _plain(before):
        for extension in objects_of(event_of(fields, "capabilities"), "extensions"):
            if extension.get("uri") == EXTENSION:
                extension["params"] = _plain(card)
    return fields


def _plain(card: Card) -> dict[str, Any]:
    """Our card without the document that it was read from."""
    document = card.document
    extra = {key: value for key, value in card.extra.items() if key != KEPT}
    document.pop("extra", None)
    return {**document, **({"extra": extra} if extra else {})}
