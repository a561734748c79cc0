"""Limits, on both databases: what a hold is on, and whom it stops."""

from typing import Any

import pytest
from sqlalchemy import select

from claudomator_py.domain.agent import AgentSpec, ModelChoice, Tier
from claudomator_py.domain.errors import Invalid, NotFound
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.store.database import Database
from claudomator_py.store.tables import EVENT
from tests.contract.limited import WIDE, WORK, limit_on
from tests.fakes.agents import CLAUDE, CLAUDE_MODELS, CODEX
from tests.fakes.decisions import placement_of
from tests.fakes.world import START_MS, World

ONE_SLOT = AgentSpec(name="codex", kind="codex", models=CLAUDE_MODELS, max_concurrent=1)
OTHER = AgentSpec(name="other", kind="claude", account="other", models=CLAUDE_MODELS)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_a_limit_of_one_model_family_leaves_the_others_of_the_account_alone(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER), total=8)
    limit_on(world, "claude", limit="seven_day_opus", family="opus", reset_at=START_MS + HOUR_MS)
    for agent in ("claude", "work", "other"):
        for tier in ("powerful", "fast"):
            world.submit(f"{agent}-{tier}", agent={"type": agent, "strict": True, "tier": tier})
    world.tick()
    assert set(world.running()) == {"claude-fast", "work-fast", "other-powerful", "other-fast"}
    waiting = world.task("work-powerful")
    assert (waiting.reason, waiting.waiting_until) == ("limited", format_instant(START_MS + HOUR_MS))
    claude, work, other = world.roster.all()
    assert (claude.limited, work.limited, len(other.holds)) == (False, False, 0)
    (hold,), (same,) = claude.holds, work.holds
    assert hold.blocked is not None
    of_work = {"agent": "work", "blocked": hold.blocked.having(agent="work")}
    assert (hold.agent, same) == ("claude", hold.model_copy(update=of_work))
    assert waiting.holds == (same,)
    assert waiting.reason_text == "work is limited (7d opus window, reported) until 15:13 UTC (in 59m59s)"
    assert (hold.bucket, hold.family, hold.window) == ("claude/default:opus", "opus", "seven_day_opus")
    assert (hold.provenance, hold.until) == ("reported", format_instant(START_MS + HOUR_MS))


@pytest.mark.both_databases
def test_a_limit_of_the_model_that_an_agent_chose_holds_those_that_leave_it_the_choice(world: World) -> None:
    plain = AgentSpec(name="plain", kind="claude", models={}, max_concurrent=4)
    world = World(world.database, agents=(plain,), total=8)
    world.submit("first", agent={"type": "plain"})
    world.tick()
    fable: dict[str, Any] = {"family": "fable", "model": "claude-fable-5", "limit": "seven_day_overage_included"}
    world.end("first", status="limited", reason="rate_limited", reset_at=START_MS + HOUR_MS, **fable)
    world.tick()
    models: dict[str, str | None] = {"unnamed": None, "fable": "fable", "opus": "opus"}
    for name, model in models.items():
        world.submit(name, agent={"type": "plain", "model": model} if model else {"type": "plain"})
    world.tick()
    assert set(world.running()) == {"opus"}
    text = "plain is limited (fable models, 7d overage included window"
    for waiting in ("unnamed", "fable"):
        assert text in (world.task(waiting).reason_text or "")
    world.tick(after_ms=HOUR_MS)
    assert len(world.running()) == 2, "one goes first"
    world.tick()
    assert len(world.running()) == 2, "and is known to draw on that family"


@pytest.mark.both_databases
def test_holds_on_models_are_released_by_any_name_of_theirs(world: World) -> None:
    models = {tier: ModelChoice(model=name) for tier, name in zip(Tier, ("flash-lite", "flash", "pro"), strict=True)}
    gemini = AgentSpec(name="gemini", kind="gemini", models=models, max_concurrent=4)
    world = World(world.database, agents=(gemini,), total=8)
    for tier, model in (("powerful", "gemini-3.1-pro-preview"), ("balanced", "gemini-3.8-flash")):
        limit_on(world, "gemini", tier, limit="daily", family=model, model=model, reset_at=START_MS + HOUR_MS)
    for tier in ("fast", "balanced", "powerful"):
        world.submit(tier, agent={"type": "gemini", "tier": tier})
    world.tick()
    assert set(world.running()) == {"fast"}
    assert [hold.family for hold in world.roster.release("gemini", ReleaseRequest(family="pro")).holds] == [
        "gemini-3.8-flash"
    ]
    world.tick()
    assert set(world.running()) == {"fast", "powerful"}


