"""Text as programs print it, made fit to store and to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.plaintext import Tail, readable, shortened, storable


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("\x1b[1;31mred\x1b[0m and \x1b[Kplain", "red and plain"),
        ("\x1b]0;a title\x07body", "body"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\r\ndone\r\n", "100%\ndone"),
        ("bell\x07, nul\0, tab\tkept", "bell, nul, tab\tkept"),
        ("  \n spaced \n\n", "spaced"),
        ("half a pair \ud800", "half a pair ?"),
    ],
)
def test_what_a_terminal_would_have_left(printed: str, text: str) -> None:
    assert readable(printed) == text


def test_a_long_line_without_an_end_takes_no_time() -> None:
    assert len(readable("x" * 2_000_000)) == 2_000_000


@given(st.text(), st.integers(20, 60))
def test_a_short_text_stays_and_a_long_one_keeps_both_ends(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short == text if len(text) <= limit else short[0] == text[0] and short[-1] == text[-1]


@given(st.text(st.characters()))
def test_any_text_can_be_stored(text: str) -> None:
    assert "\0" not in storable(text)
    storable(text).encode()


@given(st.lists(st.binary(max_size=30)))
def test_a_tail_keeps_the_end(pieces: list[bytes]) -> None:
    tail, whole = Tail(16), Tail(16)
    for piece in pieces:
        tail.feed(piece)
    whole.feed(b"".join(pieces))
    assert tail.text() == whole.text() == readable(b"".join(pieces)[-16:].decode(errors="replace"))
