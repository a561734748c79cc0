"""A2A cards of both versions: read into ours, written from it, and back, without a loss."""

import copy
from typing import Any, cast

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.proto_utils import validate_proto_required_fields
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Problem
from claudomator_py.schema.a2a_card import (
    EXTENSION,
    Version,
    is_a2a,
    is_written_for_a2a,
    read_a2a,
    unreachable,
    unread_keys,
    version_of,
    with_whole_addresses,
    write_a2a,
)
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from tests.fakes.cards import card

URL = "https://agents.example/rpc"
NEW: dict[str, Any] = {
    "name": "Docs Bot",
    "description": "Writes pages.",
    "version": "2.1",
    "provider": {"organization": "Example", "url": "https://example.org"},
    "supportedInterfaces": [
        {"url": "https://agents.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t", "x-zone": "eu"},
    ],
    "capabilities": {"streaming": True, "extensions": [{"uri": "urn:other", "params": {"a": [1]}}]},
    "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Docs-Key"}}},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/markdown"],
    "skills": [
        {"id": "pages", "name": "Pages", "description": "d", "tags": ["a", "a"], "examples": ["e"], "x-price": 3},
        {"id": "notes", "name": "Notes", "description": "", "tags": []},
    ],
    "signatures": [{"protected": "p", "signature": "s"}],
    "x-pricing": {"per_task": 1},
}
OLD: dict[str, Any] = {
    "protocolVersion": "0.3.0",
    "name": "Docs Bot",
    "description": "Writes pages.",
    "url": URL,
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"url": "https://agents.example/rest", "transport": "HTTP+JSON"}],
    "version": "2.1",
    "capabilities": {"streaming": False, "stateTransitionHistory": True},
    "security": [{"key": []}],
    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "pages", "name": "Pages", "description": "d", "tags": ["a"], "x-price": 3}],
    "supportsAuthenticatedExtendedCard": True,
    "x-pricing": {"per_task": 1},
}
BOTH: list[tuple[dict[str, Any], Version]] = [(NEW, "1.0"), (OLD, "0.3")]


def read(document: dict[str, Any], **more: Any) -> Card:
    a2a = read_a2a(document, **more)
    assert isinstance(a2a, Card), a2a
    return a2a


@pytest.mark.parametrize(("document", "version"), BOTH)
def test_what_was_read_is_written_again_field_for_field(document: dict[str, Any], version: Version) -> None:
    given = copy.deepcopy(document)

    card = read(document)

    assert document == given, "what is read is not changed"
    assert is_a2a(document)
    assert version_of(document) == version
    assert (card.id, card.name, card.version, card.url) == ("docs-bot", "Docs Bot", "2.1", URL)
    assert card.skills[0].tags == ("a",)
    stored = Card.model_validate(card.document)
    assert write_a2a(stored, version, "") == document


@pytest.mark.parametrize(("document", "version"), BOTH)
def test_a_change_of_ours_is_written_and_nothing_else(document: dict[str, Any], version: Version) -> None:
    card = read(document)
    skill = card.skills[0].model_copy(update={"description": "Pages for people."})
    changed = card.model_copy(update={"description": "Other.", "skills": (skill,)})

    written = write_a2a(changed, version, "")

    assert written["description"] == "Other."
    assert (written["skills"][0]["description"], written["skills"][0]["x-price"]) == ("Pages for people.", 3)
    assert "signatures" not in written, "they are of another document"
    same = set(document) - {"description", "skills", "signatures"}
    assert {key: written[key] for key in same} == {key: document[key] for key in same}


@pytest.mark.parametrize(("document", "version"), [(NEW, "0.3"), (OLD, "1.0")])
def test_the_other_version_has_what_both_know_and_what_neither_does(document: dict[str, Any], version: Version) -> None:
    written = write_a2a(read(document), version, "")

    assert version_of(written) == version
    again = read(written)
    assert (again.name, again.description, again.url, again.skills) == (
        read(document).name,
        read(document).description,
        URL,
        read(document).skills,
    )
    assert (written["x-pricing"], written["skills"][0]["x-price"]) == ({"per_task": 1}, 3)


