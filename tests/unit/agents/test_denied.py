"""What a denied call was to do, and the rule that allows it and nothing else."""

import json
from typing import Any

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.claude.use import rule_for
from claudomator_py.agents.fence import MAX_CALLS, denied_call, distinct
from claudomator_py.domain.outcome import Denied, Outcome
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_293_400_000


def read(kind: str, *events: dict[str, Any], exit_code: int = 0) -> Outcome:
    """What the kind's reader makes of these events."""
    reader = AGENT_KINDS[kind].reader(None)
    reader.feed("stdout", b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return reader.outcome(ExitRecord(exit_code, None, NOW_MS - 1_000, NOW_MS), NOW_MS)


def claude_result(*denials: dict[str, Any]) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "x", "permission_denials": denials}


@pytest.mark.parametrize(
    ("tool", "given", "rule"),
    [
        ("Bash", {"command": "npm publish"}, "Bash(npm publish)"),
        ("Bash", {"command": "git commit -m 'one (1); two'"}, "Bash(git commit -m 'one (1); two')"),
        ("Bash", {"command": "npm test && npm publish"}, None),
        ("Bash", {"command": "npm test; npm publish"}, None),
        ("Bash", {"command": "echo x > y"}, None),
        ("Bash", {"command": 'echo "$(cat y)"'}, None),
        ("Bash", {"command": "echo `cat y`"}, None),
        ("Bash", {"command": "cat y\nrm y"}, None),
        ("Bash", {"command": "echo 'x"}, None),
        ("Bash", {"command": "rm *.o"}, None),
        ("Bash", {}, None),
        ("Write", {"file_path": "/srv/x/a.txt", "content": "x"}, "Edit(//srv/x/a.txt)"),
        ("NotebookEdit", {"notebook_path": "/srv/n.ipynb"}, "Edit(//srv/n.ipynb)"),
        ("Write", {"file_path": "/srv/[x]/a.txt"}, None),
        ("Write", {"file_path": "a.txt"}, None),
        ("Read", {"file_path": "/etc/hosts"}, "Read(//etc/hosts)"),
        ("WebFetch", {"url": "https://example.org/a?b"}, "WebFetch(domain:example.org)"),
        ("WebFetch", {"url": "http://[x"}, None),
        ("mcp__shop__refund", {"id": 4}, "mcp__shop__refund"),
        ("odd tool", {}, None),
    ],
)
def test_a_rule_of_claude_allows_the_call_and_no_other(tool: str, given: dict[str, Any], rule: str | None) -> None:
    assert rule_for(tool, given) == rule


def test_a_call_is_told_on_one_line_and_cut() -> None:
    call = denied_call("Bash", {"command": "cat <<EOF\n" + "x\n" * 5_000, "description": "y"}, "Bash(cat\n)")
    assert call.input.startswith("cat <<EOF x x")
    assert (len(call.input), call.input[-3:], call.rule) == (300, "...", None)
    assert denied_call("T", {"a": [1]}, None).input == '{"a": [1]}'
    assert denied_call("T", {}, "T") == Denied(tool="T", rule="T")
    assert len(distinct(Denied(tool=f"t{number}") for number in range(100))) == MAX_CALLS


def test_claude_tells_input_and_reason_of_a_denial_apart() -> None:
    asked = {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "1"}
    denial = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "npm publish"}}
    fields = {**asked, "message": "This Bash command requires approval"}
    assert read("claude", fields, claude_result(denial)).denied == (
        Denied(tool="Bash", input="npm publish", rule="Bash(npm publish)"),
    )
    ruled = {**asked, "message": "Permission to use Bash with command npm publish has been denied."}
    outcome = read("claude", ruled, claude_result(denial))
    assert outcome.denied == (), "a rule of the user's own stands above any leave"
    assert (outcome.detail or "").startswith("1 tool call was denied: Bash.")


def test_claude_asks_by_a_tool_where_it_has_one() -> None:
    given = {"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]}
    denials = [
        {"tool_name": "AskUserQuestion", "tool_use_id": "1", "tool_input": given},
        {"tool_name": "ExitPlanMode", "tool_use_id": "2", "tool_input": {"plan": "do it"}},
    ]
    outcome = read("claude", claude_result(*denials))
    assert (outcome.question, outcome.denied) == ("Which colour?\n- Red\n- Blue", ())
    assert outcome.detail is None  # to allow the tool would be no remedy


def gemini(tool: str, given: dict[str, Any], error: dict[str, str]) -> Outcome:
    return read(
        "gemini",
        {"type": "init", "session_id": "s"},
        {"type": "tool_use", "tool_id": "1", "tool_name": tool, "parameters": given},
        {"type": "tool_result", "tool_id": "1", "status": "error", "error": error},
        {"type": "message", "role": "assistant", "content": "x", "delta": True},
        {"type": "result", "status": "success"},
    )


def test_gemini_names_what_it_does_not_offer_and_invents_no_tool() -> None:
    missing = {"type": "tool_not_registered", "message": "Tool not found."}
    (call,) = gemini("run_shell_command", {"command": "touch a"}, missing).denied
    assert call == Denied(tool="run_shell_command", input="touch a", rule="run_shell_command(touch a)")
    (call,) = gemini("run_shell_command", {"command": "echo a,b"}, missing).denied
    assert call.rule is None
    (call,) = gemini("write_file", {"file_path": "/a", "content": "x"}, missing).denied
    assert (call.input, call.rule) == ("/a", "write_file")
    assert gemini("launch_rocket", {}, missing).denied == ()
    # Where some commands are allowed, the others are denied by its policy.
    by_policy = {"type": "policy_violation", "message": "Tool execution denied by policy."}
    (call,) = gemini("run_shell_command", {"command": "touch a && touch b"}, by_policy).denied
    assert call.rule is None


def test_gemini_asks_by_a_tool_that_is_not_there() -> None:
    missing = {"type": "tool_not_registered", "message": "Tool not found."}
    outcome = gemini("ask_user", {"questions": [{"question": "Which colour?"}]}, missing)
    assert (outcome.question, outcome.denied) == ("Which colour?", ())


def test_opencode_is_rejected_by_nobody_or_by_a_rule() -> None:
    def rejected(error: str) -> Outcome:
        state = {"status": "error", "error": error, "input": {"command": "touch a"}}
        return read(
            "opencode",
            {"type": "step_start", "sessionID": "s", "part": {}},
            {"type": "tool_use", "sessionID": "s", "part": {"tool": "bash", "state": state}},
        )

    asked = rejected("The user rejected permission to use this specific tool call.")
    assert asked.denied == (Denied(tool="bash", input="touch a", rule="bash"),)
    assert asked.reason == "permission_denied"
    assert rejected("A rule prevents you from using this specific tool call.").denied == ()
