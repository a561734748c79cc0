"""Explaining: from rows and decisions to sentences that a person reads."""

from collections.abc import Sequence

from claudomator_py.core.outcome import REASON_POLICIES, Outcome, OutcomeStatus, Reason
from claudomator_py.core.schedule import DependencyState
from claudomator_py.core.units import format_duration, format_instant
from claudomator_py.routing.decision import Candidate, DecisionRecord
from claudomator_py.store.tables import Run, Task

_DETAIL = 300


def waiting_text(task: Task, dependencies: Sequence[DependencyState], now_ms: int) -> str:
    """Why the task is not ready."""
    match task.reason:
        case "dependency":
            parts = [_dependency(state) for state in dependencies if state.state != "COMPLETED"]
            return f"waits for {', '.join(parts)}" if parts else "waits for its dependencies"
        case "time":
            return f"not before {_at(task.until_ms, now_ms)}"
        case "backoff":
            return f"tries again at {_at(task.until_ms, now_ms)}, after a failure"
        case _:
            return f"waits: {task.reason}"


def failure_text(reason: str, outcome: Outcome | None) -> str:
    """Why the task failed: what the code means, and the error in the agent's own words."""
    meaning = REASON_POLICIES[Reason(reason)].meaning
    detail = outcome.detail if outcome is not None and outcome.reason == reason else None
    return f"{meaning} {_short(detail)}" if detail else meaning


def decision_sentences(record: DecisionRecord, run: Run | None) -> list[str]:
    """Why a run was started where it was."""
    which = f"Attempt {run.attempt}" if run is not None else "The run"
    sentences = [f"{which} went to {record.agent}: {record.reason}."]
    if record.overridden_hint is not None:
        sentences.append(f"The task's own wish was overridden: {record.overridden_hint}.")
    if record.fallback is not None:
        sentences.append(f"{record.fallback[0].upper()}{record.fallback[1:]}.")
    others = [candidate for candidate in record.candidates if candidate.agent != record.agent]
    chosen = next((candidate for candidate in record.candidates if candidate.agent == record.agent), None)
    if chosen is not None:
        sentences.append(f"{record.agent} had {chosen.active} of {chosen.max_concurrent} slots in use.")
    sentences += [_rejected(candidate) for candidate in others if candidate.eligible]
    cause = f" ({record.classification.cause})" if record.classification.cause else ""
    model = f", which is {record.model} there" if record.model else ", and the agent's own default model"
    sentences.append(f"Tier {record.tier}: {record.classification.source}{cause}{model}.")
    return sentences


def run_sentence(run: Run, now_ms: int) -> str:
    """How one run went."""
    where = f"Attempt {run.attempt} on {run.agent}"
    if run.state == "revoked":
        return f"{where} was given up before it started; it cost nothing."
    if run.live or run.ended_ms is None:
        return f"{where} is {run.state}, for {_since(run.started_ms, now_ms)} now."
    took = format_duration((run.ended_ms - run.started_ms) // 1000 * 1000)
    if run.outcome is None:
        return f"{where} ended after {took}."
    outcome = Outcome.model_validate(run.outcome)
    if outcome.status is OutcomeStatus.SUCCEEDED:
        return f"{where} succeeded after {took}."
    detail = f" {_short(outcome.detail)}" if outcome.detail else ""
    reset = ""
    if outcome.reset_at is not None:
        reset = f" It resets at {format_instant(outcome.reset_at)} ({outcome.provenance})."
    how = outcome.status.value.replace("_", " ")
    reason = f" ({outcome.reason})" if outcome.reason not in (None, outcome.status.value) else ""
    return f"{where} {how}{reason} after {took}.{reset}{detail}"


def _dependency(state: DependencyState) -> str:
    if state.state is None:
        return f"{state.name} (no task of that name was seen yet)"
    return f"{state.name} ({state.state})"


def _rejected(candidate: Candidate) -> str:
    return f"{candidate.agent} {candidate.rejected_because or 'was not picked'}."


def _at(until_ms: int | None, now_ms: int) -> str:
    if until_ms is None:
        return "a time that is not known"
    return f"{format_instant(until_ms)} (in {_since(now_ms, until_ms)})"


def _since(start_ms: int, end_ms: int) -> str:
    return format_duration(max(0, end_ms - start_ms) // 1000 * 1000)


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _DETAIL else f"{line[: _DETAIL - 3]}..."
