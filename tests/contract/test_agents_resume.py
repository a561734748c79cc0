"""What every kind of agent that holds conversations keeps to when one is to go on."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.remote import Remote
from claudomator_py.domain.run import Conversations, ExitRecord, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.ports import AgentKind

NOW_MS = 1_795_293_400_000
TALK = "99999999-2222-4333-8444-555555555555"
RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
KINDS: dict[str, AgentKind] = dict(AGENT_KINDS)
HOLDERS = [name for name, kind in KINDS.items() if kind.conversations is not Conversations.NONE]


@dataclass(frozen=True)
class Lost:
    """What a kind writes when it does not know the conversation."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 1


def recorded(name: str, exit_code: int) -> Lost:
    stdout, stderr = (RECORDINGS / f"{name}.{stream}" for stream in ("stdout", "stderr"))
    return Lost(stdout.read_bytes() if stdout.exists() else b"", stderr.read_bytes(), exit_code)


LOST = {
    "claude": recorded("claude/2.1.330/resume_unknown", 1),
    "gemini": recorded("gemini/0.61.0/resume_unknown", 42),
    "codex": Lost(
        stderr=f"Error: thread/resume: thread/resume failed: no rollout found for thread id {TALK}\n".encode()
    ),
    "opencode": Lost(stderr=b"\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"),
    "qwen": recorded("qwen/0.15.10/resume_unknown", 1),
    "copilot": recorded("copilot/1.0.102/resume_unknown", 1),
    "simulated": Lost(b'{"type":"start","conversation_id":"c"}\n{"type":"end","outcome":"unknown","error":"gone"}\n'),
    "acp": Lost(b'{"type":"end","outcome":"lost","error":"it does not know the session x: Session not found"}\n'),
    "a2a": Lost(b'{"type":"end","outcome":"unknown","error":"the server does not know the task 7"}\n'),
}


def request(kind: str, resume: bool) -> LaunchRequest:
    task = TaskSpec(name="t", instructions="x")
    remote = Remote(url="https://example.org/a2a") if kind == "a2a" else None
    agent = AgentSpec(name=kind, kind=kind, remote=remote, command=("agent", "acp") if kind == "acp" else ())
    return LaunchRequest("run", agent, task, "prompt", None, TALK, resume)


def read(kind: str, lost: Lost, resume: bool = True) -> Outcome:
    reader = KINDS[kind].reader(request(kind, resume))
    reader.feed("stdout", lost.stdout)
    reader.feed("stderr", lost.stderr)
    return reader.outcome(ExitRecord(lost.exit_code, None, NOW_MS - 1000, NOW_MS), NOW_MS)


def test_every_kind_that_holds_conversations_is_held_to_this() -> None:
    assert LOST.keys() == set(HOLDERS)


@pytest.mark.parametrize("kind", HOLDERS)
def test_the_conversation_is_named_on_its_command_line_and_the_prompt_is_not(kind: str) -> None:
    launch = KINDS[kind].launch(request(kind, resume=True))
    assert sum(TALK in word for word in launch.argv) == 1
    assert launch.stdin == "prompt"
    fresh = KINDS[kind].launch(request(kind, resume=False))
    named = KINDS[kind].conversations is Conversations.NAMED
    assert any(TALK in word for word in fresh.argv) is not named


@pytest.mark.parametrize("kind", HOLDERS)
def test_one_that_it_does_not_know_is_told_as_lost(kind: str) -> None:
    outcome = read(kind, LOST[kind])
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION)
    assert outcome.conversation_lost


@pytest.mark.parametrize("kind", [kind for kind in HOLDERS if kind != "simulated"])
def test_a_run_that_resumed_nothing_has_lost_nothing(kind: str) -> None:
    assert not read(kind, LOST[kind], resume=False).conversation_lost


@pytest.mark.parametrize("kind", HOLDERS)
def test_another_failure_is_no_loss(kind: str) -> None:
    assert not read(kind, Lost(stderr=b"error: unknown option '--nope'\n")).conversation_lost