@pytest.mark.both_databases
def test_a_limit_of_a_model_that_was_asked_for_by_another_name_holds_that_name(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,), total=8)
    world.submit("first", agent={"type": "claude", "model": "best"})
    world.tick()
    fable: dict[str, Any] = {"family": "fable", "model": "claude-fable-5"}
    world.end("first", status="limited", reason="rate_limited", reset_at=START_MS + HOUR_MS, **fable)
    for name in ("best", "opus"):
        world.submit(name, agent={"type": "claude", "model": name})
    world.tick()
    assert set(world.running()) == {"opus"}
    (hold,) = world.roster.all()[0].holds
    assert (hold.bucket, hold.family) == ("claude/default:best", "best")
    world.roster.release("claude", ReleaseRequest(family="best"))
    world.tick()
    assert len(world.running()) == 2


@pytest.mark.both_databases
def test_two_agents_of_one_account_are_limited_and_released_together(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER, CODEX))
    limit_on(world, "work", reset_at=START_MS + HOUR_MS)
    assert {view.name for view in world.roster.all() if view.limited} == {"claude", "work"}
    assert not world.roster.release("claude").limited
    assert not any(view.limited for view in world.roster.all())


@pytest.mark.parametrize(("reason", "held"), [("auth", {"claude", "work"}), ("no_credit", {"claude", "work"})])
def test_a_login_or_a_credit_is_the_accounts(world: World, reason: str, held: set[str]) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER))
    limit_on(world, "claude", status="failed", reason=reason)
    assert {view.name for view in world.roster.all() if view.limited} == held


def test_an_overload_is_held_against_the_agent_alone(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK))
    limit_on(world, "claude", status="failed", reason="overloaded")
    assert {view.name for view in world.roster.all() if view.limited} == {"claude"}


def test_an_operator_holds_one_agent_until_a_time_or_until_it_is_released(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK))
    until = format_instant(START_MS + HOUR_MS)
    request = HoldRequest.model_validate({"until": until, "reason": "kept for the day"})
    view = world.roster.hold("claude", request)
    assert (view.limited, view.limited_until, view.provenance) == (True, until, "operator")
    assert view.hold_reason == "by hand: kept for the day"
    assert not world.roster.all()[1].limited
    world.submit("only", agent={"type": "claude", "strict": True})
    world.tick()
    text = world.task("only").reason_text
    assert text == "claude is held (by the operator: kept for the day) until 15:13 UTC (in 1h)"
    world.tick(HOUR_MS)
    assert world.running() == {"only": "claude"}
    world.roster.hold("claude", HoldRequest())
    assert world.roster.all()[0].limited_until is None
    assert not world.roster.release("claude").limited


def test_an_operator_holds_a_whole_account_and_releases_one_family_of_it(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER))
    until = format_instant(START_MS + HOUR_MS)
    for request in ({"account": True, "until": until}, {"account": True, "family": "opus"}):
        world.roster.hold("claude", HoldRequest.model_validate(request))
    claude, work, other = world.roster.all()
    assert [hold.bucket for hold in work.holds] == ["claude/default:opus", "claude/default"]
    assert [hold.text for hold in work.holds] == [
        "held (opus models, by the operator) until `claudomator release work`",
        "held (by the operator) until 15:13 UTC",
    ]
    assert (claude.limited, work.limited, other.holds) == (True, True, ())
    world.submit("t", agent={"type": "work", "strict": True})
    assert world.task("t").reason_text == "work is held (by the operator) until 15:13 UTC (in 1h)"
    released = world.roster.release("work", ReleaseRequest(family="Opus"))
    assert [hold.bucket for hold in released.holds] == ["claude/default"]
    assert world.roster.release("claude").holds == ()
    assert world.roster.all()[1].holds == ()


