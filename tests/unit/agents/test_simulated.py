"""The simulated agent, as the real process that it is."""

import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from claudomator_py.agents.simulated.kind import Simulated
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Provenance
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest
from claudomator_py.domain.task import Permissions, TaskSpec
from tests.patience import PATIENCE_S
from tests.warm import bare

TALK = "conversation-1"


def launch(
    prompt: str,
    script: str | None = None,
    resume: bool = False,
    conversation: str = TALK,
    allowed: tuple[str, ...] = (),
) -> Launch:
    agent = AgentSpec(name="simulated", kind="simulated", script=script)
    task = TaskSpec(name="t", instructions=prompt, permissions=Permissions(allowed_tools=allowed))
    model = ModelChoice(model="sim-1")
    return Simulated().launch(LaunchRequest("run", agent, task, prompt, model, conversation, resume))


def test_the_program_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    built = launch("simulate: delay=1ms")
    done = subprocess.run(
        built.argv, input="simulate: delay=1ms", capture_output=True, text=True, cwd=tmp_path, env={}, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def start(built: Launch, folder: Path, attempt: int = 1) -> bare.Read:
    environ = {**built.env, "CLAUDOMATOR_ATTEMPT": str(attempt)}
    return bare.of_runs().read(built.argv, given=built.stdin.encode(), environ=environ, cwd=folder)


def run(
    prompt: str,
    folder: Path,
    script: str | None = None,
    attempt: int = 1,
    resume: str | None = None,
    allowed: tuple[str, ...] = (),
) -> Outcome:
    process = start(launch(prompt, script, resume is not None, resume or TALK, allowed), folder, attempt)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    reader = Simulated().reader()
    reader.feed("stdout", stdout)
    reader.feed("stderr", stderr)
    now_ms = time.time_ns() // 1_000_000
    return reader.outcome(ExitRecord(process.returncode, None, now_ms, now_ms), now_ms)


def test_it_does_as_the_prompt_says_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    prompt = 'Greet.\nsimulate: delay=10ms tokens=100/50 cost=0.25 write=out/hello.txt text="hello you"\nThanks.'
    outcome = run(prompt, tmp_path)
    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.text == "[simulated] hello you"
    assert (outcome.tokens.input, outcome.tokens.output, outcome.cost_usd) == (100, 50, 0.25)
    assert outcome.conversation_id == "conversation-1"
    assert (tmp_path / "out" / "hello.txt").read_text() == "hello you\n"


@pytest.mark.parametrize(
    ("behaviour", "status", "reason"),
    [
        ("success", "succeeded", None),
        ("fail", "failed", "agent_error"),
        ("limited", "limited", "rate_limited"),
        ("overloaded", "failed", "overloaded"),
        ("network", "failed", "network"),
        ("auth", "failed", "auth"),
        ("question", "needs_input", None),
        ("crash", "failed", "interrupted"),
        ("nonsense", "failed", "bad_invocation"),
    ],
)
def test_each_outcome(behaviour: str, status: str, reason: str | None, tmp_path: Path) -> None:
    outcome = run(f"simulate: outcome={behaviour} text=why", tmp_path)
    assert (outcome.status, outcome.reason) == (status, reason), outcome
    assert outcome.text == ("[simulated] why" if status in ("succeeded", "needs_input") else None)


def test_a_conversation_is_remembered_where_it_was_held_and_goes_on_in_its_script(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    run("simulate: text=one\nsimulate: text=two\nsimulate: text=three", here)
    texts = [run(prompt, here, resume=TALK).text for prompt in ("Go on.", "Go on.", "simulate: text=new", "Go on.")]
    assert texts == [f"[simulated] {text}" for text in ("two", "three", "new", "new")]
    process = start(launch("Go on.", resume=True), here)
    assert json.loads(process.communicate(timeout=PATIENCE_S)[0].splitlines()[0])["remembered"][1:4:2] == [
        "Go on.",
        "simulate: text=new",
    ]
    for folder, conversation in ((elsewhere, TALK), (here, "conversation-2")):
        lost = run("Go on.", folder, resume=conversation)
        assert (lost.status, lost.reason, lost.conversation_lost) == ("failed", "bad_invocation", True)


def test_a_tool_that_it_needs_is_denied_unless_it_is_allowed(tmp_path: Path) -> None:
    prompt = "simulate: needs=shell(publish) write=out text=out"
    denied = run(prompt, tmp_path)
    assert denied.status is OutcomeStatus.SUCCEEDED
    assert denied.denied == (Denied(tool="shell", input="publish", rule="shell(publish)"),)
    assert not (tmp_path / "out").exists()
    assert run(prompt, tmp_path, allowed=("other", "shell(publish)")).denied == ()
    assert (tmp_path / "out").exists()


def test_what_it_keeps_does_not_show_in_a_git_repository(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    run("simulate: text=hello", tmp_path)
    assert subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout == b""


def test_a_limit_with_its_reset_time_and_one_without(tmp_path: Path) -> None:
    before_ms = time.time_ns() // 1_000_000
    known = run("simulate: outcome=limited(reset=10m)", tmp_path)
    assert known.reset_at is not None
    assert known.reset_at >= before_ms + 600_000
    assert known.provenance is Provenance.REPORTED
    unknown = run("simulate: outcome=limited", tmp_path)
    assert (unknown.reset_at, unknown.provenance) == (None, Provenance.ESTIMATED)


def test_each_line_is_an_attempt_and_the_last_one_stays(tmp_path: Path) -> None:
    prompt = "simulate: outcome=fail\n  simulate: outcome=overloaded\nsimulate: outcome=success"
    reasons = [run(prompt, tmp_path, attempt=attempt).reason for attempt in (1, 2, 3, 4)]
    assert reasons == ["agent_error", "overloaded", None, None]


def test_the_prompt_comes_before_the_agents_script_and_that_before_the_default(tmp_path: Path) -> None:
    assert run("simulate: text=prompt", tmp_path, script="text=script").text == "[simulated] prompt"
    assert run("Do it.", tmp_path, script="text=script").text == "[simulated] script"
    assert run("Do it.", tmp_path).text == "[simulated] done"


@pytest.mark.parametrize(
    "line",
    ["delay=soon", "tokens=5", "outcome=limited(reset=x)", "color=red", "word", 'text="open', "write=../x", "write=/x"],
)
def test_a_script_that_cannot_be_followed_says_why(line: str, tmp_path: Path) -> None:
    outcome = run(f"simulate: {line}", tmp_path)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, "bad_invocation")
    assert len(outcome.detail or "") > len("[simulated] ")


@pytest.mark.parametrize("line", ["tokens=5000", "tokens=many/few", "tokens=1/2/3", "cost=dear"])
def test_a_number_that_is_none_is_refused_in_words_for_people(line: str, tmp_path: Path) -> None:
    error = run(f"simulate: {line}", tmp_path).error
    assert error is not None
    assert "; write such as " in error
    assert "unpack" not in error
    assert "literal" not in error


def test_it_hangs_in_silence_until_it_is_ended(tmp_path: Path) -> None:
    process = start(launch("simulate: outcome=hang"), tmp_path)
    assert b'"start"' in process.stdout.readline()
    os.kill(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    assert (stdout, process.returncode) == (b"", -signal.SIGTERM)


def test_it_can_ignore_the_polite_signal(tmp_path: Path) -> None:
    process = start(launch("simulate: outcome=ignore-term"), tmp_path)
    while b"ignoring" not in process.stdout.readline():
        pass
    status = Path(f"/proc/{process.pid}/status").read_text()
    ignored = int(status.split("SigIgn:")[1].split()[0], 16)
    assert ignored >> (signal.SIGTERM - 1) & 1
    process.kill()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    process.communicate()


def test_it_floods_until_it_is_ended(tmp_path: Path) -> None:
    process = start(launch("simulate: outcome=flood"), tmp_path)
    assert len(process.stdout.read(2_000_000)) == 2_000_000
    process.kill()
    process.communicate(timeout=PATIENCE_S)


def test_its_command_line_holds_neither_prompt_nor_script() -> None:
    built = launch("a secret prompt", script="text=script", resume=True)
    assert not any("secret" in word or "script" in word.replace("simulated_program", "") for word in built.argv)
    assert "--resume" in built.argv
    assert built.stdin == "a secret prompt"


class Service(BaseHTTPRequestHandler):
    """Has an agent work a little first, then be done; keeps what it was sent."""

    heard: ClassVar[list[dict[str, object]]] = []

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append(sent)
        status = 503 if self.path == "/down" else 200
        here = f"http://{self.headers['Host']}/up"
        answer = f"delay=10ms write=first text=one service={here}" if sent["turn"] == 1 else "text=two tokens=3/4"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_service_says_what_to_do_turn_by_turn(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            outcome = run("Do it.", tmp_path, script=f"service={url}/up", attempt=3)
            down = run("Do it.", tmp_path, script=f"service={url}/down")
        finally:
            server.shutdown()
            thread.join()
    assert (outcome.status, outcome.text, outcome.tokens.output) == ("succeeded", "[simulated] two", 4)
    assert (tmp_path / "first").read_text() == "one\n"
    assert [(sent["turn"], sent["attempt"], sent["prompt"]) for sent in Service.heard[:2]] == [
        (1, "3", "Do it."),
        (2, "3", "Do it."),
    ]
    assert Service.heard[0]["conversation"] == TALK
    assert (down.status, down.reason) == ("failed", "network")
    gone = run("Do it.", tmp_path, script=f"service={url}/up")
    assert (gone.status, gone.reason) == ("failed", "network")


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/x", "http://", "http://127.0.0.1:x/", "home"])
def test_what_is_no_address_of_a_service(address: str, tmp_path: Path) -> None:
    outcome = run("Do it.", tmp_path, script=f"service={address}")
    assert (outcome.status, outcome.reason) == ("failed", "bad_invocation")
    assert "write for example service=" in str(outcome.detail)
