"""Any program as an agent."""

import json
import re
from pathlib import Path
from typing import Literal

import pytest

from claudomator_py.agents.command import INFO
from claudomator_py.agents.command.kind import CommandAgent
from claudomator_py.domain.agent import AgentSpec, ModelChoice, ProgramOutput
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.agent_settings import parse_agents

NOW_MS = 1_795_293_400_000


def agent(*command: str) -> AgentSpec:
    return AgentSpec(name="lint", kind="command", command=command)


@pytest.mark.parametrize(
    "command",
    [
        "sh",
        "bash -x",
        "python3 -",
        "env X=1 aider",
        "timeout 60 llm",
        "nice -n 5 codex exec",
        "cn -p",
        "letta -p",
        "mini --yolo",
        "mini-swe-agent --yolo",
        "nanocoder run",
        "plandex tell",
        "qodo --ci",
        "interpreter -y",
        "iflow -p",
        ["sh", "-c", 'pi --mode json "$(cat)"'],
        "sudo -u x /opt/bin/claude",
        "npx @anthropic-ai/claude-code",
        "npx opencode-ai@latest run",
        "python -m aider",
        "ollama run qwen",
        "ssh host sh -s",
        "docker run -i image bash",
        "xargs rm",
        "psql shop",
        "sqlite3 shop.db",
        ["sh", "-c", 'claude -p "$(cat)"'],
        ["sh", "-c", "cd work; cat | sh"],
        ["bash", "-lc", 'eval "$(cat)"'],
        ["ssh", "host", "cd work && codex exec -"],
        ["./run", "--file={prompt_file}"],
        "python3 wrapper.py",
        "python3.12 -I -u bin/wrapper --model small",
        "python -m wrapper",
        ["python3", "-c", "import wrapper; wrapper.main()"],
        "env X=1 bash ./wrapper",
        "./wrapper.py",
        "./run.sh",
        "uv run wrapper.py",
        "npx tsx src/agent.ts",
        "node dist/index.mjs",
        ["sh", "-c", "cd src && ./build.sh; echo done | wc -l"],
        ["bash", "-lc", "./wrapper.rb"],
    ],
)
def test_a_command_that_obeys_the_text_of_its_task_is_known(command: str | list[str]) -> None:
    words = command.split() if isinstance(command, str) else command
    assert INFO.reads_task(tuple(words))


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "./run",
        "make lint",
        "timeout 60 ./sh/run",
        "/home/claude/bin/lint",
        "docker run image",
        "psql shop --file report.sql",
        "ruff check --config ruff.toml src",
        ["sh", "-c", "make lint"],
        ["bash", "-lc", "lint"],
        ["sh", "-c", "cd src && make build; echo done | wc -l"],
    ],
)
def test_one_that_does_what_it_is_configured_to_do_is_not_taken_for_one(command: str | list[str]) -> None:
    words = command.split() if isinstance(command, str) else command
    assert not INFO.reads_task(tuple(words))


def launch(*command: str, model: str | None = None) -> Launch:
    task = TaskSpec(name="tidy", instructions="Tidy up.")
    choice = ModelChoice(model=model) if model is not None else None
    return CommandAgent().launch(LaunchRequest("run", agent(*command), task, "Tidy up.\n", choice, "id"))


def read(stdout: bytes, stderr: bytes, exit_code: int | None, ended_by: Literal["timeout"] | None = None) -> Outcome:
    reader = CommandAgent().reader()
    reader.feed("stdout", stdout)
    reader.feed("stderr", stderr)
    return reader.outcome(ExitRecord(exit_code, ended_by, 0, 1, error="no such file" if exit_code is None else None), 1)


def test_placeholders_are_filled_in_within_their_words() -> None:
    built = launch("run", "--task={task}", "{prompt_file}", "{model}", "{{task}}", "a b", model="gpt-6.1-sol")
    assert built.argv == ("run", "--task=tidy", "/dev/stdin", "gpt-6.1-sol", "{task}", "a b")
    assert built.stdin == "Tidy up.\n"


