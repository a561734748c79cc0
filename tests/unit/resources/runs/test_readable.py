"""Bytes as text for people: the same text, in whatever parts the bytes come, and from wherever a reader begins anew."""

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from claudomator_py.domain.redaction import MARK, Redactor
from claudomator_py.resources.runs import LogTextView
from claudomator_py.resources.runs.logs import ReadableText
from claudomator_py.texts import finished, place_in, plain

SECRET = "hunter22 two"
pieces = st.sampled_from(
    [
        b"\x1b[1;31mb",
        b"\x1b]0;title\x07c",
        b"\x1b]8;;u\x1b\\d",
        b"\x9b",
        b"\xc2\x9b3m",
        b"\r\n",
        b"\r",
        b"\xe2\x82",
        b"\xff",
        b"\x00\x00",
        "ä 🎉 漢 ".encode(),
        b"hunter22",
        b" two ",
        b"\x1b[0m",
        b"sk-ant-abcdefghijklmnop",
        b"\x1b",
        b" words ",
        b"\n",
    ]
)
written = st.lists(pieces | st.binary(max_size=4), max_size=12).map(b"".join)


def read(data: bytes, cuts: list[int]) -> list[LogTextView]:
    reader = ReadableText(Redactor([SECRET]))
    feed = [
        reader.feed(data[start:end])
        for start, end in itertools.pairwise(sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)}))
    ]
    return [piece for piece in [*feed, reader.feed(b"", final=True)] if piece is not None]


@given(data=written, cuts=st.lists(st.integers(0, 300), max_size=8))
@example(
    data="a\x1b[1;31mb\x1b]0;title\x07c\r\ne ä 🎉 \x1b(Bf\rg\x1b[0m".encode(), cuts=[2, 4, 9, 15, 20, 24, 26, 30, 33]
)
@example(data=b"x hunt\x1b[0mer22 two y", cuts=[6, 8, 14])
def test_parts_change_nothing(data: bytes, cuts: list[int]) -> None:
    text_pieces = read(data, cuts)
    assert "".join(piece.text for piece in text_pieces) == Redactor([SECRET]).redact(
        plain(data.decode(errors="replace"))
    )
    assert [piece.offset for piece in text_pieces] == [0, *(piece.next_offset for piece in text_pieces)][
        : len(text_pieces)
    ]
    assert (text_pieces[-1].next_offset if text_pieces else 0) == len(data)


@given(data=written, cuts=st.lists(st.integers(0, 300), max_size=8))
def test_a_reader_that_begins_anew_behind_a_piece_goes_on(data: bytes, cuts: list[int]) -> None:
    text_pieces = read(data, cuts)
    for index, piece in enumerate(text_pieces):
        again = ReadableText(Redactor([SECRET]), piece.next_offset)
        rest = again.feed(data[piece.next_offset :], final=True)
        assert (rest.text if rest is not None else "") == "".join(later.text for later in text_pieces[index + 1 :])


def test_a_secret_with_colours_in_it_is_found() -> None:
    assert [piece.text for piece in read(b"it is \x1b[1mhunter22\x1b[0m two.\n", [])] == [f"it is {MARK}.\n"]


def test_what_was_not_kept_is_told() -> None:
    reader = ReadableText(Redactor())
    assert reader.feed(b"before\xe2") is None
    text_pieces = [*reader.skip_to(5_000), reader.feed(b"after\n")]
    words = "".join(piece.text for piece in text_pieces if piece is not None)
    assert words == "before\ufffd\n[4993 bytes were not kept]\nafter\n"
    assert text_pieces[-1] == LogTextView(offset=5_000, next_offset=5_006, text="after\n")


def test_a_code_that_never_ends_is_not_held_for_ever() -> None:
    reader = ReadableText(Redactor())
    parts = [reader.feed(b"\x1b]0;" + b"x " * 500) for _ in range(10)]
    shown = "".join(piece.text for piece in parts if piece is not None)
    assert len(shown) > 4_000
    assert "\x1b" not in shown


@given(text=st.text("ab\x1b[]0;m\r\n\x07\x9b\x00", max_size=30))
def test_a_place_in_the_plain_text_leads_back(text: str) -> None:
    whole = text[: finished(text)]
    shown = plain(whole)
    for place in range(len(shown) + 1):
        there = place_in(whole, place)
        assert plain(whole[:there]) == shown[:place]
        assert plain(whole[there:]) == shown[place:]
