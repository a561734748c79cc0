"""What becomes of task files: warnings, changed content, cycles, files that are moved or deleted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.handoff import Handoff, PermissionScope
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.schema.taskfile import parse_task_file
from claudomator_py.sources.inbox.arrivals import Offering
from claudomator_py.sources.inbox.ledger import FileStamp, InboxReading
from claudomator_py.store import events, pruning, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TaskRevision
from tests.databases import open_migrated
from tests.fakes.decisions import placement_of
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

PATH = "/in/t.yaml"


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def test_a_directory_in_which_nothing_is_allowed_is_warned_of(world: World, tmp_path: Path) -> None:
    mine, other = tmp_path / "y", tmp_path / "x"
    mine.mkdir()
    other.mkdir()
    world.submit("t", working_dir=str(mine))
    (warning,) = world.task("t").warnings
    assert warning.startswith("permissions: are not set, so most agents may only read")
    assert "permissions: {mode: acceptEdits}" in warning
    for name, fields in {
        "allowed": {"working_dir": str(other), "permissions": {"mode": "acceptEdits"}},
        "by-hand": {"working_dir": str(other), "permissions": {"allowed_tools": ["Read"]}},
        "nowhere": {},
        "program": {"working_dir": str(other), "agent": {"type": "lint"}},
    }.items():
        world.submit(name, **fields)
        assert world.task(name).warnings == (), name
    world.tick()
    world.fail("t")
    assert world.restart("t", agent="codex").state == "QUEUED", "it is a warning, and refuses nothing"


def test_a_task_that_does_not_take_over_the_permissions_of_the_one_it_continues_is_warned_of(
    world: World, tmp_path: Path
) -> None:
    world.submit("form", working_dir=str(tmp_path), permissions={"mode": "acceptEdits"})
    world.submit("tests", continues="form")
    (warning,) = world.task("tests").warnings
    assert warning.startswith("permissions: are not set, and those of form are not taken over, so most agents may only")
    world.tick()
    world.end("form")
    assert world.task("tests").warnings == (warning,), "it has a directory by now"
    world.tick()
    handoff = Handoff.model_validate_json(world.host.directories[world.live("tests").id, 0].order.handoff or "")
    assert handoff.permissions == PermissionScope()
    world.submit("more", continues="form", permissions={"mode": "acceptEdits"})
    assert world.task("more").warnings == ()


def test_what_is_not_there_yet_is_warned_of_until_it_is(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "later"
    assert world.take(PATH, spec("t", working_dir=str(folder), permissions={"mode": "acceptEdits"})) == []
    (warning,) = world.task("t").warnings
    assert warning.startswith(f"working_dir: {folder} does not exist; the task would fail; create it before")
    assert f"Warning: {warning}" in world.service.why("t").sentences
    folder.mkdir()
    assert world.task("t").warnings == ()


def test_a_variable_that_looks_like_a_secret_is_warned_of_and_not_shown(world: World) -> None:
    world.submit("t", env={"API_KEY": "value-of-a-key", "COLOUR": "green"})
    view = world.task("t")
    (warning,) = view.warnings
    assert warning.startswith("env.API_KEY: looks like a secret, and task files and the database keep it as it is")
    assert "`pass_env` of the agent" in warning
    assert view.spec is not None
    assert view.spec["env"] == {"API_KEY": "[redacted]", "COLOUR": "green"}


def test_a_file_becomes_its_tasks_whole_or_not_at_all(world: World) -> None:
    refused = world.take(PATH, spec("good"), spec("bad", agent={"type": "cluade", "strict": True}))
    assert [(problem.field, problem.remedy) for problem in refused] == [("agent.type", "did you mean `claude`?")]
    assert world.overview.status().counts == {}
    assert world.intake.known_files() == {}
    assert world.take(PATH, spec("good"), spec("bad")) == []
    view = world.task("bad")
    assert (view.source, view.file_path, view.state) == ("file", PATH, "QUEUED")
    assert list(world.intake.known_files()) == [PATH]


def test_a_wish_for_an_agent_that_nobody_has_is_told_and_another_takes_the_task(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Mock()
    monkeypatch.setattr("claudomator_py.sources.inbox.intake.log", log)
    assert world.take(PATH, spec("t", agent={"type": "cluade", "model": "opus"})) == []
    warning = (
        "agent.type: no agent `cluade` is configured, so any other may take the task, with a model of its own instead "
        "of `opus`; did you mean `claude`?"
    )
    log.warning.assert_called_once_with("task_warning", warning=f"{PATH}: {warning}")
    assert world.task("t").warnings == (warning,)
    assert f"Warning: {warning}" in world.service.why("t").sentences
    world.tick()
    assert world.running() == {"t": "claude"}
    why = world.service.why("t")
    assert placement_of(why.decisions[0]).overridden_hint == "cluade: cluade was not configured"
    assert "The task prefers cluade, but cluade was not configured." in why.sentences
    assert world.task("t").warnings == ()


def test_unchanged_content_never_runs_again(world: World) -> None:
    world.take(PATH, spec("t"))
    world.tick()
    world.succeed("t")
    for stamp in (2, 3):
        assert world.take(PATH, spec("t"), mtime_ns=stamp) == []
    world.intake.gone([PATH])
    assert world.intake.known_files() == {}
    world.take(PATH, spec("t"), mtime_ns=4)
    world.tick()
    view = world.task("t")
    assert (view.state, view.runs, view.generation) == ("COMPLETED", 1, 1)


@pytest.mark.both_databases
def test_new_content_replaces_what_has_not_started(world: World) -> None:
    world.take(PATH, spec("t"))
    first = world.task("t")
    world.take(PATH, spec("t", tags=["b"], depends_on=["x"]), mtime_ns=2)
    second = world.task("t")
    assert (second.id, second.tags, second.state) == (first.id, ("b",), "WAITING")
    assert (second.generation, second.revision) == (1, 2)
    world.take(PATH, spec("t", tags=["c"]), mtime_ns=3)
    assert (world.task("t").state, world.task("t").depends_on) == ("QUEUED", ())


def test_new_content_begins_anew_what_asked_or_ended(world: World) -> None:
    world.take(PATH, spec("t"))
    world.tick()
    world.end("t", status="needs_input")
    world.tick()
    ends: list[tuple[Callable[[str], object], str]] = [
        (world.succeed, "COMPLETED"),
        (world.fail, "FAILED"),
        (world.service.cancel, "CANCELLED"),
        (world.succeed, "COMPLETED"),
    ]
    for number, (end, state) in enumerate(ends, start=2):
        world.take(PATH, spec("t", tags=[str(number)]), mtime_ns=number)
        assert (world.task("t").state, world.task("t").generation) == ("QUEUED", number)
        world.tick()
        end("t")
        world.tick()
        world.tick()
        assert world.task("t").state == state


def test_a_running_task_finishes_with_the_old_content_and_then_the_new_one_queues(world: World) -> None:
    world.take(PATH, spec("t", tags=["old"]))
    world.submit("after", depends_on=["t"])
    world.tick()
    run = world.live("t").id
    world.take(PATH, spec("t", tags=["newer"]), mtime_ns=2)
    world.take(PATH, spec("t", tags=["newest"]), mtime_ns=3)
    assert (world.live("t").id, world.task("t").tags) == (run, ("old",))
    world.succeed("t")
    view = world.task("t")
    assert (view.state, view.generation, view.tags) == ("RUNNING", 2, ("newest",))
    assert world.state("after") == "WAITING dependency"
    world.succeed("t")
    assert world.running() == {"after": "claude"}


def test_new_content_needs_no_further_attempt_at_the_old(world: World) -> None:
    world.take(PATH, spec("t"))
    world.tick()
    world.take(PATH, spec("t", tags=["new"]), mtime_ns=2)
    world.fail("t", "agent_error")
    view = world.task("t")
    assert (view.state, view.tags, view.generation, view.attempts) == ("RUNNING", ("new",), 2, 0)


def test_a_running_task_says_that_other_content_runs_after_it(world: World) -> None:
    world.take(PATH, spec("t"))
    world.tick()
    assert world.service.why("t").sentences[0] == f"t is RUNNING on {world.live('t').agent}."
    world.take(PATH, spec("t", tags=["new"]), mtime_ns=2)
    assert (
        world.service.why("t")
        .sentences[0]
        .endswith(": its content has changed meanwhile, and the new one runs once this run has ended.")
    )
    world.take(PATH, spec("t"), mtime_ns=3)
    assert world.task("t").reason_text is None, "what runs already is not run again"


def test_a_cancelled_task_does_not_start_again_by_content_that_came_before(world: World) -> None:
    world.take(PATH, spec("t"))
    world.tick()
    world.take(PATH, spec("t", tags=["new"]), mtime_ns=2)
    world.service.cancel("t")
    world.tick()
    world.tick()
    assert world.state("t") == "CANCELLED"
    world.restart("t")
    assert world.task("t").tags == ("new",)


def test_what_is_saved_or_dropped_after_a_cancel_is_queued_again(world: World) -> None:
    world.take(PATH, spec("t", tags=["old"]))
    world.tick()
    world.take(PATH, spec("t", tags=["new"]), mtime_ns=2)
    world.service.cancel("t")
    assert any(event.data.get("discarded_revision") == 2 for event in world.service.why("t").events)
    assert "Its changed content (revision 2) was cancelled with it" in " ".join(world.service.why("t").sentences)
    world.tick()
    world.tick()
    assert world.state("t") == "CANCELLED"
    world.intake.gone([PATH])
    removable = world.database.read(lambda connection: pruning.old_tasks(connection, START_MS * 2, "", 10))
    assert [task_id for task_id, _ in removable] == [world.task("t").id]

    world.take(PATH, spec("t", tags=["new"]), mtime_ns=3)
    world.tick()
    view = world.task("t")
    assert (view.state, view.tags, view.generation) == ("RUNNING", ("new",), 2)
    assert "revision 2" not in " ".join(world.service.why("t").sentences)


def test_content_that_comes_after_a_cancel_runs_once_the_run_has_ended(world: World) -> None:
    world.take(PATH, spec("t", tags=["old"]))
    world.tick()
    world.service.cancel("t")
    world.take(PATH, spec("t", tags=["new"]), mtime_ns=2)
    world.tick()
    world.tick()
    view = world.task("t")
    assert (view.state, view.tags, view.generation) == ("RUNNING", ("new",), 2)
    world.take(PATH, spec("t", tags=["newer"]), mtime_ns=3)
    world.service.cancel("t")
    world.take(PATH, spec("t", tags=["newest"]), mtime_ns=4)
    world.service.cancel("t")
    world.tick()
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_an_edit_that_is_undone_while_the_task_runs_runs_nothing(world: World) -> None:
    world.take(PATH, spec("t", tags=["a"]))
    world.submit("after", depends_on=["t"])
    world.tick()
    for number, tag in enumerate(("b", "a", "c", "a"), start=2):
        world.take(PATH, spec("t", tags=[tag]), mtime_ns=number)
    world.succeed("t")
    world.tick()
    view = world.task("t")
    assert (view.state, view.runs, view.generation, view.tags) == ("COMPLETED", 1, 1, ("a",))
    assert world.running() == {"after": "claude"}
    world.take(PATH, spec("t", tags=["a"]), mtime_ns=6)
    assert world.state("t") == "COMPLETED"
    world.restart("t")
    assert world.task("t").tags == ("a",)


def test_back_to_earlier_content_is_a_change_like_any_other(world: World) -> None:
    for number, tag in enumerate(("a", "b", "a"), start=1):
        world.take(PATH, spec("t", tags=[tag]), mtime_ns=number)
        world.tick()
        world.succeed("t")
    assert world.task("t").generation == 3


def test_a_deleted_file_cancels_nothing(world: World) -> None:
    world.take(PATH, spec("a"), spec("b"))
    world.take(PATH, spec("a"), mtime_ns=2)
    world.intake.gone([PATH])
    world.tick()
    assert world.running() == {"a": "claude", "b": "codex"}


def test_with_move_each_arrival_is_new(world: World) -> None:
    for _ in range(2):
        assert world.take(PATH, spec("t")) == []
        world.intake.archived([PATH])
        assert world.intake.known_files() == {}
        world.now_ms += 1
    assert len(world.names()) == 2


def test_the_documents_of_a_file_may_name_each_other_in_any_order(world: World) -> None:
    assert world.take(PATH, spec("c", depends_on=["b"]), spec("b", depends_on=["a"]), spec("a")) == []
    world.tick()
    assert world.running() == {"a": "claude"}
    # Turned round within one change.
    assert world.take("/in/u.yaml", spec("x", depends_on=["y"]), spec("y")) == []
    assert world.take("/in/u.yaml", spec("y", depends_on=["x"]), spec("x"), mtime_ns=2) == []
    assert (world.state("x"), world.state("y")) == ("QUEUED ready", "WAITING dependency")


def test_a_cycle_is_refused_within_a_file_and_across_files(world: World) -> None:
    (problem,) = world.take(PATH, spec("a", depends_on=["b"]), spec("b", depends_on=["a"]))
    assert problem.field == "depends_on"
    assert "a -> b -> a" in problem.message
    assert world.overview.status().counts == {}
    assert world.take(PATH, spec("a", depends_on=["b"])) == []
    (problem,) = world.take("/in/b.yaml", spec("b", depends_on=["a"]))
    assert "b -> a -> b" in problem.message
    assert world.take("/in/b.yaml", spec("b")) == []
    (problem,) = world.take("/in/b.yaml", spec("b", depends_on=["a"]), mtime_ns=2)
    assert "b -> a -> b" in problem.message
    assert world.task("b").depends_on == ()


def test_a_cycle_across_files_is_refused_with_the_line(world: World) -> None:
    world.submit("a", depends_on=["b"])
    text = "name: c\ninstructions: x\n---\nname: b\ninstructions: x\ndepends_on: [a]\n"
    reading = InboxReading(PATH, FileStamp(1, 1, 1), parse_task_file(text.encode(), "t.yaml"), None)
    ((problem,),) = world.intake.take([reading])
    assert problem.render("t.yaml").startswith("t.yaml:6: depends_on: these tasks would wait for each other")


def test_what_a_running_task_will_depend_on_closes_a_cycle_as_well(world: World) -> None:
    world.take("c.yaml", spec("c"))
    world.tick()
    assert world.state("c") == "RUNNING"
    assert world.take("c.yaml", spec("c", depends_on=["b"]), mtime_ns=2) == []

    (problem,) = world.take("b.yaml", spec("b", depends_on=["c"]))

    assert "wait for each other forever" in problem.message
    assert world.take("b.yaml", spec("b"), mtime_ns=2) == []
    world.succeed("c")
    world.tick()
    assert world.names(state="RUNNING") == ["b"]


def test_a_running_task_cannot_be_given_a_cycle_either(world: World) -> None:
    world.take(PATH, spec("a"))
    world.take("/in/b.yaml", spec("b", depends_on=["a"]))
    world.tick()
    (problem,) = world.take(PATH, spec("a", depends_on=["b"]), mtime_ns=2)
    assert "a -> b -> a" in problem.message
    world.succeed("a")
    assert world.running() == {"b": "claude"}


@pytest.mark.both_databases
def test_many_files_are_taken_each_for_itself(world: World) -> None:
    verdicts = world.take_many({"/in/a.yaml": [spec("a")], "/in/b.yaml": [spec("a")], "/in/c.yaml": [spec("c")]})
    assert [len(verdict) for verdict in verdicts] == [0, 1, 0]
    assert sorted(world.intake.known_files()) == ["/in/a.yaml", "/in/c.yaml"]


@pytest.mark.both_databases
def test_files_that_are_taken_together_become_what_they_become_one_by_one(world: World, tmp_path: Path) -> None:
    before = {"/in/known.yaml": [spec("known", tags=["old"])], "/in/waiter.yaml": [spec("waiter", depends_on=["late"])]}
    files = {
        "/in/1.yaml": [spec("a"), spec("b", priority="low")],
        "/in/2.yaml": [spec("late")],
        "/in/3.yaml": [spec("c", depends_on=["a"])],
        "/in/4.yaml": [spec("d"), spec("e", not_before="2099-01-01T00:00:00Z")],
        "/in/5.yaml": [spec("f"), spec("a")],
        "/in/6.yaml": [spec("g", specialist="nobody")],
        "/in/known.yaml": [spec("known", tags=["new"]), spec("h")],
        "/in/7.yaml": [spec("waits", approval=True)],
        "/in/8.yaml": [spec("every", schedule="0 3 * * *")],
        "/in/9.yaml": [spec("j")],
        "/in/10.yaml": [spec("k"), spec("j")],
        "/in/11.yaml": [spec("l")],
        "/in/12.yaml": [spec("m")],
    }
    with open_migrated(tmp_path / "other") as database:
        other = World(database, routes=True)
        for each in (world, other):
            assert not any(each.take_many(before))
        singly = [other.take(path, *specs) for path, specs in files.items()]
        assert [list(problems) for problems in world.take_many(files)] == [list(problems) for problems in singly]
        assert [bool(problems) for problems in singly] == [path in (*"56", "10") for path in _stems(files)]
        assert _happened(world) == _happened(other)
        assert world.intake.known_files() == other.intake.known_files()


def _stems(paths: Iterable[str]) -> list[str]:
    return [Path(path).stem for path in paths]


def _happened(world: World) -> list[tuple[str, str, object]]:
    """All events: the names of their tasks, their kinds and what they say, without ids."""
    names = {view.id: view.name for view in world.service.page(TaskFilter(), None, 200).items}

    def without_ids(fields: Mapping[str, object]) -> dict[str, object]:
        return {key: names.get(str(value), value) for key, value in fields.items()}

    happened = world.database.read(lambda connection: events.following(connection, 0, 1_000))
    return [(names.get(str(event.task_id), ""), event.kind, without_ids(event.data)) for event in happened]


def test_what_fails_among_new_files_keeps_no_other_from_being_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = task_rows.add_revisions

    def fail(connection: Connection, revisions: Sequence[TaskRevision]) -> None:
        if any(revision.spec["name"] == "bad" for revision in revisions):
            raise ValueError("one of them cannot be written")
        add(connection, revisions)

    monkeypatch.setattr(task_rows, "add_revisions", fail)
    names = ["a", "b", "bad", "c"]
    offering = Offering(world.intake)
    readings = [InboxReading(f"/in/{name}.yaml", FileStamp(1, 1, 1), ParsedFile((spec(name),), ())) for name in names]
    assert [bool(problems) for problems in offering.offer(readings)] == [False, False, True, False]
    assert sorted(world.names()) == ["a", "b", "c"]
    assert _stems(sorted(world.intake.known_files())) == ["a", "b", "c"]


def test_at_equal_priority_tasks_start_in_the_order_of_their_files(world: World) -> None:
    world.take_many({f"/in/{file}.yaml": [spec(f"{file}{number}") for number in range(4)] for file in "dcba"})
    order = [view.name for view in world.overview.status().queued]
    assert order == [f"{file}{number}" for file in "dcba" for number in range(4)]
    world.take("/in/d.yaml", *(spec(f"d{number}", tags=["new"]) for number in range(4)), mtime_ns=2)
    order = [view.name for view in world.overview.status().queued]
    assert [name for name in order if name.startswith("d")] == ["d0", "d1", "d2", "d3"]
