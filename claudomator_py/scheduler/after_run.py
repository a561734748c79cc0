"""Decides what follows for a task from how its run ended: retry, wait, give up or done."""

from claudomator_py.domain import lifecycle
from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.lifecycle import InputKind, QueueReason, backoff_ms
from claudomator_py.domain.limits import MAX_RESET_MS
from claudomator_py.domain.outcome import REASON_POLICIES, HoldKind, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.task import OnLimit, OnLost, TaskSpec
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.values import dataclass

MAX_OUTAGE_PAUSE_MS = 10 * MINUTE_MS
PATIENT_OUTAGES = 3
"""Consecutive outages for which a conversation waits for its agent before another agent may take over the task."""
FREE_INTERRUPTED_ANSWERS = 10
"""Outages per generation that may interrupt a model's answer before each further one uses up an attempt. Otherwise a
task that always ends this way would spend money forever."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The lifecycle event that the end of a run causes for its task, and whether it used up an attempt."""

    event: lifecycle.Event
    counts_attempt: bool
    tier: Tier | None = None
    """Tier of the next attempt, if it changes."""
    resumes: bool = False
    """True if the next attempt continues this run's conversation."""
    may_resume: bool = False
    """True if the next attempt continues it only if no other agent can start the task sooner."""
    confirms: bool = False
    """True if the next attempt is only asked to finish, or to confirm that this successful run was done."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """The run that ended."""

    run_id: str
    attempt: int
    """Number of the attempt, starting at 1."""
    tier: Tier | None
    held_until: int | None
    """End of the hold that the outcome put on the agent, in epoch milliseconds."""
    cancelled: bool
    """True if an operator requested the end."""
    tries: int = 0
    """Number of runs so far if this one was started although every agent was limited; otherwise 0."""
    resumed: bool = False
    """True if the run was to continue a conversation."""
    begun: bool = False
    """True if the run left a conversation in which work may have been done."""
    answered: bool = False
    """True if the model produced any output."""
    outages: int = 0
    """Consecutive runs ended by an outage, including this one."""
    interrupted_answers: int = 0
    """Runs of the task's generation that an outage ended after the model had answered."""
    spent: bool = False
    """True if the task's budget is used up."""
    has_fallback_model: bool = False
    """True if the agent has another model for the task."""
    handed_on: bool = False
    """True if the run hands the task to another specialist, who continues it."""
    confirms: bool = False
    """True if the run was asked to finish work that had succeeded near a limit, or to confirm that it was done."""
    is_deserted: bool = False
    """True if the specialist's agent is gone and nobody has named that specialist, so that another one is chosen."""
    asks: InputKind | None = None
    """What a person must decide about the task because its specialist failed too often; None if nothing."""


# External causes, for which the conversation is not to blame. After any other reason the next attempt starts a fresh
# one.
_FROM_OUTSIDE = frozenset({Reason.CLONE_FAILED, Reason.PUSH_FAILED, Reason.DISK_FULL, Reason.LOST, Reason.INTERRUPTED})


def after_run(outcome: Outcome, spec: TaskSpec, run: EndedRun, now_ms: int) -> Ending:
    """Return what follows from the end of the run.

    A success stays a success, even if it came after a request to cancel. No further run follows once the task's budget
    is used up. Some agents end their turn early when a window is nearly used up: a success near that point is
    questioned once the window has reset, if the task waits for limits and has no check. If the agent can then not be
    asked, the success stands.
    """
    ending = _after_run(outcome, spec, run, now_ms)
    if run.confirms and (isinstance(ending.event, lifecycle.Failing) or outcome.conversation_lost):
        return Ending(lifecycle.Succeeded(), counts_attempt=True)
    again = isinstance(ending.event, lifecycle.Retrying | lifecycle.Requeued)
    return Ending(lifecycle.Failing(Reason.BUDGET), ending.counts_attempt) if again and run.spent else ending


