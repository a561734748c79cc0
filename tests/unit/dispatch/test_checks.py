"""Checks: what decides whether a run succeeded."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.run import ending_of
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.store.tables import RUN, TASK, Run
from claudomator_py.tasks.runs import begin_check
from tests.fakes.world import World


def checking(world: World, **fields: Any) -> str:
    """A task whose agent has succeeded and whose check runs; the run's id."""
    world.submit("t", check=["make test", "make lint"], **fields)
    world.tick()
    world.end("t", text="done")
    world.tick()
    assert (world.task("t").state, world.task("t").phase) == ("RUNNING", "checking")
    return world.live("t").id


def test_a_check_decides_success(world: World) -> None:
    run_id = checking(world)
    order = world.host.directories[run_id, 1].order
    assert order.commands == (("make", "test"), ("make", "lint"))
    world.host.end(run_id, 0, step=1)
    world.tick()
    view = world.task("t")
    assert (view.state, view.result_text) == ("COMPLETED", "done")
    assert world.run_requests.get(run_id).exit_code == 0


def test_what_came_of_a_check_is_told_with_the_run(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 2, "backoff": "1s"})
    begun = world.run_requests.get(run_id).check
    assert begun is not None
    assert (begun.status, begun.commands, begun.step) == ("running", (("make", "test"), ("make", "lint")), None)
    assert "Its check is running (0s so far): make test, make lint." in world.service.why("t").sentences
    world.host.write(run_id, b"E501 line too long\n", step=1)
    world.host.end(run_id, 2, step=1, command=1)
    world.tick()
    failed = world.run_requests.get(run_id).check
    assert failed is not None
    assert (failed.status, failed.step, failed.exit_code, failed.output) == ("failed", 1, 2, "E501 line too long")
    assert failed.verdicts == (("make test", "passed"), ("make lint", "exited with 2"))
    sentences = world.service.why("t").sentences
    assert "Its check failed after 0s: make lint (2 of 2) exited with 2." in sentences
    assert "Its last output: E501 line too long" in sentences
    assert world.run_requests.log(run_id, "stdout", 0, 100, check=True).data == b"E501 line too long\n"
    world.tick(60_000)
    world.end("t", text="done")
    world.tick()
    again = world.live("t").id
    world.host.end(again, 0, step=1, command=1)
    world.tick()
    passed = world.run_requests.get(again).check
    assert passed is not None
    assert (passed.status, passed.exit_code, passed.output) == ("passed", 0, None)


def test_a_check_that_left_no_record_and_one_that_was_cancelled(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 1})
    world.host.lose(run_id)
    world.tick()
    lost = world.run_requests.get(run_id).check
    assert lost is not None
    assert (lost.status, lost.step, lost.ended_at is None) == ("lost", None, False)
    world.now_ms += 1
    cancelled_id = checking(world)
    world.service.cancel("t")
    world.tick()
    world.tick()
    cancelled = world.run_requests.get(cancelled_id).check
    assert cancelled is not None
    assert cancelled.status == "cancelled"


def test_a_secret_in_the_output_of_a_check_is_taken_out(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 1}, env={"API_TOKEN": "hunter2-hunter2"})
    world.host.write(run_id, b"refused: hunter2-hunter2\n", step=1)
    world.host.end(run_id, 1, step=1)
    world.tick()
    check = world.run_requests.get(run_id).check
    assert check is not None
    assert check.output == "refused: [redacted]"
    assert "hunter2" not in str(world.task("t").reason_text)


def test_a_command_that_never_began_is_told_apart_from_why() -> None:
    assert ending_of("make test", 2, None, None) == "make test exited with 2"
    why = "make cannot be started: No such file or directory"
    assert ending_of("make test", None, None, why) == f"make test: {why}"


def test_a_failed_check_fails_the_attempt_with_its_output(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 2, "backoff": "1s"})
    world.host.write(run_id, b"1 failed, 3 passed\n", "stderr", step=1)
    world.host.end(run_id, 2, step=1)
    world.tick()
    assert world.state("t") == "WAITING backoff"
    outcome = world.run_requests.get(run_id).outcome
    assert outcome is not None
    assert (outcome.status, outcome.reason, outcome.text) == ("failed", "check_failed", "done")
    assert outcome.detail == "check `make test` exited with 2\n1 failed, 3 passed"


def test_a_restart_that_resumes_after_a_failed_check_tells_the_agent_what_came_of_it(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 1}, env={"API_TOKEN": "hunter2-hunter2"})
    world.host.write(run_id, b"1 failed, 3 passed, hunter2-hunter2\n", "stderr", step=1)
    world.host.end(run_id, 2, step=1)
    world.tick()

    world.restart("t", resume=True, reason="Look at the dates.")
    world.tick()

    assert world.live("t").resumes == run_id
    said = world.kinds["claude"].requests[-1].prompt
    assert said.startswith("Continue the task where you left off.")
    assert r'{"error": "check `make test` exited with 2\n1 failed, 3 passed, [redacted]"}' in said
    assert said.endswith("The operator adds:\n\nLook at the dates.\n")


