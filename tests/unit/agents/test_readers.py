"""Whatever bytes come, in whatever pieces: a reader never fails, and pieces never change what it says."""

import itertools
import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.run import ExitRecord, Stream

NOW_MS = 1_795_293_400_000
KINDS = ("gemini", "codex", "opencode")

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
)
TYPES = (
    *("init", "message", "tool_use", "tool_result", "error", "result", "text", "step_start", "step_finish"),
    *("thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"),
)
fields = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)
events = st.builds(lambda kind, event: {**event, "type": kind}, st.sampled_from(TYPES), fields)
json_lines = st.lists(events, max_size=6).map(lambda found: b"\n".join(json.dumps(one).encode() for one in found))
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


def read(kind: str, pieces: Sequence[tuple[Stream, bytes]], exit_record: ExitRecord | None) -> Outcome:
    reader = AGENT_KINDS[kind].reader()
    for stream, data in pieces:
        reader.feed(stream, data)
    return reader.outcome(exit_record, NOW_MS)


def cut(stream: Stream, data: bytes, cuts: list[int]) -> list[tuple[Stream, bytes]]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [(stream, data[start:end]) for start, end in itertools.pairwise(places)]


@settings(deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    stdout=json_lines | st.binary(max_size=200),
    stderr=words,
    exit_record=exit_records,
    cuts=st.lists(st.integers(0, 5000), max_size=8),
)
def test_pieces_never_change_what_is_read(
    kind: str, stdout: bytes, stderr: bytes, exit_record: ExitRecord | None, cuts: list[int]
) -> None:
    whole = read(kind, [("stdout", stdout), ("stderr", stderr)], exit_record)
    pieces = [*cut("stderr", stderr, cuts), *cut("stdout", stdout, cuts)]
    assert read(kind, pieces, exit_record) == whole
    assert Outcome.model_validate_json(whole.model_dump_json()) == whole


@settings(deadline=None)
@given(kind=st.sampled_from(KINDS), stdout=json_lines, stderr=words, exit_record=exit_records)
def test_asking_changes_nothing(kind: str, stdout: bytes, stderr: bytes, exit_record: ExitRecord | None) -> None:
    reader = AGENT_KINDS[kind].reader()
    streams: tuple[tuple[Stream, bytes], ...] = (("stdout", stdout), ("stderr", stderr))
    for stream, data in streams:
        for start in range(0, len(data), 40):
            reader.feed(stream, data[start : start + 40])
            reader.outcome(exit_record, NOW_MS)
    assert reader.outcome(exit_record, NOW_MS) == read(kind, [("stdout", stdout), ("stderr", stderr)], exit_record)
