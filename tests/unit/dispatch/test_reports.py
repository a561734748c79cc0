"""Reports: made where there is no database, applied where there are no files, once, whenever and however often."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from claudomator_py.dispatch.apply_report import Applied, CheckWanted, ReportedRun
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import RunReport
from claudomator_py.domain.run import ExitRecord
from claudomator_py.store import run_rows, task_rows
from tests.fakes.agents import CLAUDE
from tests.fakes.world import START_MS, World

EXIT = ExitRecord(0, None, START_MS, START_MS + 1_000)
KEY = "sk-" + "a1b2c3d4" * 4
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": f"done, with {KEY}",
    "session_id": "11111111-2222-4333-8444-555555555555",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
ELSEWHERE = """
import sys
import threading
from pathlib import Path
from claudomator_py.agents.claude.kind import Claude
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import ExitRecord, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.secrets import Secrets
from claudomator_py.hosts.local import LocalRunHost

root, run_id, agent, task, started_ms, ended_ms = sys.argv[1:]
kinds, redactor = {"claude": Claude()}, Secrets().redactor
host = LocalRunHost(Path(root), None, grace_ms=0, kinds=kinds, redactor=redactor, clock=lambda: int(ended_ms))
read = threading.Event()
host.news = read.set
host.start_reading()
spec, configured = TaskSpec.model_validate_json(task), AgentSpec.model_validate_json(agent)
request = LaunchRequest(run_id, configured, spec, "", None, "11111111-2222-4333-8444-555555555555")
record = ExitRecord(0, None, int(started_ms), int(ended_ms))
while (report := host.report(request, record)) is None:
    read.wait()
assert not {"sqlalchemy", "claudomator_py.store"} & set(sys.modules), "it knows the database"
print(report.model_dump_json())
"""


def made_elsewhere(root: Path, world: World, name: str) -> str:
    """The report of a process that has the run's files, and no database."""
    run = world.live(name)
    (root / run.id).mkdir()
    (root / run.id / "stdout.jsonl").write_text(json.dumps(RESULT) + "\n")
    (root / run.id / "stderr.log").write_text("")
    task = json.dumps({"name": name, "instructions": "Do it."})
    times = (str(EXIT.started_ms), str(EXIT.ended_ms))
    argv = [sys.executable, "-c", ELSEWHERE, str(root), run.id, CLAUDE.model_dump_json(), task, *times]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def succeeded(run_id: str, **fields: object) -> RunReport:
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, text="done")
    return RunReport.model_validate({"run_id": run_id, "exit": EXIT, "outcome": outcome, **fields})


def events(world: World) -> int:
    return len(world.database.read(lambda connection: connection.exec_driver_sql("SELECT id FROM event").all()))


def test_a_report_made_in_another_process_ends_the_run_whose_files_are_not_here(world: World, tmp_path: Path) -> None:
    world.submit("t", agent={"type": "claude"})
    world.tick()
    root = tmp_path / "elsewhere"
    root.mkdir()
    wire = made_elsewhere(root, world, "t")
    assert KEY not in wire
    world.host.lose(world.live("t").id)
    assert world.apply(RunReport.model_validate_json(wire), world.now_ms) is Applied.ENDED
    view = world.task("t")
    assert (view.state, view.result_text) == ("COMPLETED", "done, with [redacted]")
    (run,) = world.service.runs("t")
    outcome = run.outcome
    assert outcome is not None
    assert (run.exit_code, outcome.cost_usd) == (0, 0.25)


@pytest.mark.parametrize("check", [[], ["make test"]], ids=["unchecked", "checked"])
def test_what_a_run_asks_as_it_ends_is_heard(world: World, check: list[str]) -> None:
    world.submit("t", agent={"type": "claude"}, on_input="wait", check=check)
    world.tick()
    run, task = world.live("t"), world.row("t")
    read = world.database.read(lambda connection: task_rows.spec_of(connection, task.id, run.revision))
    known = ReportedRun(run, task, read)
    world.database.write(lambda connection: run_rows.change(connection, run, asked=["Which one?"]))
    assert world.apply(succeeded(run.id), world.now_ms, known) is Applied.ENDED
    assert world.task("t").state == "NEEDS_INPUT"


