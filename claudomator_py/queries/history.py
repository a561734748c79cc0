"""What became of a task so far, in sentences: run after run, the newest first, and what began each generation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Connection

from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.text import clause
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.wording import instant_text
from claudomator_py.queries.explain import (
    ENDED_HOW,
    check_sentences,
    clock_text,
    decision_sentences,
    run_sentence,
)
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.store import dependency_rows, schedule_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Decision, Event, Run, Task
from claudomator_py.tasks.runs import NOTE_OF

LEAST_FOLDED = 3
"""So many runs in a row with the same end are summed up in one sentence."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A run with its number among all of the task's, and the decision to start it, where that is kept.

    note_of: the run from which it got a note, if it got one.
    """

    number: int
    run: Run
    decision: Decision | None
    note_of: str | None


def history_sentences(
    runs: Sequence[Run], decisions: Mapping[str, Decision], events: Sequence[Event], now_ms: int
) -> list[str]:
    """Every run, the newest first. runs: oldest first. decisions: by run. events: the task's, in order.

    Runs in a row that ended alike are told about in one sentence, except for the newest of all.
    """
    noted = {event.run_id: str(event.data[NOTE_OF]) for event in events if NOTE_OF in event.data}
    told = [_Told(number, run, decisions.get(run.id), noted.get(run.id)) for number, run in enumerate(runs, 1)][::-1]
    begun = _beginnings(events, now_ms)
    sentences: list[str] = []
    for generation, group in groupby(told, key=lambda one: one.run.generation):
        of_it = list(group)
        if told[0] is of_it[0]:
            sentences += _one(of_it.pop(0), now_ms)
        for _, alike in groupby(of_it, key=lambda one: _end_of(one.run)):
            sentences += _several(list(alike), now_ms)
        sentences += [begun.pop(generation)] if generation in begun else []
    # A generation of which nothing has run yet comes before all others.
    return [*(begun[generation] for generation in sorted(begun, reverse=True)), *sentences]


def _several(alike: Sequence[_Told], now_ms: int) -> list[str]:
    if len(alike) < LEAST_FOLDED:
        return [sentence for one in alike for sentence in _one(one, now_ms)]
    last, first = alike[0], alike[-1]
    agents = ", ".join(dict.fromkeys(one.run.agent for one in reversed(alike)))
    since, upto = (clock_text(one.run.started_ms, now_ms) for one in (first, last))
    return [f"Runs {first.number} to {last.number} on {agents} {_how(last.run)}, {since} to {upto}."]


def _one(one: _Told, now_ms: int) -> list[str]:
    run, decision = one.run, one.decision
    sentences, record = list[str](), None
    if decision is not None:
        record = readable(DecisionRecord, decision.data)
    if decision is not None and record is not None:
        sentences = decision_sentences(record, one.number, decision.at_ms, now_ms)
    return [*sentences, run_sentence(run, one.number, now_ms, one.note_of), *check_sentences(run, now_ms)]


def _end_of(run: Run) -> tuple[str, ...]:
    """What runs that ended alike have in common; a run that has not ended is like no other."""
    if run.outcome is None:
        return (run.state, "" if run.state == "revoked" else run.id)
    outcome = readable(Outcome, run.outcome)
    if outcome is None:
        return (run.state, run.id)
    # What a provider says of a limit differs from run to run, by the time that it names.
    said = "" if outcome.status is OutcomeStatus.LIMITED else clause(outcome.error or "")
    return (outcome.status.value, str(outcome.reason), said)


def _how(run: Run) -> str:
    if run.outcome is None:
        return "were given up before they started"
    outcome = readable(Outcome, run.outcome)
    if outcome is None:
        return "ended"
    if outcome.status is OutcomeStatus.LIMITED:
        return "met the limit"
    said = clause(outcome.error or "")
    reason = f" ({outcome.reason}{f': {said}' if said else ''})" if outcome.reason is not None else ""
    how = ENDED_HOW[outcome.status]
    return f"{how.replace('was ', 'were ', 1)}{reason}"


def _beginnings(events: Sequence[Event], now_ms: int) -> dict[int, str]:
    """What began each generation after the first, by its number."""
    begun: dict[int, str] = {}
    for event in events:
        generation = event.data.get("generation")
        if event.kind != "state" or event.data.get("event") != "Renewed" or not isinstance(generation, int):
            continue
        if generation > 1 and generation not in begun:
            at = clock_text(event.at_ms, now_ms)
            begun[generation] = f"It began again at {at} (restart {generation - 1}): {_cause(event)}."
    return begun


def _cause(event: Event) -> str:
    restart, revived_by = event.data.get("restart"), event.data.get("revived_by")
    if revived_by is not None:
        return f"{revived_by}, which it depends on, began again"
    if not isinstance(restart, dict):
        return "its content had changed"
    pinned = [f"{name} {restart[name]}" for name in ("agent", "tier", "model") if restart.get(name)]
    budget = restart.get("budget") or {}
    pinned += [f"a budget of {amount} {unit}" for unit, amount in budget.items() if amount is not None]
    pinned += ["force, which cancelled its run"] if restart.get("force") else []
    with_these = f" with {', '.join(pinned)}" if pinned else ""
    resumed = ", to continue its conversation" if restart.get("resume") else ""
    why = f": {' '.join(restart['reason'].split()).rstrip('.')}" if restart.get("reason") else ""
    who = "an operator" if event.by in (None, OPERATOR.id) else event.by
    return f"{who} restarted it{with_these}{resumed}{why}"


def schedule_sentences(connection: Connection, task: Task) -> list[str]:
    """What schedules have to do with the task."""
    sentences = []
    found = schedule_rows.fire_of(connection, task.id)
    if found is not None:
        fire, schedule = found
        when = (
            "at an operator's request" if fire.by == "operator" else f"due {instant_text(format_instant(fire.due_ms))}"
        )
        sentences.append(f"It was made by the schedule {schedule.name}, {when} ({schedule.cron}, {schedule.timezone}).")
    if task.state == "WAITING":
        for name, bound_id, _ in dependency_rows.bound(connection, task.id):
            if bound_id is None and schedule_rows.named(connection, name, task.organisation) is not None:
                sentences.append(
                    f"{name} is a schedule: its tasks are named {name}.TIME, and none of them ends the wait."
                )
    return sentences
