"""What the agent CLIs wrote, recorded, is read to the right outcome. Claude Code's has a table of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.run import ExitRecord, LaunchRequest, Stream
from claudomator_py.domain.task import TaskSpec

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
KINDS = sorted(kind for kind in AGENT_KINDS if (RECORDINGS / kind / "expected.json").exists() and kind != "claude")
EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    kind: json.loads((RECORDINGS / kind / "expected.json").read_text()) for kind in KINDS
}
CASES = [(kind, case) for kind in KINDS for case in EXPECTED[kind]]
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
# All of them were made within these minutes, 21 November 2026, some time after half past three in New York.
ENDED_MS = 1_795_293_600_000


def read(kind: str, case: str, piece: int | None = None) -> Outcome:
    agent = AgentSpec(name=kind, kind=kind, env={"TZ": "America/New_York"})
    task = TaskSpec(name="t", instructions="Do the task")
    reader = AGENT_KINDS[kind].reader(LaunchRequest("run", agent, task, "Do the task", None, "id"))
    for stream in STREAMS:
        path = RECORDINGS / kind / f"{case}.{stream}"
        data = path.read_bytes() if path.exists() else b""
        size = piece or max(1, len(data))
        for start in range(0, len(data), size):
            reader.feed(stream, data[start : start + size])
    exit_code = EXPECTED[kind][case]["exit_code"]
    return reader.outcome(ExitRecord(exit_code, None, ENDED_MS - 1000, ENDED_MS), ENDED_MS)


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_a_recorded_run_is_read(kind: str, case: str) -> None:
    expected = EXPECTED[kind][case]
    outcome = read(kind, case)

    assert outcome.status == expected["status"], outcome
    assert outcome.reason == expected.get("reason"), outcome
    assert outcome.reset_at == expected.get("reset_at")
    assert outcome.provenance == expected.get("provenance")
    assert outcome.limit == expected.get("limit")
    assert outcome.conversation_id == expected.get("conversation_id")
    assert outcome.text == expected.get("text")
    assert [outcome.tokens.input, outcome.tokens.output] == expected.get("tokens", [None, None])
    assert outcome.cost_usd == expected.get("cost_usd")
    assert (outcome.detail or "").startswith(expected.get("detail", ""))
    assert bool(outcome.detail) == ("detail" in expected)


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_pieces_change_nothing(kind: str, case: str) -> None:
    assert read(kind, case, piece=7) == read(kind, case)


@pytest.mark.parametrize("kind", KINDS)
def test_every_recording_is_in_the_table(kind: str) -> None:
    folder = RECORDINGS / kind
    cases = {f"{path.parent.name}/{path.name.removesuffix(path.suffix)}" for path in folder.glob("*/*.std*")}
    assert cases <= EXPECTED[kind].keys()
