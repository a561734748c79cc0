"""What ends a run, which of it counts if there are several, and when it is looked at again; however clocks are set."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.hosts.shim import procfs, record, watch
from claudomator_py.hosts.shim.output import STDOUT, CappedOutput
from claudomator_py.hosts.shim.spec import Spec
from claudomator_py.hosts.shim.watch import SignalEvents, Stall, Watch, cpu_by_process
from claudomator_py.hosts.shim.workdir import WorkdirBounds

HOURS_S = 5 * 3600.0
TICKS = os.sysconf("SC_CLK_TCK")


class Clocks:
    """What the machine shows, and what goes on whatever it shows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown = time.time()
        self.gone = 1_000.0
        monkeypatch.setattr(time, "time", lambda: self.shown)
        monkeypatch.setattr(time, "time_ns", lambda: int(self.shown * 1e9))
        monkeypatch.setattr(time, "monotonic", lambda: self.gone)

    def pass_by(self, seconds: float) -> None:
        self.shown += seconds
        self.gone += seconds


class Quiet(SignalEvents):
    """No signals."""

    def __init__(self) -> None:
        self.interrupted = False


def spec(*, timeout: float | None = None, stall: float | None = None) -> Spec:
    return Spec(
        run_id="r",
        commands=[["true"]],
        cwd="/",
        bounds=WorkdirBounds([], []),
        folders=[],
        folder_bounds=WorkdirBounds([], []),
        env_names=[],
        timeout=timeout,
        stall=stall,
        grace=1.0,
        output_bytes=1 << 20,
    )


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def output(directory: int) -> Iterator[CappedOutput]:
    opened = CappedOutput(directory, STDOUT, 1 << 20)
    yield opened
    os.close(opened.fd)


ENDS = ["cancel", "interrupt", "timeout", "output_limit", "disk_full", "stall"]


@pytest.mark.parametrize("number", range(len(ENDS)))
def test_each_ends_a_run_and_the_first_of_several_is_named(
    clocks: Clocks, directory: int, output: CappedOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """From that one on, all of them are there."""
    there = ENDS[number:]
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: {})
    monkeypatch.setattr(watch, "disk_is_full", lambda _: "disk_full" in there)
    events = Quiet()
    watching = Watch(directory, spec(timeout=60 if "timeout" in there else None, stall=60), [output], events)
    assert watching.ending() == ("disk_full" if "disk_full" in there else None)
    if "cancel" in there:
        (tmp_path / record.CANCEL).touch()
    events.interrupted = "interrupt" in there
    if "output_limit" in there:
        monkeypatch.setattr(CappedOutput, "within_cap", lambda _: False)
    clocks.pass_by(60)
    assert watching.ending() == ENDS[number]


def test_a_cancelled_run_that_is_told_to_stop_was_cancelled_although_the_file_is_not_seen_yet(
    clocks: Clocks, directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster the signal may be faster than the network file system."""
    (tmp_path / record.CANCEL).touch()
    monkeypatch.setattr(record, "exists", lambda *_: False)
    events = Quiet()
    watching = Watch(directory, spec(), [], events)
    assert watching.ending() is None
    events.interrupted = True
    assert watching.ending() == "cancel"
    assert clocks.gone == 1_000


def test_a_run_that_writes_within_its_cap_continues(clocks: Clocks, directory: int, output: CappedOutput) -> None:
    watching = Watch(directory, spec(timeout=60), [output], Quiet())
    os.write(output.fd, b"x")
    clocks.pass_by(59.9)
    assert watching.ending() is None
    clocks.pass_by(0.1)
    assert watching.ending() == "timeout"


def test_time_in_which_the_run_stands_still_counts_neither_as_a_stall_nor_towards_its_timeout(
    clocks: Clocks, directory: int, output: CappedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while Slurm suspends its job, its supervisor with it."""
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: {})
    watching = Watch(directory, spec(timeout=60, stall=30), [output], Quiet())
    for _ in range(2):
        clocks.pass_by(watching.pause() + HOURS_S)
        assert watching.ending() is None
    clocks.pass_by(watching.pause() + 4)
    assert watching.ending() is None, "a machine under load is not stopped"
    clocks.pass_by(25.3)
    assert watching.ending() == "stall"
    os.write(output.fd, b"x")
    assert watching.ending() is None
    clocks.pass_by(29.9)
    os.write(output.fd, b"x")
    assert watching.ending() is None
    clocks.pass_by(0.1)
    assert watching.ending() == "timeout"


def test_what_is_written_is_no_silence(
    clocks: Clocks, directory: int, output: CappedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: {})
    watching = Watch(directory, spec(stall=60), [output], Quiet())
    for _ in range(3):
        clocks.pass_by(59)
        os.write(output.fd, b"x")
        assert watching.ending() is None
    clocks.pass_by(60)
    assert watching.ending() == "stall"


def test_a_flood_is_looked_at_often_and_silence_seldom(clocks: Clocks, directory: int, output: CappedOutput) -> None:
    watching = Watch(directory, spec(), [output], Quiet())
    assert (watching.ending(), watching.pause()) == (None, 0.25)
    os.write(output.fd, b"x" * ((1 << 20) + 1))
    assert (watching.ending(), watching.pause()) == (None, 0.01)
    os.write(output.fd, b"x" * (1 << 20))
    assert (watching.ending(), watching.pause()) == (None, 0.25)


