"""The pages of decisions: the list with its filters, and one decision that explains itself."""

import re
from pathlib import Path

import pytest

from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from tests.fakes.cards import card
from tests.fakes.daemon import running
from tests.fakes.prepared import PreparedService
from tests.fakes.steps import spec
from tests.unit.api.page.conftest import Visitor, log_in, text_of

DUMP = "Restore last night's dump of the orders."


@pytest.fixture
def routed(prepared: PreparedService) -> PreparedService:
    """A task that was routed to one of two specialists, of whom one exists for its creator alone."""
    specialists = prepared.access.as_(OPERATOR)[Specialists]
    backup = {"id": "backup", "name": "Backups", "examples": ["Restore last night's dump."]}
    specialists.register(card("db-admin", skills=[backup]))
    specialists.register(card("secret-agent", skills=[backup | {"name": "Dumps"}], visibility="private"))
    prepared.service.submit(spec("night", instructions=DUMP))
    prepared.world.router.route()
    return prepared


def decided(prepared: PreparedService, kind: str) -> DecisionView:
    wanted = DecisionFilter.model_validate({"kind": kind})
    return prepared.access.as_(OPERATOR)[Decisions].page(wanted, None, 1).items[0]


def test_decisions_are_listed_with_links(operator: Visitor, routed: PreparedService) -> None:
    page = operator.get("/decisions?kind=specialist")
    name = decided(routed, "specialist")
    text, html = text_of(page), page.body.decode()
    assert page.status == 200
    assert "specialist night" in text
    assert f'href="/decisions/{name.id}"' in html
    assert f'href="/tasks/{name.task_id}"' in html
    assert f'href="/decisions?task={name.task_id}"' in operator.get(f"/tasks/{name.task_id}").body.decode()


def test_what_was_decided_is_explained(operator: Visitor, routed: PreparedService) -> None:
    name = decided(routed, "specialist")
    page = operator.get(f"/decisions/{name.id}")
    text = text_of(page)
    assert page.status == 200
    assert text.count("The task ") >= 1
    for words in ("db-admin", "secret-agent", "threshold", "semantic 0.", "Decision", "Registry"):
        assert words in text
    assert name.reason in text
    assert f'href="/decisions/{name.id}/json" download' in page.body.decode()
    downloaded = operator.get(f"/decisions/{name.id}/json")
    assert DecisionView.model_validate(downloaded.json()) == name
    assert downloaded.headers["content-disposition"] == f'attachment; filename="decision-{name.id}.json"'


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("kind=lunch", "kind"),
        ("route=north", "route"),
        ("reason=why", "reason"),
        ("risk=huge", "risk"),
        ("overridden=maybe", "overridden"),
        ("task=nowhere", "task"),
        ("since=yesterday", "since"),
        ("since=2026-11-24T00:00:00Z&until=2026-11-23T00:00:00Z", "until"),
    ],
)
def test_a_filter_that_makes_no_sense_is_told(
    operator: Visitor, prepared: PreparedService, address: str, field: str
) -> None:
    page = operator.get(f"/decisions?{address}")
    assert page.status == 422
    assert f"{field}: " in text_of(page)
    value = address.rpartition("=")[2].replace("+", " ").removesuffix("Z")
    assert value in page.body.decode(), "what was typed is gone"


def test_filters_narrow_the_list(operator: Visitor, routed: PreparedService) -> None:
    decision = decided(routed, "specialist")
    assert decision.route is not None
    rationale = decision.rationale
    assert rationale is not None
    kept = f"kind=specialist&task={decision.task_id}&route={decision.route}&overridden=no&reason={rationale.code.value}"
    assert "night" in text_of(operator.get(f"/decisions?{kept}&until=2099-01-01T00:00:00Z"))
    assert "night" in text_of(operator.get(f"/decisions?{kept}&since=1h&until=2099-01-01T00:00"))
    for other in ("kind=triage", "overridden=yes", "since=2099-01-01T00:00:00Z", "agent=nobody"):
        text = text_of(operator.get(f"/decisions?{other}"))
        assert "No decision matches." in text, other


