"""Remote agents: what is told their client, what its events mean, and what the wire says in either version."""

import json
from dataclasses import replace
from email.message import Message
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.a2a.kind import KIND, OUTCOMES
from claudomator_py.agents.a2a_client import wire
from claudomator_py.agents.a2a_client.connection import HttpAnswer, RemoteServer, address, retry_after_s
from claudomator_py.agents.a2a_client.discovery import discover
from claudomator_py.agents.a2a_client.task import MAX_CONVERSATION, RemoteTask, conversation_text, ids_of
from claudomator_py.agents.client_output import End, Output
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.remote import Authentication, Remote, Scheme
from claudomator_py.domain.run import ExitRecord, LaunchRequest
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec
from claudomator_py.schema.a2a_card import spoken_interface, unreachable

REMOTE = Remote(url="https://example.org/a2a", authentication=Authentication(scheme=Scheme.BEARER, secret="TOKEN"))
AGENT = AgentSpec(name="docs-bot", kind="a2a", remote=REMOTE)


def request(agent: AgentSpec = AGENT) -> LaunchRequest:
    return LaunchRequest("run-1", agent, TaskSpec(name="t", instructions="x"), "prompt", None, "t/c", resume=True)


def read(*events: dict[str, Any], exit_code: int = 1) -> Outcome:
    reader = KIND.reader(request())
    for event in events:
        reader.feed("stdout", json.dumps(event).encode() + b"\n")
    return reader.outcome(ExitRecord(exit_code, None, 1, 2), 2)


ELSEWHERE = "https://example.org/old"


