"""Reason codes are a contract; an outcome that contradicts itself cannot be built."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from claudomator_py.domain.budget import BudgetOf, Figures, SpentBudget, Unit, WindowUse
from claudomator_py.domain.changes import RefChange, RunChanges
from claudomator_py.domain.outcome import (
    OUTAGES,
    REASON_POLICIES,
    Doubt,
    Fee,
    HoldKind,
    Outcome,
    OutcomeStatus,
    Reason,
    RefusedHandoff,
    Tokens,
)
from claudomator_py.domain.progress import UNFINISHED_MARKER
from claudomator_py.domain.rationale import RationaleCode, rationale

CODES = """
rate_limited overloaded network auth no_credit invalid_model context_too_long refused turn_limit budget
timeout stalled check_failed check_unavailable permission_denied bad_invocation interrupted cancelled rejected
handoff_refused unreachable
not_running dependency_failed expired output_limit setup_failed clone_failed push_failed disk_full lost
preempted requeued unfinished no_answer agent_error"""
COST_NO_ATTEMPT = {"rate_limited", "auth", "no_credit", "overloaded", "network", "unreachable", "preempted"}
COST_NO_ATTEMPT |= {"requeued"}
OF_AN_OUTAGE = {"overloaded", "network", "unreachable", "preempted", "requeued"}
NEED_A_PERSON = {
    "check_unavailable",
    "auth",
    "no_credit",
    "invalid_model",
    "permission_denied",
    "bad_invocation",
    "not_running",
    "setup_failed",
    "push_failed",
}
RETRIED = {
    "context_too_long",
    "stalled",
    "check_failed",
    "clone_failed",
    "disk_full",
    "unfinished",
    "no_answer",
    "agent_error",
}


def test_the_codes_are_those_of_the_contract() -> None:
    assert {reason.value for reason in Reason} == set(CODES.split())


def test_every_code_says_what_follows_from_it() -> None:
    assert set(REASON_POLICIES) == set(Reason)
    for policy in REASON_POLICIES.values():
        assert policy.meaning[0].isupper()
        assert policy.meaning.endswith(".")
    assert {reason for reason in Reason if not REASON_POLICIES[reason].counts_attempt} == COST_NO_ATTEMPT
    assert {reason for reason in Reason if REASON_POLICIES[reason].retries} == COST_NO_ATTEMPT | RETRIED
    assert {reason for reason in Reason if REASON_POLICIES[reason].needs_person} == NEED_A_PERSON
    assert OUTAGES == OF_AN_OUTAGE


def test_what_costs_no_attempt_holds_its_agent_or_is_an_outage() -> None:
    for policy in REASON_POLICIES.values():
        lasts = policy.hold in (HoldKind.UNTIL_RESET, HoldKind.UNTIL_OPERATOR)
        assert policy.counts_attempt is not (lasts or policy.outage)


def test_a_success_has_no_reason_and_all_else_has_one() -> None:
    with pytest.raises(ValidationError, match="a success has no reason"):
        Outcome(status=OutcomeStatus.SUCCEEDED, reason=Reason.TIMEOUT)
    for status in set(OutcomeStatus) - {OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT}:
        with pytest.raises(ValidationError, match="needs a reason"):
            Outcome(status=status)
    assert Outcome(status=OutcomeStatus.NEEDS_INPUT).reason is None


def test_an_error_names_the_budget_that_was_used_up_and_then_what_the_agent_said() -> None:
    budget = SpentBudget(of=BudgetOf.TASK, figures=Figures(unit=Unit.TOKENS, spent=1300, limit=1000))
    failed = Outcome(status=OutcomeStatus.FAILED, reason=Reason.BUDGET)
    assert failed.error is None
    assert failed.model_copy(update={"detail": "I stopped."}).error == "I stopped."
    assert failed.model_copy(update={"over_budget": budget}).error == budget.text
    both = failed.model_copy(update={"over_budget": budget, "detail": "I stopped."})
    assert both.error == f"{budget.text}. I stopped."


def test_an_agents_words_can_always_be_stored_and_sent() -> None:
    words = "caf\u00e9 \U0001f600 \0 \ud83d\n"
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail=words, text=words, limit=words)
    for text in (outcome.detail, outcome.text, outcome.limit):
        assert text is not None
        assert "\0" not in text
        assert text.encode().decode() == text
        assert text.startswith("caf\u00e9 \U0001f600 ")
    assert Outcome.model_validate(json.loads(outcome.model_dump_json())) == outcome


NOTHING = RunChanges(place="/r")
A_COMMIT = RunChanges(place="/r", commit_count=1)
A_STASH = RunChanges(place="/r", refs=(RefChange(name="refs/stash", after="1" * 40),), ref_count=1)
A_TAG = RunChanges(place="/r", refs=(RefChange(name="refs/tags/v1", after="1" * 40),), ref_count=1)
STASHED = f"1 stash made (its result {Doubt.CLAIMS.words})"
WORKED = Tokens(input=900, output=40)
UNDONE = "I was unable to finish it."
PARTLY = "Moved 9 of the 40 handlers."
LEFT = f"I moved the handlers.\n\n{UNFINISHED_MARKER} the tests,\nas there is no Redis."
LEAVING = f" (its result {Doubt.LEAVES.words}: the tests, as there is no Redis)"
ADMITTED = f" (its result {Doubt.ADMITS.words})"


@pytest.mark.parametrize(
    ("cost_usd", "fee_usd", "own_usd"),
    [(None, None, None), (None, 0.5, None), (2.0, None, 2.0), (2.0, 0.5, 1.5), (0.2, 0.5, 0.0)],
)
def test_the_share_of_an_agent_is_the_cost_without_the_fee(
    cost_usd: float | None, fee_usd: float | None, own_usd: float | None
) -> None:
    fee = None if fee_usd is None else Fee(usd=fee_usd, creator="ada")
    assert Outcome(status=OutcomeStatus.SUCCEEDED, cost_usd=cost_usd, fee=fee).agent_cost_usd == own_usd


@pytest.mark.parametrize(
    ("text", "fields", "doubt", "changes_text"),
    [
        ("I fixed the bug.", {"changes": NOTHING}, Doubt.CLAIMS, f"no changes (its result {Doubt.CLAIMS.words})"),
        (
            "I fixed the bug.",
            {"changes": A_COMMIT.model_copy(update={"cancels_out": True})},
            Doubt.CLAIMS,
            f"1 commit that changes no file (its result {Doubt.CLAIMS.words})",
        ),
        ("Shall I go on?", {"changes": NOTHING}, Doubt.ASKS, f"no changes (its result {Doubt.ASKS.words})"),
        (
            "Two ways. Tell me: please choose one.",
            {"changes": NOTHING},
            Doubt.ASKS,
            f"no changes (its result {Doubt.ASKS.words})",
        ),
        (
            "I will now fix it.",
            {"changes": NOTHING},
            Doubt.ANNOUNCES,
            f"no changes (its result {Doubt.ANNOUNCES.words})",
        ),
        ("I will now fix it.", {"changes": A_COMMIT}, None, "1 commit"),
        ("Shall I go on?", {"changes": RunChanges(place="/r", is_repository=False)}, None, "no changes"),
        ("There are 3 files.", {"changes": NOTHING}, None, "no changes"),
        # Whatever has a model has used tokens; a program without one may have nothing to say.
        (None, {"changes": NOTHING}, None, "no changes"),
        (None, {"changes": NOTHING, "tokens": WORKED}, Doubt.EMPTY, f"no changes (its result {Doubt.EMPTY.words})"),
        (" \n", {"changes": NOTHING, "tokens": WORKED}, Doubt.EMPTY, f"no changes (its result {Doubt.EMPTY.words})"),
        ("There are 3 files.", {"changes": NOTHING, "tokens": WORKED}, None, "no changes"),
        (None, {"changes": NOTHING, "tokens": WORKED, "is_checked": True}, None, "no changes"),
        (None, {"changes": RunChanges(place="/r", is_repository=False), "tokens": WORKED}, None, "no changes"),
        (None, {"changes": A_COMMIT, "tokens": WORKED}, None, "1 commit"),
        (None, {"changes": NOTHING, "tokens": WORKED, "continues_changes": True}, None, "no further changes"),
        (None, {"tokens": WORKED}, None, None),
        ("I fixed the bug.", {"changes": A_COMMIT}, None, "1 commit"),
        ("I fixed the bug.", {"changes": A_STASH}, Doubt.CLAIMS, STASHED),
        ("I put it aside.", {"changes": A_STASH}, None, "1 stash made"),
        ("I fixed the bug.", {"changes": A_TAG}, None, "1 tag made"),
        ("I fixed the bug.", {"changes": A_STASH.model_copy(update={"file_count": 1})}, None, "1 file, 1 stash made"),
        ("I fixed the bug.", {"changes": NOTHING, "continues_changes": True}, None, "no further changes"),
        ("I fixed the bug.", {}, None, None),
        (UNDONE, {}, Doubt.ADMITS, f"no changes recorded{ADMITTED}"),
        (UNDONE, {"changes": NOTHING}, Doubt.ADMITS, f"no changes{ADMITTED}"),
        (UNDONE, {"changes": A_COMMIT}, Doubt.ADMITS, f"1 commit{ADMITTED}"),
        (UNDONE, {"changes": NOTHING, "continues_changes": True}, Doubt.ADMITS, f"no further changes{ADMITTED}"),
        (UNDONE, {"changes": NOTHING, "is_checked": True}, Doubt.ADMITS, f"no changes{ADMITTED}"),
        (UNDONE, {"changes": A_COMMIT, "is_checked": True}, None, "1 commit"),
        (f"{UNDONE} May I go on?", {"changes": NOTHING}, Doubt.ADMITS, f"no changes{ADMITTED}"),
        ("The parser cannot read comments.", {"changes": A_COMMIT}, None, "1 commit"),
        (PARTLY, {"changes": A_COMMIT}, Doubt.ADMITS, f"1 commit{ADMITTED}"),
        (PARTLY, {}, Doubt.ADMITS, f"no changes recorded{ADMITTED}"),
        (PARTLY, {"changes": A_COMMIT, "is_checked": True}, None, "1 commit"),
        ("9 of the 40 handlers are now typed.", {"changes": NOTHING}, None, "no changes"),
        (LEFT, {"changes": A_COMMIT}, Doubt.LEAVES, f"1 commit{LEAVING}"),
        (LEFT, {"changes": A_COMMIT, "is_checked": True}, Doubt.LEAVES, f"1 commit{LEAVING}"),
        (LEFT, {"changes": NOTHING}, Doubt.LEAVES, f"no changes{LEAVING}"),
        (f"{UNDONE}\n{LEFT}", {}, Doubt.LEAVES, f"no changes recorded{LEAVING}"),
        (f"Moved all.\n\n{UNFINISHED_MARKER} nothing", {"changes": A_COMMIT}, None, "1 commit"),
    ],
)
def test_a_success_is_doubted_for_its_text(
    text: str | None, fields: dict[str, Any], doubt: Doubt | None, changes_text: str | None
) -> None:
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, text=text, **fields)
    assert (outcome.doubt, outcome.is_doubtful, outcome.changes_text) == (doubt, doubt is not None, changes_text)
    failed = Outcome(status=OutcomeStatus.FAILED, reason=Reason.REFUSED, text=text, **fields)
    assert failed.doubt is None


@pytest.mark.parametrize(
    ("code", "fallback", "hidden", "to", "shown_code"),
    [
        # The run named it, and may not know whether it exists.
        (RationaleCode.NOT_ADMITTED, False, True, "florist", RationaleCode.NO_SPECIALIST),
        (RationaleCode.NOT_ADMITTED, True, True, "another", RationaleCode.NO_SPECIALIST),
        (RationaleCode.NOT_ADMITTED, False, False, "florist", RationaleCode.NOT_ADMITTED),
    ],
)
def test_a_refused_handoff_does_not_tell_a_hidden_specialist_from_none(
    code: RationaleCode, fallback: bool, hidden: bool, to: str, shown_code: RationaleCode
) -> None:
    why = rationale(code, specialist="florist")
    shown = RefusedHandoff(to="florist", why=why, fallback=fallback).hiding(lambda name: "another" if hidden else name)
    assert (shown.to, shown.why.code) == (to, shown_code)


@pytest.mark.parametrize(
    ("windows", "near"),
    [
        ({}, ("seven_day", 5)),
        ({"five_hour": WindowUse(used=0.96, resets_at=3)}, ("five_hour", 3)),
        ({"five_hour": WindowUse(used=0.96, resets_at=7)}, ("seven_day", 5)),
        ({"five_hour": WindowUse(used=0.94, resets_at=3)}, ("seven_day", 5)),
        ({"five_hour": WindowUse(used=0.96, resets_at=3, family="opus")}, ("five_hour", 3)),
        ({"five_hour": WindowUse(used=0.96, resets_at=3, family="fable")}, ("seven_day", 5)),
        # What is read of the window itself is later than the warning about it, and says whose it is.
        ({"seven_day": WindowUse(used=0.5, resets_at=5)}, None),
        ({"seven_day": WindowUse(used=0.99, resets_at=5, family="fable")}, None),
    ],
)
def test_of_the_windows_nearly_used_up_the_first_to_reset_counts(
    windows: dict[str, WindowUse], near: tuple[str, int] | None
) -> None:
    warned: dict[str, Any] = {"near_limit": "seven_day", "near_limit_used": 0.97, "near_limit_until": 5}
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, model="claude-OPUS-4", windows=windows, **warned)
    found = outcome.nearly_used
    assert (None if found is None else (found.window, found.resets_at)) == near
