"""Turns the rows of a task into its spans: decisions, waits, runs with their checks, and the task as a whole.

A span is made once its subject has ended through a change of the task's state. The same rows give the same spans, and
later events change none of them, except for the task's name and priority, which are the current ones. So spans can be
sent as events arrive, and again after a crash.
Spans contain codes, names, ids and numbers only, no text of a task, a person or an agent.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import OutcomeStatus
from claudomator_py.domain.run import CheckResult
from claudomator_py.domain.task import Priority
from claudomator_py.domain.trace import Attribute, Span, SpanLink, SpanName, check_span, own_span, part_span, task_span
from claudomator_py.domain.units import format_instant
from claudomator_py.scheduler.records import (
    RECORDS,
    DecisionKind,
    DecisionRecord,
    HandoffRecord,
    PolicyRecord,
    Record,
    TierRecord,
)
from claudomator_py.store.tables import Decision, Event, Run
from claudomator_py.store.trace_rows import TaskHistory

_WAITS = frozenset({"WAITING", "QUEUED", "NEEDS_INPUT"})
_WHILE_IT_RUNS = frozenset({"Started", "PhaseReached"})
_FAILED = frozenset({OutcomeStatus.FAILED.value, OutcomeStatus.LOST.value})
_CHECK_FAILED = frozenset({"failed", "lost"})
_ATTRIBUTES = (
    *("route", "specialist", "skill", "agent", "tier", "model", "effort", "verdict", "rules", "risk", "topic"),
    *("confidence", "threshold", "margin", "degraded", "required_capabilities", "by", "hop", "cost_usd", "latency_ms"),
)
"""Fields of a decision's record that its span carries, under the same names."""


def spans_of(history: TaskHistory, ended_by: Container[int] | None = None) -> list[Span]:
    """Return the spans that ended by one of these events; None: all ended spans."""

    def wanted(event: Event) -> bool:
        return ended_by is None or event.id in ended_by

    return [*_generations(history, wanted), *_waits(history, wanted), *_runs(history, wanted)]


def _generations(history: TaskHistory, wanted: Callable[[Event], bool]) -> Iterator[Span]:
    """One span per generation, and the decisions that belong to no run."""
    task, changes = history.task, history.changes
    numbers = list(dict.fromkeys(map(_generation, changes)))
    for number in numbers:
        of_it = [event for event in changes if _generation(event) == number]
        later = (event for event in changes if _generation(event) > number)
        end = next((event for event in of_it if event.data.get("state") in ENDED), None) or next(later, None)
        if end is None or not wanted(end):
            continue
        superseded = _generation(end) != number
        state = None if superseded else str(end.data["state"])
        reason = None if superseded else end.data.get("reason")
        runs = [run for run in history.runs if run.generation == number]
        name = task_span(task.id, number)
        yield Span(
            name=name,
            title="task",
            parent=None if number == 1 else task_span(task.id, 1),
            start_ms=task.created_ms if number == 1 else of_it[0].at_ms,
            end_ms=end.at_ms,
            attributes=_known(
                {
                    **_task(history, number),
                    "claudomator.task.state": state,
                    "claudomator.task.reason": reason,
                    "claudomator.task.superseded": superseded or None,
                    "claudomator.task.priority": Priority(task.priority).name.lower(),
                    "claudomator.task.source": task.source,
                    "claudomator.task.runs": len(runs),
                    "claudomator.organisation": task.organisation,
                    "error.type": reason if state == "FAILED" else None,
                }
            ),
            links=_link(history, task.parent_run, "subtask"),
            failed=state == "FAILED",
        )
        for decision in history.decisions:
            if decision.generation == number and decision.run_id is None:
                yield _decision(history, decision, name)


def _waits(history: TaskHistory, wanted: Callable[[Event], bool]) -> Iterator[Span]:
    """One span per state in which nothing ran, until the next state."""
    for event, following in pairwise(history.changes):
        state = str(event.data.get("state"))
        if state not in _WAITS or following.at_ms <= event.at_ms or not wanted(following):
            continue
        until, generation = event.data.get("until"), _generation(event)
        yield Span(
            name=part_span(history.task.id, history.task.id, f"wait/{event.id}"),
            title=state.lower(),
            parent=task_span(history.task.id, generation),
            start_ms=event.at_ms,
            end_ms=following.at_ms,
            attributes=_known(
                {
                    **_task(history, generation),
                    "claudomator.wait.state": state,
                    "claudomator.wait.reason": event.data.get("reason"),
                    "claudomator.wait.until": format_instant(until) if isinstance(until, int) else None,
                }
            ),
        )


def _runs(history: TaskHistory, wanted: Callable[[Event], bool]) -> Iterator[Span]:
    """Each run with its check and the decisions about it."""
    ends = _ends(history.changes)
    decisions = [decision for decision in history.decisions if decision.run_id is not None]
    handed_on = {
        decision.run_id
        for decision in decisions
        if decision.kind == DecisionKind.HANDOFF.value and decision.specialist is not None
    }
    before: Run | None = None
    for run in history.runs:
        follows, before = before, run
        if (end := ends.get(run.id)) is None or not wanted(end):
            continue
        parent = task_span(run.task_id, run.generation)
        of_run = [decision for decision in decisions if decision.run_id == run.id]
        links = _link(history, run.resumes, "resumes")
        if follows is not None and follows.id in handed_on and follows.generation == run.generation:
            links += (SpanLink(own_span(run.task_id, follows.id), "handoff"),)
        yield _run(history, run, end, links, next((record.id for record in of_run if record.kind == "placement"), None))
        if run.check_result is not None:
            yield _check(history, run, CheckResult.model_validate(run.check_result), end)
        for decision in of_run:
            yield _decision(history, decision, parent)