@pytest.mark.parametrize(
    ("card", "found"),
    [
        ({}, ("0.3", "/a2a")),
        ({"protocolVersion": "0.3.0"}, ("0.3", "/a2a")),
        ({"protocolVersion": "1.0"}, ("1.0", "/a2a")),
        ({"protocolVersion": "v1.0.1", "preferredTransport": "JSONRPC"}, ("1.0", "/a2a")),
        ({"protocolVersion": " "}, ("0.3", "/a2a")),
        ({"protocolVersion": 1}, ("0.3", "/a2a")),
        ({"protocolVersion": "2.0"}, None),
        ({"protocolVersion": "0.2.5"}, None),
        ({"preferredTransport": "GRPC", "protocolVersion": "1.0"}, None),
        (
            {
                "preferredTransport": "GRPC",
                "protocolVersion": "1.0",
                "additionalInterfaces": [{"url": ELSEWHERE, "transport": "JSONRPC"}],
            },
            ("1.0", "/old"),
        ),
        ({"supportedInterfaces": [{"url": ELSEWHERE, "protocolBinding": "JSONRPC"}]}, ("1.0", "/old")),
        (
            {"supportedInterfaces": [{"url": ELSEWHERE, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]},
            ("0.3", "/old"),
        ),
        ({"supportedInterfaces": [{"url": ELSEWHERE, "protocolBinding": "GRPC"}]}, ("0.3", "/a2a")),
    ],
)
def test_its_client_reads_a_card_as_the_daemon_does(card: dict[str, Any], found: tuple[str, str] | None) -> None:
    document = {"url": REMOTE.url, **card}
    server = Mock(RemoteServer)
    server.origin, path = address(str(REMOTE.url))
    server.request.return_value = HttpAnswer(200, Message(), json.dumps(document).encode())
    interface = spoken_interface(document)
    if found is None:
        assert unreachable(document) != []
        with pytest.raises(End, match="no interface for JSON-RPC"):
            discover(server, path)
    else:
        assert interface is not None
        assert (interface.version, address(interface.url)[1]) == found
        chosen = discover(server, path)
        assert (chosen.version, chosen.path) == found


def test_what_it_is_to_do_stands_where_no_variable_of_a_task_reaches() -> None:
    launch = KIND.launch(request())
    assert launch.env == {}
    assert f"--remote={REMOTE.model_dump_json()}" in launch.argv
    assert "--message=run-1" in launch.argv
    assert "--conversation=t/c" in launch.argv
    assert "-I" in launch.argv


def test_the_skill_of_the_task_goes_before_that_of_the_agent() -> None:
    agent = AGENT.model_copy(update={"remote": REMOTE.model_copy(update={"skill": "say"})})
    for routed, skill in ((None, "say"), ("prose", "prose")):
        argv = KIND.launch(replace(request(agent), skill=routed)).argv
        remote = next(word for word in argv if word.startswith("--remote="))
        assert json.loads(remote.removeprefix("--remote="))["skill"] == skill


def test_its_log_says_where_it_would_have_gone() -> None:
    end = {"type": "end", "outcome": "setup", "error": "it redirects", "elsewhere": "https://example.net/a2a"}
    entries = KIND.transcript("stdout").feed(0, json.dumps(end).encode() + b"\n", final=True)
    assert "it names https://example.net/a2a" in [entry.part.text for entry in entries]
    assert read(end).detail == "it redirects"


def test_one_without_an_address_is_not_started() -> None:
    agent = AGENT.model_copy(update={"remote": None})
    with pytest.raises(ValueError, match="has no address"):
        KIND.launch(request(agent))
    assert "has no address" in (KIND.health(agent, "").problem or "")
    assert KIND.health(AGENT, "").problem is None


def test_it_is_held_to_no_permissions() -> None:
    permissions = Permissions(mode=PermissionMode.PLAN, allowed_tools=("Read",))
    task = TaskSpec(name="t", instructions="x", permissions=permissions, max_turns=3, add_dirs=("/tmp",))
    assert len(KIND.unsupported(task, AGENT)) == 4
    assert KIND.unsupported(TaskSpec(name="t", instructions="x"), AGENT) == []


@pytest.mark.parametrize("word", OUTCOMES)
def test_each_word_that_the_client_ends_with(word: str) -> None:
    outcome = read({"type": "end", "outcome": word, "error": "why", "question": "Which?"})
    assert outcome.reason is OUTCOMES[word]
    if word in ("failed", "lost", "setup"):
        assert outcome.detail == "why"


def test_a_task_is_known_from_its_first_event_on() -> None:
    task = {"type": "task", "task": "t", "conversation": "t/c"}
    reader = KIND.reader(request())
    reader.feed("stdout", json.dumps(task).encode() + b"\n")
    assert reader.answered
    outcome = reader.outcome(None, 2)
    assert (outcome.status, outcome.reason, outcome.conversation_id) == (OutcomeStatus.LOST, Reason.LOST, "t/c")


def test_what_people_read_of_it() -> None:
    lines = [
        {"type": "begin", "server": "https://example.org:443", "protocol": "auto"},
        {"type": "task", "task": "t"},
        {"type": "status", "state": "working", "text": "looking"},
        {"type": "artifact", "name": "page", "text": "Hello"},
        {"type": "alive", "state": "working"},
        {"type": "end", "outcome": "completed", "text": "Hello", "usage": {"input_tokens": 3, "output_tokens": 4}},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    entries = KIND.transcript("stdout").feed(0, data, final=True)
    assert [(entry.part.kind, entry.part.text) for entry in entries] == [
        ("notice", "begins: https://example.org:443, auto"),
        ("notice", "remote task t"),
        ("notice", "working"),
        ("message", "looking"),
        ("message", "page: Hello"),
        ("message", "Hello"),
        ("usage", "3 tokens in, 4 out"),
    ]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("5", 5),
        (" 5 ", 5),
        ("2.5", 2.5),
        ("0", 1),
        ("-7", 1),
        ("1e9", 86_400),
        ("inf", 86_400),
        ("nan", None),
        ("soon", None),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 1),
        ("Fri, 99 Jan 1970 00:02:00 GMT", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, 100.0) == seconds


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "http://127.0.0.1.example.org/", "ftp://x/", "https:///x", "https://u:p@x/", "https://[x/"],
)
def test_an_address_that_nothing_is_sent_to(url: str) -> None:
    with pytest.raises(End):
        address(url)


@pytest.mark.parametrize("url", ["http://localhost:1/x?y=1", "http://127.0.0.9/x?y=1", "http://[::1]:3/x?y=1"])
def test_an_address_of_this_machine(url: str) -> None:
    assert address(url)[1] == "/x?y=1"


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_conversation_is_the_ids_that_it_was_made_of(task_id: str, context_id: str) -> None:
    text = conversation_text(task_id, context_id)
    assert len(text) <= MAX_CONVERSATION
    assert ids_of(text) in [(task_id, context_id), (task_id, ""), ("", "")]


