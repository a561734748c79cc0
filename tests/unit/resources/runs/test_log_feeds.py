"""A reader's way through a log: whole, in order, and gone on with at any place without a gap or a repetition."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.redaction import MARK, Redactor
from claudomator_py.domain.report import OutputPiece
from claudomator_py.resources.runs import LogEntryView, LogTextView
from claudomator_py.resources.runs.logs import EntryFeed, LogFeed, LogItem, LogPosition, Source, TextFeed

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "recordings"
ALL = sorted(RECORDINGS.glob("*/*/*.stdout"))
SECRET = "hunter22-and-more"
START = LogPosition()


class File:
    """What a run has written by now."""

    def __init__(self, data: bytes = b"", *, over: bool = True) -> None:
        self.data = data
        self.over = over
        self.kept_from = 0

    def source(self) -> Source:
        return Source(self._read, lambda: self.over)

    def _read(self, offset: int, limit: int) -> OutputPiece:
        start = max(offset, self.kept_from)
        return OutputPiece(start, self.data[start : start + limit], len(self.data))


def entries_of(file: File, kind: str = "claude", position: LogPosition = START) -> EntryFeed:
    redactor = Redactor([SECRET])
    return EntryFeed(file.source(), redactor, position, lambda at: AGENT_KINDS[kind].transcript("stdout", at))


def text_of(file: File, position: LogPosition = START) -> TextFeed:
    return TextFeed(file.source(), Redactor([SECRET]), position)


def everything(feed: LogFeed, most: int = 1_000) -> list[LogItem]:
    results = []
    while not feed.ended:
        results += feed.read(most)
    return results


def message(*texts: str) -> bytes:
    blocks = [{"type": "text", "text": text} for text in texts]
    return json.dumps({"type": "assistant", "message": {"content": blocks}}).encode() + b"\n"


def delta(text: str) -> bytes:
    return json.dumps({"type": "message", "role": "assistant", "content": text, "delta": True}).encode() + b"\n"


def texts(items: list[LogItem]) -> list[str]:
    return [item.view.text for item in items]


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(RECORDINGS)))
def test_a_feed_goes_on_behind_every_item_of_every_recording(path: Path) -> None:
    file, kind = File(path.read_bytes()), path.parent.parent.name
    whole = everything(entries_of(file, kind))
    assert everything(entries_of(file, kind), most=1) == whole
    for number, item in enumerate(whole, 1):
        assert everything(entries_of(file, kind, item.after)) == whole[number:]


def test_what_one_line_says_is_told_once_even_if_the_reader_left_in_between() -> None:
    file = File(message("one", "two", "three") + message("four"))
    first = entries_of(file).read(2)
    assert [str(item.after) for item in first] == ["0.1", "0.2"]
    assert texts(everything(entries_of(file, position=first[-1].after))) == ["three", "four"]


def test_nothing_is_told_of_a_line_that_is_not_whole_before_the_run_has_ended() -> None:
    file = File(message("one") + message("two")[:20], over=False)
    feed = entries_of(file)
    assert texts(feed.read(10)) == ["one"]
    assert feed.read(10) == []
    assert (feed.caught_up, feed.ended, feed.position.offset) == (True, False, len(message("one")))
    file.data = message("one") + message("two").rstrip()
    assert feed.read(10) == []
    file.over = True
    assert texts(feed.read(10)) == ["two"]
    assert feed.ended


def test_secrets_and_terminal_codes_are_taken_out_of_everything() -> None:
    line = {"type": "tool_use", "id": "1", "name": f"T\x1b[1m{SECRET}", "input": {"command": f"echo {SECRET}"}}
    file = File(json.dumps({"type": "assistant", "message": {"content": [line]}}).encode())
    view = everything(entries_of(file))[0].view
    assert isinstance(view, LogEntryView)
    assert (view.tool, view.text) == (f"T{MARK}", f"echo {MARK}")


def test_a_secret_over_two_pieces_of_a_message_is_taken_out() -> None:
    file = File(delta("the key is hun") + delta("ter22-a") + delta("nd-more.") + delta(" That's it.\n"), over=False)
    feed = entries_of(file, "gemini")
    shown = everything_now(feed)
    assert "".join(texts(shown)) == f"the key is {MARK}. That's it.\n"
    for number, item in enumerate(shown, 1):
        assert everything_now(entries_of(file, "gemini", item.after)) == shown[number:]


def everything_now(feed: LogFeed) -> list[LogItem]:
    results = []
    while not feed.caught_up:
        results += feed.read(1)
    return results


def test_a_long_result_is_cut_but_never_within_a_secret() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "x" * 3_990 + SECRET + " and" + " more" * 50_000}
    line = json.dumps({"type": "user", "message": {"content": [result]}}).encode() + b"\n"
    view = everything(entries_of(File(line)))[0].view
    assert isinstance(view, LogEntryView)
    assert (len(view.text), "hunter" in view.text) == (4_000, False)
    assert 240_000 < view.omitted < 251_000
    assert (view.offset, view.next_offset) == (0, len(line))  # where its bytes are


def test_a_hole_is_told_in_both_ways() -> None:
    file = File(b"\0" * 9_000 + message("after"))
    file.kept_from = 9_000
    kinds = [
        (item.view.kind, item.view.text) for item in everything(entries_of(file)) if isinstance(item.view, LogEntryView)
    ]
    assert kinds == [("notice", "9000 bytes were not kept"), ("message", "after")]
    assert "".join(texts(everything(text_of(file)))).startswith("\n[9000 bytes were not kept]\n{")


@settings(deadline=None)
@given(
    written=st.lists(
        st.sampled_from([b"hunter22", b"-and-more", b"\x1b[1m", b" ", b"\n", "ä".encode(), b"\xff", b"x"]), max_size=20
    ).map(b"".join),
    steps=st.lists(st.integers(1, 30), max_size=10),
)
def test_text_is_whole_however_it_grows_and_wherever_it_is_gone_on_with(written: bytes, steps: list[int]) -> None:
    file = File(over=False)
    feed = text_of(file)
    results: list[LogItem] = []
    for step in steps:
        file.data = written[: len(file.data) + step]
        results += feed.read(5)
    file.data, file.over = written, True
    results += everything(feed)
    whole = everything(text_of(file))
    assert "".join(texts(results)) == "".join(texts(whole))
    assert b"hunter22-and-more" not in "".join(texts(results)).encode()
    for number, item in enumerate(results, 1):
        assert isinstance(item.view, LogTextView)
        assert item.after == LogPosition(item.view.next_offset)
        assert "".join(texts(everything(text_of(file, item.after)))) == "".join(texts(results[number:]))


@pytest.mark.parametrize("before", range(180, 201, 4))
def test_no_part_of_a_secret_is_left_where_the_name_of_a_tool_is_cut(before: int) -> None:
    use = {"type": "tool_use", "id": "1", "name": "x" * before + SECRET, "input": {}}
    file = File(json.dumps({"type": "assistant", "message": {"content": [use]}}).encode() + b"\n")
    (item,) = everything(entries_of(file))
    shown = item.view
    assert isinstance(shown, LogEntryView)
    assert shown.tool is not None
    assert 180 <= len(shown.tool) <= 200
    assert "hunter" not in shown.tool
