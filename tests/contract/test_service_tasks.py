"""What an operator relies on when handing in tasks: dependencies, order, times, retries, cancelling."""

from pathlib import Path

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Ambiguous, Conflict, Invalid, NotFound, StaleVersion
from claudomator_py.domain.units import DAY_MS, MINUTE_MS, format_instant
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, LINT
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


# --- dependencies -----------------------------------------------------------------------------------------------------


def test_a_task_waits_for_a_name_that_was_not_seen_yet_and_says_so(world: World) -> None:
    world.submit("test", depends_on=["build"])
    world.tick()
    assert world.state("test") == "WAITING dependency"
    assert world.task("test").reason_text == "waits for build (not seen yet)"
    build = world.submit("build")
    assert [(known.name, known.task_id) for known in world.task("test").depends_on] == [("build", build.id)]
    assert world.task("test").reason_text == "waits for build (QUEUED)"
    world.tick()
    world.succeed("build")
    assert world.running() == {"test": "claude"}


def test_a_dependency_that_is_nearly_a_task_is_taken_for_a_slip_of_the_pen(world: World) -> None:
    world.submit("hello")
    world.submit("hello-again", depends_on=["helo", "elsewhere"])
    hint = "No task is named helo yet: did you mean `hello`?"
    assert [line for line in world.service.why("hello-again").sentences if "yet:" in line] == [hint]
    world.submit("helo")
    assert hint not in world.service.why("hello-again").sentences


def test_a_name_is_bound_at_first_match_and_stays_bound(world: World) -> None:
    world.submit("test", depends_on=["build"])
    first = world.submit("build")
    world.now_ms += 1
    world.submit("build")
    assert world.task("test").depends_on[0].task_id == first.id


def test_a_new_task_is_bound_to_the_newest_open_one_of_that_name(world: World) -> None:
    world.submit("build")
    world.tick()
    world.succeed("build")
    world.now_ms += 1
    open_one = world.submit("build", not_before=format_instant(START_MS + DAY_MS))
    assert world.submit("test", depends_on=["build"]).depends_on[0].task_id == open_one.id


def test_what_depends_on_something_done_is_ready_at_once(world: World) -> None:
    world.submit("build")
    world.tick()
    world.succeed("build")
    assert world.submit("test", depends_on=["build"]).state == "QUEUED"


@pytest.mark.both_databases
def test_a_failed_dependency_fails_its_dependents_through_any_number_of_them(world: World) -> None:
    world.submit("build")
    world.submit("test", depends_on=["build"])
    world.submit("deploy", depends_on=["test", "other"])
    world.submit("unrelated", depends_on=["other"])
    world.tick()
    world.fail("build")
    for name, by in (("test", "build"), ("deploy", "test")):
        assert world.state(name) == "FAILED dependency_failed"
        assert world.task(name).reason_text == f"A task that it depends on did not complete: {by} (FAILED)."
    assert world.state("unrelated") == "WAITING dependency"


@pytest.mark.slow
def test_a_long_chain_fails_and_is_revived_as_a_whole(world: World) -> None:
    length = 400
    world.submit("t0", priority="low")
    world.take("/in/chain.yaml", *(spec(f"t{n}", depends_on=[f"t{n - 1}"]) for n in range(1, length)))
    world.tick()
    world.fail("t0")
    assert world.state(f"t{length - 1}") == "FAILED dependency_failed"
    world.restart("t0")
    assert world.state(f"t{length - 1}") == "WAITING dependency"
    world.submit("urgent", priority="urgent", depends_on=[f"t{length - 1}"])
    assert world.row("t0").rank_ms == world.row("urgent").rank_ms


def test_what_waits_for_a_name_hears_when_that_task_fails_in_the_moment_it_comes(world: World) -> None:
    world.submit("build")
    world.tick()
    world.fail("build")
    world.submit("deploy", depends_on=["test"])
    world.submit("test", depends_on=["build"])
    assert world.state("test") == "FAILED dependency_failed"
    assert world.state("deploy") == "FAILED dependency_failed"


def test_a_restarted_dependency_revives_what_failed_by_it_alone(world: World) -> None:
    world.submit("build")
    world.submit("lint")
    world.submit("test", depends_on=["build"])
    world.submit("release", depends_on=["build", "lint"])
    world.submit("broken", depends_on=["test"])
    world.tick()
    world.fail("lint")
    world.fail("build")
    world.restart("build")
    assert world.state("test") == "WAITING dependency"
    assert world.state("broken") == "WAITING dependency"
    assert world.state("release") == "FAILED dependency_failed"
    assert world.task("release").generation == 1
    world.restart("lint")
    assert world.state("release") == "WAITING dependency"
    world.tick()
    for name in ("build", "lint", "test", "release", "broken"):
        world.succeed(name)
    assert world.state("broken") == "COMPLETED"


