"""Conditional requests: a change is made to the version that was seen, and what is known is not sent again."""

import pytest

from claudomator_py.domain.lifecycle import Completed, InputKind, NeedsInput
from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService

ACTIONS = ["cancel", "restart"]
MALFORMED = [
    "3",
    "'3'",
    '"3',
    '3"',
    'w/"3"',
    'W/ "3"',
    '"1" "3"',
    '"1"; "3"',
    '"1", 3',
    '*, "3"',
    '"a b"',
    "",
    " ",
    ",",
    '"\x7f"',
]


@pytest.fixture
def task_id(prepared: PreparedService) -> str:
    return prepared.add("it", NeedsInput(InputKind.QUESTION))


def test_the_etag_is_the_version_on_every_answer_with_one_task(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("it")
    answers = [
        daemon.ask("POST", "/v1/tasks", json_body={"name": "new", "instructions": "x"}),
        daemon.ask("GET", "/v1/tasks/it"),
        daemon.ask("POST", "/v1/tasks/it/cancel"),
        daemon.ask("POST", "/v1/tasks/it/restart"),
    ]
    for answer in answers:
        assert answer.headers["etag"] == f'"{answer.json()["version"]}"'


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("tag", ['"1"', '"7", "1"', '"1","7"', ', "1",,', '\t"x", W/"1", "1"', "*", " * "])
def test_a_change_is_made_to_a_version_that_is_named(daemon: Daemon, task_id: str, action: str, tag: str) -> None:
    assert daemon.ask("POST", f"/v1/tasks/{task_id}/{action}", headers={"If-Match": tag}).status == 202


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("tag", ['"7"', 'W/"1"', '"abc"', '"01"', '"1 "'.replace(" ", "x"), '"7", "8"', '""', '"1,7"'])
def test_no_change_is_made_to_another_version(
    daemon: Daemon, prepared: PreparedService, task_id: str, action: str, tag: str
) -> None:
    answer = daemon.ask("POST", f"/v1/tasks/{task_id}/{action}", headers={"If-Match": tag})
    assert (answer.status, answer.json()["code"]) == (412, "stale_version")
    assert "Fetch it again" in answer.json()["remedy"]
    assert prepared.task(task_id).state == "NEEDS_INPUT"


@pytest.mark.parametrize("tag", MALFORMED)
@pytest.mark.parametrize(("method", "path", "header"), [("POST", "/cancel", "If-Match"), ("GET", "", "If-None-Match")])
def test_what_is_no_entity_tag_is_told(
    daemon: Daemon, prepared: PreparedService, task_id: str, method: str, path: str, header: str, tag: str
) -> None:
    answer = daemon.ask(method, f"/v1/tasks/{task_id}{path}", headers={header: tag})
    assert (answer.status, answer.json()["code"]) == (400, "bad_precondition")
    assert '"3"' in answer.json()["remedy"]
    assert prepared.task(task_id).state == "NEEDS_INPUT"


def test_a_stale_version_is_told_before_a_state_that_forbids_it(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("done", Completed())
    assert daemon.ask("POST", "/v1/tasks/done/cancel", headers={"If-Match": '"9"'}).status == 412
    assert daemon.ask("POST", "/v1/tasks/done/cancel", headers={"If-Match": '"1"'}).status == 409
    assert daemon.ask("POST", "/v1/tasks/nothing/cancel", headers={"If-Match": '"9"'}).status == 404
    assert daemon.ask("POST", "/v1/tasks/nothing/cancel", headers={"If-Match": "*"}).status == 404


@pytest.mark.parametrize("tag", ['"1"', 'W/"1"', '"7", W/"1"', "*"])
def test_what_is_known_is_not_sent_again(daemon: Daemon, task_id: str, tag: str) -> None:
    answer = daemon.ask("GET", f"/v1/tasks/{task_id}", headers={"If-None-Match": tag})
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", '"1"')
    assert "content-type" not in {name.lower() for name in answer.headers}


def test_what_has_changed_is_sent(daemon: Daemon, task_id: str) -> None:
    seen = daemon.ask("GET", f"/v1/tasks/{task_id}").headers["etag"]
    daemon.ask("POST", f"/v1/tasks/{task_id}/cancel")
    answer = daemon.ask("GET", f"/v1/tasks/{task_id}", headers={"If-None-Match": seen})
    assert (answer.status, answer.json()["state"]) == (200, "CANCELLED")
    assert daemon.ask("GET", "/v1/tasks/nothing", headers={"If-None-Match": "*"}).status == 404
