"""The watched folder through a running daemon: what is dropped, edited, deleted and broken there."""

import os
from pathlib import Path

import pytest

from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, started
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

SAY = "do: echo {0}"
HOLD = "do: until [ -e go ]; do sleep 0.05; done"


def only(daemon: Daemon) -> TaskView:
    """The one task that there is."""
    (task,) = daemon.client.all_tasks()
    return task


def becomes(daemon: Daemon, ref: str, revision: int, state: str) -> TaskView:
    """Wait until the task is at that revision and in that state."""

    def look() -> TaskView | None:
        task = daemon.client.task(ref)
        return task if (task.revision, task.state) == (revision, state) else None

    return wait_until(look, f"{ref} to be {state} at revision {revision}")


def error_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.error.txt")


def test_an_edit_replaces_what_waits(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("task.yaml", document(None, SAY.format("old"), depends_on="first"))
    in_state(daemon, "task", "WAITING")

    site.drop("task.yaml", document(None, SAY.format("new"), depends_on="first"))
    becomes(daemon, "task", 2, "WAITING")
    site.drop("first.yaml", document(None, "do: true"))

    task = ended(daemon, "task")
    assert (task.state, task.result_text, task.runs) == ("COMPLETED", "new", 1)


def test_an_edit_of_what_runs_lets_it_finish_and_then_runs(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("task.yaml", document(None, HOLD, SAY.format("old"), working_dir=str(site.work)))
    started(site)
    first = in_state(daemon, "task", "RUNNING")

    site.drop("task.yaml", document(None, SAY.format("new"), working_dir=str(site.work)))
    wait_until(lambda: daemon.client.task("task").version > first.version, "the edit to be taken")
    assert daemon.client.task("task").state == "RUNNING"
    (site.work / "go").touch()

    task = becomes(daemon, "task", 2, "COMPLETED")
    assert (task.id, task.result_text, task.generation) == (first.id, "new", 2)
    texts = [run.outcome.text for run in daemon.client.runs("task") if run.outcome is not None]
    assert texts == ["old", "new"]


def test_formatting_a_comment_a_touch_and_a_rename_run_nothing_again(site: Site) -> None:
    daemon = site.start().ready()
    file = site.drop("task.yaml", document("task", SAY.format("once")))
    ended(daemon, "task")

    site.drop("task.yaml", f"# a comment\n\n{document('task', SAY.format('once'))}\n\n")
    os.utime(file)
    renamed = file.rename(file.with_name("renamed.yaml"))
    # Files are taken in the order of their events: once this one is done, the others were looked at.
    site.drop("marker.yaml", document(None, "do: true"))
    ended(daemon, "marker")
    wait_until(lambda: daemon.client.task("task").file_path == str(renamed), "the rename")

    site.drain(daemon)
    assert len(started(site, 2)) == 2
    assert daemon.client.task("task").runs == 1


def test_a_deleted_file_cancels_nothing_and_may_come_back(site: Site) -> None:
    daemon = site.start().ready()
    file = site.drop("task.yaml", document(None, HOLD, working_dir=str(site.work)))
    started(site)
    in_state(daemon, "task", "RUNNING")

    file.unlink()
    site.drop("marker.yaml", document(None, "do: true"))
    ended(daemon, "marker")
    assert daemon.client.task("task").state == "RUNNING"
    (site.work / "go").touch()
    assert ended(daemon, "task").state == "COMPLETED"

    site.drop("task.yaml", document(None, HOLD, working_dir=str(site.work)))
    site.drop("marker.yaml", document(None, "do: :"))
    wait_until(lambda: daemon.client.task("marker").runs == 2, "the second marker")
    assert daemon.client.task("task").runs == 1


def test_a_name_that_is_taken_is_refused_until_it_is_free(site: Site) -> None:
    daemon = site.start().ready()
    first = site.drop("first.yaml", document("same", SAY.format("first")))
    ended(daemon, "same")

    second = site.drop("second.yaml", document("same", SAY.format("second")))
    wait_until(error_of(second).exists, "the refusal")
    assert f"the name `same` is taken by {first}" in error_of(second).read_text()
    assert [problem.path for problem in daemon.client.status().inbox] == [str(second)]

    first.unlink()
    wait_until(lambda: len(list(daemon.client.all_tasks())) == 2, "the second to be taken", PATIENCE_S)
    wait_until(lambda: not error_of(second).exists(), "the end of the complaint")
    assert ended(daemon, next(task.id for task in daemon.client.all_tasks())).result_text == "second"


def test_of_files_that_are_found_together_the_most_urgent_has_the_only_slot(site: Site) -> None:
    site.configure(concurrency={"total": 1})
    (site.root / "new").mkdir()
    names = ("low", "normal", "urgent")
    for name in names:
        site.drop(f"{name}.yaml", document(None, "do: true", priority=name, working_dir=str(site.root / "new")))
    daemon = site.start().ready()
    for name in names:
        ended(daemon, name)
    begun = {name: daemon.client.runs(name)[0].started_at for name in names}
    assert sorted(begun, key=lambda name: begun[name]) == ["urgent", "normal", "low"]


def test_a_file_being_written_is_not_read_before_it_is_closed(site: Site) -> None:
    daemon = site.start().ready()
    text = "name: slow\ninstructions: |\n  do: echo part\n"
    path = site.inbox / "slow.yaml"
    with path.open("w") as file:
        file.write(text)
        file.flush()
        # What is there so far would be a valid task.
        site.drop("marker.yaml", document(None, "do: true"))
        ended(daemon, "marker")
        assert [task.name for task in daemon.client.all_tasks()] == ["marker"]
        file.write("  do: echo whole\n")

    assert ended(daemon, "slow").result_text == "part\nwhole"
    assert daemon.client.task("slow").runs == 1


def test_a_bad_file_is_told_beside_it_until_it_is_good(site: Site) -> None:
    daemon = site.start().ready()
    file = site.drop("bad.yaml", "instructions: do it\npriorty: high\n")
    wait_until(error_of(file).exists, "the refusal")

    text = error_of(file).read_text()
    assert "2" in text.partition("priorty")[0], "the line"
    assert "did you mean `priority`" in text
    (problem,) = daemon.client.inbox_problems()
    assert problem.path == str(file)

    site.drop("bad.yaml", "instructions: 'do: true'\npriority: high\n")
    assert ended(daemon, "bad").priority == "high"
    wait_until(lambda: not error_of(file).exists(), "the end of the complaint")
    assert daemon.client.inbox_problems() == []

    site.drop("worse.yaml", "{")
    wait_until(error_of(site.inbox / "worse.yaml").exists, "the refusal")
    (site.inbox / "worse.yaml").unlink()
    wait_until(lambda: not error_of(site.inbox / "worse.yaml").exists(), "the end of the complaint")
    assert daemon.client.task("bad").runs == 1


def test_a_yaml_bomb_is_refused_and_holds_up_nobody(site: Site) -> None:
    daemon = site.start().ready()
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    bomb = site.drop("bomb.yaml", "\n".join([*lines, "instructions: *i"]))
    site.drop("good.yaml", document(None, "do: true"))

    assert ended(daemon, "good").state == "COMPLETED"
    wait_until(error_of(bomb).exists, "the refusal")
    assert daemon.running


@pytest.mark.parametrize(
    "count",
    [
        300,
        pytest.param(1_000, marks=[pytest.mark.slow]),
        pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1_200)]),
    ],
    ids=lambda n: f"{n} files",
)
def test_a_full_inbox_at_the_start_is_taken_whole(site: Site, count: int) -> None:
    for number in range(count):
        (site.inbox / f"task-{number:05}.yaml").write_text(document(None, "x", not_before="2099-01-01T00:00:00Z"))
    daemon = site.start().ready()
    # Asking for the state of so many tasks over and over would be most of the work.
    wait_until(lambda: f"{count:,} files accepted" in site.log_text(), f"{count} files to be accepted", 800)
    assert daemon.client.status().counts == {"WAITING": count}

    daemon.kill()
    daemon = site.start().ready()
    site.drop("last.yaml", document(None, "do: true"))
    ended(daemon, "last", 120)
    assert daemon.client.status().counts == {"WAITING": count, "COMPLETED": 1}