def test_a_preference_outlasts_a_full_agent_for_a_while(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, ONE_SLOT), prefer_wait=120_000)
    world.submit("busy", agent={"type": "codex"})
    world.tick()
    world.tick(after_ms=30_000)
    world.submit("t", agent={"type": "codex"})
    assert world.tick(after_ms=60_000).wake_ms == START_MS + 150_000
    view = world.task("t")
    until = view.waiting_until
    assert (view.state, view.reason, until) == ("QUEUED", "slots", format_instant(START_MS + 150_000))
    text = "codex is full (1 of 1 slots); the task prefers to wait, until 14:15 UTC (in 1m) at most"
    assert view.reason_text == text
    assert world.service.why("t").sentences[0] == f"t is QUEUED: {text}."
    world.tick(after_ms=60_000)
    assert world.running() == {"busy": "codex", "t": "claude"}
    assert placement_of(world.service.why("t").decisions[0]).overridden_hint == "codex: codex was full (1 of 1 slots)"


def test_why_says_where_a_hold_was_read_and_what_stops_the_others(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, OTHER, ONE_SLOT))
    limit_on(world, "claude", reset_at=START_MS + HOUR_MS, limit="five_hour", detail="You've hit your session limit")
    limit_on(world, "other", status="failed", reason="auth", provenance=None, detail="Invalid API key")
    world.submit("busy", agent={"type": "codex", "strict": True})
    world.tick()
    world.submit("t")
    view = world.task("t")
    assert (view.reason, view.waiting_until) == ("slots", None)
    assert view.reason_text == (
        "codex is full (1 of 1 slots); claude is limited (5h window, reported) until 15:13 UTC (in 59m59s); "
        "other is held (auth: Invalid API key, reported) until `claudomator release other`"
    )
    sentences = world.service.why("t").sentences
    first = world.service.runs("first")[0].id[:8]
    assert sentences[2] == (
        f"The hold on claude/other (auth) was read at 2026-09-21 14:13 UTC from run {first}: Invalid API key."
    )
    assert sentences[1].startswith(
        "The hold on claude/default (rate_limited) was read at 2026-09-21 14:13 UTC from run "
    )


def test_a_task_behind_a_directory_is_told_who_works_there(world: World) -> None:
    world.submit("first", working_dir="/src/shop")
    world.tick()
    world.submit("next", working_dir="/src/shop")
    view = world.task("next")
    assert (view.reason, view.reason_text) == ("workdir", "/src/shop is in use by first (RUNNING)")


def test_what_an_account_was_warned_of_is_shown_until_its_reset(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER))
    until = START_MS + HOUR_MS
    world.submit("t", agent={"type": "work", "strict": True})
    world.tick()
    world.end("t", near_limit_until=until, near_limit="five_hour", near_limit_used=0.93)
    world.tick()
    claude, work, other = world.roster.all()
    assert (claude.near_limit, other.near_limit) == (work.near_limit, None)
    assert work.near_limit is not None
    assert (work.near_limit.window, work.near_limit.used) == ("five_hour", 0.93)
    assert (work.near_limit.until, work.near_limit.run_id) == (format_instant(until), world.service.runs("t")[0].id)
    world.tick(HOUR_MS)
    assert world.roster.all()[0].near_limit is None


