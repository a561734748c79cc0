"""One task's decision: hints, limits, models and tiers, and why it is so."""

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, Why, blocked, on_hold
from claudomator_py.domain.blocked_words import blocked_text, predicate
from claudomator_py.domain.decision import Fallback
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.wording import worded
from claudomator_py.scheduler.records import DecisionRecord, OverriddenHint
from tests.unit.scheduler.situations import HOLD, LOGIN, NOW, agent, decide, head, waits

LIMITED = on_hold(
    "codex",
    bucket=HOLD.bucket,
    reason=HOLD.reason,
    until=HOLD.until,
    provenance=HOLD.provenance,
    source=HOLD.source,
    window=HOLD.window,
)


def full(name: str) -> Blocked:
    return blocked(BlockCode.FULL, agent=name, active=2, slots=2)


# --- remote specialists ----------------------------------------------------------------------------------------------


SHEPHERD = agent("hub:shepherd", kind="hub", auto_select=False, specialist="shepherd")


def test_an_agent_that_is_a_specialist_does_what_is_routed_to_it() -> None:
    routed = Constraints(agents=("hub:shepherd",))
    record = decide(head(1, constraints=routed), agent("claude"), SHEPHERD)
    assert record.agent == "hub:shepherd"


@pytest.mark.parametrize("named", ["hub:shepherd", "hub"])
def test_to_all_other_tasks_it_does_not_exist(named: str) -> None:
    assert waits(head(1, agent_type=named, strict=True), SHEPHERD) == blocked(BlockCode.REQUIRED_AGENT, agent=named)
    preferred = decide(head(1, agent_type="hub:shepherd"), agent("claude"), SHEPHERD)
    assert preferred.agent == "claude"
    record = decide(head(1), agent("claude"), SHEPHERD)
    assert [candidate.agent for candidate in record.candidates] == ["claude"]


# --- hints ------------------------------------------------------------------------------------------------------------


def test_a_hint_wins_while_its_agent_can_take_the_task() -> None:
    record = decide(head(1, agent_type="codex"), agent("claude"), agent("codex", active=1))
    assert (record.agent, record.overridden) == ("codex", None)
    assert record.reason.text == "the task prefers codex"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"hold": HOLD}, LIMITED),
        ({"active": 2}, full("codex")),
        ({"problem": "not on PATH"}, blocked(BlockCode.PROBLEM, agent="codex", text="not on PATH")),
    ],
)
def test_a_hint_is_overridden_and_recorded_when_it_cannot(state: dict[str, object], why: Blocked) -> None:
    record = decide(head(1, agent_type="codex"), agent("claude"), agent("codex", **state))
    assert (record.agent, record.overridden) == ("claude", OverriddenHint(agent="codex", because=(why,)))


def test_a_full_agent_is_waited_for_a_while_and_a_limit_or_a_fault_is_not() -> None:
    claude, busy = agent("claude"), agent("codex", active=2)
    fresh, old = (head(1, agent_type="codex", queued=NOW - waited) for waited in (59_999, 60_000))
    waiting = waits(fresh, claude, busy, prefer_wait=60_000)
    assert waiting == blocked(BlockCode.PREFERRED_FULL, agents=(full("codex"),), until=NOW + 1)
    assert decide(old, claude, busy, prefer_wait=60_000).agent == "claude"
    for state in ({"hold": HOLD}, {"problem": "not on PATH"}, {"hold": HOLD, "active": 2}):
        assert decide(fresh, claude, agent("codex", **state), prefer_wait=60_000).agent == "claude"
    # Of a kind, one that is limited is no reason to wait, one that is full is.
    two = (agent("a", kind="codex", hold=HOLD), agent("b", kind="codex", active=2))
    assert waits(fresh, claude, *two, prefer_wait=60_000).params.agents == (full("b"),)
    assert decide(fresh, claude, *two, agent("c", kind="codex"), prefer_wait=60_000).agent == "c"
    assert decide(fresh, claude, busy, prefer_wait=60_000, type_hint="ignore").agent == "claude"


def test_near_a_limit_loses_ties_or_is_avoided_or_means_nothing() -> None:
    near, busy = agent("claude", near_limit=True), agent("codex", active=1)
    for rule, to_busy, to_idle in (
        ("tie_break", "claude", "codex"),
        ("avoid", "codex", "codex"),
        ("ignore", "claude", "claude"),
    ):
        assert decide(head(1), near, busy, near_limit=rule).agent == to_busy
        assert decide(head(1), near, agent("codex"), near_limit=rule).agent == to_idle
    # Avoided only while another is free: not limited, not near a limit itself, and with a slot.
    for other in (agent("codex", hold=HOLD), agent("codex", active=2), agent("codex", active=1, near_limit=True)):
        assert decide(head(1), near, other, near_limit="avoid").agent == "claude"


