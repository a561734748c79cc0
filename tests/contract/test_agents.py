"""What every kind of agent has to keep to."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.remote import Remote
from claudomator_py.domain.run import ExitRecord, LaunchRequest, Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.ports import AgentKind, OutputReader
from tests.fakes import acp
from tests.fakes.a2a import Seen, sdk_server
from tests.patience import PATIENCE_S

NOW_MS = 1_795_293_400_000
CONVERSATION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
PROMPT = "--version\nsay sesame\n"
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt"]


@dataclass(frozen=True)
class Case:
    """A kind, and a program that stands in for its own: it succeeds, and repeats the last line of its prompt.

    terminal: the output of a success, where a kind has a terminal event.
    """

    kind: AgentKind
    program: str | None
    terminal: bytes | None


CLAUDE_SUCCESS = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "say sesame"})
GEMINI_SUCCESS = "\n".join(
    json.dumps(event)
    for event in (
        {"type": "message", "role": "assistant", "content": "say sesame", "delta": True},
        {"type": "result", "status": "success", "stats": {}},
    )
)
CODEX_SUCCESS = "\n".join(
    json.dumps(event)
    for event in (
        {"type": "item.completed", "item": {"type": "agent_message", "text": "say sesame"}},
        {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    )
)
OPENCODE_SUCCESS = "\n".join(
    json.dumps(event)
    for event in (
        {"type": "text", "part": {"text": "say sesame"}},
        {"type": "step_finish", "part": {"reason": "stop"}},
    )
)
QWEN_SUCCESS = CLAUDE_SUCCESS
COPILOT_SUCCESS = "\n".join(
    json.dumps(event)
    for event in (
        {"type": "assistant.message", "data": {"content": "say sesame", "toolRequests": []}},
        {"type": "result", "sessionId": "s", "exitCode": 0},
    )
)
SIMULATED_SUCCESS = json.dumps({"simulated": True, "type": "end", "outcome": "success", "text": "say sesame"})
A2A_SUCCESS = json.dumps({"type": "end", "outcome": "completed", "text": "say sesame"})
ACP_SUCCESS = json.dumps(
    {"type": "end", "outcome": "answered", "stop_reason": "end_turn", "text": "say sesame", "counts": "absent"}
)
CLI_SUCCESSES = {
    "claude": CLAUDE_SUCCESS,
    "gemini": GEMINI_SUCCESS,
    "codex": CODEX_SUCCESS,
    "opencode": OPENCODE_SUCCESS,
    "qwen": QWEN_SUCCESS,
    "copilot": COPILOT_SUCCESS,
}
KINDS: dict[str, AgentKind] = dict(AGENT_KINDS)


def cli(kind: str, success: str) -> Case:
    """A model's CLI that reads its prompt and succeeds in these words."""
    return Case(KINDS[kind], f"grep -q sesame && cat <<'END'\n{success}\nEND", success.encode() + b"\n")


CASES = {
    **{kind: cli(kind, success) for kind, success in CLI_SUCCESSES.items()},
    "command": Case(KINDS["command"], "tail -n 1", None),
    "simulated": Case(KINDS["simulated"], None, SIMULATED_SUCCESS.encode() + b"\n"),
    "acp": Case(KINDS["acp"], f"exec {sys.executable} -I -S {acp.__file__}", ACP_SUCCESS.encode() + b"\n"),
    "a2a": Case(KINDS["a2a"], None, A2A_SUCCESS.encode() + b"\n"),
    "hub": Case(KINDS["hub"], None, A2A_SUCCESS.encode() + b"\n"),
}

WITH_TERMINAL_EVENT = [name for name, case in CASES.items() if case.terminal is not None]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[str, Seen]]:
    with sdk_server() as results:
        yield results


