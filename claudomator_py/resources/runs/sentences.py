"""A task's history in sentences: its runs, newest first, and what began each generation."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from claudomator_py.domain.errors import ended
from claudomator_py.domain.inputs import named
from claudomator_py.domain.limits import early_text, window_text
from claudomator_py.domain.outcome import CHECK_REASONS, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.run import CheckResult, CheckStatus
from claudomator_py.domain.units import format_instant, short_id
from claudomator_py.domain.wording import clock_text, instant_text, time_between
from claudomator_py.resources.decisions.sentences import decision_sentences
from claudomator_py.resources.runs import RunCheckView
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Decision, Event, Run
from claudomator_py.tasks.runs import NOTE_OF
from claudomator_py.texts import clause, cut_line
from claudomator_py.values import dataclass

MIN_ALIKE = 3
"""From this many consecutive runs with the same end on, a single sentence sums them up."""

_DETAIL = 1_000
ENDED_HOW = {
    OutcomeStatus.SUCCEEDED: "succeeded",
    OutcomeStatus.FAILED: "failed",
    OutcomeStatus.LIMITED: "met a limit",
    OutcomeStatus.NEEDS_INPUT: "ended with a question",
    OutcomeStatus.CANCELLED: "was cancelled",
    OutcomeStatus.LOST: "was lost",
}

_CHECKED: dict[CheckStatus, str] = {
    "running": "is running",
    "passed": "passed",
    "failed": "failed",
    "cancelled": "was cancelled",
    "lost": "was lost",
}


@dataclass(frozen=True, slots=True)
class _NumberedRun:
    """A run with its number within the task, and the decision to start it, if stored. note_of: the run whose note it
    got, if any."""

    number: int
    run: Run
    decision: Decision | None
    note_of: str | None


def history_sentences(
    runs: Sequence[Run], decisions: Mapping[str, Decision], events: Sequence[Event], now_ms: int
) -> list[str]:
    """Return sentences on all runs, newest first. Consecutive runs that ended alike share a sentence, except the newest
    run. runs: oldest first. decisions: by run id. events: the task's, in order."""
    noted = {event.run_id: str(event.data[NOTE_OF]) for event in events if NOTE_OF in event.data}
    numbered = [
        _NumberedRun(number, run, decisions.get(run.id), noted.get(run.id)) for number, run in enumerate(runs, 1)
    ][::-1]
    begun = _beginnings(events, now_ms)
    sentences: list[str] = []
    for generation, group in groupby(numbered, key=lambda each: each.run.generation):
        own = list(group)
        if numbered[0] is own[0]:
            sentences += _single(own.pop(0), now_ms)
        for _, alike in groupby(own, key=lambda each: _end_of(each.run)):
            sentences += _several(list(alike), now_ms)
        sentences += [begun.pop(generation)] if generation in begun else []
    # A generation without runs is the newest.
    return [*(begun[generation] for generation in sorted(begun, reverse=True)), *sentences]


def _several(alike: Sequence[_NumberedRun], now_ms: int) -> list[str]:
    if len(alike) < MIN_ALIKE:
        return [sentence for each in alike for sentence in _single(each, now_ms)]
    last, first = alike[0], alike[-1]
    agents = ", ".join(dict.fromkeys(each.run.agent for each in reversed(alike)))
    since, upto = (clock_text(each.run.started_ms, now_ms) for each in (first, last))
    return [f"Runs {first.number} to {last.number} on {agents} {_how(last.run)}, {since} to {upto}."]


def _single(numbered: _NumberedRun, now_ms: int) -> list[str]:
    run, decision = numbered.run, numbered.decision
    sentences: list[str] = []
    if decision is not None and (record := readable(DecisionRecord, decision.data)) is not None:
        sentences = decision_sentences(record, numbered.number, decision.at_ms, now_ms)
    return [*sentences, run_sentence(run, numbered.number, now_ms, numbered.note_of), *check_sentences(run, now_ms)]


def _end_of(run: Run) -> tuple[str, ...]:
    """Return a key that is equal for runs that ended alike, and unique for a run that has not ended."""
    if run.outcome is None:
        return (run.state, "" if run.state == "revoked" else run.id)
    outcome = readable(Outcome, run.outcome)
    if outcome is None:
        return (run.state, run.id)
    # Messages on limits differ from run to run, because they contain a time.
    error = "" if outcome.status is OutcomeStatus.LIMITED else clause(outcome.error or "")
    return (outcome.status.value, str(outcome.reason), error)


