"""What a run has used so far, as its CLI says it on the way: read from whatever has come, in whatever pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.claude.events import ClaudeEvents
from claudomator_py.agents.codex.events import CodexEvents
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.agents.gemini.events import GeminiEvents
from claudomator_py.agents.opencode.events import OpencodeEvents
from claudomator_py.agents.simulated.kind import SimulatedEvents
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import OutcomeStatus, Tokens
from claudomator_py.domain.report import Used
from claudomator_py.domain.run import ExitRecord
from claudomator_py.ports import OutputReader

NOW_MS = 1_795_293_400_000
RESETS_S = NOW_MS // 1000 + 3600
KILLED = ExitRecord(-9, "cancel", NOW_MS - 60_000, NOW_MS)


def fed(reader: OutputReader, *events: object) -> OutputReader:
    for event in events:
        reader.feed("stdout", json.dumps(event).encode() + b"\n")
    return reader


def message(message_id: str, output: int, **usage: int) -> dict[str, object]:
    given = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": output, **usage}
    return {"type": "assistant", "message": {"id": message_id, "model": "sonnet", "content": [], "usage": given}}


def test_claude_says_with_every_message_what_it_used_and_says_a_message_several_times() -> None:
    reader = EventReader(ClaudeEvents())
    assert fed(reader).used == Used()
    fed(reader, message("m1", 1), message("m1", 1), message("m2", 7), message("m1", 20))
    assert reader.used.tokens == Tokens(input=200, output=27)
    assert reader.used.cost_usd is None, "of dollars it speaks at its end only"
    synthetic = {"type": "assistant", "message": {"id": "x", "model": "<synthetic>", "usage": {"output_tokens": 9}}}
    assert fed(reader, synthetic).used.tokens == Tokens(input=200, output=27)
    outcome = reader.outcome(KILLED, NOW_MS)
    assert (outcome.status, outcome.tokens) == (OutcomeStatus.CANCELLED, Tokens(input=200, output=27))


def test_claude_says_what_of_each_window_is_used() -> None:
    windows = {
        "five_hour": {"utilization": 0.42, "resetsAt": RESETS_S},
        "seven_day_opus": {"utilization": 0.9, "resetsAt": RESETS_S},
    }
    newer = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "unifiedWindows": windows}}
    warned = {"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.8, "resetsAt": RESETS_S}
    reader = EventReader(ClaudeEvents())
    fed(reader, newer)
    assert reader.used.windows == {
        "five_hour": WindowUse(used=0.42, resets_at=RESETS_S * 1000),
        "seven_day_opus": WindowUse(used=0.9, resets_at=RESETS_S * 1000, family="opus"),
    }
    fed(reader, {"type": "rate_limit_event", "rate_limit_info": warned})
    assert reader.used.windows["five_hour"].used == 0.8, "an older version tells of one"
    assert reader.used.windows["seven_day_opus"].used == 0.9, "and says nothing against the others"
    assert reader.outcome(KILLED, NOW_MS).windows == reader.used.windows


@pytest.mark.parametrize("odd", [{"unifiedWindows": 5}, {"unifiedWindows": {"a": 1}}, {"rateLimitType": "five_hour"}])
def test_a_report_that_is_not_understood_says_nothing(odd: dict[str, object]) -> None:
    assert fed(EventReader(ClaudeEvents()), {"type": "rate_limit_event", "rate_limit_info": odd}).used.windows == {}


def test_opencode_says_with_every_step_what_it_used() -> None:
    tokens = {"input": 100, "output": 20, "cache": {"read": 5, "write": 0}}
    step = {"type": "step_finish", "part": {"reason": "tool-calls", "tokens": tokens, "cost": 0.01}}
    used = fed(EventReader(OpencodeEvents()), step, step).used
    assert (used.tokens, used.cost_usd) == (Tokens(input=210, output=40), 0.02)


def test_a_simulated_agent_spends_while_it_works() -> None:
    reader = EventReader(SimulatedEvents())
    progress = {"type": "progress", "tokens": {"input": 50, "output": 5}, "cost_usd": 0.5}
    assert fed(reader, {"type": "start"}, progress).used == Used(Tokens(input=50, output=5), 0.5)
    assert reader.outcome(KILLED, NOW_MS).tokens == Tokens(input=50, output=5)
    end = {"type": "end", "outcome": "success", "tokens": {"input": 100, "output": 10}, "cost_usd": 1.0}
    assert fed(reader, end).used == Used(Tokens(input=100, output=10), 1.0)


def test_others_say_it_at_their_end() -> None:
    codex = {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 5}}
    assert fed(EventReader(CodexEvents()), {"type": "turn.started"}).used.tokens == Tokens()
    assert fed(EventReader(CodexEvents()), codex).used.tokens == Tokens(input=100, output=5)
    gemini = {"type": "result", "status": "success", "stats": {"input_tokens": 7, "output_tokens": 2}}
    assert fed(EventReader(GeminiEvents())).used == Used()
    assert fed(EventReader(GeminiEvents()), gemini).used.tokens == Tokens(input=7, output=2)


@pytest.mark.parametrize("kind", sorted(AGENT_KINDS))
@given(data=st.binary(max_size=200))
def test_any_bytes_can_be_asked_about(kind: str, data: bytes) -> None:
    reader = AGENT_KINDS[kind].reader()
    reader.feed("stdout", data)
    assert reader.used.cost_usd is None or reader.used.cost_usd >= 0
