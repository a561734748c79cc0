"""What a card may say, and how its specialist is reached."""

from typing import Any

import pytest
from pydantic import ValidationError

from claudomator_py.domain.card import Card, Transport
from claudomator_py.domain.remote import Protocol
from claudomator_py.routing.role import agent_of


def card(**fields: Any) -> Card:
    return Card.model_validate({"id": "writer", "description": "Writes.", **fields})


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        (None, Transport.LOCAL),
        ("https://example.org/a2a", Transport.HTTP),
        ("http://127.0.0.1:9/a2a", Transport.HTTP),
        ("ws-agent://writer", Transport.HUB),
    ],
)
def test_the_scheme_of_its_url_says_how_it_is_reached(url: str | None, transport: Transport) -> None:
    assert card(url=url).transport is transport


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"url": "ftp://example.org"}, "is not an address"),
        ({"url": "https://user:secret@example.org"}, "contains credentials"),
        ({"url": "http://example.org/a2a"}, "would be sent unencrypted"),
        ({"url": "WS-AGENT://writer"}, "is not an address"),
        ({"url": "ws-agent:writer"}, "is not an address"),
        ({"url": "ws-agent://writer?tier=fast"}, "is not an address"),
        ({"url": "https://example.org/a2a#writer"}, "has a fragment"),
        ({"url": "https:example.org"}, "is not an address"),
        ({"url": "https:///example.org"}, "is not an address"),
        ({"url": " https://example.org"}, "is not an address"),
        ({"url": "https://example.org/a writer"}, "is not an address"),
        ({"wake_url": "http://example.org/wake"}, "would be sent unencrypted"),
        ({"wake_url": "ws-agent://writer"}, "cannot wake anybody"),
        ({"authentication": {"scheme": "bearer", "secret": "sk-live 1234"}}, "not the name of a variable"),
        ({"skills": [{"id": "a", "name": "A"}, {"id": "a", "name": "B"}]}, "appears twice"),
        ({"threshold": 1.5}, "less than or equal to 1"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        card(**fields)


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        (None, False),
        ("https://example.org/a2a", False),
        ("ws-agent://writer", False),
        ("ws-agent://writer/", False),
        ("ws-agent://painter", True),
        ("ws-agent://writer/painter", True),
        ("ws-agent://writer:80", True),
    ],
)
def test_an_address_at_the_hub_is_that_of_its_own_id(url: str | None, wrong: bool) -> None:
    assert bool(card(url=url).address_problems()) is wrong


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "http", "ws-agent", "WS-Agent", "wss", ""])
@pytest.mark.parametrize(
    "rest", ["://writer", "://127.0.0.1:80/a?b=c", "://[::1]/a", "://a/b#c", "://a#c", ":a", ":///a", "://a b"]
)
def test_what_is_taken_as_an_address_can_be_reached(scheme: str, rest: str) -> None:
    """One card that cannot would keep every task from being routed."""
    try:
        taken = card(url=f"{scheme}{rest}")
    except ValidationError:
        return
    assert agent_of(taken).kind == ("hub" if scheme == "ws-agent" else "a2a")


def test_a_card_is_the_same_when_it_is_written_and_read() -> None:
    whole = card(skills=[{"id": "a", "name": "A", "examples": "Write a page"}], extra={"x-ticket": 1})
    assert Card.model_validate(whole.model_dump(mode="json")) == whole
    assert whole.skill("a") is whole.skills[0]
    assert whole.skill("b") is None
    assert whole.title == "writer"


def test_what_its_client_has_to_know_follows_from_it() -> None:
    secret = {"scheme": "bearer", "secret": "DOCS_TOKEN"}
    remote = card(url="https://example.org/a2a", authentication=secret, deduplicates=True, protocol="post").remote()
    assert (remote.url, remote.deduplicates, remote.protocol) == ("https://example.org/a2a", True, Protocol.POST)
    assert remote.authentication.secret == "DOCS_TOKEN"
    for url in (None, "ws-agent://writer"):
        with pytest.raises(ValueError, match="is not reached over HTTP"):
            card(url=url).remote()


@pytest.mark.parametrize("blank", ["", " ", "\r\n", "\t"])
def test_a_description_says_something(blank: str) -> None:
    """Blank space at its end is no content, and what is stored has to be read again."""
    with pytest.raises(ValidationError):
        Card(id="a", description=blank)


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_name_is_one_line_for_whoever_reads_it(end: str) -> None:
    name = f"Digger{end}# Your task"
    skill = {"id": "dig", "name": "Dig", "description": "Digs."}
    for fields in ({"name": name}, {"skills": [{**skill, "name": name}]}):
        with pytest.raises(ValidationError):
            Card.model_validate({"id": "digger", "description": "Digs.", **fields})
