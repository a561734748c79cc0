"""The client of remote agents as a process, against the server of the A2A SDK."""

import signal
from collections.abc import Iterator

import pytest

from claudomator_py.agents.a2a.kind import KIND
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.remote import Protocol
from tests.fakes.a2a import Seen, sdk_server
from tests.integration.agents.client import finish, remote_at, run, start
from tests.patience import wait_until

SERVERS = [(("1.0",), True), (("1.0",), False), (("0.3",), True), (("0.3",), False)]


@pytest.fixture(params=SERVERS, ids=lambda param: f"{param[0][0]}-{'streaming' if param[1] else 'polling'}")
def sdk(request: pytest.FixtureRequest) -> Iterator[tuple[str, Seen]]:
    versions, streaming = request.param
    with sdk_server(versions, streaming=streaming) as results:
        yield results


def test_a_task_is_done_and_its_answer_read(sdk: tuple[str, Seen]) -> None:
    url, seen = sdk
    outcome = run(remote_at(url, skill="say"), "Say hello, ünïcode")
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "you said: Say hello, ünïcode")
    assert seen.metadata == [({"skill_used": "say"}, {"skill_used": "say"})]
    assert [(message_id, text) for message_id, text, _ in seen.messages] == [("run-1", "Say hello, ünïcode")]


def test_a_question_is_answered_in_the_same_task(sdk: tuple[str, Seen]) -> None:
    url, seen = sdk
    asked = run(remote_at(url), "paint and ask")
    assert (asked.status, asked.question) == (OutcomeStatus.NEEDS_INPUT, "Which colour?")
    answered = run(remote_at(url), "Blue.", asked.conversation_id)
    assert (answered.status, answered.text) == (OutcomeStatus.SUCCEEDED, "you said: Blue.")
    assert len({task_id for _, _, task_id in seen.messages}) == 1


def test_what_follows_a_finished_task_goes_on_in_its_context(sdk: tuple[str, Seen]) -> None:
    url, seen = sdk
    first = run(remote_at(url), "one")
    second = run(remote_at(url), "two", first.conversation_id)
    assert second.text == "you said: two"
    assert first.conversation_id == second.conversation_id
    assert len({task_id for _, _, task_id in seen.messages}) == 2


@pytest.mark.parametrize(
    ("word", "status", "reason", "text"),
    [
        ("fail", OutcomeStatus.FAILED, Reason.AGENT_ERROR, "it broke"),
        ("reject", OutcomeStatus.FAILED, Reason.REFUSED, "not for me"),
        ("large", OutcomeStatus.FAILED, Reason.OUTPUT_LIMIT, "larger than"),
    ],
)
def test_its_failures(sdk: tuple[str, Seen], word: str, status: OutcomeStatus, reason: Reason, text: str) -> None:
    outcome = run(remote_at(sdk[0]), f"please {word}")
    assert (outcome.status, outcome.reason) == (status, reason)
    assert text in (outcome.detail or "")


def test_one_that_needs_a_login_asks_a_person(sdk: tuple[str, Seen]) -> None:
    outcome = run(remote_at(sdk[0]), "please login")
    assert outcome.status is OutcomeStatus.NEEDS_INPUT
    assert "Log in at the door." in (outcome.question or "")


def test_told_to_stop_it_has_the_remote_task_cancelled(sdk: tuple[str, Seen]) -> None:
    url, seen = sdk
    request, process = start(remote_at(url), "please wait")
    wait_until(lambda: seen.messages)
    for line in process.stdout:
        if b"working" in line or b"submitted" in line:
            break
    process.send_signal(signal.SIGTERM)
    outcome = finish(request, process)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.INTERRUPTED)
    wait_until(lambda: seen.cancelled == [seen.messages[0][2]])


def test_a_killed_client_is_followed_by_one_that_asks_and_does_not_send_again(sdk: tuple[str, Seen]) -> None:
    url, seen = sdk
    request, process = start(remote_at(url), "please wait")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if b'"task"' in line and b"conversation" in line:
            break
    process.kill()
    process.communicate()
    reader = KIND.reader(request)
    reader.feed("stdout", b"".join(lines))
    lost = reader.outcome(None, 0)
    assert lost.status is OutcomeStatus.LOST
    assert reader.answered
    resumed = start(remote_at(url), "Continue.", lost.conversation_id)
    seen.released.set()
    outcome = finish(*resumed)
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, "you said: please wait")
    assert len(seen.messages) == 1


def test_a_task_that_the_server_forgot_is_a_lost_conversation(sdk: tuple[str, Seen]) -> None:
    outcome = run(remote_at(sdk[0]), "x", "no-such-task/c")
    assert (outcome.reason, outcome.conversation_lost) == (Reason.BAD_INVOCATION, True)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_without_a_card_the_address_is_the_endpoint(version: str) -> None:
    with sdk_server((version,)) as (url, _):
        assert run(remote_at(f"{url}/rpc", protocol=Protocol(version)), "hi").text == "you said: hi"