def rejected(record: DecisionRecord, name: str) -> Blocked | None:
    """Why that agent was not chosen."""
    return next(candidate.rejected for candidate in record.candidates if candidate.agent == name)


def test_why_an_agent_near_its_limit_was_not_chosen_is_said_only_where_that_was_why() -> None:
    near, busy, idle = agent("claude", near_limit=True), agent("codex", active=1), agent("codex")
    avoided = rejected(decide(head(1), near, busy, near_limit="avoid"), "claude")
    assert avoided == blocked(BlockCode.NEAR_LIMIT, agent="claude")
    tie = rejected(decide(head(1), near, idle, near_limit="tie_break"), "claude")
    assert tie == blocked(BlockCode.TIE_NEAR_LIMIT, agent="claude", chosen="codex")
    elsewhere = decide(head(1, agent_type="codex"), agent("claude", near_limit=True, active=1), busy)
    assert rejected(elsewhere, "claude") == blocked(BlockCode.NOT_MEANT, agent="claude"), "codex was asked for"
    for usual in (decide(head(1), agent("claude"), idle), decide(head(1), near, idle, near_limit="ignore")):
        assert rejected(usual, "codex") == blocked(BlockCode.TIE, agent="codex", chosen="claude")
    busier = rejected(decide(head(1), near, busy, near_limit="tie_break"), "codex")
    assert busier == blocked(BlockCode.BUSIER, agent="codex", active=1, slots=2)


def test_what_has_to_be_named_is_insisted_on_even_if_nobody_has_it() -> None:
    for kind in ("simulated", "command"):
        missing = waits(head(1, agent_type=kind), agent("claude"))
        assert missing == blocked(BlockCode.REQUIRED_AGENT, agent=kind)


def test_the_tier_of_a_pinned_model_carries_over_from_a_kind_that_nobody_has() -> None:
    record = decide(head(1, agent_type="claude", model="opus"), agent("codex"))
    assert (record.tier, record.model, record.effort) == (Tier.POWERFUL, "sol", "high")
    assert record.classification.cause == "the tier of opus"
    unheard = decide(head(1, agent_type="claude", model="unheard-of"), agent("codex"))
    assert unheard.classification.source == "default"


def test_a_hint_to_an_agent_that_nobody_has_is_overridden_too() -> None:
    record = decide(head(1, agent_type="gemini"), agent("claude"))
    assert (record.agent, record.overridden) == (
        "claude",
        OverriddenHint(agent="gemini", because=(blocked(BlockCode.NOT_CONFIGURED, agent="gemini"),)),
    )


def test_a_hint_by_kind_means_any_agent_of_it() -> None:
    work, home = agent("work", kind="claude", active=1), agent("home", kind="claude")
    assert decide(head(1, agent_type="claude"), work, home, agent("codex")).agent == "home"
    assert decide(head(1, agent_type="claude"), work, agent("home", kind="claude", hold=HOLD)).agent == "work"


def test_a_name_goes_before_a_kind() -> None:
    agents = (agent("a", kind="claude"), agent("claude", kind="claude", active=1))
    assert decide(head(1, agent_type="claude"), *agents).agent == "claude"


def test_a_kind_does_not_mean_its_agents_that_are_chosen_by_name_only() -> None:
    agents = (agent("a", kind="claude", auto_select=False), agent("b", kind="claude", active=1))
    assert decide(head(1, agent_type="claude"), *agents).agent == "b"
    assert decide(head(1, agent_type="a"), *agents).agent == "a"


def test_a_strict_task_waits_for_its_agent() -> None:
    task = head(1, agent_type="codex", strict=True)
    waiting = waits(task, agent("claude"), agent("codex", hold=HOLD))
    assert waiting == blocked(BlockCode.AGENTS_LIMITED, agents=(LIMITED,))
    assert waiting.until == HOLD.until
    assert waits(task, agent("claude"), agent("codex", active=2)).why is Why.SLOTS
    assert waits(task, agent("claude")).why is Why.AGENT
    assert decide(task, agent("claude"), agent("codex")).reason.text == "the task insists on codex"


def test_a_hint_to_an_agent_closed_to_balancing_is_strict() -> None:
    task = head(1, agent_type="lint")
    busy = agent("lint", kind="command", auto_select=False, active=2)
    assert waits(task, agent("claude"), busy) == blocked(BlockCode.AGENTS_FULL, agents=(full("lint"),))
    assert decide(task, agent("claude"), agent("lint", auto_select=False)).agent == "lint"


def test_an_agent_closed_to_balancing_is_not_chosen_without_being_named() -> None:
    lint = agent("lint", kind="command", auto_select=False)
    record = decide(head(1), agent("claude", active=1), lint)
    assert record.agent == "claude"
    closed = next(candidate for candidate in record.candidates if candidate.agent == "lint")
    assert (closed.eligible, closed.rejected) == (False, blocked(BlockCode.NOT_SELECTABLE, agent="lint"))
    assert waits(head(1), lint) == blocked(BlockCode.NO_AGENT)