@pytest.mark.parametrize(
    ("command", "model", "remedy"),
    [
        ((), None, "write the program and its arguments"),
        (("run", "{prompt}"), None, "there are {prompt_file}, {task}, {model}; write {{ and }} for plain braces"),
        (("run", "{model}"), None, "give agents.lint.models, or leave {model} out"),
        (("sh", "-c", "run {model}"), "x; rm -rf ~", "is not a model's name"),
        (("run", "{model}"), "--evil", "is not a model's name"),
    ],
)
def test_a_template_that_cannot_be_filled_in_says_what_to_write(
    command: tuple[str, ...], model: str | None, remedy: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(remedy)):
        launch(*command, model=model)


def test_exit_0_is_success_and_its_text_is_what_it_printed() -> None:
    outcome = read(b"\x1b[32mall good\x1b[0m\n", b"a warning\n", 0)
    assert (outcome.status, outcome.text, outcome.detail) == (OutcomeStatus.SUCCEEDED, "all good", None)


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [(1, "agent_error"), (-15, "interrupted"), (137, "interrupted"), (127, "setup_failed"), (None, "setup_failed")],
)
def test_each_other_exit(exit_code: int | None, reason: str) -> None:
    outcome = read(b"", b"main.c:3: error\n", exit_code)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, reason)
    assert outcome.detail
    if reason == "agent_error":
        assert outcome.detail == "main.c:3: error"


def test_a_failure_that_is_told_on_stdout_alone_is_shown() -> None:
    """As Qodo Command 0.36.0 tells that it reaches no server."""
    outcome = read(b"Unable to connect to the servers\n", b"", 1)
    assert (outcome.reason, outcome.detail) == ("agent_error", "Unable to connect to the servers")


@pytest.mark.parametrize("exit_code", [-11, 139, -6, 134, -4, -7, -8])
def test_a_program_that_crashed_was_interrupted_by_nobody(exit_code: int) -> None:
    outcome = read(b"", b"", exit_code)
    assert outcome.reason == "agent_error"
    assert re.fullmatch(r"it crashed with SIG[A-Z]+ \(signal \d+\)", outcome.detail or "")


@pytest.mark.parametrize(
    ("exit_code", "stderr", "detail"),
    [
        (127, b"sh: 2: twine: not found\n", "a program was not found: sh: 2: twine: not found"),
        (127, b"", "a program was not found: it exited with 127 and printed nothing"),
        (126, b"sh: ./x: Permission denied\n", "a program could not be executed: sh: ./x: Permission denied"),
    ],
)
def test_a_program_that_a_shell_did_not_start_is_named(exit_code: int, stderr: bytes, detail: str) -> None:
    assert read(b"", stderr, exit_code).detail == detail


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [
        (b"built shop-1.2.tar.gz\n", b"deploy.sh: line 3: twine: command not found\n"),
        (b"", b"+ make dist\n+ twine upload\ndeploy.sh: line 3: twine: command not found\n"),
        (b"built shop-1.2.tar.gz\n", b""),
    ],
)
def test_a_script_that_did_work_before_it_missed_a_program_was_set_up(stdout: bytes, stderr: bytes) -> None:
    outcome = read(stdout, stderr, 127)
    assert outcome.reason == "agent_error", "its work is there, so a retry may be wanted, and a note of it is right"
    printed = (stderr or stdout).decode().strip()
    assert outcome.detail == f"a program that it started later was not found: {printed}"


def test_a_configured_exit_code_counts_whatever_a_shell_means_by_it() -> None:
    assert says("", "no quota left", 127, exit_codes={127: "rate_limited"}).status is OutcomeStatus.LIMITED


def test_exit_0_after_the_timeout_is_no_success() -> None:
    assert read(b"", b"", 0, "timeout").reason == "timeout"


def test_of_much_output_the_end_is_kept() -> None:
    outcome = read(b"x" * 1_000_000 + b"\nthe end", b"", 0)
    assert outcome.text is not None
    assert outcome.text.endswith("the end")
    assert len(outcome.text) < 100_000


def test_what_a_plain_program_cannot_keep_to_is_said() -> None:
    asked = {"max_turns": 3, "add_dirs": ("/x",), "permissions": {"mode": "plan", "disallowed_tools": ("Bash",)}}
    task = TaskSpec.model_validate(
        {"name": "t", "instructions": "x", "agent": {"type": "lint", "model": "opus"}, **asked}
    )
    (problem,) = CommandAgent().unsupported(task, agent("make"))
    named = "permissions.mode, permissions.disallowed_tools, max_turns, add_dirs, agent.model"
    assert problem == f"lint is a plain command, which cannot keep to {named}"
    with_model = TaskSpec.model_validate({"name": "t", "instructions": "x", "agent": {"type": "lint", "model": "opus"}})
    assert CommandAgent().unsupported(with_model, agent("run", "{model}")) == []


