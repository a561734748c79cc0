"""``why``: the explanation of where a task is, in words, and the agents as the decision saw them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, out, out_json
from claudomator_py.cli.show import TaskArgument
from claudomator_py.cli.table import Column, heading, render
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.domain.text import plain
from claudomator_py.domain.views import CandidateView, DecisionView, EventView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_CANDIDATES = (
    Column("AGENT"),
    Column("SLOTS", right=True),
    Column("LIMITED"),
    Column("VERDICT", flexible=True),
)
_EVENTS = (Column("WHEN"), Column("WHAT"), Column("RUN", wide=True), Column("DATA", flexible=True, wide=True))


@connected
def why(client: "Client", task: TaskArgument, output: FormatOption = Format.TABLE) -> None:
    """Explain why a task is where it is."""
    found = client.why(task)
    if output is Format.JSON:
        out_json(found)
        return
    wide = output is Format.WIDE
    parts = ["\n".join(plain(sentence) for sentence in found.sentences)]
    for decision in found.decisions if wide else found.decisions[:1]:
        if decision.candidates:
            title = f"AGENTS AT THE DECISION, {ago(decision.at, now_ms())}"
            parts.append(f"{heading(title)}\n{_candidates_table(decision, wide=wide)}")
    if wide and found.events:
        parts.append(f"{heading('EVENTS')}\n{_events_table(found.events)}")
    out("\n\n".join(parts))


def _candidates_table(decision: DecisionView, *, wide: bool) -> str:
    rows = [
        (
            candidate.agent,
            f"{candidate.active}/{candidate.max_concurrent}",
            _limited(candidate),
            _verdict(candidate, decision),
        )
        for candidate in decision.candidates
    ]
    return render(_CANDIDATES, rows, wide=wide)


def _limited(candidate: CandidateView) -> str:
    if not candidate.limited:
        return "no"
    return until(candidate.limited_until, now_ms()) or "until released"


def _verdict(candidate: CandidateView, decision: DecisionView) -> str:
    if candidate.agent == decision.agent:
        return f"picked: {decision.reason}"
    return candidate.rejected_because or ("eligible" if candidate.eligible else "not eligible")


def _events_table(events: Sequence[EventView]) -> str:
    rows = [
        (event.at, event.kind, event.run_id or "", ", ".join(f"{key}={value}" for key, value in event.data.items()))
        for event in events
    ]
    return render(_EVENTS, rows, wide=True)
