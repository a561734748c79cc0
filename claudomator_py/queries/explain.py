"""Explaining: from rows and decisions to sentences that a person reads."""

from collections.abc import Iterable, Sequence

from claudomator_py.domain.blocked import WAITS, BlockCode, Blocked, blocked
from claudomator_py.domain.blocked_words import blocked_text, refs_text
from claudomator_py.domain.coded import TaskRef
from claudomator_py.domain.decision import Classification
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.inputs import named
from claudomator_py.domain.lifecycle import UNSUCCESSFUL
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import REASON_POLICIES, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.readiness import DependencyState
from claudomator_py.domain.report import Backlog
from claudomator_py.domain.run import CheckResult, CheckStatus
from claudomator_py.domain.text import clause, subject_line
from claudomator_py.domain.units import DAY_MS, format_duration, format_instant, parse_instant, short_id, size_text
from claudomator_py.domain.wording import Clock, instant_text
from claudomator_py.environment.worktrees import TREE_USED
from claudomator_py.prompts.conversations import GIVEN_UP, resumption_of
from claudomator_py.resources.runs.shape import RunCheckView
from claudomator_py.resources.tasks.shape import TaskView
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.decision import Candidate, DecisionRecord, OverriddenHint
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Event, Run, Task

_DETAIL = 1_000
_COMMIT = 10

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
_TIER_SOURCES = {
    "pinned": "as the task asks",
    "kept": "as before",
    "cache": "as classified before",
    "classifier": "as the classifier says",
    "default": "the agent's default",
}
_NO_TIER: dict[str, str] = {
    Cause.OFF: "no classifier is configured",
    Cause.NOTHING_TO_CHOOSE: "the agent has no tiers to choose from",
    Cause.TIMEOUT: "the classifier did not answer in time",
    Cause.UNREACHABLE: "the classifier could not be reached",
    Cause.LIMITED: "the classifier is rate-limited",
    Cause.REFUSED: "the classifier refused the request",
    Cause.SERVER_ERROR: "the classifier failed",
    Cause.NOT_CONFIGURED: "the classifier is not set up",
    Cause.GARBAGE: "the classifier's answer could not be read",
    Cause.DISALLOWED: "the classifier named what was not offered",
    Cause.BREAKER_OPEN: "the classifier is left alone after several failures",
    Cause.INTERRUPTED: "the question was interrupted",
}


def not_ready(task: Task, dependencies: Sequence[DependencyState]) -> Blocked:
    """Why the task is not ready."""
    code = WAITS.get(task.reason or "", BlockCode.TIME)
    if code is BlockCode.DEPENDENCY:
        return blocked(code, tasks=_refs(state for state in dependencies if state.state != "COMPLETED"))
    resumption = resumption_of(task)
    if code is BlockCode.BACKOFF and resumption is not None and resumption.confirms:
        code = BlockCode.CONFIRMATION
    return blocked(code, until=task.until_ms)


def backlog_sentences(backlog: Backlog | None) -> list[str]:
    """What a running task's agent has printed that has not been read yet, where that matters."""
    if backlog is None:
        return []
    if backlog.ended:
        return ["Its agent has ended. Its outcome is known once what it printed has been read, which takes seconds."]
    behind = f"Its agent prints faster than Claudomator reads, which is {size_text(backlog.unread)} behind."
    return [
        f"{behind} What it uses, and a limit that it waits out, are noticed late; a cancel and its timeouts are not."
    ]


def check_waits_sentence(why: Blocked) -> str:
    """Why the check of a run that has ended has not begun."""
    return f"Its agent has ended, and its check waits for a slot: {blocked_text(why)}."


def due_clock(now_ms: int) -> Clock:
    """How an instant that is waited for is worded: in UTC, with how long that is from now."""
    return lambda instant: due_text(parse_instant(instant), now_ms)


def utc_clock(near_ms: int) -> Clock:
    """How an instant is worded beside another one: in UTC, with its date if that is another day."""
    return lambda instant: clock_text(parse_instant(instant), near_ms)


