"""Whatever bytes come, in whatever pieces: a reader never fails, and pieces never change what it says."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.ports import OutputReader

NOW_MS = 1_795_293_400_000
RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
KINDS = sorted(AGENT_KINDS)

texts = st.sampled_from(
    ["", "s", "stop", "success", "error", "assistant", "2026-11-21T20:36:40.000Z", "usage limit, try again at 5:38 PM."]
) | st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    *("type", "timestamp", "session_id", "sessionID", "thread_id", "status", "error", "message", "role", "content"),
    *("delta", "severity", "tool_id", "tool_name", "stats", "item", "usage", "part", "reason", "tokens", "response"),
    *(
        "is_error",
        "result",
        "subtype",
        "modelUsage",
        "rate_limit_info",
        "total_cost_usd",
        "permission_denials",
        "errors",
    ),
    *("terminal_reason", "api_error", "api_error_status", "stop_reason", "outcome", "reset_at"),
    *("permission_denials", "conversation_id"),
)
TYPES = (
    *("init", "message", "tool_use", "tool_result", "error", "result", "text", "step_start", "step_finish"),
    *("thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"),
    *("assistant", "system", "rate_limit_event", "user", "start", "progress", "denied", "end"),
)
fields = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)
events = st.builds(lambda kind, event: {**event, "type": kind}, st.sampled_from(TYPES), fields)
json_lines = st.lists(events, max_size=6).map(
    lambda results: b"\n".join(json.dumps(entry).encode() for entry in results)
)
odd_pieces = st.binary(max_size=60) | st.sampled_from(
    [b"\n", b"\r\n", b"\0\0\0", b"[" * 30, b"{", b"usage limit reached\n"]
)


def stdout_of(kind: str) -> st.SearchStrategy[bytes]:
    """Lines that it was seen to print, in any order and number, with others and with what is none between them."""
    files = sorted((RECORDINGS / kind).glob("*/*.stdout"))
    seen = sorted({line for file in files for line in file.read_bytes().splitlines(keepends=True)})
    shaped = events.map(lambda event: json.dumps(event).encode() + b"\n")
    recorded = st.sampled_from(seen) if seen else shaped
    return st.lists(recorded | shaped | odd_pieces, max_size=8).map(b"".join) | json_lines


STDOUT = {kind: stdout_of(kind) for kind in KINDS}
words = st.lists(
    st.sampled_from(
        [
            b"Attempt 1 failed: x. Retrying after 26248223ms...\n",
            b"ERROR: rate limit exceeded, try again in 3h\n",
            b'timestamp=2026-11-21T20:36:41.000Z level=ERROR error="Rate limit"\n',
            b"\x1b[31mError: no\x1b[0m",
            b"\r\n",
            b"\xff\x00",
        ]
    )
    | st.binary(max_size=20),
    max_size=5,
).map(b"".join)
exit_records = st.none() | st.builds(
    ExitRecord,
    exit_code=st.none() | st.sampled_from([0, 1, 2, 41, 42, 53, 55, 127, 137, 144, 173, 247, -9, -15]),
    ended_by=st.sampled_from([None, "cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt"]),
    started_ms=st.just(NOW_MS - 60_000),
    ended_ms=st.just(NOW_MS),
)


def fed(kind: str, pieces: Sequence[tuple[Stream, bytes]]) -> OutputReader:
    reader = AGENT_KINDS[kind].reader()
    for stream, data in pieces:
        reader.feed(stream, data)
    return reader


def cut(stream: Stream, data: bytes, cuts: list[int]) -> list[tuple[Stream, bytes]]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [(stream, data[start:end]) for start, end in itertools.pairwise(places)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data(), stderr=words, exit_record=exit_records, cuts=st.lists(st.integers(0, 5000), max_size=8))
def test_neither_pieces_nor_asking_between_them_change_what_is_read(
    kind: str, data: st.DataObject, stderr: bytes, exit_record: ExitRecord | None, cuts: list[int]
) -> None:
    stdout = data.draw(STDOUT[kind])
    whole = fed(kind, [("stdout", stdout), ("stderr", stderr)])
    pieces = fed(kind, [*cut("stderr", stderr, cuts), *cut("stdout", stdout, cuts)])
    outcome = whole.outcome(exit_record, NOW_MS)
    assert pieces.outcome(exit_record, NOW_MS) == outcome
    assert (pieces.stage, pieces.answered, pieces.used) == (whole.stage, whole.answered, whole.used)
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome

    asked = fed(kind, [])
    streams: tuple[tuple[Stream, bytes], ...] = (("stdout", stdout), ("stderr", stderr))
    for stream, text in streams:
        step = max(40, len(text) // 10)
        for start in range(0, len(text), step):
            asked.feed(stream, text[start : start + step])
            asked.outcome(exit_record, NOW_MS)
    assert asked.outcome(exit_record, NOW_MS) == outcome
