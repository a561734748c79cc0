"""Claude Code itself, started as a run starts it, against a fake of its service: nothing leaves the machine.

It is looked for at $CLAUDOMATOR_CLAUDE, else in a local npm install in $CLAUDOMATOR_CLIS (default: build/clis).
"""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from claudomator_py.agents.claude import Claude
from claudomator_py.core.agent import AgentSpec, ModelChoice
from claudomator_py.core.outcome import Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.core.run import ExitRecord, LaunchRequest
from claudomator_py.core.task import PermissionMode, Permissions, TaskSpec
from tests.fakes.messages_api import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    MessagesApi,
    Text,
    ToolCall,
    overloaded,
    throttled,
    unauthorized,
    used_up,
)

CLIS = Path(os.environ.get("CLAUDOMATOR_CLIS") or Path(__file__).parents[2] / "build" / "clis")
PROGRAM = Path(os.environ.get("CLAUDOMATOR_CLAUDE") or CLIS / "node_modules" / ".bin" / "claude")
RESETS_AT_S = 1_900_000_000
CONVERSATION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
API_KEY = {"ANTHROPIC_API_KEY": "sk-ant-fake"}
LOGIN = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-fake"}

pytestmark = [
    pytest.mark.real_clis,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        not PROGRAM.exists(),
        reason=f"no {PROGRAM}: set CLAUDOMATOR_CLAUDE, or npm install --prefix {CLIS} @anthropic-ai/claude-code",
    ),
]


