"""What follows for a task from how its run ended: every reason with every status, against the table of reasons."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from claudomator_py.domain import lifecycle
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import BudgetOf, Figures, SpentBudget, Unit
from claudomator_py.domain.lifecycle import InputKind, QueueReason, backoff_ms
from claudomator_py.domain.outcome import Denied, HandoffRequest, Outcome, OutcomeStatus, Reason
from claudomator_py.scheduler.after_run import (
    FREE_INTERRUPTED_ANSWERS,
    PATIENT_OUTAGES,
    EndedRun,
    Ending,
    after_run,
)
from tests.fakes.steps import spec

NOW = 1_790_000_000_000
HELD = NOW + 60_000
RUN = "run-1"

# The contract, reason by reason: does it use up an attempt, is it tried again by itself, does it wait for a hold.
FINAL = "counts"
AGAIN = "counts, retried"
WAITS = "waits for its agent"
OUTAGE = "counts nothing, retried"
TABLE = {
    Reason.RATE_LIMITED: WAITS,
    Reason.AUTH: WAITS,
    Reason.NO_CREDIT: WAITS,
    Reason.OVERLOADED: OUTAGE,
    Reason.NETWORK: OUTAGE,
    Reason.STALLED: AGAIN,
    Reason.CHECK_FAILED: AGAIN,
    Reason.UNREACHABLE: OUTAGE,
    Reason.DISK_FULL: AGAIN,
    Reason.CLONE_FAILED: AGAIN,
    Reason.PREEMPTED: OUTAGE,
    Reason.REQUEUED: OUTAGE,
    Reason.UNFINISHED: AGAIN,
    Reason.NO_ANSWER: AGAIN,
    Reason.AGENT_ERROR: AGAIN,
}
ENDS_BADLY = [OutcomeStatus.FAILED, OutcomeStatus.LIMITED, OutcomeStatus.CANCELLED, OutcomeStatus.LOST]


def end(
    outcome: Outcome,
    *,
    attempt: int = 1,
    cancelled: bool = False,
    tier: Tier | None = None,
    run: Mapping[str, Any] = MappingProxyType({}),
    **fields: Any,
) -> Ending:
    """run: more that is known of it. fields: those of the task."""
    task = spec("t", **({"retry": {"max_attempts": 3, "backoff": "1m"}} | fields))
    known = EndedRun(run_id=RUN, attempt=attempt, tier=tier, held_until=HELD, cancelled=cancelled)
    return after_run(outcome, task, replace(known, **run), NOW)


def failed(reason: Reason) -> Outcome:
    return Outcome(status=OutcomeStatus.LOST if reason is Reason.LOST else OutcomeStatus.FAILED, reason=reason)


def later(pauses: int, longest_ms: int = 600_000) -> lifecycle.Retrying:
    """After the pause that follows so many outages in a row."""
    return lifecycle.Retrying(NOW + backoff_ms(60_000, pauses, RUN, longest_ms=longest_ms))


@pytest.mark.parametrize(("reason", "status"), list(itertools.product(Reason, ENDS_BADLY)))
def test_every_reason_with_every_status(reason: Reason, status: OutcomeStatus) -> None:
    ending = end(Outcome(status=status, reason=reason))
    if status is OutcomeStatus.LIMITED or TABLE.get(reason) == WAITS:
        may_resume = status is OutcomeStatus.LIMITED or reason is Reason.RATE_LIMITED
        queued = lifecycle.Requeued(QueueReason.LIMITED, HELD)
        assert ending == Ending(queued, counts_attempt=False, may_resume=may_resume)
    elif reason is Reason.CANCELLED:
        assert ending == Ending(lifecycle.Failing(Reason.INTERRUPTED), counts_attempt=True)
    elif TABLE.get(reason) == OUTAGE:
        assert ending == Ending(later(1), counts_attempt=False)
    elif TABLE.get(reason) == AGAIN:
        retry_at = NOW + backoff_ms(60_000, 1, RUN)
        assert ending == Ending(lifecycle.Retrying(retry_at), counts_attempt=True)
    else:
        assert ending == Ending(lifecycle.Failing(reason), counts_attempt=True)


@pytest.mark.parametrize("reason", [reason for reason in Reason if TABLE.get(reason) == AGAIN])
def test_the_last_attempt_fails_for_its_reason(reason: Reason) -> None:
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=reason)
    assert isinstance(end(outcome, attempt=2).event, lifecycle.Retrying)
    assert end(outcome, attempt=3) == Ending(lifecycle.Failing(reason), counts_attempt=True)
    assert end(outcome, retry={"max_attempts": 1}).event == lifecycle.Failing(reason)


def test_what_no_longer_fits_goes_one_tier_up_until_there_is_none() -> None:
    too_long = Outcome(status=OutcomeStatus.FAILED, reason=Reason.CONTEXT_TOO_LONG)
    retry_at = NOW + backoff_ms(60_000, 1, RUN)
    assert end(too_long, tier=Tier.FAST) == Ending(lifecycle.Retrying(retry_at), True, Tier.BALANCED)
    assert end(too_long, tier=Tier.BALANCED).tier is Tier.POWERFUL
    assert end(too_long, tier=Tier.POWERFUL).event == lifecycle.Failing(Reason.CONTEXT_TOO_LONG)
    assert end(too_long, tier=Tier.FAST, attempt=3).event == lifecycle.Failing(Reason.CONTEXT_TOO_LONG)
    pinned = end(too_long, tier=Tier.FAST, agent={"type": "claude", "tier": "fast"})
    assert pinned.event == lifecycle.Failing(Reason.CONTEXT_TOO_LONG)


@pytest.mark.parametrize("reason", [reason for reason in Reason if TABLE.get(reason) == AGAIN])
def test_what_a_stronger_model_would_not_mend_is_tried_again_on_the_same_tier(reason: Reason) -> None:
    ending = end(failed(reason), tier=Tier.FAST)
    assert (type(ending.event), ending.tier) == (lifecycle.Retrying, None)


def test_a_limit_never_uses_up_attempts() -> None:
    limited = Outcome(status=OutcomeStatus.LIMITED, reason=Reason.RATE_LIMITED)
    assert end(limited, attempt=3) == end(limited, attempt=1)
    assert end(limited, attempt=99).counts_attempt is False


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_success_stays_one_even_after_a_request_to_cancel(cancelled: bool) -> None:
    ending = end(Outcome(status=OutcomeStatus.SUCCEEDED), cancelled=cancelled)
    assert ending == Ending(lifecycle.Succeeded(), counts_attempt=True)


@pytest.mark.parametrize("status", [*ENDS_BADLY, OutcomeStatus.NEEDS_INPUT])
def test_what_did_not_succeed_and_was_cancelled_is_cancelled(status: OutcomeStatus) -> None:
    ending = end(Outcome(status=status, reason=Reason.RATE_LIMITED), cancelled=True)
    assert ending == Ending(lifecycle.Cancelling(), counts_attempt=True)


def test_a_question_needs_a_person_and_costs_nothing() -> None:
    ending = end(Outcome(status=OutcomeStatus.NEEDS_INPUT, detail="which branch?"))
    assert ending == Ending(lifecycle.InputAsked(InputKind.QUESTION), counts_attempt=False)


def test_tools_that_a_run_was_denied_need_leave_unless_it_asks_something_else() -> None:
    denied = Outcome(status=OutcomeStatus.NEEDS_INPUT, denied=(Denied(tool="Bash", input="npm publish"),))
    assert end(denied).event == lifecycle.InputAsked(InputKind.APPROVAL)
    asks = denied.model_copy(update={"question": "Red or blue?"})
    assert end(asks).event == lifecycle.InputAsked(InputKind.QUESTION)


def test_pauses_double_from_attempt_to_attempt() -> None:
    pauses = []
    for attempt in (1, 2):
        event = end(failed(Reason.AGENT_ERROR), attempt=attempt).event
        assert isinstance(event, lifecycle.Retrying)
        pauses.append(event.until - NOW)
    assert 60_000 <= pauses[0] <= 66_000
    assert 120_000 <= pauses[1] <= 132_000


# After these the next run goes on in the conversation, if the model has said or done something in it.
RESUMED_AFTER = {"network", "overloaded", "unreachable", "disk_full", "lost", "interrupted", "stalled", "unfinished"}
RESUMED_AFTER |= {"clone_failed", "preempted", "requeued"}
TAKEN_UP_BY_WHOEVER_IS_FIRST = {"rate_limited", "auth", "no_credit"}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("reason", Reason)
def test_a_conversation_that_is_not_to_blame_goes_on(reason: Reason, begun: bool) -> None:
    run = {"begun": begun, "answered": begun, "outages": 1}
    ending = end(failed(reason), on_lost="retry", run=run)
    assert ending.resumes is (begun and reason.value in RESUMED_AFTER)
    # A limit's run had a conversation in any case: it may not have said more than that it met the limit.
    assert ending.may_resume is (reason.value in TAKEN_UP_BY_WHOEVER_IS_FIRST and (begun or reason == "rate_limited"))


@pytest.mark.parametrize("reason", [Reason.RATE_LIMITED, Reason.AUTH, Reason.NO_CREDIT])
def test_who_waited_for_its_conversation_waits_again(reason: Reason) -> None:
    ending = end(failed(reason), run={"begun": True, "resumed": True})
    assert (ending.resumes, ending.may_resume) == (True, False)


def test_a_try_that_meets_the_limit_keeps_its_conversation() -> None:
    ending = end(failed(Reason.RATE_LIMITED), run={"tries": 2})
    assert ending.event == later(2)
    assert ending.may_resume


@pytest.mark.parametrize("reason", [Reason.STALLED, Reason.UNFINISHED])
def test_what_stalls_or_is_cut_off_again_in_the_same_conversation_begins_afresh(reason: Reason) -> None:
    assert end(failed(reason), run={"begun": True}).resumes
    assert not end(failed(reason), run={"begun": True, "resumed": True}).resumes


@pytest.mark.parametrize("reason", [Reason.LOST, Reason.INTERRUPTED])
def test_what_ended_nobody_knows_how_is_tried_again_only_by_choice(reason: Reason) -> None:
    assert end(failed(reason)).event == lifecycle.Failing(reason)
    again = end(failed(reason), on_lost="retry")
    assert isinstance(again.event, lifecycle.Retrying)
    assert again.counts_attempt
    assert end(failed(reason), on_lost="retry", attempt=3).event == lifecycle.Failing(reason)


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize("outages", [1, 2, 9, 60])
def test_no_outage_uses_up_an_attempt_and_the_pause_is_bounded(attempt: int, outages: int) -> None:
    ending = end(failed(Reason.NETWORK), attempt=attempt, run={"outages": outages}, retry={"max_attempts": 3})
    assert not ending.counts_attempt
    assert ending.event == (lifecycle.Requeued(QueueReason.LIMITED, HELD) if outages == 1 else later(outages))
    if isinstance(ending.event, lifecycle.Retrying):
        assert ending.event.until - NOW <= 660_000


def test_a_conversation_waits_for_its_agent_and_then_for_whoever_is_first() -> None:
    def after(outages: int, **fields: Any) -> Ending:
        run = {"begun": True, "resumed": outages > 1, "outages": outages}
        return end(failed(Reason.OVERLOADED), run=run, **fields)

    for outages in range(1, PATIENT_OUTAGES + 1):
        assert after(outages) == Ending(later(outages), counts_attempt=False, resumes=True)
    queued = lifecycle.Requeued(QueueReason.LIMITED, HELD)
    assert after(PATIENT_OUTAGES + 1) == Ending(queued, counts_attempt=False, may_resume=True)
    assert after(PATIENT_OUTAGES + 2) == Ending(later(PATIENT_OUTAGES + 2), counts_attempt=False, may_resume=True)
    assert after(30, on_limit="wait").resumes


def test_answers_that_are_cut_short_again_and_again_use_up_attempts() -> None:
    def after(interrupted: int, attempt: int = 1) -> Ending:
        run = {"begun": True, "answered": True, "outages": 1, "interrupted_answers": interrupted}
        return end(failed(Reason.NETWORK), attempt=attempt, run=run)

    assert not after(FREE_INTERRUPTED_ANSWERS).counts_attempt
    assert after(FREE_INTERRUPTED_ANSWERS + 1).counts_attempt
    assert after(FREE_INTERRUPTED_ANSWERS + 1, attempt=2).resumes
    last = after(FREE_INTERRUPTED_ANSWERS + 1, attempt=3)
    assert last == Ending(lifecycle.Failing(Reason.NETWORK), counts_attempt=True)


def test_a_lost_conversation_costs_no_attempt_and_is_lost_once() -> None:
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.BAD_INVOCATION, conversation_lost=True)
    run = EndedRun(run_id="run", attempt=1, tier=None, held_until=None, cancelled=False, resumed=True)
    assert after_run(outcome, spec("t"), run, NOW) == Ending(lifecycle.Requeued(), counts_attempt=False)
    assert after_run(outcome, spec("t"), replace(run, cancelled=True), NOW).event == lifecycle.Cancelling()
    assert after_run(outcome, spec("t"), replace(run, resumed=False), NOW).event == lifecycle.Failing(
        Reason.BAD_INVOCATION
    )


@pytest.mark.parametrize("attempt", [1, 3])
def test_at_a_limit_a_task_fails_or_goes_on_in_its_conversation_if_it_says_so(attempt: int) -> None:
    limited = Outcome(status=OutcomeStatus.LIMITED, reason=Reason.RATE_LIMITED)
    given_up = end(limited, attempt=attempt, on_limit="fail")
    assert given_up == Ending(lifecycle.Failing(Reason.RATE_LIMITED), counts_attempt=False)
    waiting = end(limited, attempt=attempt, on_limit="wait")
    assert waiting == Ending(lifecycle.Requeued(QueueReason.LIMITED, HELD), counts_attempt=False, resumes=True)


@pytest.mark.parametrize(("of", "waits"), [(BudgetOf.AGENT, True), (BudgetOf.DAY, True), (BudgetOf.TASK, False)])
def test_a_days_budget_is_a_limit_and_a_tasks_own_is_its_end(of: BudgetOf, waits: bool) -> None:
    over = SpentBudget(of=of, figures=Figures(unit=Unit.USD, spent=1.2, limit=0.5))
    outcome = failed(Reason.BUDGET).model_copy(update={"over_budget": over})
    ends = Ending(lifecycle.Failing(Reason.BUDGET), counts_attempt=not waits)
    requeued = lifecycle.Requeued(QueueReason.LIMITED, HELD)
    patient = Ending(requeued, counts_attempt=False, resumes=True)
    flows = Ending(requeued, counts_attempt=False, may_resume=True)
    assert end(outcome, attempt=3, on_limit="fail") == ends
    assert end(outcome, attempt=3, on_limit="wait") == (patient if waits else ends)
    assert end(outcome, attempt=3) == (flows if waits else ends)


@pytest.mark.parametrize("reason", [Reason.AUTH, Reason.NO_CREDIT])
def test_what_is_no_limit_of_time_is_none_of_that(reason: Reason) -> None:
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=reason)
    assert end(outcome, on_limit="fail") == end(outcome, on_limit="wait") == end(outcome)


@pytest.mark.parametrize(("reason", "status"), list(itertools.product(Reason, ENDS_BADLY)))
def test_what_is_handed_on_is_not_done_however_its_run_ends(reason: Reason, status: OutcomeStatus) -> None:
    well = Outcome(status=OutcomeStatus.SUCCEEDED)
    for outcome in (well, Outcome(status=status, reason=reason)):
        run = {"handed_on": True}
        assert end(outcome, run=run) == Ending(lifecycle.Requeued(), counts_attempt=False)
        assert end(outcome, run={**run, "cancelled": True}).event == lifecycle.Cancelling()
        assert end(outcome, run={**run, "spent": True}).event == lifecycle.Failing(Reason.BUDGET)


def test_a_refused_handoff_needs_a_person() -> None:
    asks = Outcome(status=OutcomeStatus.NEEDS_INPUT, handoff=HandoffRequest(to="ben"))
    assert end(asks) == Ending(lifecycle.InputAsked(InputKind.APPROVAL), counts_attempt=False)


@pytest.mark.parametrize(
    ("asks", "spent", "ending"),
    [
        (InputKind.APPROVAL, False, Ending(lifecycle.InputAsked(InputKind.APPROVAL), counts_attempt=False)),
        (InputKind.APPROVAL, True, Ending(lifecycle.Failing(Reason.BUDGET), counts_attempt=True)),
        (None, False, Ending(later(1), counts_attempt=True)),
    ],
    ids=["a person says", "nothing is left of its budget", "nobody is asked"],
)
def test_where_a_specialist_failed_too_often_a_person_says_what_becomes_of_the_task(
    asks: InputKind | None, spent: bool, ending: Ending
) -> None:
    assert end(failed(Reason.AGENT_ERROR), run={"asks": asks, "spent": spent}) == ending
