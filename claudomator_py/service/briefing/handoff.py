"""What one run leaves to the next: who had the task, or the one before, and the last that it said and did."""

from claudomator_py.core.outcome import REASON_POLICIES, Outcome, OutcomeStatus
from claudomator_py.core.redact import Redactor
from claudomator_py.core.task import TaskSpec
from claudomator_py.core.transcript import Part
from claudomator_py.service.ports import RunHost, Transcript
from claudomator_py.store.tables import Run

MOST_READ = 1 << 20
MOST_LINES = 2_000
"""Looked at: a note is written on the way to a start, and others wait for theirs."""
MOST_SAID = 4_000
_MOST_DETAIL = 1_000
_PARTS = 12
_UNDONE = (OutcomeStatus.FAILED, OutcomeStatus.LIMITED, OutcomeStatus.LOST)
_AS_LEFT = "What it did is as it left it. Look at what is there before you repeat or rely on it."


def left_by(runs: list[Run], agent: str) -> Run | None:
    """The run whose work a fresh conversation on that agent takes over, if it did not end well: the last in which the
    model had answered. runs: those of the task's generation, in order.

    Where none is known to have, it is the last that was lost, or that another agent gave up at a limit.
    """
    silent = None
    for run in reversed(runs):
        if run.state != "ended" or run.outcome is None:
            continue
        status = Outcome.model_validate(run.outcome).status
        if run.answered_ms is not None:
            return run if status in _UNDONE else None
        if status is OutcomeStatus.LOST or (status is OutcomeStatus.LIMITED and run.agent != agent):
            silent = silent or run
    return silent


def handoff_note(run: Run, agent: str, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    """The note to that agent, without secrets. What the run wrote is left out where it cannot be read."""
    outcome = Outcome.model_validate(run.outcome)
    why = REASON_POLICIES[outcome.reason].meaning if outcome.reason is not None else "It stopped."
    detail = " ".join((outcome.detail or "").split())
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


def follow_note(run: Run, told: TaskSpec, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    """The note to a task that continues another one and cannot go on in its conversation.

    run: the last of that other task; told: its content.
    """
    asked = redactor.redact(told.instructions.strip())
    if len(asked) > MOST_SAID:
        asked = f"{asked[:MOST_SAID]} [...]"
    lead = f"This task goes on from another one, {told.name}, which {run.agent} has done. It was:"
    return _note([lead, asked, _AS_LEFT], run, host, transcript, redactor)


def _note(lead: list[str], run: Run, host: RunHost, transcript: Transcript | None, redactor: Redactor) -> str:
    outcome = Outcome.model_validate(run.outcome)
    parts = ["# Handoff", *lead]
    said = [] if transcript is None else _last(run, host, transcript)
    if outcome.text and outcome.text not in (*said, outcome.detail):
        said.append(outcome.text)
    words = _bounded([redactor.redact(words) for words in said])  # before they are cut
    if words:
        parts += ["The last that it said and did:", words]
    return redactor.redact("\n\n".join(parts))


def _last(run: Run, host: RunHost, transcript: Transcript) -> list[str]:
    """Its last messages and calls, oldest first."""
    try:
        data = host.tail(run.id, "stdout", MOST_READ)
    except OSError:
        return []
    lines = data.rsplit(b"\n", MOST_LINES)[-MOST_LINES:]
    entries = transcript.feed(0, b"\n".join(lines), final=True)
    said = [_words(entry.part) for entry in entries if entry.part.kind in ("message", "tool_call") and entry.part.text]
    return said[-_PARTS:]


def _words(part: Part) -> str:
    return part.text.strip() if part.kind == "message" else f"[{part.tool or 'tool'}] {part.text.strip()}"


def _bounded(said: list[str]) -> str:
    """As much of the end as there is room for."""
    words = "\n\n".join(said)
    return words if len(words) <= MOST_SAID else f"[...] {words[-MOST_SAID:]}"