def test_a_report_that_comes_again_or_late_changes_nothing(world: World) -> None:
    world.submit("t")
    world.tick()
    report = succeeded(world.live("t").id)
    assert world.apply(report, world.now_ms) is Applied.ENDED
    row, record = world.row("t"), events(world)
    again = RunReport.model_validate_json(report.model_dump_json())
    late = RunReport(run_id=report.run_id, gone=True)
    for other in (report, again, late):
        assert world.apply(other, world.now_ms + 60_000) is Applied.STALE
    assert (world.row("t"), events(world)) == (row, record)


def test_a_report_of_another_step_or_of_no_known_run_changes_nothing(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    run_id = world.live("t").id
    assert world.apply(RunReport(run_id=run_id, step=1, exit=EXIT), world.now_ms) is Applied.STALE
    assert isinstance(world.apply(succeeded(run_id), world.now_ms), CheckWanted)
    world.end("t")
    world.tick()
    for stale in (succeeded(run_id), RunReport(run_id=run_id, step=2, exit=EXIT), succeeded("no-such-run")):
        assert world.apply(stale, world.now_ms) is Applied.STALE
    assert world.task("t").phase == "checking"
    assert world.apply(RunReport(run_id=run_id, step=1, exit=EXIT), world.now_ms) is Applied.ENDED
    assert world.state("t") == "COMPLETED"


def spend(world: World) -> None:
    """Have the budget stop every run that there is."""
    world.database.write(lambda connection: connection.exec_driver_sql("UPDATE run SET over_budget = 'all is spent'"))


def test_what_was_done_before_its_budget_could_stop_it_is_done(world: World) -> None:
    stopped = Outcome(status=OutcomeStatus.CANCELLED, reason=Reason.CANCELLED)
    for name, undisturbed, state in (
        ("done", Outcome(status=OutcomeStatus.SUCCEEDED, text="done"), "COMPLETED"),
        ("cut", Outcome(status=OutcomeStatus.FAILED, reason=Reason.TURN_LIMIT), "FAILED budget"),
    ):
        world.submit(name, retry={"max_attempts": 1})
        world.tick()
        run_id = world.live(name).id
        spend(world)
        report = RunReport(run_id=run_id, exit=EXIT, outcome=stopped, undisturbed=undisturbed)
        assert world.apply(report, world.now_ms) is Applied.ENDED
        assert world.state(name) == state
    (run,) = world.service.runs("cut")
    assert run.outcome is not None
    assert (run.outcome.reason, run.outcome.detail) == (Reason.BUDGET, "all is spent")


def test_a_cancel_of_what_its_budget_stops_is_a_cancel(world: World) -> None:
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    spend(world)
    world.service.cancel("t")
    cancelled = Outcome(status=OutcomeStatus.CANCELLED, reason=Reason.CANCELLED)
    done = Outcome(status=OutcomeStatus.SUCCEEDED, text="done")
    report = RunReport(run_id=run_id, exit=EXIT, outcome=cancelled, undisturbed=done)
    assert world.apply(report, world.now_ms) is Applied.ENDED
    assert world.state("t") == "CANCELLED"


def test_the_run_of_a_kind_that_is_no_longer_known_ends_as_any_other(world: World) -> None:
    world.submit("t")
    world.tick()
    report = succeeded(world.live("t").id)
    world.database.write(lambda connection: connection.exec_driver_sql("UPDATE run SET kind = 'gone'"))
    assert world.apply(report, world.now_ms) is Applied.ENDED
    assert world.state("t") == "COMPLETED"


def test_a_report_of_an_agents_run_says_what_it_came_to() -> None:
    with pytest.raises(ValidationError, match="needs an outcome"):
        RunReport(run_id="r", exit=EXIT)