def test_an_operator_holds_one_family_and_is_told_of_what_cannot_be(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    assert not world.roster.hold("claude", HoldRequest(family="Opus")).limited
    world.submit("strong", agent={"tier": "powerful"})
    world.submit("light", agent={"tier": "fast"})
    world.tick()
    assert world.running() == {"light": "claude"}
    past = HoldRequest.model_validate({"until": format_instant(START_MS - 1)})
    for request, words in ((HoldRequest(family="sol"), "haiku, sonnet, opus"), (past, "past")):
        with pytest.raises(Invalid, match=words):
            world.roster.hold("claude", request)
    with pytest.raises(NotFound):
        world.roster.hold("nobody", HoldRequest())


def test_a_task_of_a_held_family_hides_no_other_of_its_lane(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    limit_on(world, "claude", limit="seven_day_opus", family="opus", reset_at=START_MS + HOUR_MS)
    for number in range(80):
        world.submit(f"strong-{number}", priority="urgent")
    strong = [world.row(f"strong-{number}").id for number in range(80)]
    world.keep_tier(strong, "powerful")
    world.submit("light")
    world.tick()
    assert world.running() == {"light": "claude"}


# --- what a task does at a limit --------------------------------------------------------------------------------------


def test_a_task_that_is_to_fail_at_a_limit_fails_and_the_account_is_held(world: World) -> None:
    world.submit("t", on_limit="fail")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason, view.attempts) == ("FAILED", "rate_limited", 0)
    assert world.roster.all()[0].limited


def test_a_task_that_is_to_wait_goes_on_in_its_conversation_at_the_reset_though_another_agent_is_free(
    world: World,
) -> None:
    world.submit("t", on_limit="wait", retry={"max_attempts": 1})
    world.tick()
    first = world.live("t")
    assert first.agent == "claude"
    world.limit("t", reset_at=START_MS + HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason, view.attempts) == ("QUEUED", "limited", 0)
    assert view.waiting_until == format_instant(START_MS + HOUR_MS)
    held = "claude is limited (5h window, reported) until 15:13 UTC (in 1h)"
    text = f"resumes the conversation of run {first.id[:8]} on claude: {held}"
    assert view.reason_text == text
    world.restarted_daemon()
    world.tick(HOUR_MS - 1)
    assert world.running() == {}
    world.tick(1)
    second = world.live("t")
    assert (second.agent, second.resumes, second.attempt) == ("claude", first.id, 1)
    assert second.conversation_id == first.conversation_id
    assert second.tier == first.tier
    request = world.kinds["claude"].requests[-1]
    assert request.resume
    assert request.prompt.startswith("Continue the task where you left off.")
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    world.tick(HOUR_MS)
    assert world.live("t").resumes == second.id
    world.succeed("t")
    assert world.state("t") == "COMPLETED"


def test_a_task_that_is_to_wait_begins_afresh_when_its_conversation_is_not_known(world: World) -> None:
    world.submit("t", on_limit="wait")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS)
    world.end("t", exit_code=1, status="failed", reason="bad_invocation", conversation_lost=True)
    world.tick()
    assert (world.live("t").resumes, world.task("t").attempts) == (None, 0)


def test_the_next_agent_is_told_what_the_one_before_it_left(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.tick()
    world.end(
        "t",
        status="limited",
        reason="rate_limited",
        reset_at=START_MS + HOUR_MS,
        provenance="reported",
        text="I have changed login.py. key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
        detail="limit reached",
    )
    world.tick()
    run = world.live("t")
    assert (run.agent, run.resumes, run.attempt) == ("codex", None, 1)
    prompt = world.kinds["codex"].requests[-1].prompt
    assert prompt.startswith("do t\n\n# Handoff\n\nAnother agent, claude, had this task before you and stopped: ")
    assert "I have changed login.py." in prompt
    assert "limit reached" in prompt
    assert "sk-ant" not in prompt
    handoff = world.host.directories[run.id, 0].order.note
    assert handoff is not None
    assert handoff in prompt
    world.fail("t")
    assert world.task("t").state == "FAILED"


def test_if_no_other_agent_is_free_before_the_reset_it_goes_on_where_it_was(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, ONE_SLOT))
    world.submit("busy", agent={"type": "codex", "strict": True})
    world.submit("t")
    world.tick()
    first = world.live("t")
    assert first.agent == "claude"
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert (world.task("t").state, world.task("t").reason) == ("QUEUED", "slots")
    world.tick(HOUR_MS)
    second = world.live("t")
    assert (second.agent, second.resumes, second.conversation_id) == ("claude", first.id, first.conversation_id)


