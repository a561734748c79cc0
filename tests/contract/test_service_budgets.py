"""Budgets, on both databases: what may begin, what is stopped, and what is said of it."""

from typing import Any

import pytest
from sqlalchemy import Connection, select

from claudomator_py.domain.agent import AgentSpec, Price
from claudomator_py.domain.budget import AgentBudget, Budget, BudgetOf, DayBudget, Figures, SpentBudget, Unit
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.notice import EventContext, notice_of
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, TaskView
from claudomator_py.store.database import Database
from claudomator_py.store.tables import EVENT
from tests.fakes.agents import CLAUDE, CLAUDE_MODELS, CODEX
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

UTC_MIDNIGHT_MS = (START_MS // DAY_MS + 1) * DAY_MS
PRICES = {"luna": Price(input=1, output=1), "sol": Price(input=1, output=1)}
PRICED = CODEX.model_copy(update={"prices": PRICES})


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def with_budget(agent: AgentSpec, **budget: Any) -> AgentSpec:
    return agent.model_copy(update={"budget": AgentBudget(**budget)})


def world_of(world: World, *agents: AgentSpec, total: DayBudget | None = None, **changes: Any) -> World:
    made = World(world.database, agents=agents, **changes)
    made.day_budget = total or DayBudget(timezone="UTC")
    return made


def spend(world: World, name: str, **used: Any) -> TaskView:
    """A task succeeds and has used so much."""
    world.submit(name)
    world.tick()
    world.end(name, **used)
    world.tick()
    return world.task(name)


# --- a task's own ---------------------------------------------------------------------------------------------------


def test_a_task_fails_once_its_budget_is_used_up_and_no_attempt_follows(world: World) -> None:
    world.submit("a", budget={"usd": 2.0}, retry={"max_attempts": 5})
    world.tick()
    world.fail("a", "agent_error", cost_usd=1.5)
    assert world.state("a") == "WAITING backoff"
    world.tick(HOUR_MS)
    world.fail("a", "agent_error", cost_usd=0.6)
    view = world.task("a")
    assert (view.state, view.reason, view.attempts) == ("FAILED", "budget", 2)
    assert "2.10 of 2.00 USD" in (view.reason_text or "")
    assert "`claudomator restart a --budget-usd ...`" in (view.reason_text or "")
    assert view.budget is not None
    assert view.budget.spent.usd == 2.1
    assert view.budget.usd_left == 0


def test_no_restart_satisfies_a_budget_but_a_larger_one_does(world: World) -> None:
    world.submit("a", budget={"tokens": 100, "runs": 5})
    world.tick()
    world.fail("a", "refused", tokens={"input": 80, "output": 30})
    assert world.state("a") == "FAILED refused", "the reason that it gave stays, where no attempt would have followed"
    for _ in range(2):
        view = world.restart("a")
        assert (view.state, view.reason, view.waiting_until) == ("WAITING", "budget", None)
        assert (view.reason_text or "").startswith("it has used 110 of 100 tokens; allow it more ")
        world.tick(DAY_MS)
    assert world.restart("a", budget=Budget(tokens=500)).state == "QUEUED"
    view = world.task("a")
    assert view.budget is not None
    assert (view.budget.tokens, view.budget.runs) == (500, 5), "what is not named stays"
    world.tick()
    world.succeed("a")
    assert world.state("a") == "COMPLETED"


def test_an_answer_outlives_the_wait_for_a_larger_budget(world: World) -> None:
    world.take("/in/t.yaml", spec("t", budget={"usd": 1.0}, agent={"type": "claude"}))
    world.tick()
    world.end("t", status="needs_input", question="Red or blue?", cost_usd=1.2)
    world.tick()
    waits = "It has used 1.20 of 1.00 USD; after a reply it waits until it is allowed more."
    assert waits in world.service.why("t").sentences
    asked = world.service.runs("t")[-1].id
    world.service.answer("t", AnswerRequest(text="Blue."))
    assert world.task("t").reason_text == (
        "it has used 1.20 of 1.00 USD; allow it more with `claudomator restart t --budget-usd ...`, "
        f"and `--resume` to continue the conversation of run {asked[:8]} on claude"
    )

    world.restart("t", resume=True, reason="Two coats.", budget={"usd": 5})
    world.tick()

    assert world.live("t").resumes == asked
    said = world.kinds["claude"].requests[-1].prompt
    assert said == "The operator answers your question:\n\nBlue.\n\nThe operator adds:\n\nTwo coats.\n"
    world.end("t", status="needs_input", question="Matt?")
    world.tick()
    world.service.answer("t", AnswerRequest(text="Yes."))
    world.tick()
    assert world.kinds["claude"].requests[-1].prompt == "The operator answers your question:\n\nYes.\n"


def test_what_was_approved_before_a_restart_is_asked_for_again_with_a_larger_budget(world: World) -> None:
    world.submit("t", budget={"usd": 1.0}, agent={"type": "claude"})
    world.tick()
    world.end("t", cost_usd=1.2, denied=[{"tool": "Bash", "input": "npm publish", "rule": "Bash(npm publish)"}])
    world.tick()
    world.service.approve("t", ApproveRequest())
    assert world.state("t") == "WAITING budget"

    world.restart("t", resume=True, budget={"usd": 5})
    world.tick()

    launched = world.kinds["claude"].requests[-1]
    assert launched.task.permissions.allowed_tools == ()
    assert launched.prompt.startswith("Continue the task where you left off.")


def test_changed_content_with_a_larger_budget_goes_on(world: World) -> None:
    world.take("a.yaml", spec("a", budget={"runs": 1}))
    world.tick()
    world.fail("a", "agent_error")
    assert world.state("a") == "FAILED budget"
    world.take("a.yaml", spec("a", budget={"runs": 1}, tags=["changed"]), mtime_ns=2)
    view = world.task("a")
    assert (view.state, view.reason) == ("WAITING", "budget")
    assert "raise budget.runs in a.yaml" in (view.reason_text or "")
    world.take("a.yaml", spec("a", budget={"runs": 2}), mtime_ns=3)
    assert world.state("a") == "QUEUED ready"


def test_a_limit_costs_a_run_and_one_that_never_started_costs_nothing(world: World) -> None:
    world.host.slow = True
    world.submit("a", budget={"runs": 1})
    world.tick()
    world.host.directories[world.live("a").id, 0].shim = False
    world.tick()
    assert [run.state for run in world.service.runs("a")] == ["revoked", "starting"]
    world.host.begin(world.live("a").id)
    world.limit("a", reset_at=world.now_ms + HOUR_MS)
    assert world.state("a") == "FAILED budget"


def test_a_success_stays_one_whatever_it_cost(world: World) -> None:
    world.submit("a", budget={"usd": 1.0})
    world.tick()
    world.end("a", cost_usd=9.0)
    world.tick()
    assert world.state("a") == "COMPLETED"


def test_a_dollar_budget_keeps_a_task_from_an_agent_whose_cost_nobody_would_know(world: World) -> None:
    world = world_of(world, CLAUDE, CODEX)
    world.submit("free", agent={"type": "codex"})
    world.submit("counted", agent={"type": "codex"}, budget={"usd": 1.0})
    world.tick()
    assert world.running() == {"free": "codex", "counted": "claude"}
    assert any("codex cannot keep to budget.usd" in sentence for sentence in world.service.why("counted").sentences)
    with pytest.raises(Invalid, match=r"add `prices` to the agent"):
        world.submit("bound", agent={"type": "codex", "strict": True}, budget={"usd": 1.0})
    world = world_of(world, CLAUDE, PRICED)
    world.submit("priced", agent={"type": "codex", "strict": True}, budget={"usd": 1.0}, retry={"max_attempts": 1})
    world.tick()
    world.fail("priced", "agent_error", tokens={"input": 600_000, "output": 600_000})
    assert world.restart("priced").reason == "budget"


# --- while it runs --------------------------------------------------------------------------------------------------


def test_a_run_is_stopped_once_what_it_has_used_exceeds_the_budget(world: World) -> None:
    world.submit("a", budget={"tokens": 1000}, retry={"max_attempts": 3})
    world.tick()
    world.tick()
    world.use("a", tokens={"input": 600, "output": 400})
    assert world.tick().wake_ms == world.now_ms + SECOND_MS, "it is looked at again soon"
    assert world.state("a") == "RUNNING", "all of it is not too much"
    budget = world.task("a").budget
    assert budget is not None
    assert budget.spent.tokens == 1000, "what a live run has used is seen"
    world.use("a", tokens={"input": 600, "output": 700})
    run_id = world.live("a").id
    world.tick()
    assert world.host.directories[run_id, 0].cancelled
    world.tick()
    view = world.task("a")
    assert (view.state, view.reason) == ("FAILED", "budget")
    assert "done: its budget is used up, 1,300 of 1,000 tokens. Allow" in (view.reason_text or "")
    (run,) = world.service.runs("a")
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == ("failed", "budget")
    figures = Figures(unit=Unit.TOKENS, spent=1300, limit=1000)
    assert run.outcome.over_budget == SpentBudget(of=BudgetOf.TASK, figures=figures)
    assert run.outcome.detail == run.outcome.over_budget.text
    payload = {event.kind: event.data for event in world.service.why("a").events}
    assert payload["over_budget"]["why"] == payload["state"]["detail"] == run.outcome.detail
    assert (
        payload["over_budget"]["budget"]
        == payload["state"]["budget"]
        == run.outcome.over_budget.model_dump(mode="json")
    )


def test_a_daemon_that_dies_on_the_way_stops_the_run_all_the_same(world: World) -> None:
    world.submit("a", budget={"usd": 1.0})
    world.tick()
    world.tick()
    world.host.stubborn = True
    world.use("a", cost_usd=1.5)
    world.tick()
    assert world.task("a").phase == "stopping"
    run_id = world.live("a").id
    world.host.directories[run_id, 0].cancelled = False  # as if it had died before it could ask
    world.restarted_daemon()
    world.tick()
    assert world.host.directories[run_id, 0].cancelled
    world.host.end(run_id, None, ended_by="cancel")
    world.tick()
    assert world.state("a") == "FAILED budget"


def test_a_run_that_is_done_is_not_stopped_and_one_done_before_it_could_be_is_done(world: World) -> None:
    for name in ("told", "late"):
        world.submit(name, budget={"usd": 1.0})
    world.tick()
    world.tick()
    world.host.stubborn = True
    world.use("told", cost_usd=1.5)
    world.say("told", cost_usd=1.5)
    world.use("late", cost_usd=1.5)
    world.tick()
    directory, late = (world.host.directories[world.live(name).id, 0] for name in ("told", "late"))
    assert (directory.cancelled, late.cancelled) == (False, True)
    world.end("late", exit_code=143, ended_by="cancel", cost_usd=1.6)
    world.tick()
    assert world.state("late") == "COMPLETED"


def test_an_operator_who_cancels_it_meanwhile_has_the_last_word(world: World) -> None:
    world.submit("a", budget={"usd": 1.0})
    world.tick()
    world.tick()
    world.host.stubborn = True
    world.use("a", cost_usd=1.5)
    world.tick()
    world.service.cancel("a")
    world.host.end(world.live("a").id, None, ended_by="cancel")
    world.tick()
    assert world.state("a") == "CANCELLED"


def test_an_agent_is_told_how_many_dollars_are_left(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=5.0), total=DayBudget(usd=4.0, timezone="UTC"))
    spend(world, "before", cost_usd=1.0)
    world.submit("capped", budget={"usd": 2.0})
    world.submit("free")
    world.tick()
    assert {request.task.name: request.usd_left for request in world.kinds["claude"].requests[1:]} == {
        "capped": 2.0,
        "free": 3.0,
    }