def test_the_next_look_is_when_a_limit_can_be_met(clocks: Clocks, directory: int, output: CappedOutput) -> None:
    watching = Watch(directory, spec(timeout=0.1), [output], Quiet())
    assert watching.pause() == pytest.approx(0.1)
    clocks.pass_by(1)
    assert watching.pause() == 0
    watching = Watch(directory, spec(stall=0.8), [output], Quiet())
    assert watching.pause() == pytest.approx(0.1), "an eighth of it"


def test_a_run_that_is_taken_over_has_only_the_rest_of_its_time(clocks: Clocks, directory: int) -> None:
    agent = procfs.read(os.getpid())
    assert agent is not None
    age = procfs.age(agent)
    assert age > 0
    watching = Watch(directory, spec(timeout=age + 60), [], Quiet(), agent)
    clocks.pass_by(61)
    assert watching.ending() == "timeout"
    watching = Watch(directory, spec(timeout=age + 60), [], Quiet())
    clocks.pass_by(61)
    assert watching.ending() is None


# --- silence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "first"), [(0.08, 0.05), (80.0, 10.0), (800.0, 15.0)])
def test_processes_are_sampled_some_times_per_limit(limit: float, first: float) -> None:
    assert Stall(limit, 0.0).next_look == pytest.approx(first)


@pytest.mark.parametrize(("ticks", "stalls"), [(10, False), (9, True)])
def test_a_hundredth_of_a_processor_is_work(monkeypatch: pytest.MonkeyPatch, ticks: int, stalls: bool) -> None:
    used = {7: 0}
    monkeypatch.setattr(watch, "_TICKS", 100)
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: dict(used))
    stall = Stall(80.0, 0.0)
    results = []
    for look in range(1, 12):
        used[7] += ticks  # of the thousand that ten seconds have
        results.append(stall.reached(look * 10.0, wrote=False))
    assert any(results) is stalls


@pytest.mark.parametrize(("own", "tool", "stalls"), [(49, 9, True), (50, 0, False), (0, 10, False)])
def test_a_tool_works_with_less_than_an_agent_that_is_never_idle(
    monkeypatch: pytest.MonkeyPatch, own: int, tool: int, stalls: bool
) -> None:
    used = {7: 0, 8: 0}
    monkeypatch.setattr(watch, "_TICKS", 100)
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: dict(used))
    monkeypatch.setattr(watch, "own_processes", lambda _: [7])
    stall = Stall(80.0, 0.0, own_share=0.05)
    results = []
    for look in range(1, 12):
        used[7], used[8] = used[7] + own, used[8] + tool
        results.append(stall.reached(look * 10.0, wrote=False))
    assert any(results) is stalls


def test_one_tick_in_a_short_sample_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([{7: 5}, {7: 6}, {7: 6}])
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: next(used))
    stall = Stall(0.1, 0.0)
    assert not stall.reached(0.05, wrote=False)
    assert not stall.reached(0.10, wrote=False)
    assert not stall.reached(0.15, wrote=False)
    assert stall.reached(0.20, wrote=False)


def test_what_a_process_takes_with_it_at_its_end_is_not_taken_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([{0: 0, 7: 9000}, {0: 0, 7: 9000, 8: 0}, {0: 0, 8: 500}, {0: 0, 8: 500}, {0: 0, 8: 500}])
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: next(used))
    stall = Stall(80.0, 0.0)
    for now in (10.0, 20.0, 30.0):
        assert not stall.reached(now, wrote=False)
    assert not stall.reached(109.9, wrote=False), "it worked at 30"
    assert stall.reached(120.0, wrote=False)


def test_an_agent_that_is_not_below_the_shim_counts_with_what_is_below_it() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            agent = procfs.read(os.getppid())
            assert agent is not None
            own = cpu_by_process()
            assert {0, child.pid} <= own.keys()
            assert agent.pid not in own
            assert os.getpid() not in own
            # Of the parent's process this one is below it.
            assert {0, child.pid, agent.pid, os.getpid()} <= cpu_by_process(agent).keys()
        finally:
            child.kill()
    gone = procfs.Process(pid=child.pid, ppid=1, pgid=1, state=b"R", start=0, times=[])
    assert child.pid not in cpu_by_process(gone)


def test_what_those_used_who_have_ended_is_counted() -> None:
    before = cpu_by_process()[0]
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], check=True)
    after = cpu_by_process()[0]
    assert after > before
    # Of this nearly all is the kernel's.
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=500000"], check=True, capture_output=True)
    assert cpu_by_process()[0] > after


@pytest.mark.parametrize("jump_s", [HOURS_S, -HOURS_S])
@pytest.mark.parametrize("limit", ["timeout", "stall"])
def test_a_jump_neither_ends_a_run_nor_gives_it_time(
    clocks: Clocks, directory: int, monkeypatch: pytest.MonkeyPatch, limit: str, jump_s: float
) -> None:
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: {})
    watching = Watch(directory, spec(timeout=60) if limit == "timeout" else spec(stall=60), [], Quiet())
    clocks.pass_by(59)

    clocks.shown += jump_s

    assert watching.ending() is None
    assert 0 < watching.pause() <= 1
    clocks.pass_by(1.5)
    assert watching.ending() == limit


def test_a_run_whose_directory_is_gone_is_ended(clocks: Clocks, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    watching = Watch(fd, spec(), [], Quiet())
    assert watching.ending() is None

    folder.rmdir()

    assert watching.ending() == "interrupt"
    assert clocks.gone == 1_000
    os.close(fd)