def failure_text(reason: str, outcome: Outcome | None, dependencies: Sequence[DependencyState] = ()) -> str:
    """Why the task failed: what the code means, and the error in the agent's own words or the names that did it."""
    meaning = REASON_POLICIES[Reason(reason)].meaning
    if reason == Reason.DEPENDENCY_FAILED:
        ended = _refs(state for state in dependencies if state.state in UNSUCCESSFUL)
        return f"{meaning[:-1]}: {refs_text(ended)}." if ended else meaning
    detail = outcome.error if outcome is not None and outcome.reason == reason else None
    if detail and reason == Reason.CHECK_FAILED:
        detail = detail.splitlines()[0]  # what the check wrote is told with the check
    return f"{meaning} {_error_text(reason, detail)}" if detail else meaning


def _error_text(reason: str | None, error: str) -> str:
    """The error, told after a sentence: what was spent of a budget in our words, all else as the agent said it."""
    return sentence(_short(error)) if reason == Reason.BUDGET else _short(error)


def failure_clause(reason: str, outcome: Outcome | None, dependencies: Sequence[DependencyState] = ()) -> str:
    """The same in a clause, for lists: the beginning of what was said, else what the code means."""
    detail = outcome.error if outcome is not None and outcome.reason == reason else None
    said = subject_line(detail or "") if reason == Reason.CHECK_FAILED else clause(detail or "")
    return said or failure_text(reason, None, dependencies)


def decision_sentences(record: DecisionRecord, number: int, at_ms: int, now_ms: int) -> list[str]:
    """Why a run was started where it was. number: among all of the task's. at_ms: when that was decided."""
    return placement_sentences(f"Run {number} ({clock_text(at_ms, now_ms)})", record, at_ms)


def placement_sentences(which: str, record: DecisionRecord, at_ms: int) -> list[str]:
    """The same. which: the run, as the subject of the first sentence."""
    chosen = next((candidate for candidate in record.candidates if candidate.agent == record.agent), None)
    slots = f" ({chosen.active} of {chosen.max_concurrent} slots)" if chosen is not None else ""
    sentences = [f"{which} went to {record.agent}: {placement_text(record)}{slots}."]
    sentences += _overridden(record, at_ms)
    if record.fallback is not None:
        sentences.append(sentence(record.fallback.words))
    others = [candidate for candidate in record.candidates if candidate.agent != record.agent and candidate.eligible]
    sentences += [_rejected(candidate, at_ms) for candidate in others]
    model = f" ({record.model})" if record.model else ""
    without = "" if record.model else "; no model is named to the agent"
    clamped = _clamped(record)
    sentences.append(f"Tier {record.tier}{model}: {tier_text(record.classification, record.agent)}{clamped}{without}.")
    if record.unfenced is not None:
        sentences.append(f"Not fenced: {record.unfenced}.")
    if record.overridden_model is not None:
        sentences.append(f"The task pins {record.overridden_model}, which its constraints do not allow.")
    return sentences


def placement_text(record: DecisionRecord) -> str:
    """Why it was placed there, and which model stands in for another, without a full stop."""
    stands_in = record.stands_in
    return record.reason.text if stands_in is None else f"{record.reason.text}; {stands_in.text}"


def run_sentence(run: Run, number: int, now_ms: int, note_of: str | None = None) -> str:
    """How one run went. number: among all of the task's. note_of: the run from which it got a note, if it got one."""
    where = f"Run {number} on {run.agent}"
    if run.resumes is not None:
        where += f", in the conversation of run {short_id(run.resumes)},"
    elif note_of is not None:
        where += f", in a fresh conversation with a note from run {short_id(note_of)},"
    if run.state == "revoked":
        return f"{where} was given up before it started; it cost nothing."
    if run.live or run.ended_ms is None:
        return f"{where} is {run.state}, {_since(run.started_ms, now_ms)} so far."
    took = _since(run.started_ms, run.ended_ms)
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
    detail = ""
    if outcome.error:
        detail = f" {_error_text(outcome.reason, outcome.error)}"
    if run.check_result is not None and outcome.reason is Reason.CHECK_FAILED:
        detail = ""  # the check's own sentence says it
    denied = outcome.status is OutcomeStatus.NEEDS_INPUT and outcome.question is None and outcome.denied
    how = "ended needing permission" if denied else ENDED_HOW[outcome.status]
    return f"{where} {how}{reason} after {took}.{reset}{detail}{_fenced(outcome)}"