# --- an agent's and everybody's day ---------------------------------------------------------------------------------


def test_tasks_flow_to_others_when_an_agent_has_spent_its_day_and_back_at_midnight(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=5.0), CODEX)
    spend(world, "first", cost_usd=5.0)
    for name in ("one", "two"):
        world.submit(name)
    world.tick()
    assert world.running() == {"one": "codex", "two": "codex"}
    world.submit("bound", agent={"type": "claude", "strict": True})
    view = world.task("bound")
    assert (view.state, view.reason, view.waiting_until) == ("QUEUED", "budget", format_instant(UTC_MIDNIGHT_MS))
    assert (view.reason_text or "").startswith(
        "claude is out of its daily budget (5.00 of 5.00 USD) until 2026-09-22 00:00 UTC"
    )
    claude, codex = world.roster.all()
    assert claude.budget is not None
    assert claude.budget.reached == "5.00 of 5.00 USD"
    assert claude.budget.until == format_instant(UTC_MIDNIGHT_MS)
    assert (claude.spent_today.usd, codex.budget) == (5.0, None)
    assert (world.tick().wake_ms or 0) <= UTC_MIDNIGHT_MS
    world.tick(UTC_MIDNIGHT_MS - world.now_ms)
    assert world.running()["bound"] == "claude"


