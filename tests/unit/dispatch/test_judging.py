"""What the report of a run or a check comes to, by what is known of the task meanwhile."""

from functools import partial

import pytest
from sqlalchemy import select

from claudomator_py.dispatch.apply_report import GONE, Applied, CheckWanted
from claudomator_py.domain.budget import BudgetOf, DayBudget, Figures, SpentBudget, Unit
from claudomator_py.domain.handoff import HANDOFF_MARKER
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import RunReport
from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.store import hold_rows
from claudomator_py.store.tables import EVENT
from tests.fakes.agents import CLAUDE
from tests.fakes.world import START_MS, World

PASSED = ExitRecord(0, None, START_MS, START_MS + 1_000)
CANCELLED = Outcome(status=OutcomeStatus.CANCELLED, reason=Reason.CANCELLED)
BUDGET_SPENT = EVENT.c.kind == "budget_spent"


def begun(world: World, **fields: object) -> str:
    """A task whose run lives; the run's id."""
    world.submit("t", **({"retry": {"max_attempts": 1}} | fields))
    world.tick()
    return world.live("t").id


def checking(world: World) -> str:
    """A task whose check runs; the id of its run."""
    run_id = begun(world, check=["make test"])
    world.end("t", text="done")
    world.tick()
    assert world.task("t").phase == "checking"
    return run_id


def reported(world: World, run_id: str, text: str | None = "done", **fields: object) -> Applied | CheckWanted:
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, text=text)
    report = RunReport.model_validate({"run_id": run_id, "exit": PASSED, "outcome": outcome, **fields})
    return world.apply(report, world.now_ms)


def ended(world: World) -> Outcome:
    """How the last run of the task has ended."""
    outcome = world.service.runs("t")[-1].outcome
    assert outcome is not None
    return Outcome.model_validate(outcome.model_dump(include=set(Outcome.model_fields)))


def set_on_run(world: World, column: str, value: str) -> None:
    world.database.write(lambda connection: connection.exec_driver_sql(f"UPDATE run SET {column} = '{value}'"))


# --- when it counts -------------------------------------------------------------------------------------------------


def test_a_run_ends_once_its_tree_was_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = begun(world)
    with monkeypatch.context() as patch:
        patch.setattr(world.worktrees, "looked_after_run", lambda *_: False)
        assert reported(world, run_id) is Applied.WAITING
    assert world.state("t") == "RUNNING"
    assert reported(world, run_id) is Applied.ENDED


def test_what_an_end_writes_wakes_nobody_for_another_tick(world: World) -> None:
    run_id = begun(world)
    wakes: list[int] = []
    world.database.on_commit(lambda: wakes.append(world.now_ms), planned=False)
    assert (reported(world, run_id), wakes) == (Applied.ENDED, [])