def test_what_has_not_started_waits_again_when_a_dependency_is_restarted(world: World) -> None:
    world.submit("build")
    world.tick()
    world.succeed("build")
    world.submit("test", depends_on=["build"])
    world.submit("later", depends_on=["build"], not_before=format_instant(START_MS + DAY_MS))
    world.restart("build")
    assert world.state("test") == "WAITING dependency"
    assert world.state("later") == "WAITING dependency"
    world.tick()
    world.succeed("build")
    assert world.running() == {"test": "claude"}
    assert world.state("later") == "WAITING time"


def test_a_cycle_is_refused_with_its_names(world: World) -> None:
    world.submit("a", depends_on=["b"])
    world.submit("b", depends_on=["c"])
    with pytest.raises(Invalid, match=r"forever: c -> a -> b -> c") as refused:
        world.submit("c", depends_on=["a"])
    assert refused.value.problems[0].field == "depends_on"
    with pytest.raises(NotFound):
        world.task("c")
    assert world.task("b").depends_on[0].task_id is None


def test_a_second_task_of_a_name_closes_no_cycle_by_its_name_alone(world: World) -> None:
    world.submit("build")
    world.submit("test", depends_on=["build"])
    world.now_ms += 1
    again = world.submit("build", depends_on=["test"])
    assert again.state == "WAITING"


def test_a_dependency_inherits_the_rank_of_its_dependents_and_keeps_it(world: World) -> None:
    world.submit("normal")
    world.submit("build", priority="low")
    world.submit("test", depends_on=["build"], priority="low")
    assert [view.name for view in world.overview.status().queued] == ["normal", "build", "test"]
    world.submit("deploy", depends_on=["test"], priority="urgent")
    assert world.overview.status().queued[0].name == "build"
    world.service.cancel("build")
    world.restart("build")
    assert world.overview.status().queued[0].name == "build"
    assert world.task("build").priority == "low"


# --- order and time ---------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_priority_then_age_decides_and_age_wins_in_the_end(world: World) -> None:
    world = World(world.database, total=1)
    world.submit("low", priority="low")
    world.now_ms += 1
    world.submit("normal")
    world.submit("high", priority="high")
    world.now_ms = START_MS + 3 * DAY_MS + 1
    world.submit("urgent", priority="urgent")
    order = []
    world.tick()
    for _ in range(4):
        (name,) = world.running()
        order.append(name)
        world.succeed(name)
    assert order == ["high", "normal", "low", "urgent"]


def test_a_task_does_not_start_before_its_time(world: World) -> None:
    world.submit("later", not_before=format_instant(START_MS + 10 * MINUTE_MS))
    assert world.tick().wake_ms == START_MS + 10 * MINUTE_MS
    assert world.state("later") == "WAITING time"
    assert world.task("later").waiting_until == format_instant(START_MS + 10 * MINUTE_MS)
    world.tick(10 * MINUTE_MS - 1)
    assert world.state("later") == "WAITING time"
    world.tick(1)
    assert world.running() == {"later": "claude"}


def test_a_failed_attempt_is_repeated_after_a_pause_that_survives_a_restart_of_the_daemon(world: World) -> None:
    world.submit("flaky", retry={"max_attempts": 2, "backoff": "1m"})
    world.tick()
    world.fail("flaky", "agent_error")
    view = world.task("flaky")
    assert (view.state, view.reason, view.attempts) == ("WAITING", "backoff", 1)
    world.restarted_daemon()
    due = world.tick().wake_ms
    assert due is not None
    assert MINUTE_MS <= due - START_MS <= MINUTE_MS * 11 // 10
    world.tick(due - world.now_ms - 1)
    assert world.running() == {}
    world.tick(1)
    assert world.running() == {"flaky": "claude"}
    world.fail("flaky", "agent_error")
    assert world.state("flaky") == "FAILED agent_error"
    assert world.task("flaky").attempts == 2


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_cancel_in_every_state(world: World) -> None:
    world.submit("waiting", depends_on=["nobody"])
    world.submit("asking")
    world.tick()
    world.end("asking", status="needs_input", detail="which branch?")
    world.tick()
    assert world.state("asking") == "NEEDS_INPUT question"
    world.submit("queued")
    for name in ("waiting", "queued", "asking"):
        assert world.service.cancel(name).state == "CANCELLED"
    world.submit("running")
    world.tick()
    run = world.live("running").id
    assert world.service.cancel("running").state == "RUNNING"
    assert world.service.cancel("running").state == "RUNNING"
    world.tick()
    world.tick()
    assert world.state("running") == "CANCELLED"
    assert world.run_requests.get(run).outcome is not None
    for name in ("waiting", "running"):
        with pytest.raises(Conflict, match="is CANCELLED already"):
            world.service.cancel(name)


def test_cancelling_fails_what_depends_on_it(world: World) -> None:
    world.submit("build")
    world.submit("test", depends_on=["build"])
    world.service.cancel("build")
    assert world.state("test") == "FAILED dependency_failed"
    assert "build (CANCELLED)" in str(world.task("test").reason_text)