@dataclass(frozen=True)
class Workplace:
    """A git repository to work in and a home of its own."""

    repository: Path
    home: Path

    def run(self, api: MessagesApi, task: TaskSpec, login: dict[str, str], resume: bool = False) -> Outcome:
        agent = AgentSpec(name="claude", kind="claude", command=(str(PROGRAM),), env={"ANTHROPIC_BASE_URL": api.url})
        kind = Claude()
        request = LaunchRequest(
            "run", agent, task, task.instructions, ModelChoice(model="sonnet"), CONVERSATION, resume
        )
        launch = kind.launch(request)
        prompt = self.home / "prompt.md"
        prompt.write_text(launch.stdin)
        started_ms = time.time_ns() // 1_000_000
        with prompt.open("rb") as stdin:
            process = subprocess.run(
                launch.argv,
                stdin=stdin,
                capture_output=True,
                cwd=self.repository,
                env={**self.environment(), **launch.env, **agent.env, **task.env, **login},
                timeout=120,
                check=False,
            )
        ended_ms = time.time_ns() // 1_000_000
        reader = kind.reader(request)
        reader.feed("stdout", process.stdout)
        reader.feed("stderr", process.stderr)
        return reader.outcome(ExitRecord(process.returncode, None, started_ms, ended_ms), ended_ms)

    def environment(self) -> dict[str, str]:
        home = str(self.home)
        bare = {"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
        # It would report home otherwise; and what still would goes to a proxy that is not there.
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        nowhere = "http://127.0.0.1:9"
        return {**bare, **quiet, "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere, "NO_PROXY": "127.0.0.1"}


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path / "repository", tmp_path / "home")
    place.repository.mkdir()
    place.home.mkdir()
    subprocess.run(["git", "init", "-q", place.repository], check=True, env=place.environment())
    return place


def task(**fields: object) -> TaskSpec:
    return TaskSpec.model_validate({"name": "greet", "instructions": "Write a greeting.", **fields})


def writes(place: Workplace, text: str) -> ToolCall:
    return ToolCall("Write", {"file_path": str(place.repository / "hello.txt"), "content": text})


def test_it_edits_a_file_and_says_what_it_used(workplace: Workplace) -> None:
    with MessagesApi(writes(workplace, "hello\n"), Text("I wrote it.")) as api:
        outcome = workplace.run(api, task(permissions=Permissions(mode=PermissionMode.ACCEPT_EDITS)), API_KEY)

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (workplace.repository / "hello.txt").read_text() == "hello\n"
    assert outcome.text == "I wrote it."
    assert outcome.conversation_id == CONVERSATION
    assert (outcome.tokens.input, outcome.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert outcome.cost_usd is not None
    assert outcome.cost_usd > 0
    assert "Write a greeting." in str(api.loop_requests[0].body["messages"])
    assert "sonnet" in api.loop_requests[0].body["model"]


def test_a_resumed_conversation_counts_its_own_share_only(workplace: Workplace) -> None:
    with MessagesApi(Text("One.")) as api:
        first = workplace.run(api, task(), API_KEY)
        api.script(Text("Two."))
        second = workplace.run(api, task(instructions="Go on."), API_KEY, resume=True)

    assert second.status is OutcomeStatus.SUCCEEDED, second
    assert second.conversation_id == CONVERSATION
    assert "Write a greeting." in str(api.loop_requests[-1].body["messages"]), "it remembers the first run"
    assert second.tokens == first.tokens
    assert second.cost_usd == pytest.approx(first.cost_usd)


def test_a_denied_tool_is_said(workplace: Workplace) -> None:
    with MessagesApi(writes(workplace, "hello\n"), Text("I could not.")) as api:
        outcome = workplace.run(api, task(), API_KEY)

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.detail is not None
    assert outcome.detail.startswith("1 tool call was denied: Write.")
    assert not (workplace.repository / "hello.txt").exists()


def test_each_allowed_tool_is_allowed(workplace: Workplace) -> None:
    permissions = Permissions(allowed_tools=("Bash(touch:*)", "Write"))
    touch = ToolCall("Bash", {"command": "touch touched", "description": "Touch a file"})
    with MessagesApi(touch, writes(workplace, "hello\n"), Text()) as api:
        outcome = workplace.run(api, task(permissions=permissions), API_KEY)

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.detail is None
    assert (workplace.repository / "touched").exists()
    assert (workplace.repository / "hello.txt").exists()


def test_each_disallowed_tool_is_gone_and_further_folders_are_open(workplace: Workplace, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    permissions = Permissions(mode=PermissionMode.ACCEPT_EDITS, disallowed_tools=("WebFetch", "WebSearch"))
    write = ToolCall("Write", {"file_path": str(further / "note.txt"), "content": "note\n"})
    with MessagesApi(write, Text()) as api:
        outcome = workplace.run(api, task(permissions=permissions, add_dirs=(str(further),)), API_KEY)

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (further / "note.txt").read_text() == "note\n"
    offered = {tool["name"] for tool in api.loop_requests[0].body["tools"]}
    assert "Write" in offered
    assert not offered & {"WebFetch", "WebSearch"}


def test_turns_are_limited(workplace: Workplace) -> None:
    with MessagesApi(ToolCall("Bash", {"command": "true", "description": "Nothing"})) as api:
        outcome = workplace.run(api, task(max_turns=2, permissions=Permissions(allowed_tools=("Bash",))), API_KEY)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.TURN_LIMIT), outcome


def test_a_subscription_limit_has_its_reset_time(workplace: Workplace) -> None:
    with MessagesApi(used_up(RESETS_AT_S)) as api:
        outcome = workplace.run(api, task(), LOGIN)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.reset_at == RESETS_AT_S * 1000
    assert outcome.provenance is Provenance.REPORTED
    assert outcome.limit == "five_hour"


def test_an_api_key_limit_has_to_be_estimated(workplace: Workplace) -> None:
    with MessagesApi(throttled(retry_after_s=3600)) as api:
        outcome = workplace.run(api, task(), API_KEY)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.reset_at is None
    assert outcome.provenance is Provenance.ESTIMATED


def test_a_refused_key_is_told_after_few_requests(workplace: Workplace) -> None:
    with MessagesApi(unauthorized()) as api:
        outcome = workplace.run(api, task(), API_KEY)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert len(api.loop_requests) <= 5


def test_no_login_is_told(workplace: Workplace) -> None:
    with MessagesApi(Text()) as api:
        outcome = workplace.run(api, task(), {})

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert api.loop_requests == []


def test_an_overloaded_service_is_told(workplace: Workplace) -> None:
    with MessagesApi(overloaded()) as api:
        outcome = workplace.run(api, task(), API_KEY)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


def test_an_answer_that_quotes_a_limit_message_is_an_answer(workplace: Workplace) -> None:
    quote = "The log says: You've hit your 5-hour limit · resets 6:36pm (America/New_York)"
    with MessagesApi(Text(quote)) as api:
        outcome = workplace.run(api, task(), API_KEY)

    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_a_conversation_that_is_not_there_is_our_mistake(workplace: Workplace) -> None:
    with MessagesApi(Text()) as api:
        outcome = workplace.run(api, task(), API_KEY, resume=True)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION), outcome


def test_its_version_is_found() -> None:
    agent = AgentSpec(name="claude", kind="claude", command=(str(PROGRAM),))
    health = Claude().health(agent, "/usr/bin:/bin")

    assert health.problem is None
    assert health.version is not None
    assert health.version[0].isdigit()
