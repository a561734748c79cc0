"""Each kind that can be kept within a reach is given the hook, and tells what it denied so that it can be allowed."""

import base64
import importlib
import inspect
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import claudomator_py
from claudomator_py.acts import Reach, digest_in
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.tool_calls import exceeding
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.entry import PROGRAMS
from claudomator_py.agents.fence import FENCE_NAME, hook_argv, hook_line
from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest
from tests.unit.agents.starting import task

FENCED = ("claude", "codex", "gemini", "opencode", "qwen")
COMMAND = "echo a &&\nnpm publish"


def mark_of(tool: str, command: str = COMMAND) -> str:
    """What stands for the call, and for what it does."""
    beyond_reach = exceeding(tool, {"command": command}, Reach.NETWORK, Place("/work", home="/home/ada"))
    assert beyond_reach is not None
    return beyond_reach.digest


def request(kind: str = "claude", reach: Reach | None = Reach.NETWORK, **agent: Any) -> LaunchRequest:
    configured = AgentSpec(name=kind, kind=kind, **agent)
    return LaunchRequest("run", configured, task(), "prompt", None, "c", reach=reach, granted_acts=("0" * 16,))


def launched(kind: str, reach: Reach | None = Reach.NETWORK, **agent: Any) -> Launch:
    return AGENT_KINDS[kind].launch(request(kind, reach, **agent))


def judged(
    tool: str, given: Mapping[str, Any], of: LaunchRequest, folder: Path, **how: Any
) -> subprocess.CompletedProcess[bytes]:
    """What the hook says of the call, as a CLI starts it."""
    event = json.dumps({"tool_name": tool, "tool_input": given, "cwd": str(folder)}).encode()
    env = {"PATH": "/usr/bin:/bin", "HOME": "/home/ada"}
    return subprocess.run(["sh", "-c", hook_line(of, **how)], input=event, capture_output=True, env=env, check=False)


@pytest.mark.parametrize("kind", FENCED)
@pytest.mark.parametrize("reach", [None, Reach.ANY])
def test_without_a_fence_nothing_is_different(kind: str, reach: Reach | None) -> None:
    launch = launched(kind, reach)
    assert "agents.entry" not in repr(launch)
    assert launch == launched(kind, None)