def test_a_report_that_another_one_overtakes_is_stale(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = begun(world)

    def looked(*_: object) -> bool:
        monkeypatch.undo()
        assert reported(world, run_id) is Applied.ENDED
        return True

    monkeypatch.setattr(world.worktrees, "looked_after_run", looked)
    assert reported(world, run_id) is Applied.STALE


# --- a run directory that is gone -----------------------------------------------------------------------------------


def test_of_a_run_whose_directory_is_gone_nothing_is_known(world: World) -> None:
    run_id = begun(world)
    assert world.apply(RunReport(run_id=run_id, gone=True), world.now_ms) is Applied.ENDED
    assert (ended(world).status, ended(world).detail) == (OutcomeStatus.LOST, GONE)


@pytest.mark.parametrize(
    ("stopped", "state", "status"),
    [(False, "FAILED check_failed", OutcomeStatus.FAILED), (True, "CANCELLED", OutcomeStatus.CANCELLED)],
)
def test_of_a_check_whose_directory_is_gone_the_run_is_known(
    world: World, stopped: bool, state: str, status: OutcomeStatus
) -> None:
    run_id = checking(world)
    if stopped:
        world.host.stubborn = True
        world.service.cancel("t")
    assert world.apply(RunReport(run_id=run_id, step=1, gone=True), world.now_ms) is Applied.ENDED
    assert world.state("t") == state
    assert (ended(world).status, ended(world).text) == (status, "done")


# --- what the agent said --------------------------------------------------------------------------------------------


def test_a_success_without_words_is_one(world: World) -> None:
    assert reported(world, begun(world), text=None) is Applied.ENDED
    assert world.state("t") == "COMPLETED"


def test_a_run_that_hands_its_task_on_is_not_checked(world: World) -> None:
    run_id = begun(world, check=["make test"])
    line = HANDOFF_MARKER + ' {"to": "reviewer", "reason": "it needs a look"}'
    assert reported(world, run_id, f"half done\n{line}") is Applied.ENDED
    assert ended(world).status is OutcomeStatus.NEEDS_INPUT, "a person is asked, as nobody is called so"
    assert "reviewer" in str(world.task("t").reason_text)


def test_a_request_to_hand_on_that_cannot_be_read_is_refused(world: World) -> None:
    assert reported(world, begun(world), f"half done\n{HANDOFF_MARKER} to the reviewer") is Applied.ENDED
    assert (ended(world).status, ended(world).reason) == (OutcomeStatus.FAILED, Reason.HANDOFF_REFUSED)


def test_what_a_run_that_failed_says_of_handing_on_counts_for_nothing(world: World) -> None:
    line = HANDOFF_MARKER + ' {"to": "reviewer"}'
    failed = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, text=line)
    reported(world, begun(world), outcome=failed)
    assert ended(world).handoff is None
    assert world.state("t") == "FAILED agent_error"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome(status=OutcomeStatus.SUCCEEDED, text="done"), "NEEDS_INPUT question"),
        (Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR), "FAILED agent_error"),
    ],
)
def test_what_a_run_has_asked_while_it_lived_is_asked_once_it_is_done(
    world: World, outcome: Outcome, state: str
) -> None:
    run_id = begun(world, agent={"type": "claude"})
    set_on_run(world, "asked", '["Red or blue?", "And how large?"]')
    reported(world, run_id, outcome=outcome)
    assert world.state("t") == state
    if state.startswith("NEEDS_INPUT"):
        assert world.task("t").reason_text == "Red or blue?\n\nAnd how large?"


@pytest.mark.parametrize(
    ("agent", "state"), [("claude", "NEEDS_INPUT question"), ("lint", "COMPLETED")], ids=["converses", "does not"]
)
def test_a_question_is_one_only_of_an_agent_that_can_be_answered(world: World, agent: str, state: str) -> None:
    reported(world, begun(world, agent={"type": agent}), f"I looked.\n\n{MARKER} Red or blue?\n")
    assert world.state("t") == state


def test_a_run_is_asked_for_its_check_with_its_exit_code_if_there_is_one(world: World) -> None:
    run_id = begun(world, check=["make test"])
    wanted = reported(world, run_id)
    assert isinstance(wanted, CheckWanted)
    assert wanted.exit_code == 0
    lost = reported(world, run_id, exit=None)
    assert isinstance(lost, CheckWanted)
    assert lost.exit_code is None


# --- what its budget stopped ----------------------------------------------------------------------------------------


def test_a_run_that_its_budget_stopped_and_that_hands_on_is_done(world: World) -> None:
    run_id = begun(world)
    set_on_run(world, "over_budget", "all is spent")
    line = HANDOFF_MARKER + ' {"to": "reviewer"}'
    undisturbed = Outcome(status=OutcomeStatus.SUCCEEDED, text=line)
    assert reported(world, run_id, outcome=CANCELLED, undisturbed=undisturbed) is Applied.ENDED
    assert ended(world).status is OutcomeStatus.NEEDS_INPUT
    assert "reviewer" in str(world.task("t").reason_text)


def test_a_run_that_failed_by_itself_before_its_budget_could_stop_it_failed_by_itself(world: World) -> None:
    run_id = begun(world)
    set_on_run(world, "over_budget", "all is spent")
    failed = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR)
    reported(world, run_id, outcome=failed, undisturbed=failed)
    assert world.state("t") == "FAILED agent_error"