def test_ignored_hints_change_nothing() -> None:
    task = head(1, agent_type="codex")
    record = decide(task, agent("claude"), agent("codex"), type_hint="ignore")
    assert (record.agent, record.overridden) == ("claude", None)
    assert decide(task, agent("claude", active=1), agent("codex"), type_hint="ignore").agent == "codex"


# --- limits -----------------------------------------------------------------------------------------------------------


def test_when_all_are_limited_it_waits_for_the_first_reset() -> None:
    later = HOLD.model_copy(update={"until": NOW + 900_000})
    waiting = waits(head(1), agent("claude", hold=later), agent("codex", hold=HOLD), agent("gemini", hold=LOGIN))
    assert (waiting.why, waiting.until) == (Why.LIMITED, HOLD.until)
    text = "gemini is held (auth: please run /login, reported) until `claudomator release gemini`"
    assert text in blocked_text(waiting)


def test_or_it_tries_the_least_active_as_the_plain_fallback() -> None:
    agents = (agent("claude", hold=HOLD, active=1), agent("codex", hold=HOLD))
    record = decide(head(1), *agents, when_all_limited="try")
    assert (record.agent, record.fallback) == ("codex", Fallback.ALL_LIMITED)


def test_a_limited_agent_is_not_tried_while_another_merely_has_no_slot() -> None:
    agents = (agent("claude", active=2), agent("codex", hold=HOLD))
    for when in ("wait", "try"):
        waiting = waits(head(1), *agents, when_all_limited=when)
        assert waiting == blocked(BlockCode.AGENTS_FULL, agents=(full("claude"), LIMITED))


def test_an_agent_that_cannot_run_is_no_candidate() -> None:
    broken = agent("claude", problem="not logged in")
    assert decide(head(1), broken, agent("codex", active=1)).agent == "codex"
    unable = blocked(BlockCode.PROBLEM, agent="claude", text="not logged in")
    assert waits(head(1), broken) == blocked(BlockCode.AGENTS_UNABLE, agents=(unable,))
    assert waits(head(1), broken, agent("codex", hold=HOLD)).why is Why.LIMITED


# --- tiers and models -------------------------------------------------------------------------------------------------


def test_a_pinned_tier_maps_to_the_model_of_whoever_runs_it() -> None:
    task = head(1, tier=Tier.POWERFUL)
    on_claude = decide(task, agent("claude"))
    assert (on_claude.tier, on_claude.model, on_claude.effort) == (Tier.POWERFUL, "opus", None)
    on_codex = decide(task, agent("codex"))
    assert (on_codex.tier, on_codex.model, on_codex.effort) == (Tier.POWERFUL, "sol", "high")
    assert on_codex.classification.source == "pinned"


def test_a_pinned_model_is_for_its_agent_and_elsewhere_its_tier_carries_over() -> None:
    task = head(1, agent_type="claude", model="opus")
    own = decide(task, agent("claude"), agent("codex"))
    assert (own.agent, own.model, own.tier) == ("claude", "opus", Tier.POWERFUL)
    elsewhere = decide(task, agent("claude", hold=HOLD), agent("codex"))
    assert (elsewhere.agent, elsewhere.model, elsewhere.tier) == ("codex", "sol", Tier.POWERFUL)


def test_a_model_pinned_for_one_login_is_not_passed_to_another_of_the_same_kind() -> None:
    models = {
        tier: choice.model_copy(update={"model": f"{choice.model}-b"})
        for tier, choice in agent("claude").models.items()
    }
    other = agent("other", kind="claude", models=models)
    record = decide(head(1, agent_type="claude", model="opus"), agent("claude", hold=HOLD), other)
    assert (record.agent, record.model) == ("other", "opus-b")
    by_kind = decide(head(1, agent_type="claude", model="opus"), agent("work", kind="claude"))
    assert (by_kind.agent, by_kind.model) == ("work", "opus")


def test_a_pinned_model_that_no_tier_knows_is_passed_all_the_same() -> None:
    record = decide(head(1, agent_type="claude", model="claude-next"), agent("claude"))
    assert (record.model, record.tier, record.classification.source) == ("claude-next", Tier.BALANCED, "pinned")


def test_a_retry_keeps_its_tier_and_the_file_goes_before_it() -> None:
    kept = decide(head(1, kept_tier=Tier.FAST), agent("codex"))
    assert (kept.tier, kept.model, kept.effort, kept.classification.source) == (Tier.FAST, "luna", "low", "kept")
    assert decide(head(1, kept_tier=Tier.FAST, tier=Tier.POWERFUL), agent("codex")).tier is Tier.POWERFUL