def _fenced(outcome: Outcome) -> str:
    """What it was denied as that went beyond its reach, to follow a sentence."""
    beyond = [one for one in outcome.denied if one.beyond is not None]
    return f" Beyond its reach, and denied: {named(beyond)}." if beyond else ""


def check_sentences(run: Run, now_ms: int) -> list[str]:
    """How the run's check went, if it had one, with the end of what it wrote if it failed."""
    result = readable(CheckResult, run.check_result)
    if result is None:
        return []
    took = _since(result.started_ms, now_ms if result.ended_ms is None else result.ended_ms)
    time = f"({took} so far)" if result.ended_ms is None else f"after {took}"
    sentence = f"Its check {_CHECKED[result.status]} {time}: {RunCheckView.of(result).text}."
    return [sentence, f"It wrote last: {_short_end(result.output)}"] if result.output else [sentence]


def thread_sentences(view: TaskView) -> list[str]:
    """Which task it continues, and who began the thread if that was another one."""
    if view.continues is None:
        return []
    began = ""
    if view.thread is not None and view.thread != view.continues.task_id:
        began = f", in the thread that task {short_id(view.thread)} began"
    return [f"It continues {view.continues.name} ({view.continues.state or 'not seen yet'}){began}."]


def conversation_sentences(task: Task, events: Sequence[Event]) -> list[str]:
    """What became of the conversation that it was to continue, since the last restart. events: the task's, in order."""
    sentences: list[str] = []
    for event in events:
        if event.kind == "restart_requested":
            sentences.clear()
        elif event.kind == GIVEN_UP:
            run, why = short_id(str(event.data["resumes"])), event.data["why"]
            sentences.append(f"The conversation of run {run} was given up: {why}. A fresh one takes its place.")
    resumption = resumption_of(task)
    if task.state == "WAITING" and resumption is not None and resumption.holder is not None:
        run = short_id(resumption.run_id)
        sentences.append(f"Its next run resumes the conversation of run {run} on {resumption.agent}.")
    return sentences


def who(event: Event) -> str:
    """Whose request caused the event, to begin a sentence with."""
    return "The operator" if event.by in (None, OPERATOR.id) else str(event.by)


def cancelled_sentences(task: Task, events: Sequence[Event]) -> list[str]:
    """Who cancelled it. events: the task's, in order."""
    if task.state != "CANCELLED":
        return []
    of_it = [
        event
        for event in events
        if event.by is not None and (event.kind == "cancel_requested" or event.data.get("state") == "CANCELLED")
    ]
    if not of_it:
        return []
    name = "the operator" if of_it[-1].by == OPERATOR.id else of_it[-1].by
    return [f"It was cancelled by {name}."]


def discarded_sentences(events: Sequence[Event]) -> list[str]:
    """Which content never runs, as it came while a run was under way that was then cancelled. events: the task's, in
    order."""
    discarded = None
    for event in events:
        if event.kind == "cancel_requested":
            discarded = event.data.get("discarded_revision", discarded)
        elif event.kind in ("content_changed", "restart_requested"):
            discarded = None
    if discarded is None:
        return []
    queued = "Save the file again, or restart the task, to queue it."
    return [f"Its changed content (revision {discarded}) was cancelled with it. {queued}"]