def test_it_is_looked_for_and_never_run(tmp_path: Path) -> None:
    program = tmp_path / "deploy"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    health = CommandAgent().health(agent("deploy"), str(tmp_path))
    assert (health.installed, health.program, health.problem) == (True, str(program), None)
    assert not (tmp_path / "ran").exists()
    assert "agents.lint.command" in (CommandAgent().health(agent("absent"), str(tmp_path)).problem or "")
    assert "unknown placeholder" in (CommandAgent().health(agent("deploy", "{x}"), str(tmp_path)).problem or "")


def says(stdout: str, stderr: str, exit_code: int, **output: object) -> Outcome:
    return stopped(ExitRecord(exit_code, None, NOW_MS - 1, NOW_MS), stdout, stderr, **output)


def stopped(record: ExitRecord, stdout: str, stderr: str, **output: object) -> Outcome:
    spec = agent("run").model_copy(update={"output": ProgramOutput.model_validate(output)})
    task = TaskSpec(name="tidy", instructions="Tidy up.", env={"TZ": "Europe/Berlin"})
    reader = CommandAgent().reader(LaunchRequest("run", spec, task, "Tidy up.\n", None, "id"))
    reader.feed("stdout", stdout.encode())
    reader.feed("stderr", stderr.encode())
    return reader.outcome(record, NOW_MS)


@pytest.mark.parametrize(
    ("exit_code", "status", "reason"),
    [(75, "limited", "rate_limited"), (76, "failed", "auth"), (77, "failed", "agent_error"), (0, "succeeded", None)],
)
def test_exit_codes_mean_what_the_configuration_says(exit_code: int, status: str, reason: str | None) -> None:
    outcome = says("", "it ended", exit_code, exit_codes={75: "rate_limited", 76: "auth"})
    assert (outcome.status, outcome.reason, outcome.reset_at) == (status, reason, None)


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_line_of_a_limit_is_one_whatever_the_exit_code(stream: str, exit_code: int) -> None:
    line = "working\nQuota is used up, try again in 2 hours.\nbye\n"
    stdout, stderr = (line, "") if stream == "stdout" else ("", line)
    outcome = says(stdout, stderr, exit_code, limit_text=["(?i)quota is used up"])
    assert (outcome.status, outcome.provenance) == (OutcomeStatus.LIMITED, "reported")
    assert outcome.reset_at == NOW_MS + 7_200_000


def test_a_limit_that_is_wrapped_is_found_and_no_time_is_made_up() -> None:
    outcome = says("Error: in\nsufficient_quota, and your daily\nquota is over\n", "", 1, limit_text=["daily quota"])
    assert (outcome.status, outcome.provenance, outcome.reset_at) == (OutcomeStatus.LIMITED, "estimated", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("litellm.AuthenticationError: Incorrect API key provided", "auth"),
        ("Only 3 reflections allowed, stopping.", "agent_error"),
        ("litellm.RateLimitError: Error code: 429", "rate_limited"),
        ("litellm.InternalServerError: OpenAIException - The server", "overloaded"),
        ("litellm.ServiceUnavailableError: OpenAIException - The", "overloaded"),
        ("litellm.APIConnectionError: OpenAIException -", "network"),
        ("litellm.ContextWindowExceededError: litellm.BadRequestError:", "context_too_long"),
    ],
)
def test_a_line_of_a_failure_is_one_although_the_program_exits_with_0(line: str, reason: str) -> None:
    """As Aider 0.86.2 and OpenHands CLI 1.16.0 exit after a refused key."""
    words = {"failure_text": [r"litellm\.\w+Error", "Only 3 reflections allowed"]}
    outcome = says(f"working\n{line}\nbye\n", "", 0, **words)
    assert (outcome.status is OutcomeStatus.SUCCEEDED, outcome.reason, outcome.detail) == (False, reason, line)
    assert says("working\nbye\n", "", 0, **words).status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Error: Invalid or missing API key. Run 'amp login' to authenticate.", "auth"),
        ("Error: API request for getUserInfo failed: 429", "rate_limited"),
        ("Error: Amp server returned an error. Try again in a moment.", "overloaded"),
        ("Error: the call failed with 503", "overloaded"),
        ("Error: 3 requests were sent; the test failed: 42900 is too much", "agent_error"),
    ],
)
def test_a_failed_request_is_known_by_its_status(line: str, reason: str) -> None:
    """As Amp exits if its service refuses it."""
    assert says("", f"{line}\n", 1, failure_text=["^Error: "]).reason == reason


