"""What each limit of a night cost: reckoned from the rows alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from claudomator_py.domain.limits import Bucket
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.store.tables import Run
from tests.nights.records import HoldRow, Records, Span


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a task was kept from going on, in milliseconds. task: its name."""

    task: str
    length: int


@dataclass
class Limit:
    """One limit, from the first hold that it put on its bucket until the last one of it was over.

    met: the runs that met it; in_vain: those of them that began after it was known. waited: the tasks that went on
    there afterwards. elsewhere: those that went on on another account meanwhile. bound: tasks that were ready and could
    go nowhere else. empty: slot-milliseconds of its agents that nobody used though tasks were queued; saved: those that
    tasks which had met it spent on other agents meanwhile.
    """

    bucket: Bucket
    reason: Reason
    holds: list[HoldRow]
    span: Span
    met: list[Run] = field(default_factory=list)
    in_vain: int = 0
    waited: list[Wait] = field(default_factory=list)
    elsewhere: list[Wait] = field(default_factory=list)
    bound: list[Wait] = field(default_factory=list)
    empty: int = 0
    saved: int = 0

    @property
    def provenance(self) -> str:
        """How its end was known, in the order in which it was."""
        return ", ".join(dict.fromkeys(hold.provenance for hold in self.holds))


def limits(records: Records) -> list[Limit]:
    """All of them, in order."""
    limits = [_limit(records, bucket, reason, holds) for bucket, reason, holds in _chains(records)]
    return sorted(limits, key=lambda limit: limit.span.begin)


def _chains(records: Records) -> Iterator[tuple[Bucket, Reason, list[HoldRow]]]:
    """The holds of one limit: each was met before the one before it was closed."""
    open_: dict[tuple[Bucket, Reason], list[HoldRow]] = {}
    for hold in records.holds:
        if hold.reason is None:
            continue
        key = hold.bucket, Reason(hold.reason)
        chain = open_.get(key)
        if chain and hold.created <= max(_closed(hold, records.ended) for hold in chain):
            chain.append(hold)
            continue
        if chain:
            yield *key, chain
        open_[key] = [hold]
    for key, chain in open_.items():
        yield *key, chain


def _closed(hold: HoldRow, now: int) -> int:
    return now if hold.released is None else hold.released


def _limit(records: Records, bucket: Bucket, reason: Reason, holds: list[HoldRow]) -> Limit:
    spans = [hold.span(records.ended) for hold in holds]
    span = Span(min(span.begin for span in spans), max(span.end for span in spans))
    limit = Limit(bucket, reason, holds, span)
    by = {run.id for hold in holds for run in records.met(hold)}
    limit.met = [run for run in records.runs if run.id in by]
    known = min((records.span(run).end for run in limit.met), default=span.begin)
    limit.in_vain = sum(run.started_ms > known for run in limit.met)
    for run in limit.met:
        _follow(records, limit, run)
    drawing = {agent.name for agent in records.drawing(holds[0])}
    for task_id, spec in records.specs.items():
        if spec.agent.strict and spec.agent.type in drawing:
            length = sum(queued.within(span).length for queued in records.queued.get(task_id, ()))
            if length:
                limit.bound.append(Wait(spec.name, length))
    limit.empty = _empty(records, limit, sum(agent.max_concurrent for agent in records.drawing(holds[0])))
    return limit


def _follow(records: Records, limit: Limit, run: Run) -> None:
    """Where the task of a run that met it went on."""
    ended = records.span(run).end
    later = [other for other in records.runs_of(run.task_id) if other.seq > run.seq and other.state != "revoked"]
    if not later:
        return
    wait = Wait(records.name(run), later[0].started_ms - ended)
    if limit.holds[0].is_on(later[0]):
        limit.waited.append(wait)
    elif later[0].started_ms < limit.span.end:
        limit.elsewhere.append(wait)
        limit.saved += sum(
            records.span(other).within(limit.span).length for other in later if not limit.holds[0].is_on(other)
        )


def _empty(records: Records, limit: Limit, slots: int) -> int:
    """Where a task was queued, how many of the slots that the limit shut could have been used."""
    edges = {limit.span.begin, limit.span.end}
    queued = [span.within(limit.span) for spans in records.queued.values() for span in spans]
    live = [(run, records.span(run).within(limit.span)) for run in records.runs]
    for span in (*queued, *(span for _, span in live)):
        if span.length:
            edges |= {span.begin, span.end}
    lost = 0
    times = sorted(edges)
    for begin, end in pairwise(times):
        waiting = sum(span.begin <= begin < span.end for span in queued)
        running = [run for run, span in live if span.begin <= begin < span.end]
        here = sum(limit.holds[0].is_on(run) for run in running)
        lost += (end - begin) * max(0, min(waiting, slots - here, records.total - len(running)))
    return lost


def told(limit: Limit, began: int) -> list[str]:
    """In words, below each other. began: of the night."""
    held = Span(limit.span.begin - began, limit.span.end - began)
    how, holds = f"{limit.reason} ({limit.provenance})", _many(len(limit.holds), "hold")
    lines = [f"{limit.bucket.label}: {how}, held from {_s(held.begin)} to {_s(held.end)}, {_s(held.length)} in {holds}"]
    lines.append(f"  met by {_many(len(limit.met), 'run')}, {limit.in_vain} of them after it was known")
    if limit.elsewhere:
        lines.append(f"  went on elsewhere: {_waits(limit.elsewhere)}; {_s(limit.saved)} of work that did not wait")
    if limit.waited:
        lines.append(f"  went on there afterwards: {_waits(limit.waited)}")
    if limit.bound:
        lines.append(f"  could go nowhere else: {_waits(limit.bound)}")
    lines.append(f"  slots empty though tasks were queued: {_s(limit.empty)}")
    return lines


def _waits(waits: Sequence[Wait]) -> str:
    lengths = sorted(wait.length for wait in waits)
    tasks = _many(len({wait.task for wait in waits}), "task")
    return f"{tasks}, after {_s(lengths[len(lengths) // 2])} (most {_s(lengths[-1])})"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _s(milliseconds: int) -> str:
    return f"{milliseconds / SECOND_MS:.1f} s"
