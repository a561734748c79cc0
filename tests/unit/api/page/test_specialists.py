"""The pages of specialists: the list, a search, one card, and changing, removing and sharing it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.specialists import GrantRequest, SpecialistView
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.schema.cardfile import card_text
from claudomator_py.tasks import specialists as changes
from tests.fakes.cards import card
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, hidden, log_in, text_of

ANN = Principal("ann", Role.OPERATE, organisation="acme")
PLUMBER = card(
    "plumber",
    name="Pipe Doctor",
    description="Fixes leaks.\nNot for what is slow.",
    system_prompt="You fix leaks.\n\nProve each with a test.\n",
    keywords=["file descriptor leak"],
    allowed_agents=["claude"],
    default_tier="powerful",
    permissions={"mode": "acceptEdits", "allowed_tools": ["Read"]},
    risk_ceiling="medium",
    visibility="shared",
    pricing={"per_task": 0.5},
    extra={"x-team": "pipes"},
)


def register(prepared: PreparedService, card: Card = PLUMBER, by: Principal = OPERATOR) -> SpecialistView:
    return prepared.access.as_(by)[Specialists].register(card)


def found(prepared: PreparedService, specialist_id: str = "plumber") -> SpecialistView:
    return prepared.access.as_(OPERATOR)[Specialists].get(specialist_id)


def test_there_are_none(operator: Visitor) -> None:
    assert "There are no specialists." in text_of(operator.get("/specialists"))


def test_they_are_listed_and_found(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    register(prepared, card("painter", visibility="private"), ANN)
    text = text_of(operator.get("/specialists"))
    for words in (
        "Pipe Doctor",
        "Fixes leaks. Not for what is slow.",
        "1 skill",
        "shared",
        "painter",
        "private",
        "ann",
    ):
        assert words in text
    page = operator.get("/specialists?q=do+some+plumber")
    assert 'value="do some plumber"' in page.body.decode()
    assert "Pipe Doctor score 1.00 best skill: plumber work" in text_of(page)
    assert "Comparing words only" in text_of(page)
    assert "No specialist matches." in text_of(operator.get("/specialists?q=zebra"))


def test_a_long_list_comes_in_parts(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(51):
        register(prepared, card(f"one-{number:02}"))
    first = operator.get("/specialists").body.decode()
    assert (first.count('<li class="row">'), "one-50" in first) == (50, False)
    following = first.partition('<p class="more"><a href="')[2].partition('"')[0]
    assert "one-50" in text_of(operator.get(following))


def test_everything_about_one(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    text = text_of(operator.get("/specialists/plumber"))
    for words in (
        "Pipe Doctor shared plumber",
        "Fixes leaks. Not for what is slow.",
        "Version 1.0.0 (change 1)",
        "Agents claude",
        "Tier powerful",
        "Permissions acceptEdits",
        "Allowed tools Read",
        "Risk up to medium",
        "Reached by agents of this daemon",
        "Price 0.5 USD a task",
        "Creator operator",
        "plumber work plumber-work do some plumber",
        "file descriptor leak",
        "everyone with a grant",
        "You fix leaks.",
        "x-team: pipes",
    ):
        assert words in text


def test_its_tasks_are_a_link_away(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    prepared.add("leak", done_by="plumber")
    prepared.add("tea")
    (url,) = re.findall(r'id="tasks" href="([^"]+)"', operator.get("/specialists/plumber").body.decode())
    text = text_of(operator.get(url))
    assert "leak" in text
    assert "tea" not in text


def test_what_is_odd_about_one(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared, card("nobody"))
    register(prepared, card("odd", fallback="nobody"))
    prepared.access.as_(OPERATOR)[Specialists].remove("nobody")
    text = text_of(operator.get("/specialists/odd"))
    assert "its `fallback` names nobody, and there is no such specialist." in text


def test_how_a_remote_one_is_reached(operator: Visitor, prepared: PreparedService) -> None:
    skill = {"id": "pipes", "name": "Pipes", "creator": "bob", "pricing": {"input": 3}, "tags": ["water"]}
    register(
        prepared,
        card(
            "remote",
            url="https://agents.example/a2a",
            authentication={"scheme": "bearer", "secret": "REMOTE_KEY"},
            skills=[skill],
        ),
    )
    text = text_of(operator.get("/specialists/remote"))
    for words in (
        "Reached by https://agents.example/a2a",
        "Authentication bearer, from $REMOTE_KEY",
        "Pipes pipes bob 3 USD a million input tokens water",
    ):
        assert words in text
    assert "HTTP" in text_of(operator.get("/specialists"))


def test_what_others_wrote_is_text(operator: Visitor, prepared: PreparedService) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    register(prepared, card("evil", name=hostile, description=hostile, system_prompt=hostile, keywords=[hostile]))
    for path in ("", "/evil", "/evil/edit", "/evil/remove"):
        page = operator.get(f"/specialists{path}")
        assert hostile in text_of(page)
        assert hostile not in page.body.decode()


def test_a_card_is_edited(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    form = operator.get("/specialists/plumber/edit")
    assert "Prove each with a test." in text_of(form)
    changed = card_text({**PLUMBER.document, "system_prompt": "You fix leaks.\n\nQuickly.\n"}).replace("\n", "\r\n")
    answer = operator.post("/specialists/plumber/edit", {"version": hidden(form, "version"), "text": changed})
    assert (answer.status, answer.headers["location"]) == (303, "/specialists/plumber")
    now = found(prepared)
    assert (now.version, now.content.system_prompt) == (2, "You fix leaks.\n\nQuickly.")


def test_what_changed_meanwhile_is_shown_before_it_is_replaced(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    seen = hidden(operator.get("/specialists/plumber/edit"), "version")
    register(prepared, PLUMBER.model_copy(update={"description": "Somebody else wrote this."}))
    mine = card_text({**PLUMBER.document, "description": "Mine."})
    refused = operator.post("/specialists/plumber/edit", {"version": seen, "text": mine})
    assert refused.status == 412
    for words in (
        "Changed in the meantime",
        "The card as it is now",
        "Somebody else wrote this.",
        "description: Mine.",
    ):
        assert words in text_of(refused)
    assert found(prepared).description == "Somebody else wrote this."
    again = {"version": hidden(refused, "version"), "text": mine}
    assert operator.post("/specialists/plumber/edit", again).status == 303
    assert found(prepared).description == "Mine."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id: plumber\ndescriptoin: No.\n", "did you mean description?"),
        ("id: painter\ndescription: Paints.\n", "is painter, but this is plumber"),
        ("id: a\ndescription: A.\n---\nid: b\ndescription: B.\n", "it contains 2 cards, but exactly one is expected"),
        ("id: plumber\ntier: huge\n", "description: is missing; add it 2: tier: is not a known key"),
        ("", "there is no card in the file"),
        ("description: [", "2:1: "),
    ],
)
def test_a_wrong_card_is_shown_again_with_what_is_wrong(
    operator: Visitor, prepared: PreparedService, text: str, problem: str
) -> None:
    register(prepared)
    answer = operator.post("/specialists/plumber/edit", {"version": 1, "text": text})
    assert answer.status == 422
    assert problem in text_of(answer)
    assert " ".join(text.split()) in text_of(answer)
    assert found(prepared).version == 1


def test_one_is_registered(operator: Visitor, prepared: PreparedService) -> None:
    refused = operator.post("/specialists", {"text": "id: plumber\n"})
    assert refused.status == 422
    assert "description: is missing" in text_of(refused)
    answer = operator.post("/specialists", {"text": card_text(PLUMBER.document)})
    assert (answer.status, answer.headers["location"]) == (303, "/specialists/plumber")
    assert found(prepared).content == PLUMBER


def test_remove_asks_first_and_leaves_what_has_changed(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    seen = hidden(operator.get("/specialists/plumber/remove"), "version")
    register(prepared, PLUMBER.model_copy(update={"description": "Another."}))
    refused = operator.post("/specialists/plumber/remove", {"version": seen})
    assert (refused.status, "Changed in the meantime" in text_of(refused)) == (412, True)
    answer = operator.post("/specialists/plumber/remove", {"version": hidden(refused, "version")})
    assert (answer.status, answer.headers["location"]) == (303, "/specialists")
    assert operator.get("/specialists/plumber").status == 404


def test_what_follows_a_file_is_changed_there(operator: Visitor, prepared: PreparedService) -> None:
    prepared.database.write(
        lambda connection: changes.register(
            connection, PLUMBER, OPERATOR, prepared.world.now_ms, source="file", file_path="cards/plumber.yaml"
        )
    )
    page = operator.get("/specialists/plumber")
    assert "cards/plumber.yaml" in text_of(page)
    assert "/plumber/edit" not in page.body.decode()
    for form in ("edit", "remove"):
        assert "It follows the file cards/plumber.yaml" in text_of(operator.get(f"/specialists/plumber/{form}"))
        refused = operator.post(f"/specialists/plumber/{form}", {"version": 1, "text": card_text(PLUMBER.document)})
        assert refused.status == 409
    assert found(prepared).version == 1


def test_grants_are_given_and_taken_back(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared)
    answer = operator.post("/specialists/plumber/grant", {"grantee": " org:acme "})
    assert (answer.status, answer.headers["location"]) == (303, "/specialists/plumber#sharing")
    assert found(prepared).grants == ("org:acme",)
    assert hidden(operator.get("/specialists/plumber"), "grantee") == "org:acme"
    for wrong in ("", "Not a name!"):
        refused = operator.post("/specialists/plumber/grant", {"grantee": wrong})
        assert (refused.status, f'value="{wrong}"' in refused.body.decode()) == (422, True)
    assert operator.post("/specialists/plumber/revoke", {"grantee": "org:acme"}).status == 303
    assert found(prepared).grants == ()


def test_only_a_shared_one_takes_grants(operator: Visitor, prepared: PreparedService) -> None:
    register(prepared, card("painter"))
    assert 'name="grantee"' not in operator.get("/specialists/painter").body.decode()
    refused = operator.post("/specialists/painter/grant", {"grantee": "ann"})
    assert (refused.status, "only a shared one takes grants" in text_of(refused)) == (409, True)


@pytest.fixture
def open_daemon(tmp_path: Path, prepared: PreparedService) -> Iterator[Daemon]:
    """With tokens."""
    with running(prepared, tmp_path / "state") as daemon:
        yield daemon


def test_what_is_hidden_is_answered_as_what_is_absent(open_daemon: Daemon, prepared: PreparedService) -> None:
    with open_daemon.client() as client:
        made = client.create_token(TokenRequest(name="bob", role="operate", organisation="bolt"))
    bob = log_in(open_daemon, made.token)
    for entry in (card("pilferer", visibility="private"), PLUMBER, card("painter")):
        register(prepared, entry, ANN)
    listed = text_of(bob.get("/specialists"))
    assert ("painter" in listed, "pilferer" in listed, "Pipe Doctor" in listed) == (True, False, False)
    assert "No specialist matches." in text_of(bob.get("/specialists?q=pilferer"))
    for path in ("", "/edit", "/remove"):
        hidden_one, absent = (bob.get(f"/specialists/{name}{path}") for name in ("pilferer", "pilfered"))
        assert (hidden_one.status, absent.status) == (404, 404)
        assert hidden_one.body.decode().replace("pilferer", "pilfered") == absent.body.decode()
    for change in ("edit", "remove", "grant", "revoke"):
        fields = {"version": 1, "grantee": "bob", "text": card_text(card("pilferer").document)}
        assert bob.post(f"/specialists/pilferer/{change}", fields).status == 404


def test_who_only_looks_is_offered_nothing_else(open_daemon: Daemon, prepared: PreparedService) -> None:
    with open_daemon.client() as client:
        viewer = log_in(open_daemon, client.create_token(TokenRequest(name="viewer", role="read")).token)
    register(prepared)
    for path in ("/specialists", "/specialists/plumber"):
        page = viewer.get(path)
        assert page.status == 200
        assert re.findall(r'<form method="post" action="([^"]+)"', page.body.decode()) == ["/logout"]
        assert "/plumber/edit" not in page.body.decode()
    fields = {"version": 1, "grantee": "bob", "text": card_text(PLUMBER.document)}
    for change in ("", "/plumber/edit", "/plumber/remove", "/plumber/grant", "/plumber/revoke"):
        assert viewer.post(f"/specialists{change}", fields).status == 403
    assert viewer.get("/specialists/plumber/edit").status == 403
    assert viewer.post("/routing", {"text": "Who?"}).status == 200
    assert found(prepared).version == 1


def test_what_is_another_s_is_seen_and_not_changed(open_daemon: Daemon, prepared: PreparedService) -> None:
    with open_daemon.client() as client:
        made = client.create_token(TokenRequest(name="bob", role="operate", organisation="acme"))
    bob = log_in(open_daemon, made.token)
    register(prepared, PLUMBER, ANN)
    prepared.access.as_(ANN)[Specialists].grant("plumber", GrantRequest(grantee="org:secretive"))
    page = bob.get("/specialists/plumber")
    assert page.status == 200
    assert "org:secretive" not in page.body.decode()
    assert "/plumber/edit" not in page.body.decode()
    assert 'name="grantee"' not in page.body.decode()
    assert "Only its creator and administrators" in text_of(bob.get("/specialists/plumber/edit"))
    fields = {"version": 2, "grantee": "bob", "text": card_text(PLUMBER.document)}
    for change in ("edit", "remove", "grant", "revoke"):
        assert bob.post(f"/specialists/plumber/{change}", fields).status == 403
    assert found(prepared).version == 2