def test_a_cancelled_run_without_a_budget_is_cancelled(world: World) -> None:
    run_id = begun(world)
    world.host.stubborn = True
    world.service.cancel("t")
    reported(world, run_id, outcome=CANCELLED)
    assert world.state("t") == "CANCELLED"


@pytest.mark.parametrize("text", ["done", f'{HANDOFF_MARKER} {{"to": "reviewer"}}'], ids=["done", "handed on"])
def test_what_a_run_had_done_is_no_success_where_an_operator_stopped_it(world: World, text: str) -> None:
    run_id = begun(world)
    world.host.stubborn = True
    world.service.cancel("t")
    undisturbed = Outcome(status=OutcomeStatus.SUCCEEDED, text=text)
    reported(world, run_id, outcome=CANCELLED, undisturbed=undisturbed)
    assert world.state("t") == "CANCELLED"
    assert (ended(world).status, ended(world).handoff) == (OutcomeStatus.CANCELLED, None)


def test_of_a_run_that_its_budget_stopped_the_figures_are_told(world: World) -> None:
    run_id = begun(world, budget={"usd": 1.0})
    over = SpentBudget(of=BudgetOf.TASK, agent=None, figures=Figures(unit=Unit.USD, spent=1.5, limit=1.0))
    set_on_run(world, "over_budget", over.model_dump_json())
    reported(world, run_id, outcome=CANCELLED)
    assert (ended(world).reason, ended(world).over_budget) == (Reason.BUDGET, over)
    assert ended(world).detail == "its budget is used up, 1.50 of 1.00 USD", "in the words of today"


def test_a_budget_that_is_met_while_an_end_is_judged_begins_no_check(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = begun(world, check=["make test"])

    def looked(*_: object) -> bool:
        set_on_run(world, "over_budget", "all is spent")
        return True

    monkeypatch.setattr(world.worktrees, "looked_after_run", looked)
    undisturbed = Outcome(status=OutcomeStatus.SUCCEEDED, text="done")
    assert reported(world, run_id, outcome=CANCELLED, undisturbed=undisturbed) is Applied.ENDED
    assert ended(world).status is OutcomeStatus.CANCELLED, "as it was told by the host"


# --- a check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "state", "status"),
    [
        (PASSED, "COMPLETED", OutcomeStatus.SUCCEEDED),
        (ExitRecord(1, None, 1, 2), "FAILED check_failed", OutcomeStatus.FAILED),
        (ExitRecord(0, "timeout", 1, 2), "FAILED check_failed", OutcomeStatus.FAILED),
        (ExitRecord(None, "cancel", 1, 2), "CANCELLED", OutcomeStatus.CANCELLED),
    ],
    ids=["passed", "failed", "too late", "cancelled"],
)
def test_a_check_decides(world: World, record: ExitRecord, state: str, status: OutcomeStatus) -> None:
    run_id = checking(world)
    if state == "CANCELLED":
        world.host.stubborn = True
        world.service.cancel("t")
    world.apply(RunReport(run_id=run_id, step=1, exit=record), world.now_ms)
    assert (world.state("t"), ended(world).status) == (state, status)


def test_the_command_of_a_check_that_failed_is_named_even_if_it_is_of_no_known_step(world: World) -> None:
    run_id = checking(world)
    record = ExitRecord(2, None, 1, 2, step=7)
    world.apply(RunReport(run_id=run_id, step=1, exit=record, check_output="boom"), world.now_ms)
    assert "check `make test`" in str(ended(world).detail)
    assert str(ended(world).detail).endswith("\nboom")