def test_once_another_agent_has_taken_it_over_the_old_conversation_is_left(world: World) -> None:
    world.submit("t", retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert world.live("t").agent == "codex"
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    assert world.live("t").resumes is None


def test_an_agent_that_was_warned_goes_second_until_the_reset(world: World) -> None:
    world.submit("t")
    world.tick()
    world.end("t", near_limit_until=START_MS + HOUR_MS)
    world.tick()
    world.submit("next")
    world.tick()
    assert world.running() == {"next": "codex"}
    assert "claude was as busy as codex, and near its limit." in world.service.why("next").sentences
    world.succeed("next")
    world.submit("later")
    world.tick(HOUR_MS)
    assert world.running() == {"later": "claude"}


# --- a limit that many runs meet --------------------------------------------------------------------------------------


def four_on_one_account(world: World) -> World:
    world = World(world.database, agents=(WIDE,))
    for number in range(4):
        world.submit(f"t{number}", budget={"runs": 1}, on_limit="wait")
    world.tick()
    return world


def held(world: World) -> list[tuple[str, int | None]]:
    """What the events say was held, and until when."""
    clause_list = (EVENT.c.kind == "hold") & (EVENT.c.data.is_not(None))
    rows = world.database.read(lambda connection: connection.execute(select(EVENT).where(clause_list)).all())
    return [(row.data["bucket"], row.data["until"]) for row in rows]


def test_runs_that_meet_one_limit_together_are_one_hold_and_told_once(world: World) -> None:
    world = four_on_one_account(world)
    for number in range(4):
        world.now_ms += 3_000
        world.limit(f"t{number}", reset_at=START_MS + HOUR_MS + number * 1_000)
    assert held(world) == [("claude/default", START_MS + HOUR_MS)]
    (hold,) = world.roster.all()[0].holds
    assert hold.until == format_instant(START_MS + HOUR_MS + 3_000), "each is believed to the second"
    assert hold.run_id == world.service.runs("t3")[0].id


def test_a_limit_that_turns_out_to_last_longer_is_told_again(world: World) -> None:
    world = four_on_one_account(world)
    for number, until in enumerate((HOUR_MS, 5 * HOUR_MS, 2 * HOUR_MS, 5 * HOUR_MS)):
        world.limit(f"t{number}", reset_at=START_MS + until)
    assert held(world) == [("claude/default", START_MS + until) for until in (HOUR_MS, 5 * HOUR_MS)]
    (hold,) = world.roster.all()[0].holds
    assert (hold.until, hold.run_id) == (format_instant(START_MS + 5 * HOUR_MS), world.service.runs("t1")[0].id)


def test_only_the_run_that_found_a_limit_counts_as_one_of_a_budget(world: World) -> None:
    world = four_on_one_account(world)
    for number in range(4):
        world.limit(f"t{number}")
    assert world.state("t0") == "FAILED budget"
    assert {world.state(f"t{number}") for number in (1, 2, 3)} == {"QUEUED limited"}
    assert world.roster.all()[0].spent_today.runs == 1
    world.tick(30 * SECOND_MS)
    (probe,) = world.running()
    world.limit(probe)
    assert world.state(probe) == "QUEUED limited", "a probe of it counts neither"
    world.tick(MINUTE_MS)
    (probe,) = world.running()
    world.answer(probe)
    world.tick()
    world.limit(probe)
    assert world.state(probe) == "FAILED budget", "its model has said something"
    assert world.roster.all()[0].spent_today.runs == 2


def test_an_outage_that_many_meet_uses_up_no_budget_unless_their_models_have_answered(world: World) -> None:
    world = four_on_one_account(world)
    world.answer("t0")
    for number in range(2):
        world.fail(f"t{number}", "network")
    assert (world.state("t0"), world.state("t1")) == ("FAILED budget", "QUEUED limited")


def test_a_limit_that_was_released_is_a_new_one_when_it_is_met_again(world: World) -> None:
    world = four_on_one_account(world)
    world.limit("t0", reset_at=START_MS + HOUR_MS)
    world.roster.release("claude")
    world.limit("t1", reset_at=START_MS + HOUR_MS)
    assert len(held(world)) == 2
    assert world.state("t1") == "FAILED budget"


def test_a_reset_that_is_too_far_away_is_shown_as_doubted_and_tried_soon(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t", on_limit="wait")
    world.tick()
    world.limit("t", reset_at=START_MS + 10**13)
    (hold,) = world.roster.all()[0].holds
    latest = format_instant(START_MS + 35 * DAY_MS)
    assert (hold.until, hold.doubted) == (format_instant(START_MS + 30 * SECOND_MS), latest)
    doubt = "the reset it named is more than 35 days away and is ignored"
    assert hold.text == f"limited (5h window, estimated; {doubt}) until 14:13 UTC"
    sentences = world.service.why("t").sentences
    assert any("The reset it named is more than 35 days away and is ignored." in name for name in sentences)
    outcome = world.service.runs("t")[0].outcome
    assert outcome is not None
    assert outcome.reset_at == latest
    world.tick(30 * SECOND_MS)
    world.succeed("t")
    assert world.roster.all()[0].holds == ()