@pytest.fixture
def agent(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> AgentSpec:
    if case.kind.kind == "a2a":
        url, _ = request.getfixturevalue("remote")
        return AgentSpec(name="an-agent", kind="a2a", remote=Remote(url=url))
    command: tuple[str, ...] = ()
    if case.program is not None:
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{case.program}\n")
        path.chmod(0o755)
        command = (str(path),)
    return AgentSpec(name="an-agent", kind=case.kind.kind, command=command)


def request_for(agent: AgentSpec, resume: bool = False) -> LaunchRequest:
    task = TaskSpec(name="a-task", instructions=PROMPT)
    model = ModelChoice(model="a-model", effort="high")
    return LaunchRequest("run", agent, task, PROMPT, model, CONVERSATION, resume)


def ended(exit_code: int | None, by: EndedBy | None = None, error: str | None = None) -> ExitRecord:
    return ExitRecord(exit_code, by, NOW_MS - 1000, NOW_MS, error)


def reader(case: Case, agent: AgentSpec) -> OutputReader:
    return case.kind.reader(request_for(agent))


def test_every_kind_is_held_to_this() -> None:
    assert CASES.keys() == AGENT_KINDS.keys()
    assert all(kind.kind == name for name, kind in AGENT_KINDS.items())


def test_a_run_succeeds_and_its_answer_is_read(case: Case, agent: AgentSpec, tmp_path: Path) -> None:
    launch = case.kind.launch(request_for(agent))
    (tmp_path / "prompt.md").write_text(launch.stdin)
    (tmp_path / "mailbox").write_bytes(A2A_SUCCESS.encode() + b"\n")  # what the hub has heard, for an agent of it
    with (tmp_path / "prompt.md").open("rb") as stdin:
        process = subprocess.run(
            launch.argv,
            stdin=stdin,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **launch.env},
            cwd=tmp_path,
            timeout=PATIENCE_S,
            check=False,
        )
    output_reader = reader(case, agent)
    output_reader.feed("stdout", process.stdout)
    output_reader.feed("stderr", process.stderr)
    outcome = output_reader.outcome(ended(process.returncode), NOW_MS)
    assert outcome.status is OutcomeStatus.SUCCEEDED, (outcome, process)
    assert outcome.reason is None
    assert outcome.text is not None


@pytest.mark.parametrize("resume", [False, True])
def test_the_prompt_is_on_stdin_and_never_in_argv(case: Case, agent: AgentSpec, resume: bool) -> None:
    launch = case.kind.launch(request_for(agent, resume))
    assert launch.stdin == PROMPT
    assert not any("sesame" in word for word in launch.argv)
    assert not any("sesame" in value for value in launch.env.values())


def test_no_value_of_the_environment_is_in_argv(case: Case, agent: AgentSpec) -> None:
    secret = agent.model_copy(update={"env": {"KEY": "sk-secret"}, "script": "text=sk-secret"})
    assert not any("sk-secret" in word for word in case.kind.launch(request_for(secret)).argv)


@pytest.mark.parametrize(
    ("exit_record", "status", "reason"),
    [
        (None, "lost", "lost"),
        (ended(-15, "cancel"), "cancelled", "cancelled"),
        (ended(-15, "timeout"), "failed", "timeout"),
        (ended(0, "timeout"), "failed", "timeout"),
        (ended(-9, "stall"), "failed", "stalled"),
        (ended(-9, "output_limit"), "failed", "output_limit"),
        (ended(-9, "disk_full"), "failed", "disk_full"),
        (ended(-15, "interrupt"), "failed", "interrupted"),
        (ended(None, error="[Errno 2] No such file or directory"), "failed", "setup_failed"),
        (ended(127), "failed", "setup_failed"),
        (ended(-9), "failed", "interrupted"),
        (ended(143), "failed", "interrupted"),
        (ended(1), "failed", "agent_error"),
    ],
)
def test_a_run_that_said_nothing(
    case: Case, agent: AgentSpec, exit_record: ExitRecord | None, status: str, reason: str
) -> None:
    outcome = reader(case, agent).outcome(exit_record, NOW_MS)
    assert (outcome.status, outcome.reason) == (status, reason)
    assert outcome.detail or status == "cancelled", "a failure says why"


