"""What agents said and did, from recordings of them, and from any bytes at all."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.run import PromptPart

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
ALL = sorted(path for kind in AGENT_KINDS for path in (RECORDINGS / kind).glob("*/*.stdout"))


def read(kind: str, data: bytes, piece: int | None = None, offset: int = 0) -> list[PromptPart]:
    transcript = AGENT_KINDS[kind].transcript("stdout", offset)
    size = piece or max(1, len(data))
    entries: list[PromptPart] = []
    for start in range(0, len(data), size):
        entries += transcript.feed(offset + start, data[start : start + size])
    return [*entries, *transcript.feed(offset + len(data), b"", final=True)]


def told(recording: str) -> list[tuple[str, str | None, str]]:
    kind = recording.partition("/")[0]
    entries = read(kind, (RECORDINGS / f"{recording}.stdout").read_bytes())
    return [(entry.part.kind, entry.part.tool, entry.part.text) for entry in entries]


def test_claude_calls_a_tool_and_meets_its_limit() -> None:
    limit = "You've hit your 5-hour limit · resets 6:36pm (America/New_York)"
    assert told("claude/2.1.330/oauth_rejected_midrun") == [
        ("notice", None, "begins: claude-sonnet-5-5, 2.1.330, default"),
        ("tool_call", "Bash", '{"command": "echo step1", "description": "x"}'),
        ("tool_result", "Bash", "step1"),
        ("notice", None, "limited: five_hour"),
        ("error", None, limit),
        ("usage", None, "1,200 tokens in, 25 out, $0.0026, 2 turns"),
    ]


def test_claude_asks_again_and_answers() -> None:
    assert told("claude/2.1.330/sse_overloaded_once")[1:] == [
        ("message", None, "All done."),
        ("usage", None, "2,400 tokens in, 26 out, $0.0053, 1 turn"),
    ]
    assert ("notice", None, "Switched to Haiku 5.5 due to high demand for Opus 5.5") in told(
        "claude/2.1.330/e529_fallback_model"
    )
    assert ("notice", None, "asks again (1 of 10): 529 overloaded") in told("claude/2.1.330/e529_fallback_model")
    assert told("claude/2.1.330/resume_unknown")[0][:2] == ("error", None)


def test_codex_runs_a_command() -> None:
    assert told("codex/0.169.0/tool_exit_nonzero") == [
        ("notice", None, "begins: 01a1ffd5-06f8-7990-aab5-fba05bf1df96"),
        ("tool_call", "command_execution", "/bin/bash -lc 'exit 3'"),
        ("tool_result", "command_execution", "[exit code 3]"),
        ("message", None, "All done."),
        ("usage", None, "2,400 tokens in, 50 out"),
    ]
    midrun = told("codex/0.169.0/rl_midrun")
    assert ("tool_result", "command_execution", "step1") in midrun
    assert [kind for kind, _, _ in midrun].count("error") == 1  # it says it twice
    assert told("codex/0.169.0/cut_once")[1][0] == "notice"


def test_gemini_writes_a_file_and_says_so_in_pieces() -> None:
    assert told("gemini/0.61.0/tool_auto_edit") == [
        ("notice", None, "begins: gemini-2.5-flash"),
        ("tool_call", "write_file", '{"file_path": "/workspace/hello.txt", "content": "hello\\n"}'),
        ("tool_result", "write_file", "success"),
        ("tool_call", "run_shell_command", '{"command": "echo hi", "description": "x"}'),
        (
            "tool_result",
            "run_shell_command",
            'Tool "run_shell_command" not found. Did you mean one of: "update_topic", "grep_search", "replace"?',
        ),
        ("message", None, "All "),
        ("message", None, "done."),
        ("usage", None, "3,600 tokens in, 75 out"),
    ]
    entries = read("gemini", (RECORDINGS / "gemini/0.61.0/tool_auto_edit.stdout").read_bytes())
    assert [entry.part.partial for entry in entries] == [False] * 5 + [True, True, False]
    assert entries[0].part.at_ms == 1_795_293_437_165
    assert told("gemini/0.61.0/rl_midrun")[-2][0] == "error"


def test_opencode_tells_a_call_with_its_result() -> None:
    assert told("opencode/1.18.33/tool_default") == [
        ("tool_call", "bash", '{"command": "echo hello > hello.txt; cat hello.txt", "description": "x"}'),
        ("tool_result", "bash", "hello\n"),
        ("usage", None, "1,200 tokens in, 25 out, $0.0000"),
        ("message", None, "All done."),
        ("usage", None, "1,200 tokens in, 25 out, $0.0000"),
    ]
    assert told("opencode/1.18.33/e401") == [("error", None, "Incorrect API key provided")]


def test_the_simulated_agent_says_what_it_is() -> None:
    lines = [
        {"simulated": True, "type": "start", "attempt": "1"},
        {"simulated": True, "type": "progress", "seconds_left": 0.5},
        {"simulated": True, "type": "end", "outcome": "success", "text": "[simulated] done", "tokens": {"input": 1}},
    ]
    entries = read("simulated", b"\n".join(json.dumps(line).encode() for line in lines))
    assert [(entry.part.kind, entry.part.text) for entry in entries] == [
        ("notice", "begins: attempt 1, simulated"),
        ("notice", "works, 0.5 s left"),
        ("message", "[simulated] done"),
        ("usage", "1 tokens in, 0 out"),
    ]


def test_a_command_writes_lines() -> None:
    entries = read("command", b'one\r\n\n{"type": "end"}\n\xfftwo')
    assert [(entry.offset, entry.next_offset, entry.part.kind, entry.part.text) for entry in entries] == [
        (0, 5, "text", "one"),
        (6, 22, "text", '{"type": "end"}'),
        (22, 26, "text", "\ufffdtwo"),
    ]


def test_words_for_people_stay_text() -> None:
    transcript = AGENT_KINDS["claude"].transcript("stderr")
    assert [entry.part.kind for entry in transcript.feed(0, b'{"type": "result"}\n')] == ["text"]


def test_codexs_log_of_its_requests_is_not_for_people() -> None:
    logged = b"DEBUG codex_http_client::client: Request completed method=POST status=200 OK headers={}\n"
    feed = AGENT_KINDS["codex"].transcript("stderr").feed(0, logged + b"WARNING: mind the gap\n")
    assert [(entry.part.kind, entry.part.text) for entry in feed] == [("text", "WARNING: mind the gap")]


def test_thinking_and_subagents_of_claude() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "1", "content": [{"type": "image"}, {"text": "found"}]},
    ]
    line = json.dumps({"type": "assistant", "message": {"content": blocks}}).encode()
    assert [(entry.part.kind, entry.part.tool, entry.part.text) for entry in read("claude", line)] == [
        ("thinking", None, "hm"),
        ("thinking", None, "(withheld by the service)"),
        ("tool_call", "web_search", "x"),
        ("tool_result", "web_search", "[image]\nfound"),
    ]


def test_bytes_that_were_not_kept_are_told_and_tear_no_line() -> None:
    transcript = AGENT_KINDS["command"].transcript("stdout")
    assert [entry.part.text for entry in transcript.feed(0, b"one\nbegi")] == ["one"]
    after = transcript.feed(9_000, b"n\ntwo\n")
    assert [(entry.offset, entry.part.kind, entry.part.text) for entry in after] == [
        (4, "notice", "8992 bytes were not kept"),
        (9_000, "text", "n"),
        (9_002, "text", "two"),
    ]


def test_a_line_beyond_all_measure_is_left_out_and_said() -> None:
    entries = read("claude", b"x" * (17 * 2**20) + b"\nafter\n", piece=2**20)
    assert [(entry.part.kind, entry.part.text) for entry in entries] == [
        ("notice", f"a line of {17 * 2**20 + 1} bytes is left out"),
        ("text", "after"),
    ]


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(RECORDINGS)))
def test_every_recording_is_read_whatever_its_pieces(path: Path) -> None:
    kind, data = path.parent.parent.name, path.read_bytes()
    entries = read(kind, data)
    assert entries == read(kind, data, piece=97)
    assert bool(entries) == bool(data.strip())
    assert all(data[: entry.offset].endswith(b"\n") for entry in entries if entry.offset)


NAMES = st.sampled_from(
    [
        *("type", "subtype", "message", "content", "text", "thinking", "tool_use", "tool_result", "id", "tool_use_id"),
        *("name", "input", "result", "errors", "usage", "item", "part", "state", "output", "error", "data", "tokens"),
        *("cache", "stats", "role", "delta", "status", "command", "changes", "attempt", "assistant", "user", "system"),
        *("init", "api_retry", "item.completed", "item.started", "turn.completed", "turn.failed", "thread.started"),
        *("step_finish", "agent_message", "reasoning", "mcp_tool_call", "tool", "rate_limit_event", "rate_limit_info"),
        *("rejected", "end", "start", "progress", "seconds_left", "text", "is_error", "num_turns", "severity", "query"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
LINES = st.dictionaries(NAMES, VALUES, max_size=5).map(lambda value: json.dumps(value).encode())


@settings(deadline=None)
@given(
    kind=st.sampled_from(sorted(AGENT_KINDS)),
    lines=st.lists(LINES | st.binary(max_size=20), max_size=6),
    cuts=st.lists(st.integers(0, 1_000), max_size=6),
)
@example(kind="qwen", lines=[b'{"type": []}'], cuts=[])
def test_any_bytes_are_read_whatever_their_pieces(kind: str, lines: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(lines)
    transcript = AGENT_KINDS[kind].transcript("stdout")
    entries: list[PromptPart] = []
    for start, end in itertools.pairwise(sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})):
        entries += transcript.feed(start, data[start:end])
    entries += transcript.feed(len(data), b"", final=True)
    assert entries == read(kind, data)
    assert all(isinstance(entry.part.text, str) for entry in entries)
    assert transcript.offset == len(data)