def arrive(site: Site, daemon: Daemon, number: int) -> None:
    """Drop the same file once more, and wait until it is a task and moved away."""
    file = site.drop("task.yaml", document(None, "do: true"))
    wait_until(lambda: len(list(daemon.client.all_tasks())) == number, f"task {number}")
    wait_until(lambda: not file.exists(), "the file to be moved")


def test_accepted_files_can_be_moved_away_and_each_arrival_is_new(site: Site) -> None:
    site.configure(inbox={"paths": ["tasks"], "after_accept": "move"})
    daemon = site.start().ready()
    arrive(site, daemon, 1)
    arrive(site, daemon, 2)

    site.drain(daemon)
    archived = list((site.inbox / ".accepted").iterdir())
    assert sorted(path.name.partition("-")[2] for path in archived) == ["task.yaml", "task.yaml"]
    assert daemon.stop() == 0
    site.start().ready()
    assert len(started(site, 2)) == 2


def test_an_inbox_at_another_place_is_the_same_work(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("same.yaml", document(None, "do: true"))
    site.drop("edited.yaml", document(None, SAY.format("old")))
    site.drain(daemon)
    assert daemon.stop() == 0

    site.inbox.rename(site.root / "moved")
    site.inbox = site.root / "moved"
    site.configure(inbox={"paths": ["moved"]})
    site.drop("edited.yaml", document(None, SAY.format("new")))
    daemon = site.start().ready()

    wait_until(lambda: len(list(daemon.client.all_tasks())) == 3, "the edited one to be taken")
    site.drain(daemon)
    assert daemon.client.inbox_problems() == []
    assert daemon.client.task("same").runs == 1
    assert daemon.client.task("same").file_path == str(site.inbox / "same.yaml")
    assert daemon.client.task("edited").result_text == "new"


def test_an_inbox_that_vanishes_is_said_and_what_comes_back_runs_once(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("task.yaml", document(None, "do: true"))
    ended(daemon, "task")
    away = site.root / "away"

    site.inbox.rename(away)
    wait_until(lambda: not daemon.client.readiness().ready, "readiness to complain")
    (complaint,) = [check for check in daemon.client.readiness().checks if not check.ok]
    assert complaint.name == "inbox"
    assert str(site.inbox) in complaint.detail
    assert complaint.remedy
    (away / "later.yaml").write_text(document(None, "do: true"))
    away.rename(site.inbox)

    assert ended(daemon, "later").state == "COMPLETED"
    wait_until(lambda: daemon.client.readiness().ready, "readiness")
    assert daemon.client.task("task").runs == 1
