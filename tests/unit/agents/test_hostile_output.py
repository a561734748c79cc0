"""Text that is made to be slow to read: while one expression is matched, nothing else of the daemon goes forward.

Each of these took from seconds to minutes as long as some of it was gone through over and over.
"""

import json
import time
from collections.abc import Callable
from functools import partial

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.codex.events import REQUEST
from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.inputs import MARKER, question_in
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import ExitRecord
from claudomator_py.resources.runs.logs import ReadableText
from claudomator_py.texts import clause, finished, plain

CPU_S = 1.25
"""Generous: read once, all of it takes a hundredth of a second."""
SIZE = 2**15
FAILED = ExitRecord(exit_code=1, ended_by=None, started_ms=0, ended_ms=1)
LINE = 16_000
"""Longer lines of stderr are no messages."""


def in_time(read: Callable[[], object]) -> None:
    begun = time.thread_time()
    read()
    assert time.thread_time() - begun < CPU_S


def filled(unit: str, size: int = SIZE, begin: str = "", end: str = "") -> str:
    return begin + unit * ((size - len(begin) - len(end)) // len(unit)) + end


def shown(text: str) -> object:
    """As a log is shown, in parts."""
    reader = ReadableText(Redactor(["a-secret-value"]))
    data = text.encode()
    for start in range(0, len(data), 2**14):
        reader.feed(data[start : start + 2**14])
    return reader.feed(b"", final=True)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("unit", ["\r", "\x90", "\x98a", "\x1b]", "\x1b[", "\x9b", "\x1b", "\x1bP\x90", "\r\x90"])
def test_control_codes_that_lead_nowhere(unit: str, end: str) -> None:
    text = filled(unit, end=end)
    for read in (plain, finished, clause, shown):
        in_time(partial(read, text))


@pytest.mark.parametrize("unit", [f"```\n{MARKER}\n```\n", f"~~~\n```\n{MARKER}\n", f"> {MARKER}\n", "```\n"])
def test_questions_that_are_none(unit: str) -> None:
    in_time(lambda: question_in(filled(unit, begin="```\n")))


OPENCODE = "timestamp=2026-01-01T00:00:00Z level=ERROR run=a message="
CODEX = "2026-01-01T00:00:00Z DEBUG "


@pytest.mark.parametrize(
    ("begin", "unit"),
    [
        (f'{OPENCODE}"', '\\"'),
        (f"{OPENCODE}x", ' session.id=a error=""'),
        (f"{OPENCODE}x", ' a="\\'),
        (OPENCODE, "a."),
        (f"{CODEX}x", f": {REQUEST}method=a status=200"),
        (f"{CODEX}{REQUEST}method=a", " status=200"),
        (f"{CODEX}{REQUEST}method=a", "status="),
        (CODEX, "x: "),
        ("error: ", "try again at "),
        ("error: resets in ", "1and "),
        ("error: resets in ", "1"),
    ],
)
@pytest.mark.parametrize("kind", ["codex", "opencode"])
def test_lines_of_a_log_that_do_not_end_as_they_began(kind: str, begin: str, unit: str) -> None:
    line = filled(unit, LINE, begin).encode() + b"\n"

    def read() -> None:
        output_reader = AGENT_KINDS[kind].reader()
        for _ in range(8):
            output_reader.feed("stderr", line)
        output_reader.outcome(FAILED, 1)

    in_time(read)


UNITS = (" ", "try again at ", "1and ", "Permission to use x", " has been denied.", "model ", "\r", "\x1b]", "0", "\n")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_messages_of_events(kind: str) -> None:
    def read() -> None:
        for unit in UNITS:
            text = filled(unit, begin="You hit your limit, resets in ", end="!")
            error = {"message": text, "name": "APIError", "data": {"message": text, "responseBody": text}}
            output_reader = AGENT_KINDS[kind].reader()
            for told_by in ("result", "error", "turn.failed", "system"):
                event = {"type": told_by, "subtype": "error", "is_error": True, "status": "error"}
                payload = {"result": text, "message": text, "error": error}
                output_reader.feed("stdout", json.dumps(event | payload).encode() + b"\n")
            output_reader.outcome(FAILED, 1)

    in_time(read)
