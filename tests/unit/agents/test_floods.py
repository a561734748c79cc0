"""Output that nobody meant: floods, lines without an end, nesting without a bottom. No reader fails or dawdles."""

import json

import pytest

from claudomator_py.agents import event_reader, jsonlines
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.jsonlines import MAX_LINE_BYTES, MAX_PEEK_BYTES, parse_events
from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import ExitRecord
from claudomator_py.json_fields import MAX_DEPTH, Event
from claudomator_py.ports import OutputReader

NOW_MS = 1_795_293_400_000
FAILED = ExitRecord(1, None, NOW_MS - 60_000, NOW_MS)
PIECE = 64 * 1024
EVENT_KINDS = [kind for kind, info in KINDS.items() if not info.plain_output]


def reader_of(kind: str) -> OutputReader:
    return AGENT_KINDS[kind].reader()


def listen(reader: OutputReader) -> None:
    """All that is asked of a live run's reader at each look."""
    assert (reader.stuck_until, reader.stuck_since, reader.answered, reader.stage) == (None, None, False, Stage.WORKING)
    assert reader.used is not None


def nested(depth: int) -> bytes:
    return b'{"type":"x","inner":' + b'{"a":' * (depth - 1) + b"1" + b"}" * depth


class Parsed:
    """Counts what is parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.bytes = 0
        for module in (jsonlines, event_reader):
            monkeypatch.setattr(module, "parse_events", self)

    def __call__(self, line: bytes) -> list[Event] | None:
        self.calls += 1
        self.bytes += len(line)
        return parse_events(line)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Parsed:
    return Parsed(monkeypatch)


@pytest.mark.parametrize("kind", EVENT_KINDS)
@pytest.mark.parametrize("depth", [600, 100_000])
def test_an_event_that_nests_too_deep_is_none(kind: str, depth: int) -> None:
    reader = reader_of(kind)
    reader.feed("stdout", nested(depth) + b"\n" + nested(depth))
    listen(reader)
    assert reader.outcome(FAILED, NOW_MS).status == "failed"
    transcript = AGENT_KINDS[kind].transcript("stdout")
    assert transcript.feed(0, nested(depth) + b"\n" + nested(depth), final=True)


def test_how_deep_events_may_nest() -> None:
    assert parse_events(nested(MAX_DEPTH)) is not None
    assert parse_events(nested(MAX_DEPTH + 1)) is None
    braces = json.dumps({"type": "x", "text": "{[" * MAX_DEPTH, "list": [{}] * MAX_DEPTH}).encode()
    assert parse_events(braces) is not None, "that there are many of them is no depth"


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_a_line_without_an_end_is_not_parsed_over_and_over(kind: str, parsed: Parsed) -> None:
    reader = reader_of(kind)
    reader.feed("stdout", b'{"type":"x","text":"')
    for _ in range(MAX_LINE_BYTES // PIECE - 1):
        reader.feed("stdout", b"x" * PIECE)
        listen(reader)
    assert parsed.bytes <= MAX_PEEK_BYTES
    assert reader.outcome(FAILED, NOW_MS).status == "failed"


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_text_is_not_parsed_at_all(kind: str, parsed: Parsed) -> None:
    reader = reader_of(kind)
    for text in (b"y\n", b"[INFO] {now} it goes on\n", b"  [ \n", b"} } } {\n"):
        reader.feed("stdout", text * (PIECE // len(text)))
        reader.feed("stderr", text * (PIECE // len(text)))
        listen(reader)
    assert parsed.bytes == 0


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_an_event_in_a_flood_is_found(kind: str, parsed: Parsed) -> None:
    reader = reader_of(kind)
    data = (
        b"y\n" * PIECE + b' {"type": "first"}\r\n' + b"y\n" * PIECE + b'[{"type": "second"}, {}]\nx{}\n' + b"y" * PIECE
    )
    for start in range(0, len(data), 7919):
        reader.feed("stdout", data[start : start + 7919])
    assert parsed.calls == 2