def _how(run: Run) -> str:
    if run.outcome is None:
        return "were given up before they started"
    outcome = readable(Outcome, run.outcome)
    if outcome is None:
        return "ended"
    if outcome.status is OutcomeStatus.LIMITED:
        return "met the limit"
    error = clause(outcome.error or "")
    reason = f" ({outcome.reason}{f': {error}' if error else ''})" if outcome.reason is not None else ""
    how = ENDED_HOW[outcome.status]
    return f"{how.replace('was ', 'were ', 1)}{reason}"


def _beginnings(events: Sequence[Event], now_ms: int) -> dict[int, str]:
    """Return what began each generation after the first, by its number."""
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


def with_error(text: str, error: str | None) -> str:
    """Return the sentence with the error after a colon. The error may be any text of an agent."""
    return f"{text.removesuffix('.')}: {ended(_short(error))}" if error else text


def run_sentence(run: Run, number: int, now_ms: int, note_of: str | None) -> str:
    """Return a sentence on the run. number: within the task. note_of: the run whose note it got, if any."""
    where = f"Run {number} on {run.agent}"
    if run.resumes is not None:
        where += f", in the conversation of run {short_id(run.resumes)},"
    elif note_of is not None:
        where += f", in a fresh conversation with a note from run {short_id(note_of)},"
    if run.state == "revoked":
        return f"{where} was given up before it started; it cost nothing."
    if run.live or run.ended_ms is None:
        return f"{where} is {run.state}, {time_between(run.started_ms, now_ms)} so far."
    took = time_between(run.started_ms, run.ended_ms)
    outcome = readable(Outcome, run.outcome)
    if outcome is None:
        return f"{where} ended after {took}."
    evident = (None, Reason.CANCELLED, Reason.LOST, Reason.RATE_LIMITED)
    reason = "" if outcome.reason in evident else f" ({outcome.reason})"
    reset = ""
    if outcome.reset_at is not None:
        window = window_text(outcome.limit) if outcome.limit else None
        named = ", ".join(part for part in (window, outcome.provenance) if part)
        reset = f" It resets at {instant_text(format_instant(outcome.reset_at))}{f' ({named})' if named else ''}."
        if outcome.provenance is Provenance.ESTIMATED:
            reset = " The reset it named is more than 35 days away and is ignored."
    # A failed check has a sentence of its own.
    error = None if run.check_result is not None and outcome.reason in CHECK_REASONS else outcome.error
    denied = outcome.status is OutcomeStatus.NEEDS_INPUT and outcome.question is None and outcome.denied
    how = "ended needing permission" if denied else ENDED_HOW[outcome.status]
    sentence = with_error(f"{where} {how}{reason} after {took}.", error)
    return f"{sentence}{reset}{_fenced(outcome)}{_early(run, outcome)}{_uncommitted(outcome)}"


def _uncommitted(outcome: Outcome) -> str:
    """Return a sentence on why what it left could not be committed, with a leading space; empty if it was."""
    fault = None if outcome.changes is None else outcome.changes.commit_fault
    return "" if fault is None else f" What it left could not be committed: {ended(_short(fault))}"


def _early(run: Run, outcome: Outcome) -> str:
    """Return sentences on why the success is doubtful, each with a leading space; empty if it is not."""
    doubt = f" {outcome.changes_sentence}" if outcome.is_doubtful else ""
    if outcome.status is not OutcomeStatus.SUCCEEDED or run.check_result is not None:
        return doubt
    early = early_text(outcome)
    return doubt if early is None else f"{doubt} It {early}."


def _fenced(outcome: Outcome) -> str:
    """Return a sentence on tool calls denied for going beyond its reach, with a leading space; empty if there are
    none."""
    beyond = [call for call in outcome.denied if call.beyond is not None]
    return f" Beyond its reach, and denied: {named(beyond)}." if beyond else ""


def check_sentences(run: Run, now_ms: int) -> list[str]:
    """Return sentences on the run's check, if it had one, with the end of its output if it failed."""
    result = readable(CheckResult, run.check_result)
    if result is None:
        return []
    took = time_between(result.started_ms, now_ms if result.ended_ms is None else result.ended_ms)
    time = f"({took} so far)" if result.ended_ms is None else f"after {took}"
    sentence = f"Its check {_CHECKED[result.status]} {time}: {RunCheckView.of(result).text}."
    return [sentence, f"Its last output: {_short_end(result.output)}"] if result.output else [sentence]


def _short_end(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL else f"...{line[3 - _DETAIL :]}"


def _short(text: str | None) -> str:
    return cut_line(text or "", _DETAIL)
