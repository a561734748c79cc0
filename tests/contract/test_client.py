"""The typed client and the API: whatever can be asked over HTTP can be asked by a method, and is."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import claudomator_py.client
from claudomator_py.client import AnswerRequest, Client, ClientError, HoldRequest, RestartRequest, TaskSpec
from claudomator_py.client.http import _every
from claudomator_py.domain.channel import AttachmentState, NewChannel, NewMessage
from claudomator_py.domain.lifecycle import Completed, Running
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.domain.retention import CleanupRequest
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.channels import AttachmentRequest, MuteRequest, SettingsRequest
from claudomator_py.resources.routing import RouteRequest
from tests.fakes.cards import card
from tests.fakes.daemon import Daemon, openapi_document, running
from tests.fakes.prepared import PreparedService

CALLS: dict[str, Callable[[Client], object]] = {
    "submitTask": lambda client: client.submit(TaskSpec(name="new", instructions="x"), idempotency_key="k"),
    "listTasks": lambda client: list(client.all_tasks()),
    "getTask": lambda client: client.task("done"),
    "editTask": lambda client: client.edit("asks", TaskSpec(name="asks", instructions="y")),
    "cancelTask": lambda client: client.cancel("running"),
    "answerTask": lambda client: client.answer("asks", AnswerRequest(text="Blue.")),
    "approveTask": lambda client: client.approve("asks"),
    "rejectTask": lambda client: client.reject("asks"),
    "restartTask": lambda client: client.restart("done", RestartRequest(reason="again")),
    "explainTask": lambda client: client.why("done"),
    "listRuns": lambda client: client.runs("done"),
    "listChanges": lambda client: client.changes("done"),
    "listBranches": lambda client: client.branches(),
    "listHosts": lambda client: client.hosts(),
    "drainHost": lambda client: client.drain_host("local", "a new disk"),
    "undrainHost": lambda client: client.undrain_host("local"),
    "mergeTask": lambda client: client.merge("done"),
    "discardTask": lambda client: client.discard("done"),
    "getPatch": lambda client: client.patch("any"),
    "getRun": lambda client: client.run("any"),
    "getHandoff": lambda client: client.handoff("any"),
    "ask": lambda client: client.ask("any", QuestionRequest(question="Which?")),
    "reportProgress": lambda client: client.report_progress("any", ProgressRequest(text="Half.")),
    "createSubtask": lambda client: client.create_subtask("any", SubtaskRequest(name="docs", instructions="Write.")),
    "handOn": lambda client: client.hand_on("any", HandoffRequest(to="ben")),
    "readLog": lambda client: client.log("any"),
    "listAgents": lambda client: client.agents(),
    "holdAgent": lambda client: client.hold("claude", HoldRequest(family="opus", reason="for a test")),
    "releaseAgent": lambda client: client.release("claude"),
    "listReasons": lambda client: client.reasons(),
    "getStatus": lambda client: client.status(),
    "getReport": lambda client: client.report(),
    "listFileProblems": lambda client: client.inbox_problems(),
    "getDrain": lambda client: client.drain_state(),
    "drain": lambda client: client.drain("for a test"),
    "undrain": lambda client: client.undrain(),
    "listNotifications": lambda client: client.notifications(),
    "retryNotification": lambda client: client.retry_notification(1),
    "testNotification": lambda client: client.test_notification("me"),
    "listSchedules": lambda client: client.schedules(),
    "addSchedule": lambda client: client.add_schedule(TaskSpec(name="new", instructions="x", schedule="0 3 * * *")),
    "getSchedule": lambda client: client.schedule("any"),
    "pauseSchedule": lambda client: client.pause_schedule("any"),
    "resumeSchedule": lambda client: client.resume_schedule("any"),
    "runSchedule": lambda client: client.run_schedule("any"),
    "deleteSchedule": lambda client: client.delete_schedule("any"),
    "listSpecialists": lambda client: list(client.all_specialists()),
    "registerSpecialist": lambda client: client.register_specialist(card("new"), idempotency_key="k"),
    "listDecisions": lambda client: client.decisions(),
    "getDecision": lambda client: client.decision("any"),
    "route": lambda client: client.route(RouteRequest(instructions="Mend the sink.")),
    "getRoutingStats": lambda client: client.routing_stats(days=7),
    "getPolicy": lambda client: client.policy(days=7),
    "getLearned": lambda client: client.learned(),
    "listLabels": lambda client: client.labels(),
    "resetLearned": lambda client: client.reset_learned(),
    "freezeLearning": lambda client: client.freeze_learning(),
    "unfreezeLearning": lambda client: client.unfreeze_learning(),
    "searchSpecialists": lambda client: client.search_specialists("any"),
    "getSpecialist": lambda client: client.specialist("any"),
    "changeSpecialist": lambda client: client.change_specialist(card("any"), if_version=1),
    "removeSpecialist": lambda client: client.remove_specialist("any"),
    "grantSpecialist": lambda client: client.grant_specialist("any", "org:acme"),
    "admitSpecialist": lambda client: client.admit_specialist("any"),
    "dismissSpecialist": lambda client: client.dismiss_specialist("any"),
    "revokeSpecialist": lambda client: client.revoke_specialist("any", "org:acme"),
    "listChannels": lambda client: list(client.all_channels()),
    "createChannel": lambda client: client.create_channel(NewChannel(name="any"), idempotency_key="k"),
    "getChannel": lambda client: client.channel("any"),
    "changeChannelSettings": lambda client: client.change_channel_settings("any", SettingsRequest(), if_version=1),
    "joinChannel": lambda client: client.join_channel("any", "any"),
    "deleteChannel": lambda client: client.delete_channel("any"),
    "leaveChannel": lambda client: client.leave_channel("any", "any"),
    "muteParticipant": lambda client: client.mute_participant("any", "any", MuteRequest()),
    "listMessages": lambda client: client.messages("any"),
    "postMessage": lambda client: client.post_message("any", NewMessage(content="x"), idempotency_key="k"),
    "getMessage": lambda client: client.message("any", 1),
    "processAttachment": lambda client: client.process_attachment(
        "any", 1, "a", AttachmentRequest(state=AttachmentState.FAILED)
    ),
    "markMessage": lambda client: client.mark_message("any", 1, None),
    "getChannelStats": lambda client: client.channel_stats("any", days=7),
    "makeBackup": lambda client: client.backup(),
    "cleanUp": lambda client: client.clean_up(CleanupRequest(dry_run=True)),
    "listTokens": lambda client: client.tokens(),
    "createToken": lambda client: client.create_token(TokenRequest(name="new", role="read")),
    "revokeToken": lambda client: client.revoke_token("any"),
    "listSessions": lambda client: client.sessions(),
    "endSession": lambda client: client.end_session("any"),
    "endSessions": lambda client: client.end_sessions(),
    "createLoginCode": lambda client: client.login_code(),
    "listEvents": lambda client: client.list_events(),
    "getMetrics": lambda client: client.metrics(),
    "getLiveness": lambda client: client.alive(),
    "getReadiness": lambda client: client.readiness(),
}


@pytest.fixture(scope="module")
def operations() -> dict[str, tuple[str, re.Pattern[str]]]:
    """By name: the method, and what the path looks like."""
    return {
        operation["operationId"]: (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)))
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
    }


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    prepared = PreparedService()
    prepared.add("done", Completed())
    prepared.add("running", Running())
    prepared.add_agent("claude")
    with running(prepared, tmp_path_factory.mktemp("state")) as daemon:
        yield daemon


def test_no_two_resources_have_a_call_of_the_same_name() -> None:
    # The second would be hidden by the first, and nothing would say so.
    names = [name for calls in _every() for name in vars(calls) if not name.startswith("_")]
    assert sorted(names) == sorted(set(names))


def test_every_operation_has_a_method(operations: dict[str, tuple[str, re.Pattern[str]]]) -> None:
    assert set(CALLS) == set(operations)


@pytest.mark.parametrize("operation_id", sorted(CALLS))
def test_the_method_asks_for_that_operation(
    daemon: Daemon, operations: dict[str, tuple[str, re.Pattern[str]]], operation_id: str
) -> None:
    asked: list[httpx.Request] = []
    with daemon.client() as client:
        client._http.event_hooks["request"].append(asked.append)
        with contextlib.suppress(ClientError):  # what is not there is refused; that it was asked for counts
            CALLS[operation_id](client)
    method, path = operations[operation_id]
    assert [request.method for request in asked] == [method]
    assert all(path.fullmatch(request.url.path) for request in asked)


def test_every_public_name_is_there() -> None:
    results: dict[str, Any] = {name: getattr(claudomator_py.client, name) for name in claudomator_py.client.__all__}
    assert sorted(results) == claudomator_py.client.__all__
    assert results["Client"] is Client
    with pytest.raises(AttributeError, match="no attribute 'Clinet'"):
        _ = claudomator_py.client.Clinet