def test_without_any_word_the_agents_default_tier_is_taken() -> None:
    record = decide(head(1), agent("claude", default_tier=Tier.FAST))
    assert (record.tier, record.model, record.classification.source) == (Tier.FAST, "haiku", "default")
    assert decide(head(1), agent("plain", models={})).model is None


# --- the record -------------------------------------------------------------------------------------------------------


def test_every_agent_is_in_the_record_and_all_but_the_chosen_have_a_reason() -> None:
    agents = (
        *(agent("busy", active=1), agent("chosen"), agent("held", hold=HOLD), agent("lint", auto_select=False)),
        *(agent("off", problem="not on PATH"), agent("zed")),
    )
    record = decide(head(1), *agents)
    reasons = {
        candidate.agent: None if candidate.rejected is None else worded(predicate(candidate.rejected))
        for candidate in record.candidates
    }
    assert reasons == {
        "busy": "busier (1 of 2 slots)",
        "chosen": None,
        "held": "limited (5h window, reported) until 2026-09-21 14:14 UTC",
        "lint": "available only when named explicitly",
        "off": "unable to run: not on PATH",
        "zed": "as busy as chosen, which comes first alphabetically",
    }
    held = next(candidate for candidate in record.candidates if candidate.agent == "held")
    assert (held.limited, held.limited_until) == (True, HOLD.until)


def test_a_long_source_of_a_hold_is_cut() -> None:
    long = HOLD.model_copy(update={"source": "word " * 200, "reason": Reason.OVERLOADED, "window": None})
    text = blocked_text(waits(head(1), agent("claude", hold=long)))
    assert text.startswith("claude is limited (overloaded: word word")
    assert len(text) < 200


def test_an_agent_that_cannot_enforce_what_a_task_asks_for_does_not_get_it() -> None:
    task = head(1, cannot={"claude": "claude cannot count turns"})
    assert decide(task, agent("claude"), agent("codex")).agent == "codex"
    assert "claude cannot count turns" in blocked_text(waits(task, agent("claude")))
    hinted = decide(head(1, agent_type="claude", cannot={"claude": "no turns"}), agent("claude"), agent("codex"))
    assert hinted.agent == "codex"
    assert hinted.overridden is not None
    (why,) = hinted.overridden.because
    assert why == blocked(BlockCode.UNFIT, agent="claude", text="no turns")


# --- what stands in ---------------------------------------------------------------------------------------------------


def test_a_hold_on_a_share_of_a_window_says_how_much_of_it_is_used() -> None:
    shared = HOLD.model_copy(update={"reason": Reason.BUDGET, "used": 0.61, "share": 0.6})

    result = waits(head(1, agent_type="claude", strict=True), agent("claude", hold=shared))

    assert result.params.agents == (
        blocked(BlockCode.WINDOW_BUDGET, agent="claude", until=HOLD.until, window="five_hour", used=0.61, share=0.6),
    )


def test_a_fallback_stands_in_where_the_task_failed_and_nowhere_else() -> None:
    task = head(1, failed_on="claude", failed_for=Reason.OVERLOADED)

    there = decide(task, agent("claude", fallback_model="haiku"))
    elsewhere = decide(task, agent("codex", fallback_model="luna"))

    assert there.stands_in is not None
    assert (there.model, there.stands_in.after) == ("haiku", Reason.OVERLOADED)
    assert elsewhere.stands_in is None
    assert elsewhere.model != "luna"


def test_nothing_stands_in_for_a_model_that_the_task_pins() -> None:
    overloaded = HOLD.model_copy(update={"reason": Reason.OVERLOADED, "family": "opus"})
    claude = agent("claude", fallback_model="haiku", hold=overloaded)
    pinned = decide(
        head(1, agent_type="claude", model="opus", failed_on="claude", failed_for=Reason.OVERLOADED),
        claude,
        when_all_limited="try",
    )
    assert (pinned.model, pinned.stands_in) == ("opus", None)


def test_a_choice_among_agents_that_are_not_limited_is_no_fallback() -> None:
    assert decide(head(1), agent("claude"), agent("codex", hold=HOLD)).fallback is None
    tried = decide(head(1), agent("claude", hold=HOLD), when_all_limited="try")
    assert tried.fallback is Fallback.ALL_LIMITED


def test_of_limited_agents_only_one_with_a_slot_is_tried() -> None:
    full, busier = agent("claude", hold=HOLD, active=2), agent("codex", hold=HOLD, active=3, max_concurrent=9)
    assert decide(head(1), full, busier, when_all_limited="try").agent == "codex"


def test_a_decision_names_the_configuration_that_it_was_made_with() -> None:
    assert decide(head(1), agent("claude"), settings_hash="c0ffee").versions.configuration == "c0ffee"