RETRIES = {"limit_text": ["RateLimitError"], "failure_text": [r"litellm\.\w+Error", "^Only"]}


@pytest.mark.parametrize("ended_by", ["timeout", "stall"])
@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("Retrying in 60 seconds: litellm.RateLimitError: slow down", "limited", "rate_limited"),
        ("Retrying in 60 seconds: litellm.InternalServerError: overloaded", "failed", "overloaded"),
        ("litellm.AuthenticationError: Incorrect API key provided", "failed", None),
        ("Only 3 reflections allowed, stopping.", "failed", None),
        ("litellm.RateLimitError: slow down\n" + "working on it\n" * 400, "failed", None),
    ],
)
def test_a_program_that_runs_out_of_time_in_its_retries_met_a_limit_or_an_outage(
    line: str, status: str, reason: str | None, ended_by: Literal["timeout", "stall"]
) -> None:
    """As mini-swe-agent 2.4.6 and gptme 0.35.1 retry for minutes; else nothing would hold their agents."""
    record = ExitRecord(-15, ended_by, NOW_MS - 1, NOW_MS)
    outcome = stopped(record, f"working\n{line}\n", "", **RETRIES)
    assert (outcome.status, outcome.reason) == (status, reason or ("timeout" if ended_by == "timeout" else "stalled"))


RESULT = {"text": "message.content.-1.text", "usage": "message.usage"}


def event(text: str, **usage: float) -> str:
    content = [{"text": "before"}, {"text": text}]
    return json.dumps({"type": "message", "message": {"content": content, "usage": usage}}) + "\n"


def test_the_answer_and_its_use_are_read_from_events() -> None:
    printed = "begins\n" + event("One.", inputTokens=1, outputTokens=2) + "{broken\n[1]\n"
    printed += event("Two.", inputTokens=10, outputTokens=20, cost_usd=0.5) + '{"type":"end"}\n'
    outcome = says(printed, "", 0, result=RESULT)
    assert (outcome.status, outcome.text, outcome.cost_usd) == (OutcomeStatus.SUCCEEDED, "Two.", 0.5)
    assert (outcome.tokens.input, outcome.tokens.output) == (10, 20)


def test_one_document_over_many_lines() -> None:
    printed = "a banner\n" + json.dumps({"answer": "Yes.", "usage": {"prompt_tokens": 3}}, indent=1)
    outcome = says(printed, "", 0, result={"format": "json", "text": "answer", "usage": "usage"})
    assert (outcome.text, outcome.tokens.input, outcome.tokens.output) == ("Yes.", 3, None)


@pytest.mark.parametrize("printed", ["", "{}\n", '{"message": 3}\n', event("  "), "[" * 100_000])
def test_exit_0_without_the_answer_is_no_success(printed: str) -> None:
    outcome = says(printed, "", 0, result=RESULT)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, "no_answer")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("exit_codes", {"0": "auth"}, "0"),
        ("exit_codes", {"75": "timeout"}, "rate_limited"),
        ("exit_codes", {"75": "slow"}, "75"),
        ("limit_text", ["(open"], "is not a regular expression"),
        ("failure_text", ["(open"], "is not a regular expression"),
        ("result", {"format": "xml", "text": "a"}, "format"),
        ("result", {}, "text"),
    ],
)
def test_what_means_nothing_is_refused(key: str, value: object, words: str) -> None:
    agents = parse_agents({"lint": {"kind": "command", "command": ["run"], key: value}}, {})
    assert isinstance(agents, list)
    assert any(words in problem.render() for problem in agents), agents


def test_a_budget_is_kept_of_what_a_program_tells() -> None:
    entry = {"kind": "command", "command": ["run"], "budget": {"tokens": 5}}
    assert isinstance(parse_agents({"lint": entry}, {}), list)
    agents = parse_agents({"lint": {**entry, "result": RESULT}}, {})
    assert isinstance(agents, dict)
    assert agents["lint"].info.reports == "dollars"
