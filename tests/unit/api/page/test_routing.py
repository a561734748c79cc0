"""The page of routing: who would do a task."""

from claudomator_py.domain.principal import OPERATOR
from tests.fakes.cards import card
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, text_of

DUMP = {"text": "Restore last night's dump.", "name": "night", "tags": "database, urgent"}


def test_who_would_do_it_with_what_the_scores_are_made_of(operator: Visitor, desk: PreparedService) -> None:
    specialists = desk.access.as_(OPERATOR).specialists
    skills = [{"id": "backup", "name": "Backups", "examples": ["Restore last night's dump of the database."]}]
    specialists.register(card("db-admin", skills=skills))
    specialists.register(card("painter", keywords=["fresh paint"]))
    page = operator.post("/routing", DUMP)
    assert page.status == 200
    said = text_of(page)
    for words in ("night would go to db-admin for backup", "db-admin backup 0.", "semantic 0.", "chosen", "painter"):
        assert words in said
    for kept in ("Restore last night&#39;s dump.</textarea>", 'value="night"', 'value="database, urgent"'):
        assert kept in page.body.decode()
    assert desk.task_ids() == []


def test_a_question_without_a_text_is_refused(operator: Visitor) -> None:
    assert operator.get("/routing").status == 200
    refused = operator.post("/routing", {"text": " ", "tags": "a"})
    assert (refused.status, "instructions: is" in text_of(refused)) == (422, True)


def test_there_are_no_specialists(operator: Visitor) -> None:
    assert "There are no specialists." in text_of(operator.post("/routing", DUMP))


def test_what_is_asked_is_text(operator: Visitor) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    page = operator.post("/routing", {"text": hostile, "name": hostile, "tags": hostile})
    assert hostile in text_of(page)
    assert hostile not in page.body.decode()