SCHEMES_0_3 = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Docs-Key", "description": "Of the portal."},
    "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "x-issuer": "https://id.example"},
    "flow": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://id.example/t", "scopes": {}}}},
    "id": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example/.well-known"},
    "tls": {"type": "mutualTLS"},
    "other": {"type": "x-of-ours", "hint": 1},
}
SCHEMES_1_0 = {
    "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Docs-Key", "description": "Of the portal."}},
    "token": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT", "x-issuer": "https://id.example"}},
    "flow": {
        "oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://id.example/t", "scopes": {}}}}
    },
    "id": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/.well-known"}},
    "tls": {"mtlsSecurityScheme": {}},
    "other": {"type": "x-of-ours", "hint": 1},
}


def test_how_to_authenticate_is_in_the_shape_of_the_version() -> None:
    skill = {**OLD["skills"][0], "security": [{"token": ["write"]}]}
    security = [{"key": []}, {"flow": ["read", "write"], "tls": []}]
    old = {**OLD, "securitySchemes": SCHEMES_0_3, "security": security, "skills": [skill]}

    written = write_a2a(read(old), "1.0", "")

    assert written["securitySchemes"] == SCHEMES_1_0
    assert written["securityRequirements"] == [
        {"schemes": {"key": {"list": []}}},
        {"schemes": {"flow": {"list": ["read", "write"]}, "tls": {"list": []}}},
    ]
    assert written["skills"][0]["securityRequirements"] == [{"schemes": {"token": {"list": ["write"]}}}]
    assert written["capabilities"]["extendedAgentCard"] is True
    assert not {"security", "supportsAuthenticatedExtendedCard"} & {*written, *written["skills"][0]}
    back = write_a2a(read(written), "0.3", "")
    assert {key: back[key] for key in ("securitySchemes", "security", "skills")} == {
        "securitySchemes": SCHEMES_0_3,
        "security": security,
        "skills": [skill],
    }
    assert back["supportsAuthenticatedExtendedCard"] is True


def test_a_card_of_0_3_written_as_one_of_1_0_is_one_for_the_sdk() -> None:
    schemes = {name: scheme for name, scheme in SCHEMES_0_3.items() if name != "other"}
    old = {**OLD, "securitySchemes": schemes, "security": [{"key": []}, {"flow": ["read"], "tls": []}]}

    parsed = parse_agent_card(write_a2a(read(old), "1.0", ""))

    by_the_sdk = parse_agent_card(copy.deepcopy(old))
    assert {name: parsed.security_schemes[name] for name in schemes} == dict(by_the_sdk.security_schemes)
    assert list(parsed.security_requirements) == list(by_the_sdk.security_requirements)
    assert parsed.capabilities.extended_agent_card is True


@pytest.mark.parametrize("scheme", [None, 3, [], {}, {"type": 3}, {"type": "apiKey", "in": 1}])
def test_what_is_no_scheme_is_kept_as_it_is_or_does_no_harm(scheme: object) -> None:
    for security in (scheme, [scheme], [{"key": scheme}]):
        old = {**OLD, "securitySchemes": {"key": scheme}, "security": security}
        assert version_of(write_a2a(read(old), "1.0", "")) == "1.0"
        new = {**NEW, "securitySchemes": {"key": scheme}, "securityRequirements": security}
        assert version_of(write_a2a(read(new), "0.3", "")) == "0.3"


@pytest.mark.parametrize("version", ["0.3", "1.0"])
def test_a_card_of_ours_is_one_for_the_sdk_and_comes_back_equal(version: Version) -> None:
    for entry in [*shipped_cards(shipped_files()), card("plumber", skills=[]), card("far", url=URL, keywords=["leak"])]:
        written = write_a2a(entry, version, "https://here.example/a2a")

        parsed = parse_agent_card(copy.deepcopy(written))
        validate_proto_required_fields(parsed)
        assert parsed.name == entry.title
        assert parsed.supported_interfaces[0].url == (entry.url or "https://here.example/a2a")
        assert written["capabilities"]["extensions"][0]["uri"] == EXTENSION
        again = read(written)
        assert again.model_copy(update={"extra": entry.extra}) == entry
        assert write_a2a(again, version, "") == written