@pytest.mark.parametrize("case", WITH_TERMINAL_EVENT, indirect=True)
@pytest.mark.parametrize("by", ["timeout", "stall", "output_limit", "disk_full"])
def test_work_that_was_done_stays_done(case: Case, agent: AgentSpec, by: EndedBy) -> None:
    assert case.terminal is not None
    output_reader = reader(case, agent)
    output_reader.feed("stdout", case.terminal)
    assert output_reader.outcome(ended(-9, by), NOW_MS).status is OutcomeStatus.SUCCEEDED
    assert output_reader.outcome(None, NOW_MS).status is OutcomeStatus.SUCCEEDED
    assert output_reader.outcome(ended(-15, "cancel"), NOW_MS).status is OutcomeStatus.CANCELLED


@pytest.mark.parametrize("case", WITH_TERMINAL_EVENT, indirect=True)
def test_half_a_terminal_event_is_none(case: Case, agent: AgentSpec) -> None:
    assert case.terminal is not None
    output_reader = reader(case, agent)
    output_reader.feed("stdout", case.terminal[:-2])
    assert output_reader.outcome(None, NOW_MS).reason is Reason.LOST
    output_reader.feed("stdout", case.terminal[-2:-1])
    assert output_reader.outcome(None, NOW_MS).status is OutcomeStatus.SUCCEEDED, "a last line may have no end"


def test_what_is_not_installed_says_what_to_do(case: Case, agent: AgentSpec, tmp_path: Path) -> None:
    health = case.kind.health(agent, "/usr/bin:/bin")
    assert health.installed
    assert health.program
    if case.program is None:
        return
    absent = case.kind.health(agent.model_copy(update={"command": ("absent-program",)}), str(tmp_path))
    assert not absent.installed
    assert "absent-program is not on PATH; " in (absent.problem or "")


def test_a_plain_task_asks_for_nothing_that_is_unsupported(case: Case, agent: AgentSpec) -> None:
    assert case.kind.unsupported(TaskSpec(name="t", instructions="x"), agent) == []


PIECES = st.lists(
    st.tuples(
        st.sampled_from(["stdout", "stderr"]),
        st.binary(max_size=50)
        | st.sampled_from([result.terminal for result in CASES.values() if result.terminal is not None])
        | st.sampled_from(
            [b"{}\n", b"[{}]\n", b'{"type":"end"}\n', b'{"type":"result"}\n', b"\0" * 9, b"\xed\xa0\x80\n"]
        ),
    ),
    max_size=10,
)
EXITS = st.none() | st.builds(
    ended,
    st.none() | st.integers(-64, 255),
    st.sampled_from([None, None, "cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES, exit_record=EXITS)
def test_any_bytes_in_any_pieces_give_one_outcome(
    case: Case, agent: AgentSpec, pieces: list[tuple[Stream, bytes]], exit_record: ExitRecord | None
) -> None:
    byte_by_byte, whole = reader(case, agent), reader(case, agent)
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    for stream, piece in pieces:
        for index in range(len(piece)):
            byte_by_byte.feed(stream, piece[index : index + 1])
    for stream in reversed(streams):
        whole.feed(stream, b"".join(piece for named, piece in pieces if named == stream))
    outcome = whole.outcome(exit_record, NOW_MS)
    assert byte_by_byte.outcome(exit_record, NOW_MS) == outcome
    outcome.model_dump_json().encode()
    if outcome.status is OutcomeStatus.SUCCEEDED:
        assert case.terminal is None or any(stream == "stdout" for stream, _ in pieces)


def test_of_a_flood_little_is_kept(case: Case, agent: AgentSpec) -> None:
    output_reader = reader(case, agent)
    for _ in range(100):
        output_reader.feed("stdout", b"x" * 1_000_000)
        output_reader.feed("stderr", b"y" * 1_000_000)
    outcome = output_reader.outcome(ended(-9, "output_limit"), NOW_MS)
    assert outcome.reason is Reason.OUTPUT_LIMIT
    assert len(outcome.model_dump_json()) < 1_000_000
