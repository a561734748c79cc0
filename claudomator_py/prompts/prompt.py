"""What one run leaves to the next: who had the task, or the one before, and the last that it said and did."""

from collections.abc import Sequence
from functools import partial

from claudomator_py.domain.card import Card, Transport
from claudomator_py.domain.conversation import Exchange
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import REASON_POLICIES, HandoffRequest, Outcome, OutcomeStatus
from claudomator_py.domain.output import tail_of
from claudomator_py.domain.personal import without_personal
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import Part
from claudomator_py.domain.task import TaskSpec
from claudomator_py.ports import RunHost, Transcript
from claudomator_py.store.tables import Run

HOW_TO_ASK = (
    "If you need a decision from the operator before you can continue, end with a message whose last part begins, on "
    f"its own line, with `{MARKER}` and then the question. You will receive the answer here. Do not ask what you can "
    "find out yourself."
)
_ANSWER = "The operator answers your question:"
_REFUSED = "You may not use what you were denied. The operator says:"
_BEFORE = "The operator was asked about this task before, in a conversation that is gone:"


def told(exchange: Exchange) -> list[str]:
    """For the conversation in which it was asked: what was said to it."""
    if exchange.allowed:
        return [f"The operator allows you to use: {', '.join(exchange.allowed)}. Continue the task where you left off."]
    lead = _REFUSED if exchange.kind is InputKind.APPROVAL else _ANSWER
    return [lead, (exchange.answer or "").strip()]


def told_afresh(exchanges: Sequence[Exchange]) -> list[str]:
    """For a fresh conversation: all that was asked, and said to it."""
    return [] if not exchanges else [_BEFORE, *(part for exchange in exchanges for part in _quoted(exchange))]


def _quoted(exchange: Exchange) -> list[str]:
    asked = "\n".join(f"> {line}".rstrip() for line in exchange.asked.splitlines())
    said = f"It may use: {', '.join(exchange.allowed)}." if exchange.allowed else (exchange.answer or "").strip()
    return [asked, f"The operator said: {said}"]


MOST_READ = 1 << 20
MOST_LINES = 2_000
"""Looked at: a note is written on the way to a start, and others wait for theirs."""
MOST_SAID = 4_000
_MOST_DETAIL = 1_000
_PARTS = 12
_UNDONE = (OutcomeStatus.FAILED, OutcomeStatus.LIMITED, OutcomeStatus.LOST)
_AS_LEFT = "Its changes are as it left them. Check the current state before you repeat or rely on anything."


def left_by(runs: list[Run], agent: str) -> Run | None:
    """The run whose work a fresh conversation on that agent takes over, if it did not end well: the last in which the
    model had answered. runs: those of the task's generation, in order.

    Where none is known to have, it is the last that was lost, or that another agent gave up at a limit.
    """
    silent = None
    for run in reversed(runs):
        if run.state != "ended" or run.outcome is None:
            continue
        outcome = Outcome.model_validate(run.outcome)
        if run.answered_ms is not None:
            return run if outcome.status in _UNDONE or outcome.handoff is not None else None
        if outcome.status is OutcomeStatus.LOST or (outcome.status is OutcomeStatus.LIMITED and run.agent != agent):
            silent = silent or run
    return silent