def tree_sentences(events: Sequence[Event]) -> list[str]:
    """Which work tree the task has, and what is not in it. events: the task's, in order."""
    told = next((event.data for event in reversed(events) if event.kind == TREE_USED), None)
    if told is None:
        return []
    sentences = [f"It works on branch {told['branch']}, from commit {told['base'][:_COMMIT]}, in {told['path']}."]
    if told.get("uncommitted_left_out"):
        sentences.append("The repository had uncommitted changes then: they are not in that tree.")
    if told.get("submodules_left_out"):
        sentences.append("Its submodules are not checked out there.")
    if filters := told.get("filters_left_out"):
        names, them = ", ".join(filters), "filter" if len(filters) == 1 else "filters"
        sentences.append(f"Not run: the content {them} {names} of its repository's configuration. Your own are run.")
    return sentences


def clock_text(instant_ms: int, near_ms: int) -> str:
    """The time of day in UTC, to the minute, with its date unless that is the day of ``near_ms``."""
    date, _, clock = format_instant(instant_ms).partition("T")
    same_day = instant_ms // DAY_MS == near_ms // DAY_MS
    return f"{clock[:5]} UTC" if same_day else f"{date} {clock[:5]} UTC"


def _refs(states: Iterable[DependencyState]) -> tuple[TaskRef, ...]:
    return tuple(TaskRef(name=state.name, state=state.state) for state in states)


def _overridden(record: DecisionRecord, at_ms: int) -> list[str]:
    """That the task prefers another agent; what kept an agent of that name is told with the candidates."""
    if (hint := record.overridden) is None:
        return []
    if hint.agent is None:
        return [f"The task's preference was overridden: {overridden_text(hint, at_ms)}."]
    if any(candidate.agent == hint.agent for candidate in record.candidates):
        return [f"The task prefers {hint.agent}, which could not take it."]
    return [f"The task prefers {hint.agent}, but {_because(hint, at_ms)}."]


def overridden_text(hint: OverriddenHint, at_ms: int) -> str:
    """The agent that a task prefers, and why it did not get that, on one line. at_ms: when that was decided."""
    because = _because(hint, at_ms)
    return because if hint.agent is None else f"{hint.agent}: {because}"


def _because(hint: OverriddenHint, at_ms: int) -> str:
    return "; ".join(blocked_text(one, utc_clock(at_ms), verb="was") for one in hint.because) or "not picked"


def _rejected(candidate: Candidate, at_ms: int) -> str:
    if candidate.rejected is None:
        return f"{candidate.agent} was not picked."
    return f"{blocked_text(candidate.rejected, utc_clock(at_ms), verb='was')}."


def _clamped(record: DecisionRecord) -> str:
    before = record.classification.clamped_from
    if before is None:
        return ""
    bound = "floor" if record.tier == record.constraints.tier_floor else "ceiling"
    return f"; without its {bound} it would be {before}"


def tier_text(classification: Classification, agent: str) -> str:
    """Where the tier comes from, in words. agent: the one that the task went to."""
    source = _TIER_SOURCES[classification.source]
    cause = _NO_TIER.get(classification.cause, classification.cause) if classification.cause else None
    parts = [part for part in (cause, classification.reason) if part]
    said = classification.said_agent
    told = [": ".join(parts)] if parts else []
    about = classification.asked_about
    told += [f"it was asked about {about}, where the task was to go then"] if about not in (None, agent) else []
    told += [f"it named the agent {said}, which changes nothing"] if said is not None else []
    return f"{source} ({'; '.join(told)})" if told else source


def due_text(until_ms: int, now_ms: int) -> str:
    """The time, with how long that is from now."""
    return f"{clock_text(until_ms, now_ms)} (in {_since(now_ms, until_ms)})"


def _since(start_ms: int, end_ms: int) -> str:
    return format_duration(max(0, end_ms - start_ms) // 1000 * 1000)


def _short_end(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL else f"...{line[3 - _DETAIL :]}"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _DETAIL else f"{line[: _DETAIL - 3]}..."