def _end_ms(started_ms: int, ended_ms: int | None, seen: Event) -> int:
    """When a part of a task ended: at the latest when that was recorded, as the whole may have ended then, whatever
    the supervisor's clock said a millisecond later."""
    return max(started_ms, min(ended_ms or seen.at_ms, seen.at_ms))


def _run(history: TaskHistory, run: Run, end: Event, links: tuple[SpanLink, ...], placement: str | None) -> Span:
    failed = run.ended_as in _FAILED
    return Span(
        name=own_span(run.task_id, run.id),
        title=f"invoke_agent {run.agent}",
        parent=task_span(run.task_id, run.generation),
        start_ms=run.started_ms,
        end_ms=_end_ms(run.started_ms, run.ended_ms, end),
        attributes=_known(
            {
                **_task(history, run.generation),
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": run.agent,
                "gen_ai.provider.name": AgentSpec(name=run.agent, kind=run.kind).info.provider or run.kind,
                "gen_ai.request.model": run.model,
                "gen_ai.conversation.id": run.conversation_id,
                "gen_ai.usage.input_tokens": run.input_tokens,
                "gen_ai.usage.output_tokens": run.output_tokens,
                "error.type": run.reason if failed else None,
                "claudomator.run.id": run.id,
                "claudomator.decision.id": placement,
                "claudomator.run.attempt": run.attempt,
                "claudomator.run.status": run.ended_as,
                "claudomator.run.reason": run.reason,
                "claudomator.run.exit_code": run.exit_code,
                "claudomator.run.cost_usd": run.cost_usd,
                "claudomator.run.tier": run.tier,
                "claudomator.run.specialist": run.specialist,
                "claudomator.run.skill": run.skill,
                "claudomator.agent.kind": run.kind,
                "claudomator.agent.account": run.account,
            }
        ),
        links=links,
        failed=failed,
        calls_agent=True,
    )


def _check(history: TaskHistory, run: Run, result: CheckResult, end: Event) -> Span:
    failed = result.status in _CHECK_FAILED
    return Span(
        name=check_span(run.task_id, run.id),
        title="check",
        parent=own_span(run.task_id, run.id),
        start_ms=result.started_ms,
        end_ms=_end_ms(result.started_ms, result.ended_ms, end),
        attributes=_known(
            {
                **_task(history, run.generation),
                "claudomator.run.id": run.id,
                "claudomator.check.status": result.status,
                "claudomator.check.step": result.step,
                "claudomator.check.exit_code": result.exit_code,
                "error.type": "check_failed" if failed else None,
            }
        ),
        failed=failed,
    )


def _decision(history: TaskHistory, decision: Decision, parent: SpanName) -> Span:
    record = RECORDS[DecisionKind(decision.kind)].model_validate(decision.data)
    return Span(
        name=own_span(history.task.id, decision.id),
        title=f"decide {decision.kind}",
        parent=parent,
        start_ms=decision.at_ms - (decision.latency_ms or 0),
        end_ms=decision.at_ms,
        attributes=_known(
            {
                **_task(history, decision.generation or 1),
                "claudomator.decision.id": decision.id,
                "claudomator.decision.kind": decision.kind,
                "claudomator.decision.by": decision.by,
                "claudomator.run.id": decision.run_id,
                **_recorded(record),
            }
        ),
    )


def _recorded(record: Record) -> Mapping[str, object]:
    data: dict[str, object] = {"claudomator.decision.reason": record.reason.code.value}
    data |= {f"claudomator.decision.{name}": getattr(record, name, None) for name in _ATTRIBUTES}
    if isinstance(record, TierRecord | DecisionRecord):
        data["claudomator.decision.tier_source"] = record.classification.source
        data["claudomator.decision.tier_cause"] = record.classification.cause
    if isinstance(record, DecisionRecord):
        data["claudomator.decision.rejected"] = tuple(
            f"{candidate.agent}: {candidate.rejected.code.value}"
            for candidate in record.candidates
            if candidate.rejected is not None
        )
    if isinstance(record, HandoffRecord):
        data["claudomator.decision.accepted"] = record.accepted
    if isinstance(record, PolicyRecord):
        data["claudomator.decision.approved_by"] = record.approved_by
    return data


def _task(history: TaskHistory, generation: int) -> dict[str, object]:
    """Attributes of every span of the task, so that spans can be found by any of them."""
    return {
        "claudomator.task.id": history.task.id,
        "claudomator.task.name": history.task.name,
        "claudomator.task.generation": generation,
    }


def _ends(changes: Sequence[Event]) -> Mapping[str | None, Event]:
    """The change of state that ended each run, by run id."""
    return {event.run_id: event for event in reversed(changes) if event.data.get("event") not in _WHILE_IT_RUNS}


def _generation(event: Event) -> int:
    return int(event.data.get("generation", 1))


def _link(history: TaskHistory, run_id: str | None, why: str) -> tuple[SpanLink, ...]:
    task_id = history.tasks_of_runs.get(run_id or "")
    return () if run_id is None or task_id is None else (SpanLink(own_span(task_id, run_id), why),)


def _known(attributes: Mapping[str, object]) -> dict[str, Attribute]:
    """The attributes that have a value, in types that OpenTelemetry supports."""
    return {name: _plain(value) for name, value in attributes.items() if value is not None and value != ()}


def _plain(value: object) -> Attribute:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return value if isinstance(value, str | bool | int | float) else str(value)
