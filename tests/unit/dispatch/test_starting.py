"""Starting: directory, committed row, process, and what comes in between."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from claudomator_py.dispatch.launch import runs_its_input
from claudomator_py.dispatch.start import MAX_STARTS_PER_COMMIT
from claudomator_py.domain.host import LOCAL, HostNeeds
from claudomator_py.domain.run import Launch, LaunchRequest, RunConflict, RunSpec
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.faults import checks
from claudomator_py.prompts import HOW_TO_END_EARLY
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.runs import MemoryRunHost
from tests.fakes.world import START_MS, World


def starts(host: MemoryRunHost) -> list[tuple[str, int]]:
    return [(run_id, step) for call, run_id, step in host.calls if call == "spawn"]


def test_directory_then_committed_row_then_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    committed: list[bool] = []
    prepare, spawn = world.host.prepare, world.host.spawn

    def look(run_id: str) -> None:
        committed.append(world.database.read(lambda connection: run_rows.find(connection, run_id)) is not None)

    def watched_prepare(order: RunSpec, step: int = 0) -> None:
        look(order.run_id)
        prepare(order, step)

    def watched_spawn(run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        look(run_id)
        spawn(run_id, environment, step)

    monkeypatch.setattr(world.host, "prepare", watched_prepare)
    monkeypatch.setattr(world.host, "spawn", watched_spawn)
    world.submit("t")
    assert world.tick().started == 1
    assert committed == [False, True]
    assert [call for call, *_ in world.host.calls] == ["prepare", "spawn"]


def test_what_a_tick_writes_to_start_a_run_wakes_nobody_for_another_one(world: World) -> None:
    wakes: list[int] = []
    world.submit("t")
    world.database.on_commit(lambda: wakes.append(world.now_ms), planned=False)
    assert (world.tick().started, wakes) == (1, [])


def test_what_a_run_is_told(world: World) -> None:
    limits = {"timeout": "5m", "stall_timeout": "1m"}
    world.submit("t", working_dir="/srv/x", env={"CI": "1"}, expected_output="a fix", on_input="deny", **limits)
    world.tick()
    run = world.live("t")
    directory = world.host.directories[run.id, 0]
    order = directory.order
    assert order.commands == (("claude", "sonnet"),)
    assert (order.cwd, order.stdin) == ("/srv/x", f"do t\n\nHand back: a fix\n\n{HOW_TO_END_EARLY}\n")
    assert (order.limits.timeout_ms, order.limits.stall_ms) == (5 * MINUTE_MS, MINUTE_MS)
    assert directory.environment["CI"] == "1"
    assert directory.environment["CLAUDOMATOR_RUN"] == run.id
    assert "SECRET" not in directory.environment
    assert order.env_names == tuple(sorted(directory.environment))


def test_a_task_that_changed_since_it_was_planned_is_left_for_the_next_plan(world: World) -> None:
    world.submit("t")
    world.submit("other")
    observed = world.observed()
    world.service.cancel("t")
    assert world.starter.start(observed).number == 1
    assert list(world.running()) == ["other"]
    assert world.state("t") == "CANCELLED"


def test_a_change_between_directory_and_commit_starts_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = world.host.prepare

    def change_then_prepare(order: RunSpec, step: int = 0) -> None:
        prepare(order, step)
        world.service.cancel("t")

    monkeypatch.setattr(world.host, "prepare", change_then_prepare)
    world.submit("t")
    assert world.tick().started == 0
    assert world.state("t") == "CANCELLED"
    assert world.host.starts() == []
    assert world.host.directories == {}


def test_a_directory_that_cannot_be_made_leaves_the_task_queued_and_writes_nothing(world: World) -> None:
    world.submit("t")
    world.host.no_room = OSError(28, "No space left on device")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    for _ in range(3):
        world.tick(MINUTE_MS)
    assert commits == []
    assert world.row("t").state == "QUEUED"
    (check,) = checks(world.faults.all())
    assert (check.ok, check.blocking, check.remedy) == (
        False,
        True,
        "make room on that disk, or remove files if it has space but no inodes (df -i)",
    )
    for _ in range(20):
        world.tick(10 * MINUTE_MS)
    assert world.row("t").state == "QUEUED", "the task is not to blame"
    world.host.no_room = None
    world.tick(10 * MINUTE_MS)
    assert world.running() == {"t": "claude"}


def test_what_was_committed_before_such_a_fault_is_started_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = world.host.prepare
    made: list[str] = []

    def once(order: RunSpec, step: int = 0) -> None:
        if made:
            raise OSError(28, "No space left on device")
        made.append("one")
        prepare(order, step)

    monkeypatch.setattr(world.host, "prepare", once)
    world.submit("a")
    world.submit("b")
    world.tick()
    assert len(world.host.starts()) == 1
    assert len(world.running()) == 1


def test_a_process_that_cannot_be_made_costs_nothing_and_is_tried_again_with_pauses(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.host.no_processes = OSError(11, "Resource temporarily unavailable")
    assert world.tick().started == 0
    for pause_ms, expected in ((0, 1), (10 * SECOND_MS, 2)):
        world.tick(pause_ms)
        for _ in range(20):
            world.tick()
        assert len(starts(world.host)) == expected
    assert world.state("t") == "WAITING fault"
    for _ in range(6):
        world.tick(10 * MINUTE_MS)
    assert world.task("t").attempts == 0
    world.host.no_processes = None
    world.tick(HOUR_MS)
    world.tick(HOUR_MS)
    assert world.running() == {"t": "claude"}
    world.succeed("t")
    assert world.task("t").attempts == 1


def test_an_agent_that_cannot_be_launched_as_configured_fails_its_task(world: World) -> None:
    world.kinds["claude"].refusal = "`extra_args` may not hold `--print`; remove it"
    world.submit("t", agent={"type": "claude"})
    world.tick()
    assert world.state("t") == "FAILED setup_failed"
    assert "may not hold `--print`" in str(world.task("t").reason_text)
    assert world.host.calls == []
    (run,) = world.service.runs("t")
    assert (run.state, run.exit_code) == ("ended", None)


def test_an_agent_that_cannot_be_launched_and_a_task_that_changed_meanwhile(world: World) -> None:
    world.kinds["claude"].refusal = "no"
    world.submit("t")
    observed = world.observed()
    world.database.write(lambda writing: task_rows.change(writing, world.row("t"), START_MS))
    assert world.starter.start(observed).number == 0
    assert world.state("t") == "QUEUED ready"


def test_a_task_whose_agent_is_gone_since_it_was_planned_is_left_for_the_next_plan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("t")
    observed = world.observed()
    monkeypatch.setattr(world.registry, "find", lambda name: None)
    assert world.starter.start(observed).number == 0
    assert (world.faults.all(), world.host.calls) == ([], [])


def test_a_start_that_its_own_task_keeps_from_succeeding_is_given_up_and_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: LaunchRequest) -> Launch:
        raise KeyError("nothing")

    monkeypatch.setattr("claudomator_py.dispatch.start.MAX_STARTS", 1)
    world.submit("t")
    observed = world.observed()
    with monkeypatch.context() as patch:
        patch.setattr(world.kinds["claude"], "launch", broken)
        world.starter.start(observed)
    (fault,) = world.faults.all()
    assert fault.own
    world.now_ms += HOUR_MS
    with monkeypatch.context() as patch:
        patch.setattr(world.registry, "find", lambda name: None)
        world.starter.start(observed)
    assert [each.text for each in world.faults.all()] == [fault.text], "nobody is there to have failed"
    assert world.starter.start(observed).number == 0
    assert world.faults.all() == []
    assert world.state("t") == "FAILED setup_failed"


def test_no_run_is_committed_before_the_name_of_its_directory_is_durable(world: World) -> None:
    """Else a loss of power could leave a run without a directory, of which nobody knows whether it has begun."""
    world.submit("one")
    world.submit("two")
    world.host.no_flush = OSError("the disk does not answer")
    world.tick()
    assert [world.state(name) for name in ("one", "two")] == ["QUEUED fault", "QUEUED fault"]
    assert ["the disk does not answer" in fault.text for fault in world.faults.all()] == [True, True]
    assert not any(call[0] == "spawn" for call in world.host.calls)
    world.host.no_flush = None
    world.now_ms += HOUR_MS
    world.tick()
    assert [world.state(name) for name in ("one", "two")] == ["RUNNING", "RUNNING"]


def test_a_directory_of_a_run_that_no_row_knows_is_told_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(order: RunSpec, step: int = 0) -> None:
        raise RunConflict(order.run_id)

    monkeypatch.setattr(world.host, "prepare", prepare)
    world.submit("t")
    begun = world.starter.start(world.observed())
    assert (begun.number, [item.name for item in begun.conflicts]) == (0, ["t"])


def test_a_further_folder_that_cannot_be_examined_fails_the_task(world: World, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    world.submit("t", add_dirs=[str(tmp_path / "lib")], agent={"type": "claude"}, retry={"max_attempts": 1})
    (tmp_path / "lib").rmdir()
    (tmp_path / "lib").symlink_to(tmp_path / "lib")
    world.tick()
    assert world.state("t") == "FAILED setup_failed"
    assert "one of its add_dirs cannot be examined" in str(world.task("t").reason_text)


def test_an_agent_is_given_real_paths(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, ...]] = []
    launch = world.kinds["claude"].launch

    def noted(request: LaunchRequest) -> Launch:
        given.append(request.task.add_dirs)
        return launch(request)

    monkeypatch.setattr(world.kinds["claude"], "launch", noted)
    (tmp_path / "lib").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lib")
    world.submit("t", add_dirs=[str(tmp_path / "link"), str(tmp_path / "lib")], agent={"type": "claude"})
    world.tick()
    assert given == [(str(tmp_path / "lib"),)]


def test_what_a_task_needs_takes_its_runs_to_clusters_alone(database: Database) -> None:
    both = CLAUDE.model_copy(update={"hosts": (LOCAL, "lab"), "max_concurrent": 4})
    world = World(database, agents=(both, CODEX))
    world.submit("plain", agent={"type": "claude"})
    world.submit("large", needs={"cpus": 4}, check=["true"])
    world.tick()
    orders = {name: world.host.directories[world.live(name).id, 0].order for name in ("plain", "large")}
    assert (orders["plain"].hosts, orders["plain"].needs) == ((LOCAL, "lab"), None)
    assert (orders["large"].hosts, orders["large"].needs) == (("lab",), HostNeeds(cpus=4))
    assert {order.agent for order in orders.values()} == {"claude"}, "codex is at home alone"
    world.end("large")
    world.tick()
    assert world.host.directories[orders["large"].run_id, 1].order.needs == HostNeeds(cpus=4), "its check as well"


def test_however_many_start_at_once_a_few_share_a_commit(database: Database) -> None:
    """Nobody else can write while directories are made, so what is started begins before all are."""
    world = World(database, agents=[CLAUDE.model_copy(update={"max_concurrent": 20})], total=20)
    for number in range(2 * MAX_STARTS_PER_COMMIT + 1):
        world.submit(f"t{number}")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    assert world.tick().started == 2 * MAX_STARTS_PER_COMMIT + 1
    assert len(commits) == 3
    calls = [call for call, *_ in world.host.calls]
    assert calls == 2 * (["prepare"] * MAX_STARTS_PER_COMMIT + ["spawn"] * MAX_STARTS_PER_COMMIT) + ["prepare", "spawn"]


@pytest.mark.parametrize(
    "words", ["sh", "/bin/bash -e", "bash --norc -s", "python3 -", "/usr/bin/python3.11 -I", "node"]
)
def test_an_interpreter_without_a_program_runs_its_input(words: str) -> None:
    assert runs_its_input(words.split())


@pytest.mark.parametrize(
    "words", ["", "sh x.sh", "sh -ec x", "python3 -m aider", "node x.js", "node -e x", "wc -w", "tr a b"]
)
def test_a_program_reads_its_input(words: str) -> None:
    assert not runs_its_input(words.split())