@pytest.mark.parametrize(
    ("command", "end", "because"),
    [
        (["no-such", "-q"], {"error": "no-such cannot be started: No such file or directory"}, "No such file"),
        (["make"], {"error": "make cannot be started: No such file or directory"}, "No such file"),
        (["sh", "-c", "cd sub && no-such -q"], {"exit_code": 127}, "as no-such is missing"),
        (["env", "CI=1", "no-such"], {"exit_code": 127}, "as no-such is missing"),
        (["/no/such"], {"error": "/no/such cannot be started: No such file or directory"}, "No such file"),
        (["timeout", "5", "/etc/passwd"], {"exit_code": 126}, "as /etc/passwd is missing or cannot be executed"),
    ],
)
def test_a_check_whose_program_no_agent_can_make_costs_no_further_attempt(
    command: list[str], end: dict[str, Any], because: str, world: World
) -> None:
    assert because in str(ended_with(world, command, end, "FAILED check_unavailable"))
    assert "then run `claudomator restart t --resume`" in str(world.task("t").reason_text)
    world.service.restart("t", RestartRequest(resume=True))
    world.tick()
    assert world.live("t").resumes is not None


def test_an_agent_without_conversations_is_not_to_resume_one_after_its_check_was_unavailable(world: World) -> None:
    ended_with(world, ["no-such"], {"exit_code": 127}, "FAILED check_unavailable", agent={"type": "lint"})
    assert str(world.task("t").reason_text).endswith("then run `claudomator restart t`.")


@pytest.mark.parametrize(
    ("command", "end", "env"),
    [
        (["./run"], {"error": "./run cannot be started: No such file or directory"}, {}),
        (["/srv/shop/run"], {"error": "/srv/shop/run cannot be started: No such file or directory"}, {}),
        (["sh", "-c", "./run"], {"exit_code": 127}, {}),
        (["sh", "run"], {"exit_code": 127}, {}),
        (["no-such"], {"error": "no-such cannot be started: No such file or directory"}, {"PATH": ".venv/bin:/bin"}),
        (["no-such"], {"exit_code": 1}, {}),
    ],
)
def test_a_check_that_the_agent_may_mend_is_tried_again(
    command: list[str], end: dict[str, Any], env: dict[str, str], world: World
) -> None:
    ended_with(world, command, end, "WAITING backoff", working_dir="/srv/shop", env=env)


def test_a_check_that_found_no_room_on_the_disk_says_nothing_of_the_work(world: World) -> None:
    full = {"error": "no space left", "ended_by": "disk_full"}
    assert ended_with(world, ["no-such"], full, "WAITING backoff", agent={"type": "claude"}) == (
        "check `no-such`: no space left"
    )
    (run,) = world.service.runs("t")
    assert run.outcome is not None
    assert run.outcome.reason == "disk_full"
    world.tick(HOUR_MS)
    assert world.live("t").resumes == run.id, "the conversation is not to blame"


def ended_with(world: World, command: list[str], end: dict[str, Any], state: str, **fields: Any) -> str | None:
    """Let the check end so, and return its words."""
    world.submit("t", check=[command], **fields)
    world.tick()
    world.end("t", text="done")
    world.tick()
    run_id = world.live("t").id
    world.host.end(run_id, end.get("exit_code"), step=1, error=end.get("error"), ended_by=end.get("ended_by"))
    world.tick()
    assert world.state("t") == state
    outcome = world.run_requests.get(run_id).outcome
    return None if outcome is None else outcome.detail


def test_a_lost_or_interrupted_check_is_begun_again_but_not_for_ever(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 1})
    world.host.kill_shim(run_id, 1)
    world.tick()
    world.host.end(run_id, None, ended_by="interrupt", step=2)
    world.tick()
    assert world.live("t").check_seq == 3
    assert world.task("t").phase == "checking"
    for step in range(3, 6):
        world.host.kill_shim(run_id, step)
        world.tick()
    assert world.state("t") == "FAILED check_failed"
    assert "started 5 times and lost each time" in str(world.task("t").reason_text)
    assert [call for call in world.host.calls if call[0] == "spawn"] == [("spawn", run_id, step) for step in range(6)]


def test_a_check_whose_supervisor_was_killed_is_begun_again_though_its_program_lives(world: World) -> None:
    run_id = checking(world)
    world.host.kill_shim(run_id, 1, agent_lives=True)
    world.tick()
    assert (world.task("t").phase, world.live("t").check_seq) == ("checking", 2)
    assert ("end_survivors", run_id, 0) in world.host.calls, "two checks at a time would be in each other's way"


