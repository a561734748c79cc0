"""What the real CLI wrote, version by version, is read to the right outcome."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.claude.kind import Claude
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.run import ExitRecord, Stream

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings" / "claude"
EXPECTED: dict[str, dict[str, Any]] = json.loads((RECORDINGS / "expected.json").read_text())
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
# All of them were made within these minutes, 21 November 2026, some time after half past three in New York.
ENDED_MS = 1_795_293_400_000


def read(case: str, piece: int | None = None) -> Outcome:
    reader = Claude().reader()
    for stream in STREAMS:
        path = RECORDINGS / f"{case}.{stream}"
        data = path.read_bytes() if path.exists() else b""
        size = piece or max(1, len(data))
        for start in range(0, len(data), size):
            reader.feed(stream, data[start : start + size])
    return reader.outcome(ExitRecord(EXPECTED[case]["exit_code"], None, ENDED_MS - 1000, ENDED_MS), ENDED_MS)


@pytest.mark.parametrize("case", EXPECTED)
def test_a_recorded_run_is_read(case: str) -> None:
    expected = EXPECTED[case]
    outcome = read(case)

    assert outcome.status == expected["status"], outcome
    assert outcome.reason == expected.get("reason"), outcome
    assert outcome.reset_at == expected.get("reset_at")
    assert outcome.provenance == expected.get("provenance")
    assert outcome.limit == expected.get("limit")
    assert [outcome.tokens.input, outcome.tokens.output] == expected.get("tokens", [None, None])
    assert outcome.cost_usd == pytest.approx(expected.get("cost_usd"))
    assert outcome.text == expected.get("text")
    if "detail" in expected:
        assert (outcome.detail or "").startswith(expected["detail"])
    elif outcome.reason is not None:
        assert outcome.detail, "a failure says why in the agent's words"


@pytest.mark.parametrize("case", EXPECTED)
def test_pieces_change_nothing(case: str) -> None:
    assert read(case, piece=7) == read(case)


def test_every_recording_is_in_the_table() -> None:
    cases = {str(path.relative_to(RECORDINGS).with_suffix("")) for path in RECORDINGS.glob("*/*.std*")}
    assert cases <= EXPECTED.keys()
