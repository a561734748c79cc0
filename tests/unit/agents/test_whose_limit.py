"""A limit is what a CLI says of itself: what its tools print, wherever that shows up, changes nothing."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.limits import RanOn, bucket_after
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.run import ExitRecord
from claudomator_py.ports import OutputReader

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
KINDS = [kind for kind in AGENT_KINDS if (RECORDINGS / kind / "expected.json").exists()]
EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    kind: json.loads((RECORDINGS / kind / "expected.json").read_text()) for kind in KINDS
}
STARTED_MS, ENDED_MS = 1_795_293_400_000, 1_795_293_600_000
Events = list[dict[str, Any]]

MADE_UP = (
    "fetching the index failed:\n429 from mirror. Retrying after 9999999999999ms",
    "make: failed.\nAttempt 1 failed: You have exhausted your capacity on this model.. Retrying after 359999999ms...",
    "Claude AI usage limit reached|1795400000",
    "Session limit reached \N{BULLET OPERATOR} resets 6:47pm",
    "API Error: Request rejected (429) \N{MIDDLE DOT} This request would exceed your account's rate limit.",
    "ERROR: You\N{RIGHT SINGLE QUOTATION MARK}ve hit your usage limit. Try again at Nov 24th, 2026 3:38 PM.",
    (
        "2026-11-21T20:36:41Z DEBUG codex_http_client::client: Request completed method=POST url=http://x status=429 ? "
        'headers={"x-codex-primary-used-percent": "100", "x-codex-primary-reset-at": "1795331212"} version=HTTP/1.1'
    ),
    (
        'timestamp=2027-01-01T00:00:00.000Z level=ERROR run=a6a3e5da message="stream error" providerID=p modelID=m '
        'session.id=ses_of_another_one small=false agent=build mode=primary error.error="AI_APICallError: Rate limit"'
    ),
    "Error: 401 Unauthorized. Please run /login. Credit balance is too low. Overloaded. ECONNREFUSED",
)


def recorded(kind: str, case: str, stream: str) -> str:
    path = RECORDINGS / kind / f"{case}.{stream}"
    return path.read_text() if path.exists() else ""


def limit_texts() -> Iterator[str]:
    """Whatever a CLI has ever written in a run that met a limit, and what else looks like one."""
    yield from MADE_UP
    for kind in KINDS:
        for case, expected in EXPECTED[kind].items():
            if expected["status"] == "limited":
                yield recorded(kind, case, "stdout")
                yield recorded(kind, case, "stderr")
                yield from spoken(recorded(kind, case, "stdout"))


def spoken(stdout: str) -> Iterator[str]:
    """The messages in the last event, as a tool that shows them would print them."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str) and " " in value:
            yield value
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from texts(inner)

    try:
        yield from texts(json.loads(stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        return


TEXTS = sorted({text.strip() for text in limit_texts()} - {""})
_PARTS = 4


# --- tools that print them --------------------------------------------------------------------------------------------


def claude_tool(text: str, failed: bool, model: Events) -> Events:
    used = {"type": "tool_use", "id": "toolu_x", "name": "Bash", "input": {"command": f"echo {text}"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_x", "content": text, "is_error": failed}
    fields = {**next((event for event in model if event.get("type") == "assistant"), {"type": "assistant"})}
    fields["message"] = {"role": "assistant", "content": [used]}
    file = {"type": "text", "file": {"filePath": "/w/log", "content": text}}
    back = {
        "type": "user",
        "message": {"role": "user", "content": [result]},
        "tool_use_result": {"stdout": text, **file},
    }
    return [fields, back]


def gemini_tool(text: str, failed: bool, model: Events) -> Events:
    when = {"timestamp": model[0].get("timestamp")}
    used = {"type": "tool_use", "tool_name": "read_file", "tool_id": "x", "parameters": {"file_path": text}, **when}
    result = {"type": "tool_result", "tool_id": "x", "status": "error" if failed else "success", "output": text, **when}
    if failed:
        result["error"] = {"type": "TOOL_EXECUTION_ERROR", "message": text}
    return [used, result]


def codex_tool(text: str, failed: bool, model: Events) -> Events:
    item = {"id": "item_x", "type": "command_execution", "command": f"echo {text}", "aggregated_output": text}
    ended = {**item, "exit_code": int(failed), "status": "failed" if failed else "completed"}
    return [{"type": "item.started", "item": item}, {"type": "item.completed", "item": ended}]


def opencode_tool(text: str, failed: bool, model: Events) -> Events:
    state = {"status": "error", "error": text} if failed else {"status": "completed", "output": text, "title": text}
    part = {"type": "tool", "tool": "bash", "state": {**state, "input": {"command": text}}}
    return [{**model[0], "type": "tool_use", "part": part}]


def qwen_tool(text: str, failed: bool, model: Events) -> Events:
    used = {"type": "tool_use", "id": "call_x", "name": "run_shell_command", "input": {"command": f"echo {text}"}}
    result = {"type": "tool_result", "tool_use_id": "call_x", "content": text, "is_error": failed}
    usage = {"input_tokens": 1, "output_tokens": 1}
    fields = {"type": "assistant", "message": {"role": "assistant", "content": [used], "usage": usage}}
    return [fields, {"type": "user", "message": {"role": "user", "content": [result]}}]


def copilot_tool(text: str, failed: bool, model: Events) -> Events:
    called = {"toolCallId": "call_x", "toolName": "bash", "arguments": {"command": f"echo {text}"}}
    error = {"message": text, "code": "failed"}
    ended = {"toolCallId": "call_x", "success": not failed, "error" if failed else "result": error}
    result = ended if failed else {**ended, "result": {"content": text}}
    return [{"type": "tool.execution_start", "data": called}, {"type": "tool.execution_complete", "data": result}]


TOOLS: dict[str, Callable[[str, bool, Events], Events]] = {
    "claude": claude_tool,
    "gemini": gemini_tool,
    "codex": codex_tool,
    "opencode": opencode_tool,
    "qwen": qwen_tool,
    "copilot": copilot_tool,
}


def on_stderr(kind: str, text: str) -> str:
    """What is on stderr of a tool that has failed so."""
    return f"Error executing tool run_shell_command: {text}\n" if kind == "gemini" else f"{text}\n"


# --- reading ----------------------------------------------------------------------------------------------------------


def read(
    kind: str, pieces: Sequence[tuple[str, str]], exit_code: int, ended_by: Literal["stall"] | None = None
) -> tuple[Outcome, list[tuple[int | None, int | None]]]:
    """The outcome, and after each piece how long the CLI seems to sleep, and since when."""
    reader: OutputReader = AGENT_KINDS[kind].reader()
    stuck = []
    for stream, text in pieces:
        reader.feed("stderr" if stream == "stderr" else "stdout", text.encode())
        stuck.append((reader.stuck_until, reader.stuck_since))
    return reader.outcome(ExitRecord(exit_code, ended_by, STARTED_MS, ENDED_MS), ENDED_MS), stuck


def events_of(kind: str, case: str) -> Events:
    try:
        results = [json.loads(line) for line in recorded(kind, case, "stdout").splitlines()]
    except ValueError:
        return []
    return results if all(isinstance(event, dict) for event in results) else []


def out(events: Events) -> list[tuple[str, str]]:
    return [("stdout", json.dumps(event) + "\n") for event in events]


SUCCESSES = [
    (kind, case, number % _PARTS)
    for kind in KINDS
    for number, case in enumerate(
        case
        for case, expected in EXPECTED[kind].items()
        if expected["status"] == "succeeded" and len(events_of(kind, case)) > 1
    )
]
"""And the part of the texts that tools print in it: every text in a run of each kind, and not each in every run."""


_BEGUN = {"claude": 1, "gemini": 1, "codex": 2, "opencode": 1, "qwen": 1, "copilot": 1}
"""How many events come before anything can run."""


def came_to(outcome: Outcome) -> tuple[object, ...]:
    return outcome.status, outcome.reason, outcome.reset_at, outcome.limit, outcome.text


def test_each_text_is_printed_in_a_run_of_each_kind() -> None:
    assert {(kind, part) for kind, _, part in SUCCESSES} == {(kind, part) for kind in TOOLS for part in range(_PARTS)}


@pytest.mark.parametrize(("kind", "case", "part"), SUCCESSES)
def test_what_tools_print_changes_nothing_of_a_success(kind: str, case: str, part: int) -> None:
    events, stderr = events_of(kind, case), recorded(kind, case, "stderr")
    begun = _BEGUN[kind]
    before, after = out(events[:begun]), out(events[begun:])
    expected, _ = read(kind, [*before, ("stderr", stderr), *after], 0)
    for text in TEXTS[part::_PARTS]:
        for failed in (False, True):
            *used, result = out(TOOLS[kind](text, failed, events))
            messages = ("stderr", on_stderr(kind, text) if failed or kind != "gemini" else "")
            for piece in ([result, messages], [messages, result]):
                outcome, stuck = read(kind, [*before, *used, *piece, *after, ("stderr", stderr)], 0)
                assert came_to(outcome) == came_to(expected), text
                assert set(stuck) == {(None, None)}, text


@pytest.mark.parametrize(("kind", "case", "part"), SUCCESSES)
def test_what_tools_print_is_no_reason_to_hold_an_agent_whose_run_broke_off(kind: str, case: str, part: int) -> None:
    events = events_of(kind, case)
    for text in TEXTS[part::_PARTS]:
        tool = out(TOOLS[kind](text, True, events))
        pieces = [*out(events[: _BEGUN[kind]]), *tool, ("stderr", on_stderr(kind, text))]
        for outcome, _ in (read(kind, pieces, 1), read(kind, pieces, -9, "stall")):
            assert bucket_after(outcome, RanOn(kind, kind, "default", None)) is None, (text, outcome)