def _after_run(outcome: Outcome, spec: TaskSpec, run: EndedRun, now_ms: int) -> Ending:
    if run.handed_on:
        event: lifecycle.Event = lifecycle.Cancelling() if run.cancelled else lifecycle.Requeued()
        return Ending(event, counts_attempt=False)
    if outcome.status is OutcomeStatus.SUCCEEDED:
        asked_ms = _asked_again(outcome, spec, run, now_ms)
        if asked_ms is None:
            return Ending(lifecycle.Succeeded(), counts_attempt=True)
        return Ending(lifecycle.Retrying(asked_ms), counts_attempt=False, resumes=True, confirms=True)
    if run.cancelled:
        return Ending(lifecycle.Cancelling(), counts_attempt=True)
    if run.asks is not None and not run.spent:
        return Ending(lifecycle.InputAsked(run.asks), counts_attempt=False)
    if run.is_deserted or (outcome.conversation_lost and run.resumed):
        return Ending(lifecycle.Requeued(), counts_attempt=False)
    if outcome.status is OutcomeStatus.NEEDS_INPUT:
        approves = outcome.handoff is not None or (outcome.question is None and bool(outcome.denied))
        kind = InputKind.APPROVAL if approves else InputKind.QUESTION
        return Ending(lifecycle.InputAsked(kind), counts_attempt=False)
    reason = outcome.reason or Reason.AGENT_ERROR
    policy = REASON_POLICIES[reason]
    limited = outcome.status is OutcomeStatus.LIMITED or outcome.day_is_spent
    if limited or policy.hold in (HoldKind.UNTIL_RESET, HoldKind.UNTIL_OPERATOR):
        quota = limited or reason is Reason.RATE_LIMITED
        if quota and spec.on_limit is OnLimit.FAIL:
            return Ending(lifecycle.Failing(reason), counts_attempt=False)
        resumes = run.resumed or (quota and spec.on_limit is OnLimit.WAIT)
        may_resume = (quota or run.begun) and not resumes
        event = lifecycle.Requeued(QueueReason.LIMITED, run.held_until)
        if run.tries:
            # Otherwise the run would be tried again immediately, over and over.
            event = lifecycle.Retrying(now_ms + backoff_ms(spec.retry.backoff, run.tries, run.run_id))
        return Ending(event, counts_attempt=False, resumes=resumes, may_resume=may_resume)
    if reason is Reason.CANCELLED:
        # Nobody requested this through the daemon: the supervisor itself was told to stop.
        return Ending(lifecycle.Failing(Reason.INTERRUPTED), counts_attempt=True)
    if policy.outage:
        return _after_outage(reason, spec, run, now_ms)
    unknown = reason in (Reason.LOST, Reason.INTERRUPTED)
    retries = spec.on_lost is OnLost.RETRY if unknown else policy.retries
    retries = retries or (policy.falls_back and run.has_fallback_model)
    tier = _stronger(run.tier, spec) if policy.escalates else None
    # The continued conversation may be what is too long, so a fresh one is worth an attempt on the same tier.
    differs = tier is not None or run.resumed or not policy.escalates
    if retries and differs and run.attempt < spec.retry.max_attempts:
        pause = backoff_ms(spec.retry.backoff, run.attempt, run.run_id)
        return Ending(
            lifecycle.Retrying(now_ms + pause),
            policy.counts_attempt,
            tier,
            resumes=run.begun and _is_resumable_after(reason, run),
        )
    return Ending(lifecycle.Failing(reason), policy.counts_attempt)


def _asked_again(outcome: Outcome, spec: TaskSpec, run: EndedRun, now_ms: int) -> int | None:
    """When to ask the agent whether the successful work is really done, in epoch milliseconds; None if it is not
    asked."""
    near = outcome.nearly_used
    if near is None or not now_ms < near.resets_at <= now_ms + MAX_RESET_MS:
        return None
    doubted = spec.on_limit is OnLimit.WAIT and not spec.check and run.begun
    return near.resets_at if doubted and not (run.confirms or run.cancelled or run.spent) else None


def _after_outage(reason: Reason, spec: TaskSpec, run: EndedRun, now_ms: int) -> Ending:
    """What follows from an outage. An outage is not the task's fault: it uses up no attempt, and the pause grows.

    The first outage requeues the task immediately, unless there is a conversation to wait for. After later ones the
    task steps aside, so that a task which causes the outage itself is not first in the queue whenever its agent is
    tried again.
    """
    counts = run.answered and run.interrupted_answers > FREE_INTERRUPTED_ANSWERS
    if counts and run.attempt >= spec.retry.max_attempts:
        return Ending(lifecycle.Failing(reason), counts_attempt=True)
    pause = backoff_ms(spec.retry.backoff, max(run.outages, 1), run.run_id, longest_ms=MAX_OUTAGE_PAUSE_MS)
    later = lifecycle.Retrying(now_ms + pause)
    if run.begun and (spec.on_limit is not OnLimit.FAILOVER or run.outages <= PATIENT_OUTAGES):
        return Ending(later, counts, resumes=True)
    at_once = run.outages in (1, PATIENT_OUTAGES + 1) and not run.tries
    event = lifecycle.Requeued(QueueReason.LIMITED, run.held_until) if at_once else later
    return Ending(event, counts, may_resume=run.begun)


def _is_resumable_after(reason: Reason, run: EndedRun) -> bool:
    """True if the conversation is not to blame. A stall is mostly a hanging service or tool, and a model that was cut
    off can continue; if either happens again in the same conversation, the conversation may be the cause."""
    once = reason in (Reason.STALLED, Reason.UNFINISHED) and not run.resumed
    return reason in _FROM_OUTSIDE or once


def _stronger(tier: Tier | None, spec: TaskSpec) -> Tier | None:
    """The next stronger tier; None if there is none or the task pins its tier or model."""
    if spec.agent.tier is not None or spec.agent.model is not None or tier is None:
        return None
    above = TIERS[TIERS.index(tier) + 1 :]
    return above[0] if above else None
