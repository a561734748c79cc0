"""A night as text: a strip of each agent, what happened when, and what it came to."""

from collections.abc import Sequence
from dataclasses import dataclass

from claudomator_py.domain.limits import TRIED_FIRST, Bucket
from claudomator_py.domain.units import SECOND_MS
from tests.nights.records import HoldRow, Records, Span

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, at epoch milliseconds."""

    at: int
    text: str


def strips(records: Records, night: Span, daemon: Sequence[Span]) -> list[str]:
    """Each agent's runs over the night, a character a slice: their number, ``-`` while held, ``.`` idle.

    daemon: its lives; ``x`` where there was none.
    """
    size = max(1, -(-night.length // WIDTH))
    slices = [Span(begin, begin + size) for begin in range(night.begin, night.end, size)]
    width = max(len(name) for name in (*records.agents, "daemon"))
    lines = [f"{'':{width}}  one character is {size / SECOND_MS:.1f} s"]
    for name in records.agents:
        spans = [records.span(run) for run in records.runs if run.agent == name and run.state != "revoked"]
        held = [hold.span(records.ended) for hold in records.holds if _stops(records, hold, name)]
        marks = (_mark(span, spans, held) for span in slices)
        lines.append(f"{name:{width}}  {''.join(marks)}")
    alive = ("x" if sum(life.within(span).length for life in daemon) < size / 2 else "=" for span in slices)
    lines.append(f"{'daemon':{width}}  {''.join(alive)}")
    return lines


def moments(records: Records) -> list[Moment]:
    """What the rows tell: limits, their ends, and the probes."""
    moments: list[Moment] = []
    for holds in _together(records):
        hold = max(holds, key=lambda hold: hold.span(records.ended).end)
        span, whose = hold.span(records.ended), hold.bucket.label
        until = "until released" if hold.until is None else f"for {(hold.until - hold.created) / SECOND_MS:.1f} s"
        met = {run.id for hold in holds for run in records.met(hold)}
        by = ", ".join(records.name(run) for run in records.runs if run.id in met)
        moments.append(Moment(span.begin, f"{whose} held {until} ({hold.reason}, {hold.provenance}), met by {by}"))
        care = hold.care(records.ended)
        probe = next((run for run in records.runs if hold.is_on(run) and care.begin <= run.started_ms < care.end), None)
        if hold.until is not None and hold.reason in TRIED_FIRST and probe is not None:
            how = (
                "answered"
                if probe.answered_ms
                else f"{probe.reason} again"
                if probe.reason == hold.reason
                else "failed"
            )
            late = probe.started_ms - hold.until
            moments.append(
                Moment(probe.started_ms, f"{whose} tried {late} ms after its reset by {records.name(probe)}: {how}")
            )
    return moments


def _together(records: Records) -> list[list[HoldRow]]:
    """Runs that were under way together meet one limit, each with a hold."""
    holdses: list[list[HoldRow]] = []
    latest: dict[tuple[Bucket, str | None], list[HoldRow]] = {}
    for hold in records.holds:
        others = latest.get((hold.bucket, hold.reason))
        if others is not None and any(hold.created < entry.span(records.ended).end for entry in others):
            others.append(hold)
            continue
        latest[hold.bucket, hold.reason] = [hold]
        holdses.append(latest[hold.bucket, hold.reason])
    return holdses


def timeline(all_moments: Sequence[Moment], night: Span) -> list[str]:
    """In order, with seconds since the night began."""
    ordered = sorted(all_moments, key=lambda moment: moment.at)
    return [f"{(moment.at - night.begin) / SECOND_MS:+7.1f} s  {moment.text}" for moment in ordered]


def _mark(entry: Span, spans: Sequence[Span], held: Sequence[Span]) -> str:
    busy = sum(span.within(entry).length for span in spans)
    count = round(busy / entry.length)
    if count:
        return str(min(count, 9))
    return "-" if sum(span.within(entry).length for span in held) > entry.length / 2 else "."


def _stops(records: Records, hold: HoldRow, agent: str) -> bool:
    return any(agent_spec.name == agent for agent_spec in records.drawing(hold))