def test_a_cancelled_run_that_succeeds_first_has_succeeded(world: World) -> None:
    world.submit("quick")
    world.tick()
    world.host.stubborn = True
    world.service.cancel("quick")
    world.succeed("quick")
    assert world.state("quick") == "COMPLETED"


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_request_on_an_old_version_is_refused(world: World) -> None:
    view = world.submit("t")
    with pytest.raises(StaleVersion, match=rf"version {view.version}, not {view.version - 1}"):
        world.service.cancel("t", versions=view.version - 1)
    assert world.service.cancel("t", versions=view.version).version > view.version


@pytest.mark.both_databases
def test_a_task_is_found_by_id_prefix_or_newest_name(world: World) -> None:
    old = world.submit("twin")
    world.now_ms += 1
    new = world.submit("twin")
    assert world.service.get("twin").id == new.id
    assert world.service.get(old.id).id == old.id
    assert world.service.get(old.id[:13]).id == old.id
    assert world.service.get(old.id[:13].upper()).id == old.id
    assert world.service.get(old.id.upper()).id == old.id
    for ref in ("", "%", "____", "nope", "a\0b", "\u00e9"):
        with pytest.raises(NotFound):
            world.service.get(ref)
    with pytest.raises(NotFound, match="Did you mean `twin`"):
        world.service.get("twinn")


@pytest.mark.both_databases
@pytest.mark.parametrize("length", [1, 2, 3])
def test_too_short_a_prefix_is_told_with_what_it_is_the_beginning_of(world: World, length: int) -> None:
    task = world.submit("one")
    with pytest.raises(NotFound, match=rf"too short for the beginning of an id: {task.id[:8]} \(one\).*4 characters"):
        world.service.get(task.id[:length])
    short = world.submit("abc")
    assert world.service.get("abc").id == short.id


@pytest.mark.both_databases
def test_names_have_one_order_on_every_database(world: World) -> None:
    names = ["b", "a-c", "a.d", "a_b", "a", "ab", "aa"]
    task = world.submit("t", depends_on=names)
    assert [entry.name for entry in task.depends_on] == sorted(names)


def test_of_many_names_only_the_nearest_are_suggested(world: World) -> None:
    for number in range(20):
        world.submit(f"alpha-{number:02}")
    world.submit("nightly")
    with pytest.raises(NotFound) as refused:
        world.service.get("nope")
    assert len(refused.value.remedy) < 150
    assert "nightly" in refused.value.remedy


def test_a_prefix_of_several_ids_is_ambiguous(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["aaaa-1", "aaaa-2"])
    monkeypatch.setattr("claudomator_py.tasks.accept.uuid.uuid4", lambda: next(ids))
    world.submit("one")
    world.submit("two")
    with pytest.raises(Ambiguous, match="aaaa-"):
        world.service.cancel("aaaa")
    assert world.service.cancel("aaaa-1").name == "one"


def test_a_task_that_could_never_run_as_it_asks_is_refused(world: World) -> None:
    world.kinds["command"].lacking = ["it cannot enforce permissions"]
    for fields, words in (
        ({"agent": {"type": "cluade", "strict": True}}, "did you mean `claude`"),
        ({"agent": {"type": "gemini", "strict": True}}, "no agent `gemini` is configured, and the task insists on it"),
        ({"agent": {"type": "simulated"}}, "no agent `simulated` is configured, and the task insists on it"),
        ({"agent": {"type": "lint"}}, "it cannot enforce permissions"),
        ({"host": "moon"}, "host: no agent runs on `moon`; write `local`"),
    ):
        with pytest.raises(Invalid, match=words):
            world.submit("t", **fields)
    assert world.submit("here", host="local").state == "QUEUED"
    wished = world.submit("t", agent={"type": "gemini"})
    assert (wished.state, len(wished.warnings)) == ("QUEUED", 1)


def test_a_simulated_agent_is_suggested_only_if_it_may_take_any_task(world: World) -> None:
    world.kinds["simulated"] = world.kinds["command"]
    for auto_select, remedy in ((False, "write one of claude, lint"), (True, "did you mean `toy`?")):
        world.agents = (CLAUDE, LINT, AgentSpec(name="toy", kind="simulated", auto_select=auto_select))
        world.restarted_daemon()
        (warning,) = world.submit(f"t-{remedy[:3]}", agent={"type": "toys"}).warnings
        assert warning.endswith(f"; {remedy}")


def test_a_path_that_the_system_does_not_take_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    long = f"/tmp/{'a' * 300}"
    refusals: list[tuple[str, dict[str, object]]] = [
        ("working_dir", {"working_dir": long}),
        ("working_dir", {"working_dir": str(tmp_path / "circle")}),
        ("add_dirs[1]", {"add_dirs": ["/tmp", long]}),
    ]
    for field, fields in refusals:
        with pytest.raises(Invalid) as refused:
            world.service.submit(spec("t", **fields))
        assert [problem.field for problem in refused.value.problems] == [field]
        assert all(problem.remedy for problem in refused.value.problems)
        scheduled = spec("nightly", schedule="0 3 * * *", **fields)
        with pytest.raises(Invalid):
            world.schedules.add(scheduled)