def test_a_check_whose_supervisor_died_before_it_started_is_begun_again_and_its_run_is_not(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.end("t", text="done")
    world.host.slow = True
    world.tick()
    run_id = world.live("t").id
    world.host.kill_shim(run_id, 1)
    world.tick()
    assert (world.live("t").id, world.live("t").check_seq) == (run_id, 2)


def test_a_late_look_at_a_lost_check_puts_the_run_back_to_none_before(world: World) -> None:
    run_id = checking(world)
    late = world.live("t")
    for step in (1, 2):
        world.host.kill_shim(run_id, step)
        world.tick(1_000)
    row, calls = world.live("t"), len(world.host.calls)
    assert row.check_seq == 3
    assert not world.collector.collect(late, world.now_ms + 1_000)
    assert world.live("t") == row
    assert {call[0] for call in world.host.calls[calls:]} == {"reconcile"}
    world.host.end(run_id, 0, step=3)
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_a_check_is_begun_once_of_one_look(world: World) -> None:
    run_id = checking(world)
    seen = world.live("t")
    outcome = Outcome.model_validate(seen.outcome)
    begin = partial(begin_check, run=seen, outcome=outcome, exit_code=0)
    assert world.database.write(partial(begin, now_ms=world.now_ms))
    row = world.live("t")
    assert (row.id, row.check_seq) == (run_id, 2)
    assert not world.database.write(partial(begin, now_ms=world.now_ms + 1_000))
    assert world.live("t") == row


def test_cancel_during_a_check(world: World) -> None:
    run_id = checking(world)
    world.service.cancel("t")
    world.tick()
    assert ("cancel", run_id, 1) in world.host.calls
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_success_that_was_not_checked_any_more_is_none(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.host.stubborn = True
    world.service.cancel("t")
    world.end("t", text="done")
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_check_directory_that_cannot_be_made_writes_nothing_and_is_made_later(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.tick()
    world.end("t")
    world.host.no_room = OSError(28, "No space left on device")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    world.tick()
    world.tick()
    assert commits == []
    world.host.no_room = None
    world.tick(MINUTE_MS)
    assert world.task("t").phase == "checking"
    assert world.live("t").check_seq == 1


def test_a_check_of_which_an_older_copy_of_the_database_knows_nothing_is_taken_over(world: World) -> None:
    """It was copied before the check began, and put back after it: what the check says counts, and it runs once."""
    world.submit("t", check=["make test"])
    world.tick()
    world.end("t", text="done")
    before = world.live("t")
    world.tick()
    run_id = world.live("t").id
    put_back(world, before)

    world.host.end(run_id, 0, step=1)
    world.tick()
    assert (world.task("t").phase, world.live("t").check_seq) == ("checking", 1)
    assert world.live("t").exit_code == 0, "as it was read again"
    world.tick()
    assert world.state("t") == "COMPLETED"
    assert [call for call in world.host.calls if call[0] == "spawn"] == [("spawn", run_id, 0), ("spawn", run_id, 1)]


def test_nothing_is_ended_of_a_second_check_that_the_copy_does_not_know(world: World) -> None:
    """It was copied while the first one ran, which has been lost since."""
    run_id = checking(world)
    before = world.live("t")
    world.host.kill_shim(run_id, 1)
    world.tick()
    assert world.live("t").check_seq == 2
    put_back(world, before)
    world.host.calls.clear()

    world.tick()
    assert (world.live("t").check_seq, world.live("t").exit_code) == (2, 0)
    assert ("end_survivors", run_id, 0) not in world.host.calls, "what lives of the run is the second check"
    world.host.end(run_id, 0, step=2)
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_the_check_of_a_lost_run_that_had_said_its_last_word_is_taken_over(world: World) -> None:
    """Of that run there is no record, only its check, of which the copy knows nothing."""
    world.submit("t", check=["make test"])
    world.tick()
    world.say("t", text="done")
    world.host.kill_shim(world.live("t").id)
    before = world.live("t")
    world.tick()
    put_back(world, before)
    world.tick()
    assert (world.live("t").check_seq, world.faults.all()) == (1, [])
    world.host.end(before.id, 0, step=1)
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_a_check_that_was_lost_before_the_database_was_put_back_is_begun_again(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.end("t", text="done")
    before = world.live("t")
    world.tick()
    put_back(world, before)
    world.host.kill_shim(before.id, 1)
    world.tick()
    world.tick()
    assert world.live("t").check_seq == 2
    world.host.end(before.id, 0, step=2)
    world.tick()
    assert world.state("t") == "COMPLETED"


def put_back(world: World, run: Run) -> None:
    """The rows of the run and its task are as they were when the agent had not been seen to end."""

    def write(connection: Connection) -> None:
        columns = {"state": run.state, "check_seq": run.check_seq, "outcome": run.outcome, "exit_code": run.exit_code}
        connection.execute(RUN.update().where(RUN.c.id == run.id).values(columns))
        connection.execute(TASK.update().where(TASK.c.id == run.task_id).values(phase="running"))

    world.database.write(write)