@pytest.mark.parametrize("kind", FENCED)
def test_with_one_the_hook_is_in_its_command_line_or_variables(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.agents.gemini.kind._only_root_writes", lambda path: True)
    launch = launched(kind)
    assert "agents.entry" in repr(launch)
    assert AGENT_KINDS[kind].unfenced(request(kind).agent) is None


def test_the_hook_of_a_run_that_outlives_an_upgrade_is_still_there(tmp_path: Path) -> None:
    """As this version writes it into the command lines of runs: an upgrade may move modules, but not this."""
    code = (
        "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.agents.entry import start; "
        "sys.exit(start(sys.argv.pop(1)))"
    )
    order = hook_argv(request())[-1]
    assert hook_argv(request())[-4:-2] == (code, str(Path(claudomator_py.__file__).parents[1]))
    assert hook_argv(request())[-2] == "fence"
    assert json.loads(base64.urlsafe_b64decode(order)).keys() == {
        "reach", "folders", "granted", "commands", "dialect", "allows"
    }  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_of_a_run_starts_by_its_name(name: str) -> None:
    main = importlib.import_module(PROGRAMS[name]).main
    assert inspect.signature(main).bind() is not None


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_without_a_fence_says_so(kind: str) -> None:
    unfenced = AGENT_KINDS[kind].unfenced(AgentSpec(name=kind, kind=kind))
    if kind == "acp":
        assert unfenced == "it is not known to ask before every command"
    elif kind not in (*FENCED, "simulated"):
        assert unfenced == f"there is no fence for agents of kind {kind}"


@pytest.mark.parametrize(
    ("kind", "agent"),
    [
        ("claude", {"extra_args": ("--settings", "x.json")}),
        ("claude", {"extra_args": ("--bare",)}),
        ("codex", {"extra_args": ("--disable", "hooks")}),
        ("codex", {"extra_args": ("--disable=hooks",)}),
        ("codex", {"command": ("codex", "--remote", "ws://127.0.0.1:1")}),
        ("gemini", {"env": {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/x"}}),
        ("opencode", {"extra_args": ("--pure",)}),
        ("opencode", {"pass_env": ("OPENCODE_CONFIG_CONTENT",)}),
        ("opencode", {"env": {"OPENCODE_CONFIG_CONTENT": "no JSON"}}),
        ("qwen", {"pass_env": ("QWEN_CODE_SYSTEM_SETTINGS_PATH",)}),
    ],
)
def test_what_takes_the_place_of_the_fence_is_told_and_not_fenced(kind: str, agent: dict[str, Any]) -> None:
    assert AGENT_KINDS[kind].unfenced(AgentSpec(name=kind, kind=kind, **agent))
    if "env" not in agent or kind != "opencode":
        assert launched(kind, **agent) == launched(kind, None, **agent)
        return
    with pytest.raises(ValueError, match="is not a JSON object"):
        launched(kind, **agent)


def test_hooks_of_the_users_own_do_not_replace_the_one_of_codex() -> None:
    words = launched("codex", extra_args=("--config", "hooks={}")).argv
    assert max(number for number, word in enumerate(words) if "agents.entry" in word) > words.index("hooks={}")


def test_users_plugins_and_servers_of_opencode_stay() -> None:
    own = json.dumps({"plugin": ["mine"], "mcp": {"x": {}}, "share": "disabled"})
    launch = launched("opencode", env={"OPENCODE_CONFIG_CONTENT": own})
    config = json.loads(launch.over["OPENCODE_CONFIG_CONTENT"])
    assert config["plugin"][0] == "mine"
    assert config["plugin"][1].endswith("/agents/opencode/fence.js")
    assert config["mcp"] == {"x": {}}
    assert FENCE_NAME in launch.over, "neither agent nor task can set it to something else"


def test_the_hook_denies_in_the_words_of_claude_code(tmp_path: Path) -> None:
    completed = judged("Bash", {"command": COMMAND}, request(), tmp_path)
    assert (completed.returncode, completed.stderr) == (0, b"")
    verdict = json.loads(completed.stdout)["hookSpecificOutput"]
    assert verdict["permissionDecision"] == "deny"
    assert "`npm publish` publishes a package" in verdict["permissionDecisionReason"]
    assert verdict["permissionDecisionReason"].endswith(f"[beyond reach {mark_of('Bash')}]")


def test_the_hook_denies_in_plain_words(tmp_path: Path) -> None:
    text = json.loads(judged("bash", {"command": COMMAND}, request(), tmp_path, dialect="plain").stdout)
    assert text["decision"] == "deny"
    assert "npm publish" in text["reason"]


@pytest.mark.parametrize("dialect", ["claude", "plain"])
def test_the_hook_has_no_opinion_on_what_stays_within(tmp_path: Path, dialect: str) -> None:
    completed = judged("Bash", {"command": "npm test"}, request(), tmp_path, dialect=dialect)
    assert (completed.returncode, json.loads(completed.stdout)) == (0, {})


def test_what_a_person_has_allowed_passes(tmp_path: Path) -> None:
    granted = LaunchRequest(
        *("run", request().agent, task(), "p", None, "c"),
        reach=Reach.NETWORK,
        granted_acts=(mark_of("Bash"),),
    )
    assert json.loads(judged("Bash", {"command": COMMAND}, granted, tmp_path).stdout) == {}
    text = json.loads(judged("Bash", {"command": COMMAND}, granted, tmp_path, allows=True).stdout)
    assert text["hookSpecificOutput"]["permissionDecision"] == "allow"
    other = json.loads(judged("Bash", {"command": f"{COMMAND} "}, granted, tmp_path, allows=True).stdout)
    assert other["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_hook_reads_the_scripts_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "release.sh").write_text("#!/bin/sh\nnpm publish\n")
    (tmp_path / "Makefile").write_text("release:\n\t./release.sh\n")
    (tmp_path / "sub").mkdir()
    for given in (
        {"command": "make release"},
        {"command": "./release.sh"},
        {"command": "make -C ..", "workdir": "sub"},
    ):
        assert b"deny" in judged("Bash", given, request(), tmp_path).stdout, given


def test_a_pipe_in_the_place_of_a_script_holds_nothing_up(tmp_path: Path) -> None:
    subprocess.run(["mkfifo", tmp_path / "run.sh"], check=True)
    completed = judged("Bash", {"command": "./run.sh"}, request(), tmp_path)
    assert (completed.returncode, json.loads(completed.stdout)) == (0, {})


@pytest.mark.parametrize("command", ["bash app", "cd app && sh .", "node app", "./app", "git push -u origin mine"])
def test_a_folder_in_the_place_of_a_file_is_none(tmp_path: Path, command: str) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / ".git").mkdir()
    completed = judged("Bash", {"command": command}, request(), tmp_path)
    assert (completed.returncode, completed.stderr) == (0, b"")


@pytest.mark.parametrize(
    "event", [b"", b"no JSON", b"[]", b"{}", b'{"tool_name": "Bash"}', b'{"tool_name": "Bash", "cwd": 1}']
)
def test_a_call_that_it_cannot_judge_is_denied_with_a_reason(event: bytes) -> None:
    completed = subprocess.run([*hook_argv(request())], input=event, capture_output=True, check=False)
    if event.endswith(b"1}"):
        assert completed.returncode == 0
        return
    assert completed.returncode == 2
    assert completed.stderr.startswith(b"Claudomator's fence could not judge this call, so it was denied.")


@pytest.mark.parametrize("order", ["", "x", base64.urlsafe_b64encode(b'{"reach": "moon"}').decode()])
def test_a_damaged_order_denies(order: str) -> None:
    argv = [*hook_argv(request())[:-1], order]
    event = b'{"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}'
    assert subprocess.run(argv, input=event, capture_output=True, check=False).returncode == 2


def test_a_hook_that_cannot_be_started_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudomator_py.agents.fence.own_program", lambda name: ("/nowhere/python",))
    completed = subprocess.run(["sh", "-c", hook_line(request())], input=b"{}", capture_output=True, check=False)
    assert completed.returncode == 2
    assert b"so the call was denied" in completed.stderr


def test_no_secret_and_no_quote_is_in_the_hook(tmp_path: Path) -> None:
    line = hook_line(request())
    assert '"' not in line
    assert "$" not in line
    assert "`" not in line


def denied_by(kind: str, stdout: list[dict[str, Any]], stderr: str = "") -> tuple[Denied, ...]:
    reader = AGENT_KINDS[kind].reader(None)
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in stdout))
    reader.feed("stderr", stderr.encode())
    return reader.outcome(ExitRecord(0, None, 0, 1_000), 1_000).denied


def said_by_hook(tool: str, command: str = COMMAND) -> str:
    needs = "this call needs `publish`: `npm publish` publishes a package"
    return f"No further, and {needs}. Nothing of the call was run. Go on. [beyond reach {mark_of(tool, command)}]"


def told(kind: str, text: str) -> tuple[Denied, ...]:
    """What the kind's reader makes of a call that was denied with these words, as its CLI was seen to tell."""
    given = {"command": COMMAND}
    match kind:
        case "claude" | "qwen":
            tool = "Bash" if kind == "claude" else "run_shell_command"
            use: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": tool, "input": given}
            result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": f"hook error: {text}"}
            denial: dict[str, Any] = {"tool_name": tool, "tool_use_id": "t1", "tool_input": given}
            return denied_by(
                kind,
                [
                    {"type": "assistant", "message": {"content": [use]}},
                    {"type": "user", "message": {"content": [result]}},
                    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Left."}]}},
                    {
                        "type": "result",
                        "subtype": "success",
                        "is_error": False,
                        "result": "Left.",
                        "permission_denials": [denial],
                    },
                ],
            )
        case "gemini":
            failure = {"type": "policy_violation", "message": f"Tool execution blocked: {text}"}
            return denied_by(
                kind,
                [
                    {"type": "init", "session_id": "s"},
                    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": given},
                    {"type": "tool_result", "tool_id": "1", "status": "error", "error": failure},
                    {"type": "message", "role": "assistant", "content": "Left."},
                    {"type": "result", "status": "success", "stats": {}},
                ],
            )
        case "opencode":
            state = {"status": "error", "input": given, "error": text}
            return denied_by(
                kind,
                [
                    {"type": "tool_use", "sessionID": "s", "part": {"type": "tool", "tool": "bash", "state": state}},
                    {"type": "text", "sessionID": "s", "part": {"type": "text", "text": "Left."}},
                    {
                        "type": "step_finish",
                        "sessionID": "s",
                        "part": {"reason": "stop", "tokens": {"input": 1, "output": 1}},
                    },
                ],
            )
    line = f"2026-11-27T19:19:17.4Z ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: {text}."
    log = f"{line} Command: {COMMAND}\n2026-11-27T19:19:18Z ERROR x: y\nnothing of it\n"
    item = {"type": "agent_message", "text": "Left."}
    events: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": item},
    ]
    return denied_by("codex", [*events, {"type": "turn.completed", "usage": {}}], log)


TOOLS = {
    "claude": "Bash",
    "codex": "Bash",
    "gemini": "run_shell_command",
    "opencode": "bash",
    "qwen": "run_shell_command",
}


@pytest.mark.parametrize("kind", FENCED)
def test_a_denied_call_is_told_with_what_allows_exactly_it(kind: str) -> None:
    (call,) = told(kind, said_by_hook(TOOLS[kind]))
    assert call.tool == TOOLS[kind]
    assert call.input == COMMAND
    assert call.rule is not None
    assert digest_in(call.rule) == mark_of(TOOLS[kind])
    assert call.beyond == "`npm publish` publishes a package"


@pytest.mark.parametrize("kind", sorted(set(FENCED) - {"codex", "opencode"}))
def test_a_mark_of_another_call_is_none_of_the_fence(kind: str) -> None:
    (call,) = told(kind, said_by_hook(TOOLS[kind], "another; npm publish"))
    assert call.rule is None or digest_in(call.rule) is None
