"""What follows for a task from how its run ended: retry, wait, give up, or done."""

from dataclasses import dataclass

from claudomator_py.core import lifecycle
from claudomator_py.core.lifecycle import InputKind, QueueReason
from claudomator_py.core.outcome import REASON_POLICIES, HoldKind, Outcome, OutcomeStatus, Reason
from claudomator_py.core.schedule import backoff_ms
from claudomator_py.core.task import OnLost, TaskSpec


@dataclass(frozen=True, slots=True)
class Ending:
    """The event that the end of a run means for its task, and whether it used up an attempt."""

    event: lifecycle.Event
    counts_attempt: bool


def after_run(
    outcome: Outcome, spec: TaskSpec, *, run_id: str, attempt: int, held_until: int | None, cancelled: bool, now_ms: int
) -> Ending:
    """The ending. attempt: this run's number, 1 is the first. cancelled: an operator asked for it.

    A success stays one, even if it came after the request to cancel.
    """
    if outcome.status is OutcomeStatus.SUCCEEDED:
        return Ending(lifecycle.Succeeded(), counts_attempt=True)
    if cancelled:
        return Ending(lifecycle.Cancelling(), counts_attempt=True)
    if outcome.status is OutcomeStatus.NEEDS_INPUT:
        return Ending(lifecycle.InputAsked(InputKind.QUESTION), counts_attempt=False)
    reason = outcome.reason or Reason.AGENT_ERROR
    policy = REASON_POLICIES[reason]
    if outcome.status is OutcomeStatus.LIMITED or policy.hold in (HoldKind.UNTIL_RESET, HoldKind.UNTIL_OPERATOR):
        return Ending(lifecycle.Requeued(QueueReason.LIMITED, held_until), counts_attempt=False)
    if reason is Reason.CANCELLED:
        # Nobody asked for it here: the supervisor itself was told to stop.
        return Ending(lifecycle.Failing(Reason.INTERRUPTED), counts_attempt=True)
    again = spec.on_lost is OnLost.RETRY if reason is Reason.LOST else policy.retryable
    if again and attempt < spec.retry.max_attempts:
        pause = backoff_ms(spec.retry.backoff, attempt, run_id)
        return Ending(lifecycle.Retrying(now_ms + pause), policy.counts_attempt)
    return Ending(lifecycle.Failing(reason), policy.counts_attempt)