@pytest.mark.both_databases
def test_a_days_runs_are_counted_within_one_tick_too(world: World) -> None:
    roomy = CLAUDE.model_copy(update={"max_concurrent": 4})
    world = world_of(world, with_budget(roomy, runs=2), total=DayBudget(runs=3, timezone="UTC"))
    names = {f"t{number}" for number in range(4)}
    for name in names:
        world.submit(name)
    world.tick()
    assert len(world.running()) == 2
    for name in names - world.running().keys():
        assert str(world.task(name).reason_text).startswith("claude is out of its daily budget (2 of 2 runs)")
    world.agents = (roomy,)
    world.restarted_daemon()
    world.tick()
    (waiting,) = names - world.running().keys()
    assert str(world.task(waiting).reason_text).startswith(
        "the daily budget of all agents is used up (3 of 3 runs); nothing starts until "
    )
    status = world.overview.status()
    assert status.budget is not None
    assert status.budget.reached == "3 of 3 runs"
    world.day_budget = DayBudget(runs=4, timezone="UTC")  # as after a reload
    world.tick()
    assert len(world.running()) == 4


def test_all_that_runs_is_stopped_when_the_days_budget_is_exceeded(world: World) -> None:
    world = world_of(world, CLAUDE, CODEX, total=DayBudget(tokens=1000, timezone="UTC"))
    for name in ("a", "b"):
        world.submit(name, on_limit="fail", agent={"type": {"a": "claude", "b": "codex"}[name]})
    world.submit("patient")
    world.tick()
    world.tick()
    for name in ("a", "b", "patient"):
        world.use(name, tokens={"input": 500, "output": 300})
    for _ in range(3):
        world.tick()
    assert (world.state("a"), world.state("b")) == ("FAILED budget", "FAILED budget")
    text = str(world.task("a").reason_text)
    assert "the day's budget of all agents is used up, " in text
    assert " of 1,000 tokens" in text
    assert "`claudomator restart a --resume`" in str(world.task("a").reason_text)
    world.restart("a", resume=True)
    assert world.task("a").reason == "budget"
    patient = world.task("patient")
    assert (patient.state, patient.reason, patient.attempts) == ("QUEUED", "budget", 0)
    assert patient.waiting_until == format_instant(UTC_MIDNIGHT_MS)


