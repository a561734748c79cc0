"""The page of routing: who would do a task, how routing does, and what was learned."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.units import DAY_MS
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.workers.learning import Learner
from tests.fakes.cards import card
from tests.fakes.daemon import running
from tests.fakes.prepared import PreparedService
from tests.fakes.steps import spec
from tests.unit.api.page.conftest import Visitor, log_in, text_of

DUMP = {"text": "Restore last night's dump.", "name": "night", "tags": "database, urgent"}


def test_who_would_do_it_with_what_the_scores_are_made_of(operator: Visitor, prepared: PreparedService) -> None:
    specialists = prepared.access.as_(OPERATOR)[Specialists]
    skills = [{"id": "backup", "name": "Backups", "examples": ["Restore last night's dump of the database."]}]
    specialists.register(card("db-admin", skills=skills))
    specialists.register(card("painter", keywords=["fresh paint"]))
    page = operator.post("/routing", DUMP)
    assert page.status == 200
    text = text_of(page)
    for words in (
        "night would go to db-admin (skill backup)",
        "db-admin backup 0.",
        "semantic 0.",
        "chosen",
        "painter",
    ):
        assert words in text
    for kept in ("Restore last night&#39;s dump.</textarea>", 'value="night"', 'value="database, urgent"'):
        assert kept in page.body.decode()
    assert prepared.task_ids() == []


def test_a_question_without_a_text_is_refused(operator: Visitor) -> None:
    assert operator.get("/routing").status == 200
    refused = operator.post("/routing", {"text": " ", "tags": "a"})
    assert (refused.status, "instructions: is" in text_of(refused)) == (422, True)


def test_there_are_no_specialists(operator: Visitor) -> None:
    assert "There are no specialists." in text_of(operator.post("/routing", DUMP))


def test_nothing_is_routed(prepared: PreparedService, tmp_path: Path) -> None:
    world = prepared.world
    unrouted = Routing(world.database, world.clock, lambda: None)
    others: list[object] = [world.overview, world.service, world.access[PolicyService], world.access[Events]]
    access = Access([*others, unrouted])
    with running(SimpleNamespace(access=access, keyring=world.keyring), tmp_path / "state") as daemon:
        page = log_in(daemon).post("/routing", DUMP)
    assert page.status == 409
    assert "Set another routing.preset than none." in text_of(page)
    assert 'value="night"' in page.body.decode()


def test_what_is_asked_is_text(operator: Visitor) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    page = operator.post("/routing", {"text": hostile, "name": hostile, "tags": hostile})
    assert hostile in text_of(page)
    assert hostile not in page.body.decode()


@pytest.fixture
def taught(prepared: PreparedService) -> PreparedService:
    """Two tasks that were routed by their texts, one of which an operator gave to somebody else; all was learned."""
    for entry in (
        card("db-admin", skills=[{"id": "backup", "name": "Backups", "examples": ["Restore last night's dump."]}]),
        card("painter", skills=[{"id": "paint", "name": "Painting", "examples": ["Paint the kitchen blue."]}]),
    ):
        prepared.access.as_(OPERATOR)[Specialists].register(entry)
    for name in ("right", "wrong"):
        prepared.service.submit(spec(name, instructions="Restore last night's dump of the orders."))
    prepared.world.router.route()
    prepared.service.cancel("wrong")
    prepared.service.restart("wrong", RestartRequest(specialist="painter"))
    prepared.world.router.route()
    prepared.service.cancel("right")
    Learner(prepared.database, LearningSettings, prepared.world.clock).run_once()
    return prepared


def test_how_routing_does(operator: Visitor, taught: PreparedService) -> None:
    text = text_of(operator.get("/routing"))
    for words in (
        "3 decisions in 30 days, with a mean confidence of 0.",
        "33% overridden",
        "db-admin 2 0.",
        "By topic",
        "backup 2 0.",
        "What each signal changed",
        "semantic 2",
        "All outcomes have been processed.",
        "db-admin painter backup 1",
    ):
        assert words in text
    taught.world.now_ms += 2 * DAY_MS
    assert "Nothing was routed in a day." in text_of(operator.get("/routing?days=1"))
    assert "3 decisions in 7 days" in text_of(operator.get("/routing?days=7"))
    assert [operator.get(f"/routing?days={wrong}").status for wrong in ("0", "366", "x")] == [422, 422, 422]


def test_what_nobody_covers_is_shown_with_its_tasks(operator: Visitor, taught: PreparedService) -> None:
    taught.service.submit(spec("odd", instructions="Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich."))
    taught.world.router.route()
    text = text_of(operator.get("/routing"))
    assert "Poorly covered" in text
    assert "odd" in text.partition("Examples")[2].partition("What each signal")[0]


def test_what_was_learned_of_one_is_on_its_page(operator: Visitor, taught: PreparedService) -> None:
    text = text_of(operator.get("/specialists/db-admin"))
    assert "all 0.45 0 1 never backup 0.45 0 1 never" in text
    assert "Corrected by operators From To Topic Tasks Last db-admin painter backup 1" in text


def test_what_was_learned_is_forgotten_after_a_question(operator: Visitor, taught: PreparedService) -> None:
    learned = taught.world.learned
    form = operator.get("/specialists/db-admin/forget")
    assert "Forget what was learned about db-admin?" in text_of(form)
    assert {entry.specialist for entry in learned.all().standings} == {"db-admin"}
    answer = operator.post("/specialists/db-admin/forget")
    assert (answer.status, answer.headers["location"]) == (303, "/specialists/db-admin")
    assert learned.all().standings == ()
    assert operator.post("/specialists/nobody/forget").status == 404
    assert "about all specialists?" in text_of(operator.get("/routing/forget"))
    assert operator.post("/routing/forget").status == 303
    assert learned.all().corrections == ()


def test_learning_is_frozen_and_goes_on(operator: Visitor, taught: PreparedService) -> None:
    assert "Freeze learning" in text_of(operator.get("/routing"))
    assert operator.post("/routing/freeze").headers["location"] == "/routing#learning"
    assert taught.world.learned.all().frozen_at is not None
    text = text_of(operator.get("/routing"))
    assert "nothing is learned" in text
    assert "Resume learning" in text
    assert operator.post("/routing/unfreeze").status == 303
    assert taught.world.learned.all().frozen_at is None


def test_what_was_learned_elsewhere_is_not_shown(
    prepared: PreparedService, taught: PreparedService, tmp_path: Path
) -> None:
    with running(taught, tmp_path / "state") as daemon:
        made = taught.world.tokens.create(TokenRequest(name="bob", role="read", organisation="bolt"))
        bob = log_in(daemon, made.token)
        assert "Nothing was routed in 30 days." in text_of(bob.get("/routing"))
        assert "Forget what was learned" not in text_of(bob.get("/routing"))
        for change in ("/routing/forget", "/routing/freeze", "/routing/unfreeze", "/specialists/db-admin/forget"):
            assert bob.post(change).status == 403
        assert "What was learned" not in text_of(bob.get("/specialists/db-admin"))
