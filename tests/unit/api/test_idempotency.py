"""A request sent again with its Idempotency-Key is answered as it was, and not done again."""

import threading
import time

import pytest

from claudomator_py.domain.lifecycle import Completed
from tests.fakes.daemon import Answer, Daemon
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S

KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'
TASK = {"name": "it", "instructions": "Do it."}


def submit(daemon: Daemon, key: str | None, task: object = None) -> Answer:
    return daemon.ask("POST", "/v1/tasks", json_body=task or TASK, headers={"Idempotency-Key": key})


def same(answer: Answer, other: Answer) -> bool:
    kept = ("location", "etag", "content-type")
    return (answer.status, answer.body, [answer.headers.get(name) for name in kept]) == (
        other.status,
        other.body,
        [other.headers.get(name) for name in kept],
    )


def test_a_repeated_submission_makes_one_task(daemon: Daemon, prepared: PreparedService) -> None:
    first = submit(daemon, KEY)
    prepared.move(first.json()["id"], Completed(), "Changed since.")
    again = submit(daemon, KEY)
    assert first.status == 201
    assert same(first, again)
    assert len(prepared.task_ids()) == 1


def test_without_a_key_each_submission_is_a_new_task(daemon: Daemon, prepared: PreparedService) -> None:
    assert submit(daemon, None).json()["id"] != submit(daemon, None).json()["id"]


def test_cancel_restart_and_release_are_repeated_too(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("it")
    prepared.add_agent("claude")
    prepared.limit("claude")
    for path in ("/v1/tasks/it/cancel", "/v1/tasks/it/restart", "/v1/agents/claude/release"):
        key = {"Idempotency-Key": f'"{path}"'}
        first, again = (daemon.ask("POST", path, headers=key) for _ in range(2))
        assert first.status in (200, 202)
        assert same(first, again)
    assert prepared.task("it").generation == 2


def test_a_precondition_that_the_first_request_met_does_not_hinder_its_repetition(
    daemon: Daemon, prepared: PreparedService
) -> None:
    prepared.add("it")
    headers = {"Idempotency-Key": KEY, "If-Match": '"1", "9"'}
    first, again = (daemon.ask("POST", "/v1/tasks/it/cancel", headers=headers) for _ in range(2))
    assert first.status == 202
    assert same(first, again)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tasks", {**TASK, "priority": "high"}),
        ("/v1/tasks/it/restart", {}),
        ("/v1/tasks/it/cancel", None),
    ],
)
def test_a_key_for_another_request_is_refused(
    daemon: Daemon, prepared: PreparedService, path: str, body: object
) -> None:
    submit(daemon, KEY)
    answer = daemon.ask("POST", path, json_body=body, headers={"Idempotency-Key": KEY})
    assert (answer.status, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert "new key" in answer.json()["remedy"]
    assert [spec.priority.name for spec in prepared.specs()] == ["NORMAL"]


def test_a_refused_request_is_judged_anew(daemon: Daemon, prepared: PreparedService) -> None:
    assert submit(daemon, KEY, {**TASK, "working_dir": "/forbidden"}).status == 422
    assert submit(daemon, KEY).status == 201
    prepared.add("done", Completed())
    cancel = {"Idempotency-Key": '"other"'}
    assert daemon.ask("POST", "/v1/tasks/done/cancel", headers=cancel).status == 409
    daemon.ask("POST", "/v1/tasks/done/restart")
    assert daemon.ask("POST", "/v1/tasks/done/cancel", headers=cancel).status == 202


def test_while_the_first_is_in_work_the_second_is_sent_away(daemon: Daemon, prepared: PreparedService) -> None:
    held, go_on = threading.Event(), threading.Event()
    answers: list[Answer] = []

    def hold(_connection: object) -> None:
        held.set()
        assert go_on.wait(PATIENCE_S)

    # The store is at something else meanwhile, so the first one waits for its turn.
    prepared.database.submit(hold)
    assert held.wait(PATIENCE_S)
    first = threading.Thread(target=lambda: answers.append(submit(daemon, KEY)))
    first.start()
    while not prepared.database.pending:
        time.sleep(0.001)
    early = submit(daemon, KEY)
    go_on.set()
    first.join()
    assert (early.status, early.json()["code"]) == (409, "idempotency_key_in_use")
    assert "same key" in early.json()["remedy"]
    assert same(answers[0], submit(daemon, KEY))
    assert len(prepared.task_ids()) == 1


def test_bare_words_name_the_same_as_quoted_ones(daemon: Daemon, prepared: PreparedService) -> None:
    first = submit(daemon, KEY)
    assert same(first, submit(daemon, KEY.strip('"')))
    assert same(first, submit(daemon, f"  {KEY} "))
    assert submit(daemon, '"with space, comma and \\"quotes\\""').status == 201


@pytest.mark.parametrize(
    "key",
    ["", " ", '""', '"open', "two words", '"a" "b"', '"a", "b"', "ä", '"ä"', '"\\x"', "x" * 256, f'"{"x" * 256}"'],
)
def test_what_is_no_key_is_told(daemon: Daemon, prepared: PreparedService, key: str) -> None:
    answer = submit(daemon, key)
    assert (answer.status, answer.json()["code"]) == (400, "bad_idempotency_key")
    assert "Idempotency-Key: " in answer.json()["remedy"]
    assert not prepared.task_ids()