def test_a_secret_goes_by_the_scheme_that_the_card_asks_for() -> None:
    assert read(NEW, secret="DOCS_KEY").authentication.model_dump(mode="json") == {
        "scheme": "apiKey",
        "secret": "DOCS_KEY",
        "header": "X-Docs-Key",
    }
    assert read(OLD, secret="DOCS_TOKEN").authentication.scheme == "bearer"
    assert read(OLD).authentication.secret is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"description": ""}, "description"),
        ({"name": 5}, "name"),
        ({"url": "http://elsewhere.example/rpc"}, "url"),
        ({"skills": [{"id": "a", "name": "A"}, {"id": "a", "name": "B"}]}, "skills"),
        ({"name": "a\0b"}, "name"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    a2a = read_a2a(OLD | change)

    assert not isinstance(a2a, Card)
    assert (a2a[0].field or "").startswith(field)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz-", min_size=1), inner, max_size=3),
    max_leaves=10,
)
UNKNOWN = st.dictionaries(st.from_regex(r"x-[a-z]{1,8}", fullmatch=True), JSON, max_size=4)


@given(UNKNOWN, UNKNOWN, st.sampled_from(BOTH))
def test_no_unknown_field_is_lost(
    outside: dict[str, Any], inside: dict[str, Any], which: tuple[dict[str, Any], Version]
) -> None:
    base, version = which
    document = copy.deepcopy(base) | outside
    document["skills"][0] |= inside
    a2a = read_a2a(document)
    if isinstance(a2a, Card):
        assert write_a2a(Card.model_validate(a2a.document), version, "") == document


def offering(*interfaces: tuple[str, str, str]) -> dict[str, Any]:
    """A card of 1.0 with these: address, binding, version."""
    keys = ("url", "protocolBinding", "protocolVersion")
    return NEW | {"supportedInterfaces": [dict(zip(keys, interface, strict=True)) for interface in interfaces]}


OLD_REST = OLD | {"preferredTransport": "HTTP+JSON", "additionalInterfaces": []}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (offering((URL, "HTTP+JSON", "1.0")), "offers HTTP+JSON, and JSONRPC alone"),
        (offering(("agents.example:443", "GRPC", "1.0"), (URL, "HTTP+JSON", "1.0")), "offers GRPC, HTTP+JSON"),
        (OLD_REST, "offers HTTP+JSON"),
        (offering(), "names no interface"),
        (offering((URL, "", "1.0")), "offers an interface without a binding"),
        (offering((URL, "JSONRPC", "2.0")), "offers A2A 2.0, and 1.0 and 0.3 are spoken"),
        (offering(("/rpc", "JSONRPC", "1.0")), "`/rpc` is relative, and the card comes from a file"),
        (OLD | {"url": "rpc"}, "`rpc` is relative"),
        (OLD | {"url": ""}, "is empty"),
        (offering(("", "JSONRPC", "1.0")), "is empty"),
    ],
)
def test_whom_nobody_here_can_speak_with_is_refused_by_the_reason(document: dict[str, Any], words: str) -> None:
    (problem,) = unreachable(document)
    assert words in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    "document",
    [
        offering(("agents.example:443", "GRPC", "1.0"), (URL, "JSONRPC", "1.0")),
        OLD_REST | {"additionalInterfaces": [{"url": URL, "transport": "JSONRPC"}]},
        OLD | {"preferredTransport": None},
        OLD | {"preferredTransport": "", "protocolVersion": ""},
        offering((URL, "JSONRPC", "")),
        offering((URL, "JSONRPC", "v1.0")),
    ],
)
def test_one_interface_that_is_spoken_suffices(document: dict[str, Any]) -> None:
    assert unreachable(document) == []
    assert read(document).url == URL


@pytest.mark.parametrize("text", ["/rpc", "../rpc", URL])
@pytest.mark.parametrize("document", [OLD, NEW])
def test_a_relative_address_is_one_on_the_host_of_the_card(document: dict[str, Any], text: str) -> None:
    given = OLD | {"url": text} if document is OLD else offering((text, "JSONRPC", "1.0"))
    whole = with_whole_addresses(given, "https://agents.example/.well-known/agent-card.json")
    assert unreachable(whole) == []
    assert read(whole).url == URL


def test_the_newer_version_is_spoken_whatever_stands_first() -> None:
    document = offering(("https://agents.example/old", "JSONRPC", "0.3"), (URL, "JSONRPC", "1.0"))
    assert read(document).url == URL


