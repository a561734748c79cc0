"""Specialists over HTTP: a card that does not exist for a token gets byte for byte the answer of one that is not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.resources.access import GivenRole, TokenRequest
from tests.fakes.cards import card
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService

HIDDEN, ABSENT = "plumber", "pliable"
PATHS = ("/v1/specialists/{id}", "/v1/specialists/{id}/grants", "/v1/specialists/{id}/grants/ann")
REQUESTS: list[tuple[str, str, dict[str, Any] | None, dict[str, str]]] = [
    ("GET", PATHS[0], None, {}),
    ("GET", PATHS[0], None, {"If-None-Match": '"1"'}),
    ("GET", PATHS[0], None, {"If-None-Match": "*"}),
    ("PUT", PATHS[0], card("x").document, {}),
    ("PUT", PATHS[0], card("x").document, {"If-Match": '"1"'}),
    ("PUT", PATHS[0], card("x").document, {"If-Match": '"99"'}),
    ("DELETE", PATHS[0], None, {}),
    ("DELETE", PATHS[0], None, {"If-Match": '"99"'}),
    ("POST", PATHS[1], {"grantee": "bob"}, {}),
    ("DELETE", PATHS[2], None, {}),
]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    prepared = PreparedService()
    with running(prepared, tmp_path / "state") as daemon:
        yield daemon
    prepared.close()


def holder(daemon: Daemon, name: str, role: GivenRole = "operate", organisation: str | None = None) -> Daemon:
    """The daemon as the holder of a new token sees it."""
    with daemon.client() as client:
        made = client.create_token(TokenRequest(name=name, role=role, organisation=organisation))
    return replace(daemon, token=made.token)


@pytest.fixture
def ann(daemon: Daemon) -> Daemon:
    """Who has a private specialist, and a public one."""
    ann = holder(daemon, "ann", organisation="acme")
    for entry in (card(HIDDEN, visibility="private"), card("painter")):
        assert ann.ask("POST", "/v1/specialists", json_body=entry.document).status == 201
    return ann


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize("role", ["operate", "admin"])
def test_what_is_hidden_is_answered_as_what_is_absent(daemon: Daemon, role: GivenRole) -> None:
    for other in (holder(daemon, "bob", role, "bolt"), holder(daemon, "amy", role, "acme")):
        for method, path, body, headers in REQUESTS:
            messages = []
            for name in (HIDDEN, ABSENT):
                sent = body if body is None or "id" not in body else {**body, "id": name}
                answer = other.ask(method, path.format(id=name), json_body=sent, headers=headers)
                known = {key: value for key, value in answer.headers.items() if key.lower() != "date"}
                messages.append((answer.status, answer.body.replace(name.encode(), b"ID"), known))
            assert messages[0] == messages[1], (method, path)
            assert messages[0][0] == 404
            assert HIDDEN.encode() not in messages[1][1]


@pytest.mark.usefixtures("ann")
def test_neither_lists_searches_nor_pages_tell_of_it(daemon: Daemon) -> None:
    bob = holder(daemon, "bob", organisation="bolt")
    listed = bob.ask("GET", "/v1/specialists?limit=1").json()
    assert ([item["id"] for item in listed["items"]], listed["next_cursor"]) == (["painter"], None)
    search = f"/v1/specialists/search?query={HIDDEN}%20painter"
    assert bob.ask("GET", search).json()["total"] == 0, "whom bob may see, but give no work"
    assert daemon.ask("PUT", "/v1/specialists/painter/admission").status == 200
    result = bob.ask("GET", search).json()
    assert ([item["specialist"]["id"] for item in result["items"]], result["total"]) == (["painter"], 1)
    missing = bob.ask("GET", "/v1/specialists/plumbe").body
    assert HIDDEN.encode() not in missing
    assert b"painter" in missing, "what exists is suggested"


def test_an_id_that_is_taken_by_what_is_hidden_is_refused_as_any_that_is_taken(daemon: Daemon, ann: Daemon) -> None:
    bob = holder(daemon, "bob", organisation="bolt")
    refused = bob.ask("POST", "/v1/specialists", json_body=card(HIDDEN).document)
    assert ann.ask("POST", "/v1/specialists", json_body=card("seen").document).status == 201
    visible = bob.ask("POST", "/v1/specialists", json_body=card("seen").document)
    assert (refused.status, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["detail"] == visible.json()["detail"].replace("seen", HIDDEN)
    assert ann.ask("GET", f"/v1/specialists/{HIDDEN}").json()["creator"] == "ann"


def test_a_token_that_reads_registers_nothing(daemon: Daemon) -> None:
    reader = holder(daemon, "reader", "read", "acme")
    answer = reader.ask("POST", "/v1/specialists", json_body=card("x").document)
    assert (answer.status, answer.json()["code"]) == (403, "not_permitted")
    assert reader.ask("GET", "/v1/specialists").json()["items"] == []


def test_an_answer_to_one_key_is_not_told_to_another_token(daemon: Daemon, ann: Daemon) -> None:
    body, key = card("sharer", visibility="private").document, {"Idempotency-Key": '"same"'}
    assert ann.ask("POST", "/v1/specialists", json_body=body, headers=key).status == 201
    bob = holder(daemon, "bob", organisation="bolt")
    assert bob.ask("POST", "/v1/specialists", json_body=body, headers=key).status == 409


def test_events_of_hidden_specialists_are_told_to_nobody_else(daemon: Daemon, ann: Daemon) -> None:
    amy = holder(daemon, "amy", "admin", "acme")
    assert HIDDEN not in json.dumps(amy.ask("GET", "/v1/events?last=50").json())
    assert HIDDEN in json.dumps(ann.ask("GET", "/v1/events?last=50").json())


BESIDE = {"provider": {"organization": "P", "url": "https://p.example"}, "documentationUrl": "https://p.example/docs"}
SKILL = {"id": "leaks", "name": "Leaks", "description": "Finds them.", "inputModes": ["text/plain"]}


def test_a_card_may_have_fields_of_a2a_and_a_misspelt_key_beside_them_is_refused(daemon: Daemon) -> None:
    plain = {"id": "pipes", "description": "Fixes leaks.", "visibility": "private", **BESIDE, "skills": [SKILL]}
    added = daemon.ask("POST", "/v1/specialists", json_body=plain)
    assert (added.status, added.json()["card"]["visibility"]) == (201, "private")
    changed = daemon.ask("PUT", "/v1/specialists/pipes", json_body={**plain, "description": "Mends leaks."})
    assert changed.status == 200, changed.json()
    for key, value in (("visibilty", "private"), ("private", True), ("visible", "private"), ("risk-ceiling", "low")):
        del_visibility = {name: entry for name, entry in plain.items() if name != "visibility"}
        for method, url in (("POST", "/v1/specialists"), ("PUT", "/v1/specialists/pipes")):
            refused = daemon.ask(method, url, json_body={**del_visibility, key: value})
            (problem,) = refused.json()["problems"]
            assert (refused.status, problem["field"], problem["message"]) == (422, key, "is not a known key")
            assert problem["remedy"]
    assert daemon.ask("GET", "/v1/specialists/pipes").json()["card"]["visibility"] == "private"


def test_a_card_of_a2a_is_registered_by_its_name(daemon: Daemon) -> None:
    interface = {"url": "https://agents.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    document = {"name": "Docs Bot", "description": "Writes pages.", "supportedInterfaces": [interface], **BESIDE}
    added = daemon.ask("POST", "/v1/specialists", json_body=document)
    assert added.status == 201, added.json()
    assert (added.json()["id"], added.json()["card"]["url"]) == ("docs-bot", "https://agents.example/a2a")
    spoken = {**document, "supportedInterfaces": [{**interface, "protocolBinding": "GRPC"}]}
    assert daemon.ask("POST", "/v1/specialists", json_body=spoken).status == 422