@pytest.mark.both_databases
@pytest.mark.parametrize("on_limit", ["failover", "wait", "fail"])
def test_a_run_that_uses_up_its_agents_day_is_stopped_and_its_task_does_as_at_a_limit(
    world: World, on_limit: str
) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=0.5), CODEX)
    world.submit("t", on_limit=on_limit, retry={"max_attempts": 1}, agent={"type": "claude"})
    world.tick()
    world.tick()
    world.use("t", cost_usd=1.2)
    world.tick()
    world.tick()
    outcome = world.service.runs("t")[0].outcome
    assert outcome is not None
    assert (outcome.status, outcome.reason) == ("failed", "budget")
    if on_limit == "fail":
        assert world.state("t") == "FAILED budget"
        return
    if on_limit == "failover":
        assert world.running() == {"t": "codex"}
        assert "the day's budget of claude is used up, 1.20 of 0.50 USD" in str(world.service.why("t").sentences)
        return
    view = world.task("t")
    assert (view.state, view.reason, view.waiting_until) == ("QUEUED", "budget", format_instant(UTC_MIDNIGHT_MS))
    world.restarted_daemon()
    world.tick(UTC_MIDNIGHT_MS - world.now_ms)
    assert world.running() == {"t": "claude"}
    first, second = world.service.runs("t")
    assert (second.resumes, second.attempt) == (first.id, 1)


def test_a_task_whose_own_budget_is_used_up_as_well_fails(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=0.5), CODEX)
    world.submit("t", budget={"usd": 1.0}, agent={"type": "claude"})
    world.tick()
    world.tick()
    world.use("t", cost_usd=1.2)
    world.tick()
    world.tick()
    assert world.state("t") == "FAILED budget"