def handoff_note(run: Run, agent: str, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    """The note to that agent, without secrets. What the run wrote is left out where it cannot be read."""
    outcome = Outcome.model_validate(run.outcome)
    if outcome.handoff is not None:
        return _handed_on(run, outcome.handoff, host, transcript, redactor)
    why = REASON_POLICIES[outcome.reason].meaning if outcome.reason is not None else "It stopped."
    detail = " ".join((outcome.error or "").split())
    if len(detail) > _MOST_DETAIL:
        # What failed is said first, and why in the end, as by a check.
        detail = f"{detail[: _MOST_DETAIL // 4]} [...] {detail[-_MOST_DETAIL * 3 // 4 :]}"
    who = (
        "You began this task before, in another conversation,"
        if run.agent == agent
        else (f"Another agent, {run.agent}, had this task before you")
    )
    lead = f"{who} and stopped: {why} {detail}".rstrip()
    return _note([lead, _AS_LEFT], run, host, transcript, redactor)


def _handed_on(
    run: Run, handoff: HandoffRequest, host: RunHost, transcript: Transcript | None, redactor: Redactor
) -> str:
    """What it said that it leaves; where it says nothing of that, what it said and did last."""
    lead = [f"{run.specialist or run.agent} had this task before you, and hands it on. In its own words:"]
    told = (("Why", handoff.reason), ("Done", handoff.done), ("Left to do", handoff.left))
    lead += [f"{title}: {_clean(words.strip(), redactor)}" for title, words in told if words.strip()]
    lead += [f"Files it changed: {_clean(', '.join(handoff.files), redactor)}"] if handoff.files else []
    if handoff.done.strip() or handoff.left.strip():
        return redactor.redact("\n\n".join(["# Handoff", *lead, _AS_LEFT]))
    return _note([*lead, _AS_LEFT], run, host, transcript, redactor)


def follow_note(run: Run, told: TaskSpec, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    """The note to a task that continues another one and cannot continue in its conversation.

    run: the last of that other task; told: its content.
    """
    asked = redactor.redact(told.instructions.strip())
    if len(asked) > MOST_SAID:
        asked = f"{asked[:MOST_SAID]} [...]"
    lead = f"This task continues another one, {told.name}, which {run.agent} has done. It was:"
    return _note([lead, asked, _AS_LEFT], run, host, transcript, redactor)


def _note(lead: list[str], run: Run, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    outcome = Outcome.model_validate(run.outcome)
    parts = ["# Handoff", *lead]
    said = [] if transcript is None else _last(run, host, transcript)
    if outcome.text and outcome.text not in (*said, outcome.error):
        said.append(outcome.text)
    words = _bounded([_clean(words, redactor) for words in said])  # before they are cut
    if words:
        parts += ["What it said and did last:", words]
    return redactor.redact("\n\n".join(parts))


def _clean(words: str, redactor: Redactor) -> str:
    """What an agent said, as another may read it: without secrets, and without data of persons."""
    return without_personal(redactor.redact(words))


def _last(run: Run, host: RunHost, transcript: Transcript) -> list[str]:
    """Its last messages and calls, oldest first."""
    try:
        data = tail_of(partial(host.read, run.id, "stdout"), MOST_READ)
    except OSError:
        return []
    lines = data.rsplit(b"\n", MOST_LINES)[-MOST_LINES:]
    entries = transcript.feed(0, b"\n".join(lines), final=True)
    said = [
        _handoff_words(entry.part)
        for entry in entries
        if entry.part.kind in ("message", "tool_call") and entry.part.text
    ]
    return said[-_PARTS:]


def _handoff_words(part: Part) -> str:
    return part.text.strip() if part.kind == "message" else f"[{part.tool or 'tool'}] {part.text.strip()}"


def _bounded(said: list[str]) -> str:
    """As much of the end as there is room for."""
    words = "\n\n".join(said)
    return words if len(words) <= MOST_SAID else f"[...] {words[-MOST_SAID:]}"


_GO_ON = (
    "Continue the task where you left off. You may have been interrupted in the middle of a step: check the current "
    "state before you repeat or rely on anything."
)
_CHANGED = "The task has changed since then. It now reads:"
_ADDED = "The operator adds:"
_SAID = "This is the task:"


def role_of(card: Card, skill_id: str | None) -> str:
    """What a specialist is told about itself, before its task; empty for one whose card says nothing.

    skill_id: of the skill that it is asked to use.
    """
    if card.transport is not Transport.LOCAL:
        return ""
    skill = None if skill_id is None else card.skill(skill_id)
    asked = "" if skill is None else f"You are asked for: {skill.name}. {skill.description}".strip()
    said = [part for part in (card.system_prompt, asked) if part]
    return "\n\n".join([f"# Your role: {card.title}", *said, "# Your task"]) if said else ""


def compose(
    spec: TaskSpec,
    words: str | None = None,
    handoff: str | None = None,
    *,
    role: str = "",
    heard: Sequence[Exchange] = (),
    may_ask: bool = False,
) -> str:
    """For a fresh conversation: the task's instructions and what is to be handed back.

    role: what the specialist is told about itself, see ``role_of``. handoff:
    what the agent left that had the task before. words: what the operator said to a conversation that this one
    begins instead of; heard: what was asked in it, and said to that. may_ask: whether it can ask the operator.
    """
    note = [] if handoff is None else [handoff]
    how_to_ask = [HOW_TO_ASK] if may_ask else []
    return _joined([*([role] if role else []), *_task(spec), *_words(words), *told_afresh(heard), *note, *how_to_ask])


def compose_answer(exchange: Exchange) -> str:
    """For a conversation that continues with what the operator said to what was asked in it."""
    return _joined(told(exchange))


def compose_further(spec: TaskSpec, told: TaskSpec, words: str | None = None) -> str:
    """For a conversation that continues: to continue, and what is new to it. told: the content that it knows.

    words: what the operator adds.
    """
    changed = _task(spec) != _task(told)
    return _joined([_GO_ON, *([_CHANGED, *_task(spec)] if changed else []), *_words(words)])


def compose_next(spec: TaskSpec, words: str | None = None, *, again: bool = False) -> str:
    """For a task that continues in the conversation of another one: its own instructions, as a further turn.

    again: a run of it was in there before, and may have heard them.
    """
    return _joined([*([_GO_ON, _SAID] if again else []), *_task(spec), *_words(words)])


def _task(spec: TaskSpec) -> list[str]:
    parts = [spec.instructions.rstrip()]
    if spec.expected_output:
        parts.append(f"Hand back: {spec.expected_output.strip()}")
    return parts


def _words(words: str | None) -> list[str]:
    return [_ADDED, words.strip()] if words is not None and words.strip() else []


def _joined(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"
