"""What a run's end holds on its agent, and until when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.limits import (
    BRIEF_MS,
    FIRST_ESTIMATE_MS,
    MAX_BRIEF_MS,
    MAX_ESTIMATE_MS,
    MAX_TRY_MS,
    SHORTEST_MS,
    STALE_MS,
    TRIED_FIRST,
    Bucket,
    Hold,
    RanOn,
    believable,
    bucket_after,
    done_text,
    early_text,
    hold_after,
    in_family,
    ramp,
    try_pause_ms,
    window_text,
)
from claudomator_py.domain.outcome import (
    REASON_POLICIES,
    HoldKind,
    Outcome,
    OutcomeStatus,
    Provenance,
    Reason,
)
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS

NOW = 1_790_000_000_000
CLAUDE = Bucket(kind="claude", account="default")
FAILED = OutcomeStatus.FAILED
LIMITED = Outcome(status=OutcomeStatus.LIMITED, reason=Reason.RATE_LIMITED, limit="five_hour")


def estimated(created: int, until: int, reason: Reason = Reason.RATE_LIMITED) -> Hold:
    return Hold(CLAUDE, reason, until, Provenance.ESTIMATED, "words", created)


def test_a_success_holds_nothing() -> None:
    assert hold_after(Outcome(status=OutcomeStatus.SUCCEEDED), CLAUDE, None, NOW) is None


@pytest.mark.parametrize("reason", Reason)
def test_a_failure_holds_what_its_reason_says(reason: Reason) -> None:
    hold = hold_after(Outcome(status=FAILED, reason=reason), CLAUDE, None, NOW)
    match REASON_POLICIES[reason].hold:
        case HoldKind.NONE:
            assert hold is None
        case HoldKind.BRIEF:
            assert hold == Hold(CLAUDE, reason, NOW + BRIEF_MS, Provenance.ESTIMATED, reason.value, NOW)
        case HoldKind.UNTIL_OPERATOR:
            assert hold == Hold(CLAUDE, reason, None, Provenance.REPORTED, reason.value, NOW)
        case HoldKind.UNTIL_RESET:
            until = NOW + FIRST_ESTIMATE_MS
            assert hold == Hold(CLAUDE, reason, until, Provenance.ESTIMATED, reason.value, NOW)


def test_a_hold_that_ends_by_its_time_is_tried_by_one_run_first() -> None:
    assert {Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.NETWORK} == TRIED_FIRST


@pytest.mark.parametrize("reason", Reason)
def test_whatever_is_limited_holds_so_that_it_is_not_tried_again_at_once(reason: Reason) -> None:
    hold = hold_after(Outcome(status=OutcomeStatus.LIMITED, reason=reason), CLAUDE, None, NOW)
    assert hold is not None
    assert hold.holds_at(NOW + SHORTEST_MS - 1)


def test_a_reported_reset_is_believed_with_its_source() -> None:
    outcome = LIMITED.model_copy(update={"reset_at": NOW + 3 * HOUR_MS, "provenance": Provenance.REPORTED})
    hold = hold_after(outcome, CLAUDE, None, NOW)
    expected = Hold(CLAUDE, Reason.RATE_LIMITED, NOW + 3 * HOUR_MS, Provenance.REPORTED, "five_hour", NOW, "five_hour")
    assert hold == expected


def test_a_reset_just_past_holds_for_a_moment_and_a_stale_one_is_estimated_anew() -> None:
    just_past = LIMITED.model_copy(update={"reset_at": NOW - 2_000})
    stale = LIMITED.model_copy(update={"reset_at": NOW - DAY_MS})
    for outcome, until in ((just_past, NOW + SHORTEST_MS), (stale, NOW + FIRST_ESTIMATE_MS)):
        hold = hold_after(outcome, CLAUDE, None, NOW)
        assert hold is not None
        assert hold.until_ms == until


def test_a_reset_that_passed_while_nobody_looked_holds_for_a_moment() -> None:
    outcome = LIMITED.model_copy(update={"reset_at": NOW - HOUR_MS})
    hold = hold_after(outcome, CLAUDE, None, NOW, met_ms=NOW - 2 * HOUR_MS)
    assert hold is not None
    assert hold.until_ms == NOW + SHORTEST_MS


@pytest.mark.parametrize(
    ("ahead", "held", "provenance"),
    [
        (SHORTEST_MS, SHORTEST_MS, Provenance.REPORTED),
        (SHORTEST_MS - 1, SHORTEST_MS, Provenance.ESTIMATED),
        (0, SHORTEST_MS, Provenance.ESTIMATED),
        (1 - STALE_MS, SHORTEST_MS, Provenance.ESTIMATED),
        (-STALE_MS, FIRST_ESTIMATE_MS, Provenance.ESTIMATED),
    ],
)
def test_a_reset_counts_if_it_lies_ahead_by_the_shortest_hold_and_is_over_for_a_minute(
    ahead: int, held: int, provenance: Provenance
) -> None:
    hold = hold_after(LIMITED.model_copy(update={"reset_at": NOW + ahead}), CLAUDE, None, NOW)
    assert hold is not None
    assert (hold.until_ms, hold.provenance) == (NOW + held, provenance)


def test_a_longer_first_estimate_is_not_cut_to_twice_a_moment_that_proved_too_short() -> None:
    moment = estimated(NOW - 2 * SHORTEST_MS, NOW - SHORTEST_MS)
    hold = hold_after(LIMITED, CLAUDE, moment, NOW)
    assert hold is not None
    assert (hold.until_ms, hold.provenance) == (NOW + FIRST_ESTIMATE_MS, Provenance.PROBED)


def test_an_estimate_that_proved_too_short_is_doubled_up_to_an_hour() -> None:
    hold, now, lengths = None, NOW, []
    for _ in range(9):
        hold = hold_after(LIMITED, CLAUDE, hold, now)
        assert hold is not None
        assert hold.until_ms is not None
        lengths.append(hold.until_ms - now)
        now = hold.until_ms + 20_000
    minutes = [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert lengths == [minute * MINUTE_MS for minute in minutes]
    assert max(lengths) == MAX_ESTIMATE_MS


@pytest.mark.parametrize("reason", [Reason.OVERLOADED, Reason.NETWORK])
def test_an_outage_that_goes_on_is_looked_at_ever_less_often_so_that_it_does_not_burn_the_queue(reason: Reason) -> None:
    outage, hold, now, lengths = Outcome(status=FAILED, reason=reason), None, NOW, []
    for _ in range(7):
        hold = hold_after(outage, CLAUDE, hold, now)
        assert hold is not None
        assert hold.until_ms is not None
        lengths.append((hold.until_ms - now) // 1_000)
        now = hold.until_ms + 20_000
    assert lengths == [30, 60, 120, 240, 300, 300, 300]
    assert lengths[-1] * 1_000 == MAX_BRIEF_MS


def test_an_estimate_starts_anew_after_a_quiet_time_another_reason_or_a_report() -> None:
    quiet = estimated(NOW - DAY_MS, NOW - DAY_MS + 40 * MINUTE_MS)
    other = estimated(NOW - BRIEF_MS, NOW - 1, Reason.OVERLOADED)
    reported = Hold(CLAUDE, Reason.RATE_LIMITED, NOW - 1, Provenance.REPORTED, "five_hour", NOW - HOUR_MS)
    by_hand = Hold(CLAUDE, Reason.AUTH, None, Provenance.REPORTED, "login", NOW - HOUR_MS)
    for previous in (quiet, other, reported, by_hand):
        hold = hold_after(LIMITED, CLAUDE, previous, NOW)
        assert hold is not None
        assert hold.until_ms == NOW + FIRST_ESTIMATE_MS


def test_a_probe_that_asked_for_minutes_before_it_gave_up_is_no_quiet_time() -> None:
    over = NOW + FIRST_ESTIMATE_MS
    for began, length in ((over + 59_999, 2 * FIRST_ESTIMATE_MS), (over + MINUTE_MS, FIRST_ESTIMATE_MS)):
        gave_up = over + 4 * MINUTE_MS
        hold = hold_after(LIMITED, CLAUDE, estimated(NOW, over), gave_up, began_ms=began)
        assert hold is not None
        assert hold.until_ms == gave_up + length


@pytest.mark.parametrize(("ahead", "believed"), [(35 * DAY_MS, True), (35 * DAY_MS + 1, False), (10**13, False)])
def test_a_reset_beyond_thirty_five_days_is_cut_marked_and_looked_at_early(ahead: int, believed: bool) -> None:
    named = LIMITED.model_copy(update={"reset_at": NOW + ahead, "provenance": Provenance.REPORTED})
    outcome = believable(named, NOW)
    assert (outcome == named) is believed
    assert outcome.reset_at == NOW + 35 * DAY_MS
    hold = hold_after(outcome, CLAUDE, None, NOW)
    assert hold is not None
    until, provenance, doubted = hold.until_ms, hold.provenance, hold.doubted_ms
    if believed:
        assert (until, provenance, doubted) == (NOW + ahead, Provenance.REPORTED, None)
    else:
        assert (until, provenance) == (NOW + FIRST_ESTIMATE_MS, Provenance.ESTIMATED)
        assert doubted == NOW + 35 * DAY_MS
        again = hold_after(outcome, CLAUDE, hold, NOW + MINUTE_MS)
        assert again is not None
        assert (again.until_ms, again.doubted_ms) == (NOW + MINUTE_MS + 2 * FIRST_ESTIMATE_MS, doubted)


def test_a_warning_of_a_limit_beyond_thirty_five_days_is_cut() -> None:
    warned = Outcome(status=OutcomeStatus.SUCCEEDED, near_limit_until=NOW + 10**12)
    assert believable(warned, NOW).near_limit_until == NOW + 35 * DAY_MS
    assert believable(warned, NOW).reset_at is None


@pytest.mark.parametrize(
    ("until", "news"), [(NOW + MINUTE_MS, False), (NOW + MINUTE_MS + 1, True), (NOW - 1, False), (None, True)]
)
def test_a_hold_is_news_where_it_lasts_longer(until: int | None, news: bool) -> None:
    known = estimated(NOW - 1, NOW)
    assert Hold(CLAUDE, Reason.RATE_LIMITED, until, Provenance.REPORTED, "", NOW).is_news_after(known) is news
    forever = Hold(CLAUDE, Reason.AUTH, None, Provenance.REPORTED, "", NOW)
    assert not forever.is_news_after(forever)


def test_runs_that_meet_one_limit_together_do_not_double_it() -> None:
    first = hold_after(LIMITED, CLAUDE, None, NOW)
    assert first is not None
    second = hold_after(LIMITED, CLAUDE, first, NOW + 10_000)
    third = hold_after(LIMITED, CLAUDE, second, NOW + 20_000)
    assert third is not None
    assert third.until_ms == first.until_ms
    assert first.until_ms is not None
    probe = hold_after(LIMITED, CLAUDE, third, first.until_ms + 1_000)
    assert probe is not None
    assert probe.until_ms == first.until_ms + 1_000 + 2 * FIRST_ESTIMATE_MS


@given(st.integers(0, 10 * DAY_MS), st.integers(1, DAY_MS), st.sampled_from(Reason), st.sampled_from(Provenance))
def test_a_hold_always_lies_ahead(ago: int, length: int, reason: Reason, provenance: Provenance) -> None:
    previous = Hold(CLAUDE, reason, NOW - ago + length, provenance, "words", NOW - ago)
    hold = hold_after(LIMITED, CLAUDE, previous, NOW)
    assert hold is not None
    assert hold.until_ms is not None
    assert NOW < hold.until_ms <= NOW + max(MAX_ESTIMATE_MS, length)


def test_a_hold_ends_when_its_time_has_come() -> None:
    hold = estimated(NOW, NOW + 5)
    assert hold.holds_at(NOW + 4)
    assert not hold.holds_at(NOW + 5)
    assert Hold(CLAUDE, Reason.AUTH, None, Provenance.REPORTED, "", NOW).holds_at(NOW + 400 * DAY_MS)


RAN = RanOn("home", "claude", "default", "claude-opus-4-8")


@pytest.mark.parametrize(
    ("reason", "family", "label"),
    [
        (Reason.RATE_LIMITED, None, "claude/default"),
        (Reason.RATE_LIMITED, "opus", "claude/default:opus"),
        (Reason.RATE_LIMITED, "sonnet", "claude/default"),
        (Reason.AUTH, None, "claude/default"),
        (Reason.NO_CREDIT, None, "claude/default"),
        (Reason.OVERLOADED, None, "home"),
    ],
)
def test_what_is_held_is_what_ran_out(reason: Reason, family: str | None, label: str) -> None:
    outcome = Outcome(status=FAILED, reason=reason, family=family)
    bucket = bucket_after(outcome, RAN)
    assert bucket is not None
    assert bucket.label == label


@pytest.mark.parametrize(
    ("reason", "model", "spare", "label"),
    [
        (Reason.OVERLOADED, "Opus", "haiku", "home:opus"),
        (Reason.OVERLOADED, "opus", "opus", "home"),
        (Reason.OVERLOADED, "opus", None, "home"),
        (Reason.OVERLOADED, None, "haiku", "home"),
        (Reason.NETWORK, "opus", "haiku", "home"),
        (Reason.RATE_LIMITED, "opus", "haiku", "claude/default"),
    ],
)
def test_an_outage_of_a_model_is_held_against_it_alone_where_the_agent_has_another(
    reason: Reason, model: str | None, spare: str | None, label: str
) -> None:
    ran = RanOn("home", "claude", "default", model)
    bucket = bucket_after(Outcome(status=FAILED, reason=reason), ran, spare)
    assert bucket is not None
    assert bucket.label == label


def test_a_success_is_of_no_bucket() -> None:
    assert bucket_after(Outcome(status=OutcomeStatus.SUCCEEDED), RAN) is None


@pytest.mark.parametrize(
    ("bucket", "is_on"),
    [
        (CLAUDE, True),
        (Bucket(kind="claude", account="other"), False),
        (Bucket(kind="claude", account="default", family="opus"), True),
        (Bucket(kind="claude", account="default", family="haiku"), False),
        (Bucket(kind="claude", account="other", family="opus"), False),
        (Bucket(agent="home"), True),
        (Bucket(agent="work"), False),
        (Bucket(agent="home", family="opus"), True),
        (Bucket(agent="home", family="haiku"), False),
    ],
)
def test_a_hold_is_on_what_draws_on_its_bucket_with_a_model_of_its_family(bucket: Bucket, is_on: bool) -> None:
    hold = Hold(bucket, Reason.RATE_LIMITED, NOW, Provenance.REPORTED, "", NOW)
    assert hold.is_on(RAN) is is_on
    unnamed = RanOn("home", "claude", "default", None)
    assert hold.is_on(unnamed) is (is_on and bucket.family is None)


@pytest.mark.parametrize("reason", Reason)
def test_what_holds_nothing_is_of_no_bucket(reason: Reason) -> None:
    outcome = Outcome(status=FAILED, reason=reason)
    assert (bucket_after(outcome, RAN) is None) == (hold_after(outcome, CLAUDE, None, NOW) is None)


def test_a_family_that_the_run_was_not_of_by_name_is_the_accounts_limit_or_it_would_be_met_for_ever() -> None:
    limited = LIMITED.model_copy(update={"family": "opus"})
    for model in (None, "default"):
        assert bucket_after(limited, RanOn("home", "claude", "default", model)) == CLAUDE


def test_a_bucket_is_of_every_agent_that_draws_on_it() -> None:
    assert CLAUDE.is_of("home", "claude", "default")
    assert CLAUDE.is_of("work", "claude", "default")
    assert not CLAUDE.is_of("work", "claude", "other")
    assert not CLAUDE.is_of("work", "codex", "default")
    alone = Bucket(agent="home")
    assert alone.is_of("home", "claude", "default")
    assert not alone.is_of("work", "claude", "default")


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("five_hour", "5h window"),
        ("seven_day", "7d window"),
        ("seven_day_opus", "7d opus window"),
        ("five_hours_or_so", "five_hours_or_so"),
        ("GenerateRequestsPerDay", "GenerateRequestsPerDay"),
    ],
)
def test_windows_are_put_in_words(window: str, words: str) -> None:
    assert window_text(window) == words


def test_a_limited_account_is_tried_ever_less_often() -> None:
    assert [try_pause_ms(met) for met in (0, 1, 2, 3, 5)] == [0, 0, 1_000, 2_000, 8_000]
    assert try_pause_ms(1_000) == MAX_TRY_MS


def test_each_answer_after_a_limit_doubles_how_many_may_run_up_to_more_than_anybody_has_slots() -> None:
    assert [ramp(answered) for answered in range(5)] == [1, 2, 4, 8, 16]
    assert ramp(10_000) == ramp(20) == 1 << 20


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("opus", "opus"),
        ("claude-opus-4-8", "Opus"),
        ("opus[1m]", "opus"),
        ("opusplan", "opus"),
        ("anthropic/claude-opus-4-8", "opus"),
        ("gpt-6-sol", "gpt-6"),
        ("GPT-5.3-Codex-Spark", "gpt-5.3-codex-spark"),
        ("gpt-5.3-codex-spark-2026-10-01", "gpt-5.3-codex-spark"),
        ("openai/gpt-5.3-codex-spark", "gpt-5.3-codex-spark"),
        ("codex-spark", "gpt-5.3-codex-spark"),
        ("pro", "gemini-3.1-pro-preview"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
        ("flash", "gemini-3.8-flash"),
        ("flash-lite", "gemini-3.5-flash-lite"),
        ("opus", "claude-opus-4-8"),
    ],
)
def test_a_model_is_of_a_family_by_any_of_its_names(model: str, family: str) -> None:
    assert in_family(model, family)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        (None, "opus"),
        ("sonnet", "opus"),
        ("gpt-5.3-codex", "gpt-5.3-codex-spark"),
        ("gpt-5.3-codex-spark", "gpt-5.3-codex"),
        ("gpt-5.4-codex-spark", "gpt-5.3-codex-spark"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash"),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("gemini-3-pro", "gemini-3.1-pro"),
        ("flash-lite", "gemini-3.8-flash"),
        ("flash", "gemini-3.5-flash-lite"),
        ("auto", "gemini-3.1-pro-preview"),
        ("sonnet", "claude-opus-4-8"),
        ("", "gpt-6-sol"),
    ],
)
def test_a_model_of_another_name_or_version_is_of_another_family(model: str | None, family: str) -> None:
    assert not in_family(model, family)


@pytest.mark.parametrize(
    ("model", "ran_model", "held"),
    [
        ("fable", None, "fable"),
        ("claude-fable-5", "claude-fable-5", "fable"),
        (None, "claude-fable-5", "fable"),
        ("best", "claude-fable-5", "best"),
        ("best", "claude-opus-4-8", None),
        ("opus", None, None),
        (None, None, None),
    ],
)
def test_a_limit_of_a_family_holds_what_the_run_asked_for_where_it_ran_that_family(
    model: str | None, ran_model: str | None, held: str | None
) -> None:
    limited = LIMITED.model_copy(update={"family": "Fable"})
    ran_on = RanOn("home", "claude", "default", model, ran_model)
    bucket = bucket_after(limited, ran_on)
    assert bucket == Bucket(kind="claude", account="default", family=held)
    assert Hold(bucket, Reason.RATE_LIMITED, NOW, Provenance.REPORTED, "", NOW).is_on(ran_on)


@pytest.mark.parametrize(
    ("used", "text"),
    [(None, None), (0.9, None), (0.97, "may have stopped early: 97% of the 5h window was used up")],
)
def test_a_success_with_a_window_nearly_used_up_may_have_stopped_early(used: float | None, text: str | None) -> None:
    fields = {"near_limit": "five_hour", "near_limit_used": used, "near_limit_until": 1}
    outcome = Outcome.model_validate({"status": "succeeded", **fields})
    assert early_text(outcome) == text
    assert done_text(outcome, checked=False) == (None if text is None else f"done, {text}")
    assert done_text(outcome, checked=True) is None