def told(world: World) -> list[tuple[object, object]]:
    """The agent and the figures of each daily budget that was said to be used up."""

    def read(connection: Connection) -> list[tuple[object, object]]:
        rows = connection.execute(select(EVENT.c.data).where(EVENT.c.kind == "budget_spent").order_by(EVENT.c.id))
        return [(data["agent"], SpentBudget.model_validate(data["budget"]).figures.text) for data in rows.scalars()]

    return world.database.read(read)


@pytest.mark.both_databases
def test_that_a_day_is_spent_is_told_once_for_each_budget(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=5.0), CODEX, total=DayBudget(runs=2, timezone="UTC"))
    spend(world, "small", cost_usd=1.0)
    assert told(world) == []
    world.submit("large")
    world.tick()
    assert told(world) == [(None, "2 of 2 runs")], "at the start of the last one"
    world.tick()
    world.use("large", cost_usd=4.5)
    world.tick()
    world.tick()
    assert world.state("large") == "QUEUED budget"
    assert told(world) == [(None, "2 of 2 runs"), ("claude", "5.50 of 5.00 USD")]
    live = world.events
    last = live.last_events(live.event_filter(None, ("budget_spent",)), 1).items[0]
    assert (last.data["agent"], last.data["figures"]) == ("claude", "5.50 of 5.00 USD")
    for data in (last.data, {"agent": "claude", "figures": "5.50 of 5.00 USD"}):  # which 0.1 has stored
        notice = notice_of(EventContext(1, "", "budget_spent", data, *[None] * 5))
        assert notice is not None
        assert (notice.kind, notice.agent) == ("budget_spent", "claude")
        assert notice.title == "agent claude has used up its daily budget: 5.50 of 5.00 USD"


def test_a_run_counts_on_the_day_on_which_it_began(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=5.0))
    world.now_ms = UTC_MIDNIGHT_MS - SECOND_MS
    world.submit("late")
    world.tick()
    world.tick(MINUTE_MS)
    world.end("late", cost_usd=9.0)
    world.tick()
    assert told(world) == [], "it keeps nobody from anything today"
    world.submit("early")
    world.tick()
    assert "early" in world.running()


def test_what_nobody_knows_is_said_and_not_taken_for_nothing(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, usd=5.0))
    spend(world, "silent")
    (claude,) = world.roster.all()
    assert claude.budget is not None
    assert (claude.budget.text, claude.budget.unknown) == ("0.00 of 5.00 USD", "cost of 1 run not known")
    assert claude.spent_today.unpriced == 1


# --- a share of a window --------------------------------------------------------------------------------------------


def test_nothing_starts_on_an_agent_whose_account_has_used_its_share_of_a_window(world: World) -> None:
    resets_at = START_MS + 2 * HOUR_MS
    saving = AgentSpec(name="saving", kind="claude", models=CLAUDE_MODELS)
    world = world_of(world, with_budget(CLAUDE, window="80%"), saving, CODEX)
    report = {"five_hour": {"used": 1.0, "resets_at": resets_at}, "seven_day": {"used": 0.3, "resets_at": resets_at}}
    world.submit("first", agent={"type": "saving", "strict": True})
    world.tick()
    world.end("first", windows=report)
    world.tick()
    world.submit("bound", agent={"type": "claude", "strict": True})
    world.submit("other", agent={"type": "saving", "strict": True})
    world.tick()
    assert world.running() == {"other": "saving"}, "one account, and only one of its agents leaves something over"
    view = world.task("bound")
    assert (view.reason, view.waiting_until) == ("budget", format_instant(resets_at))
    assert "5h window (100% used, 80% allowed)" in str(view.reason_text)
    world.tick(2 * HOUR_MS)
    assert "bound" in world.running()


def test_a_window_that_resets_in_years_keeps_nothing_from_beginning(world: World) -> None:
    world = world_of(world, with_budget(CLAUDE, window="80%"))
    months = {"used": 0.9, "resets_at": START_MS + 35 * DAY_MS + HOUR_MS}
    world.submit("first")
    world.tick()
    world.end("first", windows={"five_hour": months})
    world.tick()
    world.submit("next")
    world.tick()
    assert world.running() == {"next": "claude"}
