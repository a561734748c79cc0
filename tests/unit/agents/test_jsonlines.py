"""Lines and events out of any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.jsonlines import LineSplitter, parse_events


def test_lines_come_when_they_are_complete() -> None:
    lines = LineSplitter()
    assert lines.feed(b"on") == []
    assert lines.rest == b"on"
    assert lines.feed(b"e\n\ntwo\nthr") == [b"one", b"two"]
    assert lines.rest == b"thr"


def test_zeros_of_a_punched_out_middle_end_a_line() -> None:
    lines = LineSplitter()
    assert lines.feed(b'{"a":1}\n{"cut' + bytes(100_000) + b'off"}\n{"b":2}\n') == [
        b'{"a":1}',
        b'{"cut',
        b'off"}',
        b'{"b":2}',
    ]


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_a_line_that_is_too_long_is_dropped_whole(piece: int) -> None:
    data = b"short\n" + b"x" * 11 + b"\n" + b"y" * 10 + b"\nend"
    lines = LineSplitter(max_bytes=10)
    found = [line for start in range(0, len(data), piece) for line in lines.feed(data[start : start + piece])]
    assert found == [b"short", b"y" * 10]
    assert lines.rest == b"end"


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"\0", b"ab\n"])))
def test_pieces_change_nothing(pieces: list[bytes]) -> None:
    apart, together = LineSplitter(8), LineSplitter(8)
    found = [line for piece in pieces for line in apart.feed(piece)]
    assert found == together.feed(b"".join(pieces))
    assert apart.rest == together.rest


def test_one_event_or_an_array_of_them() -> None:
    assert parse_events(b'{"a": 1}') == [{"a": 1}]
    assert parse_events(b'[{"a": 1}, {"b": 2}]') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    "line",
    [b"", b"text", b"1", b"null", b'"text"', b"[]", b"[1]", b'{"a":', b"\xff\xfe", b"[" * 100_000, b"9" * 10_000],
)
def test_all_else_is_no_event(line: bytes) -> None:
    assert parse_events(line) is None