@pytest.mark.parametrize("left_out", ["protocolVersion", "preferredTransport", "defaultOutputModes"])
def test_a_card_without_a_version_is_one_of_0_3(left_out: str) -> None:
    document = {key: value for key, value in OLD.items() if key not in ("protocolVersion", left_out)}
    assert is_a2a(document)
    assert version_of(document) == "0.3"
    assert (unreachable(document), read(document).url) == ([], URL)


@pytest.mark.parametrize("document", [card("a").document, {"description": "D.", "capabilities": ["gpu"]}])
def test_a_card_of_ours_is_none_of_a2a(document: dict[str, Any]) -> None:
    assert not is_a2a(document)


@pytest.mark.parametrize("document", [OLD, NEW])
@pytest.mark.parametrize(
    "key", ["visibilty", "Visibility", "wake_URL", "permission", "risk_celing", "max_concurent", "visible"]
)
def test_a_key_of_ours_that_is_misspelt_beside_those_of_a2a_is_refused(document: dict[str, Any], key: str) -> None:
    (problem,) = cast("list[Problem]", read_a2a(document | {key: "private"}))
    assert (problem.field, problem.message) == (key, "is not a known key")
    assert str(problem.remedy).startswith("did you mean `")


def test_so_is_one_in_a_skill() -> None:
    document = copy.deepcopy(NEW)
    document["skills"][0]["exmaples"] = ["Sum up 3."]
    (problem,) = cast("list[Problem]", read_a2a(document))
    assert (problem.field, problem.remedy) == ("skills[0].exmaples", "did you mean `examples`?")


@pytest.mark.parametrize("key", ["metadata", "homepage", "tenant", "x-visibilty", "contact"])
def test_a_key_of_somebody_else_is_kept(key: str) -> None:
    card = read(NEW | {key: {"a": 1}})
    assert card.extra["a2a"][key] == {"a": 1}
    assert unread_keys(NEW | {key: 1}) == ([] if key.startswith("x-") else [key])


@pytest.mark.parametrize("document", [OLD, NEW])
def test_what_a_card_of_a2a_says_in_keys_of_ours_counts(document: dict[str, Any]) -> None:
    fields = {
        "id": "accountant",
        "visibility": "private",
        "wake_url": "https://agents.example/wake",
        "keywords": ["vat"],
    }
    card = read(document | fields)
    assert (card.id, card.visibility, card.wake_url) == ("accountant", "private", "https://agents.example/wake")
    assert card.keywords == ("vat",)
    written = write_a2a(card, version_of(document), "")
    assert not fields.keys() & written.keys() - {"id"}, "what has changed since would be said there as it was"


@pytest.mark.parametrize(
    "beside",
    [
        {"iconUrl": "https://agents.example/icon.png"},
        {"provider": {"organization": "Example", "url": "https://agents.example"}},
        {"documentationUrl": "https://agents.example/docs"},
        {"skills": [{"id": "sum", "name": "Sums", "inputModes": ["text/plain"], "outputModes": ["text/plain"]}]},
    ],
)
def test_a_card_of_ours_may_have_what_only_a2a_knows(beside: dict[str, Any]) -> None:
    ours = {"id": "accountant", "description": "Sums.", "capabilities": ["gpu"], "visibility": "private"}
    assert is_a2a(ours | beside)
    assert not is_written_for_a2a(ours | beside)
    card = read(ours | beside)
    assert (card.id, card.capabilities, card.visibility, card.url) == ("accountant", ("gpu",), "private", None)


def test_names_in_any_script_have_ids_of_their_own() -> None:
    names = ["翻译", "検索", "번역기", "Переводчик", "Поиск", "אייל", "翻译 Bot", "検索 Bot", "Café", "Search"]
    ids = {name: read(NEW | {"name": name}).id for name in names}
    assert len(set(ids.values())) == len(names)
    signs = ["🤖", "🚀", "!!!", "C", "C#", "C++", "F# expert", "F expert"]
    assert len({read(NEW | {"name": name}).id for name in signs}) == len(signs)
    assert read(NEW | {"name": "🤖 Bot"}).id == "bot", "what decorates a name is no part of it"
    assert ids["Café"] == "cafe"
    assert ids["翻译 Bot"].startswith("bot-")
    assert ids == {name: read(OLD | {"name": name}).id for name in names}, "the same each time"