STATUS = {
    "state": "TASK_STATE_INPUT_REQUIRED",
    "timestamp": "T",
    "message": {"messageId": "m", "parts": [{"text": "?"}]},
}
OLD_STATUS = {
    "state": "input-required",
    "timestamp": "T",
    "message": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "?"}]},
}


@pytest.mark.parametrize(
    "result",
    [
        {"task": {"id": "t", "contextId": "c", "status": STATUS}},
        {"id": "t", "contextId": "c", "status": STATUS},
        {"statusUpdate": {"taskId": "t", "contextId": "c", "status": STATUS}},
        {"kind": "task", "id": "t", "contextId": "c", "status": OLD_STATUS},
        {"kind": "status-update", "taskId": "t", "contextId": "c", "status": OLD_STATUS, "final": True},
    ],
)
def test_both_versions_say_the_same(result: dict[str, Any]) -> None:
    update = wire.Update("t", "c", "input-required", ("T", "m"), "?")
    assert wire.read(result) == update


PARTS = [
    {"text": "a"},
    {"text": "b"},
    {"data": {"x": 1}},
    {"kind": "file", "file": {"name": "f", "mimeType": "text/css", "uri": "https://e/f"}},
    {"raw": "AAAA", "filename": "g"},
    {"kind": "odd"},
    {"text": "c"},
]


def test_texts_are_pieces_and_nothing_else_is_fetched() -> None:
    update = wire.read({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": PARTS}}})
    assert update is not None
    assert update.artifacts[0].text == 'ab\n{"x": 1}\n[f, text/css: https://e/f]\n[g: 3 bytes]\nc'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["task", "message", "status", "kind", "id", "parts", "text", "artifacts", "state", "taskId"]
            ),
            inner | st.sampled_from(["task", "status-update", "TASK_STATE_COMPLETED"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_answer_is_an_exception(value: Any) -> None:
    update = wire.read(value)
    if update is not None:
        RemoteTask(Output()).take(update)


def test_a_question_that_was_answered_is_no_news() -> None:
    task = RemoteTask(Output(), "t/c")
    asked = wire.Update("t", "c", "input-required", ("T1", "m1"), "?")
    task.take(asked)
    assert task.settled
    task.answering()
    task.take(asked)
    assert not task.settled
    task.take(wire.Update("t", "c", "input-required", ("T2", "m2"), "And?"))
    assert task.settled
    assert task.end().fields["question"] == "And?"


def test_a_snapshot_takes_the_place_of_what_came_in_pieces(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    task = RemoteTask(Output())
    for piece in (wire.Artifact("a", "n", "one ", append=False), wire.Artifact("a", "", "two", append=True)):
        task.take(wire.Update("t", "c", artifacts=(piece,)))
    task.take(wire.Update("t", "c", "completed", artifacts=(wire.Artifact("a", "n", "one two", append=False),)))
    assert task.end().fields["text"] == "one two"
    texts = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [event["text"] for event in texts if event["type"] == "artifact"] == ["one ", "two"]


SAID = {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "Done."}]}


@pytest.mark.parametrize("ids", [{}, {"contextId": "c"}, {"taskId": "made-up", "contextId": "c"}])
def test_a_message_that_comes_first_is_the_answer_whatever_task_it_names(ids: dict[str, str]) -> None:
    task = RemoteTask(Output())
    update = wire.read({**SAID, **ids})
    assert update is not None
    task.take(update)
    assert task.settled
    end = task.end()
    assert (end.outcome, end.fields["text"]) == ("completed", "Done.")
    assert end.fields["conversation"] == conversation_text("", ids.get("contextId", ""))


def test_a_message_after_the_task_is_what_its_agent_says_meanwhile(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    task = RemoteTask(Output())
    task.take(wire.Update("t", "c", "working"))
    task.take(wire.Update("t", "c", text="Half of it.", is_message=True))
    assert not task.settled
    texts = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert texts[-1] == {"type": "status", "state": "working", "text": "Half of it."}
    task.take(wire.Update("t", "c", "completed", text="All of it."))
    assert task.end().fields["text"] == "All of it."


def test_a_message_in_answer_to_what_was_said_to_a_task_is_the_answer() -> None:
    task = RemoteTask(Output(), "t/c")
    task.take(wire.Update("t", "c", "input-required", ("T1", "m1"), "?"))
    task.answering()
    task.take(wire.Update("t", "c", text="Thanks.", is_message=True))
    assert task.end().fields["text"] == "Thanks."