@pytest.mark.parametrize(("denied", "state"), [(True, "NEEDS_INPUT approval"), (False, "FAILED check_failed")])
def test_a_check_of_work_for_which_leave_was_missing_fails_to_a_person(world: World, denied: bool, state: str) -> None:
    run_id = begun(world, check=["make test"], agent={"type": "claude"})
    tools = (Denied(tool="Bash", input="npm publish"),) if denied else ()
    wanted = reported(
        world, run_id, outcome=Outcome(status=OutcomeStatus.SUCCEEDED, text="as far as I may", denied=tools)
    )
    assert isinstance(wanted, CheckWanted)
    world.end("t", **wanted.outcome.model_dump(mode="json", exclude_defaults=True))
    world.tick()
    world.apply(RunReport(run_id=run_id, step=1, exit=ExitRecord(1, None, 1, 2)), world.now_ms)
    assert world.state("t") == state


def test_what_is_known_to_be_secret_is_in_no_verdict_on_a_check(world: World) -> None:
    world.secrets.add(["hunter2-hunter2"])
    run_id = begun(world, check=["curl --user me:hunter2-hunter2 localhost"])
    world.end("t")
    world.tick()
    world.apply(RunReport(run_id=run_id, step=1, exit=ExitRecord(7, None, 1, 2)), world.now_ms)
    assert "hunter2" not in str(ended(world).detail)


def test_a_lost_check_is_begun_again_unless_the_task_is_to_stop(world: World) -> None:
    run_id = checking(world)
    wanted = world.apply(RunReport(run_id=run_id, step=1), world.now_ms)
    assert isinstance(wanted, CheckWanted)
    assert (wanted.outcome.text, wanted.exit_code) == ("done", 0)
    world.host.stubborn = True
    world.service.cancel("t")
    assert world.apply(RunReport(run_id=run_id, step=1), world.now_ms) is Applied.ENDED
    assert world.state("t") == "CANCELLED"


# --- the limit that it tried ------------------------------------------------------------------------------------------


def test_the_end_of_a_run_whose_model_answered_ends_the_care_after_a_limit(world: World) -> None:
    begun(world, agent={"type": "claude", "strict": True})
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    world.tick(HOUR_MS)
    assert world.database.read(partial(hold_rows.expired, now_ms=world.now_ms)), "it is tried with care"
    reported(world, world.live("t").id)
    assert CLAUDE.max_concurrent == 2
    assert world.database.read(partial(hold_rows.expired, now_ms=world.now_ms)) == [], "two may run, in two slots"


# --- its figures ----------------------------------------------------------------------------------------------------


def test_what_an_earlier_version_said_of_a_budget_is_not_said_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = begun(world, budget={"usd": 2.0})
    set_on_run(world, "over_budget", "all is spent")

    def over(*_: object) -> None:
        raise AssertionError("it is told already")

    monkeypatch.setattr(world.budgets, "exceeded", over)
    reported(world, run_id, outcome=CANCELLED)
    assert (ended(world).reason, ended(world).detail) == (Reason.BUDGET, "all is spent")


def test_of_any_other_failure_no_figures_are_told(world: World) -> None:
    run_id = begun(world, budget={"usd": 2.0})
    reported(world, run_id, outcome=Outcome(status=OutcomeStatus.FAILED, reason=Reason.REFUSED, cost_usd=2.5))
    assert ended(world).over_budget is None


def test_what_it_has_used_by_its_end_is_in_the_figures(world: World) -> None:
    run_id = begun(world, budget={"usd": 2.0})
    spent = Outcome(status=OutcomeStatus.FAILED, reason=Reason.BUDGET, cost_usd=2.5)
    reported(world, run_id, outcome=spent)
    over = ended(world).over_budget
    assert over is not None
    assert over.figures.spent == 2.5


def test_the_end_of_a_run_that_uses_up_the_budget_of_the_day_is_told(world: World) -> None:
    world.day_budget = DayBudget(usd=2.0, timezone="UTC")
    reported(world, begun(world), outcome=Outcome(status=OutcomeStatus.SUCCEEDED, cost_usd=2.5))
    record = world.database.read(lambda connection: connection.execute(select(EVENT.c.data).where(BUDGET_SPENT)).all())
    assert [data["budget"]["of"] for (data,) in record] == ["day"]