def test_a_long_list_goes_on_with_its_filters(operator: Visitor, routed: PreparedService) -> None:
    for number in range(60):
        routed.service.submit(spec(f"more-{number}", instructions=DUMP))
    routed.world.router.route()
    first = operator.get("/decisions?kind=specialist").body.decode()
    more = re.search(r'href="(/decisions\?[^"]*cursor=[^"]*)"', first)
    assert more is not None
    path = more[1].replace("&amp;", "&")
    assert "kind=specialist" in path
    second = operator.get(path).body.decode()
    pages = [re.findall(r'id="row-([^"]+)"', page) for page in (first, second)]
    assert [len(page) for page in pages] == [50, 11]
    assert len({*pages[0], *pages[1]}) == 61
    assert operator.get("/decisions?cursor=nonsense").status == 400


def test_who_does_not_exist_is_not_named(prepared: PreparedService, tmp_path: Path) -> None:
    alice = Principal("alice", Role.OPERATE, "bolt")
    specialists = prepared.access.as_(alice)[Specialists]
    for name, visibility in (("open-one", "public"), ("secret-agent", "private")):
        skill = {"id": f"{name}-skill", "name": name, "examples": [DUMP]}
        specialists.register(card(name, skills=[skill], visibility=visibility))
    prepared.access.as_(alice)[Tasks].submit(spec("night", instructions=DUMP))
    prepared.world.router.route()
    decision = decided(prepared, "specialist")
    with running(prepared, tmp_path / "state") as daemon:
        bob, eve = (
            log_in(daemon, prepared.world.tokens.create(TokenRequest(name=name, role="read", organisation=whose)).token)
            for name, whose in (("bob", "bolt"), ("eve", "other"))
        )
        whole = prepared.access.as_(OPERATOR)[Decisions].explained(decision.id)
        assert "secret-agent" in {each.specialist for each in whole.decision.specialists}
        for path in ("/decisions", f"/decisions/{decision.id}", f"/decisions/{decision.id}/json"):
            shown = bob.get(path)
            assert (shown.status, b"secret-agent" in shown.body) == (200, False), path
        assert "open-one" in text_of(bob.get(f"/decisions/{decision.id}"))
        assert "No decision matches." in text_of(bob.get("/decisions?specialist=secret-agent"))
        assert "Nothing has been decided." in text_of(eve.get("/decisions"))
        for end in ("", "/json"):
            missing, hidden = (eve.get(f"/decisions/{ref}{end}") for ref in ("nowhere", decision.id))
            assert (missing.status, hidden.status) == (404, 404)
            assert text_of(missing).replace("nowhere", decision.id) == text_of(hidden)


def test_what_strangers_wrote_is_text(operator: Visitor, prepared: PreparedService) -> None:
    hostile = "<script>alert(1)</script>"
    prepared.service.submit(spec("night", instructions=hostile))
    prepared.world.router.route()
    for field in ("task", "specialist", "agent", "kind", "since"):
        page = operator.get(f"/decisions?{field}=%3Cscript%3Ealert(1)%3C/script%3E")
        assert hostile not in page.body.decode()


def test_a_decision_on_a_message_is_told_in_words(operator: Visitor, prepared: PreparedService) -> None:
    channels = prepared.access.as_(OPERATOR)[Channels]
    channel = channels.create(NewChannel(name="kitchen"))
    posted = channels.post("kitchen", NewMessage(content="Is the soup ready?"))
    decision = decided(prepared, "triage")
    assert (decision.channel_name, decision.message_id) == ("kitchen", posted.id)
    assert f"message {posted.id} in kitchen" in text_of(operator.get("/decisions?kind=triage"))
    page = operator.get(f"/decisions/{decision.id}")
    assert f"triage of message {posted.id} in kitchen" in text_of(page)
    assert f'href="/channels/{channel.id}#message-{posted.id}"' in page.body.decode()


def test_there_is_no_such_decision(operator: Visitor) -> None:
    assert operator.get("/decisions/nowhere").status == 404
    assert "Nothing has been decided." in text_of(operator.get("/decisions"))
