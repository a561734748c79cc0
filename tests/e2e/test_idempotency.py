"""A daemon dies between its commit and its answer: whoever asks again, with the same key, gets one task."""

import pytest

from claudomator_py.client import ConnectionLost
from claudomator_py.domain.task import TaskSpec
from tests.e2e.site import Site
from tests.patience import PATIENCE_S

TASK = TaskSpec(name="asked", instructions="do: true")


# The first daemon writes first whose database it is, and then that it has started.
@pytest.mark.parametrize("point", ["submit-committed", "store-after-commit:3"])
def test_a_submission_that_was_committed_but_not_answered_is_not_done_again(site: Site, point: str) -> None:
    crashing = site.start(crash_at=point).ready()
    with pytest.raises(ConnectionLost):
        crashing.client.submit(TASK, idempotency_key="once")
    assert crashing.wait() == -9
    daemon = site.start().ready()
    first = daemon.client.submit(TASK, idempotency_key="once")
    assert daemon.client.submit(TASK, idempotency_key="once") == first
    tasks = site.drain(daemon)
    assert list(tasks) == [first.id]
    assert (first.state, tasks[first.id].state) == ("QUEUED", "COMPLETED")
    assert daemon.client.submit(TASK, idempotency_key="another").id != first.id


def test_a_submission_that_was_not_committed_is_done_once(site: Site) -> None:
    crashing = site.start(crash_at="store-before-commit:3").ready()
    with pytest.raises(ConnectionLost):
        crashing.client.submit(TASK, idempotency_key="once")
    crashing.wait()
    daemon = site.start().ready()
    accepted = daemon.client.submit(TASK, idempotency_key="once")
    assert list(site.drain(daemon)) == [accepted.id]


@pytest.mark.parametrize("action", ["cancel", "restart"])
def test_changes_are_done_once_over_a_crash(site: Site, action: str) -> None:
    daemon = site.start(crash_at=f"{action}-committed").ready()
    waiting = TaskSpec.model_validate({**TASK.model_dump(), "name": "waits", "depends_on": ["nothing"]})
    task = daemon.client.submit(waiting)
    call = {"cancel": daemon.client.cancel, "restart": daemon.client.restart}[action]
    with pytest.raises(ConnectionLost):
        call(task.id, idempotency_key="once")
    daemon.wait()
    daemon = site.start().ready()
    call = {"cancel": daemon.client.cancel, "restart": daemon.client.restart}[action]
    record = call(task.id, if_version=task.version, idempotency_key="once")
    assert record.version == daemon.client.task(task.id).version
    assert record.generation == (2 if action == "restart" else 1)


def test_the_command_submits_once_though_the_daemon_dies_over_it(site: Site) -> None:
    (site.root / "asked.yaml").write_text("instructions: 'do: true'\n")
    crashing = site.start(crash_at="submit-committed").ready()
    command = site.command
    submitting = command.start("submit", "asked.yaml", "--wait", "--config", str(site.config_file))
    try:
        crashing.wait()
        daemon = site.start().ready()
        out, err = submitting.communicate(timeout=PATIENCE_S)
    finally:
        submitting.kill()
        submitting.wait()
    assert submitting.returncode == 0, err
    (task,) = daemon.client.all_tasks()
    assert task.id in out
    assert task.state == "COMPLETED"
