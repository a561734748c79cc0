"""Lines and events out of any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.jsonlines import EventSplitter, LineSplitter, parse_events
from claudomator_py.json_fields import Event


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
    results = [line for start in range(0, len(data), piece) for line in lines.feed(data[start : start + piece])]
    assert results == [b"short", b"y" * 10]
    assert lines.rest == b"end"


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"\0", b"ab\n"])))
def test_pieces_change_nothing(pieces: list[bytes]) -> None:
    apart, together = LineSplitter(8), LineSplitter(8)
    results = [line for piece in pieces for line in apart.feed(piece)]
    assert results == together.feed(b"".join(pieces))
    assert apart.rest == together.rest


def taken(data: list[bytes], max_bytes: int = 100) -> tuple[bytes, list[Event], bytes]:
    """The text, the events, and what may be one once there is more of it."""
    splitter, text, events = EventSplitter(max_bytes), b"", list[Event]()
    for piece in data:
        for part in splitter.feed(piece):
            if isinstance(part, bytes):
                text += part
            else:
                events += part
    assert splitter.rest_bytes == len(splitter.rest)
    return text, events, splitter.rest


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_events_are_told_from_the_text_around_them(piece: int) -> None:
    data = b'one\n\n {"a":1}\r\n[INFO] x\n[ {"b":2}, {}]\n{no}\n' + b" " * 65 + b'{}\ntwo {}\n[3]\n {"c"'
    text, events, rest = taken([data[start : start + piece] for start in range(0, len(data), piece)])
    assert text == b"one\n\n[INFO] x\n{no}\n" + b" " * 65 + b"{}\ntwo {}\n[3]\n"
    assert events == [{"a": 1}, {"b": 2}, {}]
    assert rest == b' {"c"'


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_an_event_that_is_too_long_is_dropped_whole_and_text_never_is(piece: int) -> None:
    data = b'{"a":1}\n{"a":"22"}\n' + b"x" * 20 + b'\n{"a":2}\n{' + b"y" * 20
    text, events, rest = taken([data[start : start + piece] for start in range(0, len(data), piece)], max_bytes=9)
    assert (text, events, rest) == (b"x" * 20 + b"\n", [{"a": 1}, {"a": 2}], b"")


@given(
    st.lists(
        st.binary(max_size=5)
        | st.sampled_from([b"\n", b"\0", b" " * 63, b"[", b" {", b"{}", b'{"a":', b"1}\n", b"[{},", b"{}]\n", b"x"])
    )
)
def test_pieces_change_no_event_and_no_text(pieces: list[bytes]) -> None:
    assert taken(pieces, 8) == taken([b"".join(pieces)], 8)


def test_one_event_or_an_array_of_them() -> None:
    assert parse_events(b'{"a": 1}') == [{"a": 1}]
    assert parse_events(b'[{"a": 1}, {"b": 2}]') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    "line",
    [b"", b"text", b"1", b"null", b'"text"', b"[]", b"[1]", b'{"a":', b"\xff\xfe", b"[" * 100_000, b"9" * 10_000],
)
def test_all_else_is_no_event(line: bytes) -> None:
    assert parse_events(line) is None
