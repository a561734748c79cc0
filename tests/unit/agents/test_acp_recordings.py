"""What sixteen real agents said over ACP, reduced to what is read of it: no success that was none, no time made up.

``tests/data/acp`` has a turn a line: what the agent sent and wrote into its journal, how its prompt was answered, and
what in truth became of it (the answer of the fake service behind it, or that it was cancelled or cut off).
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.acp.events import AcpEvents
from claudomator_py.agents.acp.profiles import GENERIC, profiles
from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.acp_client.journal import Journal
from claudomator_py.agents.acp_client.turn import Turn, failure_of, stop_of
from claudomator_py.agents.client_output import Output
from claudomator_py.agents.event_reader import EventReader
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_771_000_000
DATA = Path(__file__).parents[2] / "data" / "acp"
TURNS = [
    (path.stem, json.loads(line)) for path in sorted(DATA.glob("*.jsonl")) for line in path.read_bytes().splitlines()
]
OF_AGENTS = [pytest.param(agent, turn, id=f"{agent}-{turn['case']}-{turn['turn']}") for agent, turn in TURNS]
OUTAGES = (Reason.OVERLOADED, Reason.NETWORK)
TIMES = {
    "codex-quota": "it says 7:02 AM",
    "copilot-e429_long": "in 3600s",
    "gemini-e429_long": "after 3600s",
    "kimi-code_e429": "in 40 minutes",
}
"""The only ones that say when a limit will be over."""
BANNERS = ("pi-", "hermes-empty")
"""What their programs say by themselves cannot be told from an answer by who does not know them."""
JOURNALS = [entry.id for entry, (_, turn) in zip(OF_AGENTS, TURNS, strict=True) if "wrote" in turn]
"""What became of these stands in their journals alone, which only who knows the agent can read."""


def judged(agent: str, recorded: dict[str, Any]) -> Outcome:
    """What the reader makes of the turn, heard by the client."""
    profile = profiles()[agent]
    order = TurnOrder(
        ("agent",),
        usage=profile.usage,
        noise=profile.noise,
        kinds=profile.kinds,
        given_as_text=profile.given_as_text,
    )
    printed = io.BytesIO()
    output = Output(printed)
    turn = Turn(order, output)
    for heard in recorded["heard"]:
        if "update" in heard:
            turn.take(heard["update"])
        elif "ask" in heard:
            turn.decide(heard["ask"])
        elif "tell" in heard:
            turn.take_notification(heard["tell"], heard["params"])
    journal = Journal(profile.journal, "") if profile.journal else None
    if journal is not None:
        for line in recorded.get("wrote", ()):
            journal.take(line)
        turn.usage.take_journal(journal)
        if journal.retry is not None:
            turn.asks_again(*journal.retry)
    end = recorded["end"]
    if recorded["cancelled"]:
        output.event("end", outcome="silent", error="nothing came", **turn.facts())
    elif end is None:
        output.event("end", outcome="gone", error="it ended", **turn.facts())
    elif (error := end.get("error") or failure_of(end["result"], journal)) is not None:
        payload = {"error": error["message"], "code": error.get("code"), "data": error.get("data")}
        output.event("end", outcome="refused", **payload, **turn.facts())
    else:
        result = end["result"]
        output.event("end", outcome="answered", stop_reason=stop_of(result, journal), **turn.facts(result))
    reader = EventReader(AcpEvents(profile=agent, zone="America/New_York"))
    reader.feed("stdout", printed.getvalue())
    return reader.outcome(ExitRecord(0, None, NOW_MS - 1_000, NOW_MS), NOW_MS)


def test_there_are_recordings_of_every_agent_that_was_tried() -> None:
    assert {agent for agent, _ in TURNS} == {name for name, profile in profiles().items() if profile.tried}


@pytest.mark.parametrize(("agent", "turn"), OF_AGENTS)
def test_only_what_succeeded_is_a_success(agent: str, turn: dict[str, Any]) -> None:
    outcome = judged(agent, turn)
    what = f"{agent}-{turn['case']}"
    if turn["truth"] != "answered":
        assert outcome.status is not OutcomeStatus.SUCCEEDED, outcome
        assert outcome.text is None
    match turn["truth"]:
        case "answered" if outcome.denials == 0:
            again = what == "vibe-e401"  # it refuses what comes after a refused key, without asking
            assert outcome.status is OutcomeStatus.SUCCEEDED or again, outcome
        case "answered":
            assert outcome.status is OutcomeStatus.SUCCEEDED or outcome.reason is Reason.PERMISSION_DENIED, outcome
        case "limit" if not profiles()[agent].mute or turn.get("wrote"):
            assert outcome.reason in (Reason.RATE_LIMITED, Reason.NO_CREDIT), outcome
        case "limit" | "silent" | "silent_limit":
            assert outcome.reason in (Reason.RATE_LIMITED, *OUTAGES), outcome
        case "outage":
            assert outcome.reason in OUTAGES, outcome
        case "key":
            assert outcome.reason is Reason.AUTH or (profiles()[agent].mute and not turn.get("wrote")), outcome
    if outcome.reset_at is not None:
        assert what in TIMES
        assert outcome.provenance is Provenance.REPORTED
        assert 0 < outcome.reset_at - NOW_MS <= 24 * 3_600_000


@pytest.mark.parametrize(
    ("agent", "turn"),
    [entry for entry in OF_AGENTS if not str(entry.id).startswith(BANNERS) and entry.id not in JOURNALS],
)
def test_who_does_not_know_the_agent_takes_nothing_for_a_success_either(agent: str, turn: dict[str, Any]) -> None:
    outcome = judged(GENERIC, turn)
    if turn["truth"] != "answered":
        assert outcome.status is not OutcomeStatus.SUCCEEDED, outcome
    if outcome.reset_at is not None:
        assert f"{agent}-{turn['case']}" in TIMES
