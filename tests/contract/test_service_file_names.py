"""Names of tasks in files: live files share none, and a renamed file keeps its tasks."""

import pytest

from claudomator_py.store.database import Database
from tests.fakes.steps import spec
from tests.fakes.world import World

PATH = "/in/t.yaml"


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def test_two_live_files_may_not_share_a_name_but_api_tasks_may(world: World) -> None:
    world.submit("t")
    world.take(PATH, spec("t"))
    (problem,) = world.take("/in/other.yaml", spec("t"))
    assert problem.field == "name"
    assert PATH in problem.message
    world.submit("t")
    world.intake.gone([PATH])
    assert world.take("/in/other.yaml", spec("t", tags=["x"])) == []


def test_a_renamed_file_renames_the_task_that_it_names_and_runs_nothing(world: World) -> None:
    new = "/in/new.yaml"
    world.take(PATH, spec("t"))
    world.submit("after", depends_on=["new"])
    world.tick()
    world.succeed("t")
    first = world.task("t")
    assert world.take(new, spec("new"), renamed_from=PATH) == []
    view = world.task("new")
    assert (view.id, view.state, view.runs, view.file_path) == (first.id, "COMPLETED", 1, new)
    assert [event.data for event in world.service.why("new").events if event.kind == "renamed"] == [
        {"from": "t", "to": "new"}
    ]
    assert list(world.intake.known_files()) == [new]
    assert world.state("after") == "QUEUED ready"
    world.take(new, spec("new", tags=["edited"]), mtime_ns=2)
    assert (world.task("new").id, world.task("new").generation) == (first.id, 2)
    # The old name is free.
    assert world.take(PATH, spec("t"), mtime_ns=3) == []
    assert world.task("t").id != first.id


def test_a_renamed_file_whose_new_name_is_taken_is_refused_and_keeps_its_task(world: World) -> None:
    world.take(PATH, spec("t"))
    world.take("/in/other.yaml", spec("new"))
    (problem,) = world.take("/in/new.yaml", spec("new"), renamed_from=PATH)
    assert problem.field == "name"
    assert world.task("t").file_path == PATH
    world.intake.gone(["/in/other.yaml"])
    assert world.take("/in/new.yaml", spec("new"), renamed_from=PATH) == []


def test_a_renamed_file_of_several_documents_keeps_each(world: World) -> None:
    world.take(PATH, spec("a"), spec("b"), spec("nightly", schedule="0 3 * * *"))
    ids = [world.task(name).id for name in "ab"]
    at = world.schedules.get("nightly").next_at
    assert (
        world.take("/in/u.yaml", spec("a"), spec("b"), spec("nightly", schedule="0 3 * * *"), renamed_from=PATH) == []
    )
    assert [world.task(name).id for name in "ab"] == ids
    assert {world.task(name).file_path for name in "ab"} == {"/in/u.yaml"}
    (schedule,) = world.schedules.all()
    assert (schedule.next_at, schedule.file_path) == (at, "/in/u.yaml")


def test_a_schedule_is_renamed_with_its_file(world: World) -> None:
    world.take(PATH, spec("t", schedule="0 3 * * *"))
    assert world.take("/in/n.yaml", spec("n", schedule="0 3 * * *"), renamed_from=PATH) == []
    (schedule,) = world.schedules.all()
    assert (schedule.name, schedule.file_path) == ("n", "/in/n.yaml")


def test_a_file_that_is_only_renamed_is_no_new_task(world: World) -> None:
    world.take(PATH, spec("t"))
    first = world.task("t")
    world.intake.gone([PATH])
    assert world.take("/in/renamed.yaml", spec("t")) == []
    second = world.task("t")
    assert (second.id, second.file_path) == (first.id, "/in/renamed.yaml")
    world.take("/in/renamed.yaml", spec("t", tags=["new"]), mtime_ns=2)
    assert world.task("t").id == first.id
    assert len(world.names()) == 1
