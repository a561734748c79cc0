"""Ending processes that make it hard."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import Signals

import pytest

from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.stop import end_all, kill_children
from tests.patience import PATIENCE_S

OBEYS = "echo ready; exec sleep 600"
REFUSES = "trap '' TERM; echo ready; exec sleep 600"


@contextmanager
def begun(script: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process of a session of its own that does it, once it is ready."""
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def those_of(*processes: "subprocess.Popen[bytes]") -> Callable[[], list[procfs.Process]]:
    """What finds those of them that are still there."""

    def find() -> list[procfs.Process]:
        result = (procfs.read(process.pid) for process in processes if process.poll() is None)
        return [entry for entry in result if entry is not None and entry.alive]

    return find


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Pid and signal, in the order in which they were sent."""
    results: list[tuple[int, int]] = []
    send = procfs.send

    def noted(pid: int, start: int, number: int) -> None:
        results.append((pid, number))
        send(pid, start, number)

    monkeypatch.setattr(procfs, "send", noted)
    return results


def test_who_obeys_is_asked_once_and_not_killed(sent: list[tuple[int, int]]) -> None:
    with begun(OBEYS) as process:
        stopped = end_all(those_of(process), PATIENCE_S, time.sleep)
        assert (stopped.signalled, stopped.left, process.wait()) == (1, [], -signal.SIGTERM)
        assert sent == [(process.pid, signal.SIGTERM), (process.pid, signal.SIGCONT)]


def test_who_is_stopped_is_asked_too() -> None:
    with begun(OBEYS) as process:
        process.send_signal(signal.SIGSTOP)
        end_all(those_of(process), PATIENCE_S, time.sleep)
        assert process.wait() == -signal.SIGTERM


def test_who_refuses_is_asked_once_and_killed_after_the_time_of_grace(sent: list[tuple[int, int]]) -> None:
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        time.sleep(seconds)

    with begun(REFUSES) as process:
        stopped = end_all(those_of(process), 0.05, pause)
        assert (stopped.signalled, process.wait()) == (1, -signal.SIGKILL)
        assert [number for _, number in sent[:2]] == [signal.SIGTERM, signal.SIGCONT]
        assert {number for _, number in sent[2:]} == {signal.SIGKILL}
    assert waited[:2] == [0.005, 0.01], "twice as long each time"
    assert max(waited) <= 0.05


def test_who_comes_while_others_are_ended_is_ended_too() -> None:
    with begun(REFUSES) as first, begun(REFUSES) as second:
        both, late = those_of(first, second), those_of(first)
        looks = iter([late])
        stopped = end_all(lambda: next(looks, both)(), 0, time.sleep)
        assert (stopped.signalled, stopped.left) == (2, [])
        assert (first.wait(), second.wait()) == (-signal.SIGKILL, -signal.SIGKILL)


def test_nobody_is_taken_for_gone_before_it_is_proved() -> None:
    proofs = iter([False, False, True])
    with begun(REFUSES) as process:
        looks = iter([list])
        stopped = end_all(lambda: next(looks, those_of(process))(), 0, time.sleep, none_left=lambda: next(proofs, True))
        assert (stopped.signalled, process.wait()) == (1, -signal.SIGKILL)


def in_a_fork(work: Callable[[], None]) -> int:
    """Do it in a process without other children; its exit status."""
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            work()
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_ones_own_children_are_killed_with_their_groups_and_not_oneself() -> None:
    def work() -> None:
        leader = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, process_group=0)
        beside = subprocess.Popen(["sleep", "600"])
        assert leader.stdout is not None
        below = int(leader.stdout.readline())
        kill_children()
        assert (leader.wait(), beside.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
        while (process := procfs.read(below)) is not None and process.alive:
            time.sleep(0.01)

    assert in_a_fork(work) == 0


def test_what_was_never_there_is_ended_at_once() -> None:
    stopped = end_all(list, 10, time.sleep)
    assert (stopped.signalled, stopped.left) == (0, [])


def test_those_who_fork_faster_than_one_can_look_are_ended_by_their_group() -> None:
    """Every look finds one who is dead by the time of its signal, as a process that hops from fork to fork is."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        gone = procfs.Process(pid=process.pid, ppid=1, pgid=process.pid, state=b"R", start=0, times=[])
        end_all(lambda: [gone] if process.poll() is None else [], 0, time.sleep)
        assert process.returncode == -signal.SIGKILL


def test_what_does_not_end_is_given_up_at_the_deadline_and_named() -> None:
    endless = procfs.Process(pid=os.getpid(), ppid=1, pgid=os.getpgrp(), state=b"D", start=0, times=[])
    waited: list[float] = []
    stopped = end_all(lambda: [endless], 0, waited.append, deadline=time.monotonic() + 0.1)
    assert stopped.left == [endless]
    assert waited[:7] == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25]
    assert max(waited) == 0.25


def test_it_is_looked_again_at_once_while_nobody_is_found_and_nothing_is_proved() -> None:
    proofs, waited = iter([False, False, True]), list[float]()
    stopped = end_all(list, 10, waited.append, none_left=lambda: next(proofs))
    assert (stopped.signalled, stopped.left, waited) == (0, [], [])
    assert next(proofs, None) is None


# --- on a clock that passes by pauses alone -------------------------------------------------------------------------


class Scene:
    """One process that obeys nobody, and a clock on which only pauses take time. said: signals and pauses in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.said: list[str | float] = []
        self.process = procfs.Process(pid=7, ppid=1, pgid=77, state=b"R", start=0, times=[])
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(procfs, "send", lambda pid, start, number: self.said.append(Signals(number).name))
        monkeypatch.setattr(os, "killpg", lambda pgid, number: self.said.append(f"{Signals(number).name} to {pgid}"))

    def pause(self, seconds: float) -> None:
        self.said.append(seconds)
        self.now += seconds

    def find(self) -> list[procfs.Process]:
        assert len(self.said) < 100, "it never comes to an end"
        return [self.process]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_the_time_of_grace_is_waited_for_and_over_when_it_is_over(scene: Scene) -> None:
    end_all(scene.find, 0.25, scene.pause, deadline=0.25)
    assert scene.said == ["SIGTERM", "SIGCONT", 0.005, 0.01, 0.02, 0.04, 0.08, pytest.approx(0.095)]
    scene.said.clear()
    end_all(scene.find, 0, scene.pause, deadline=scene.now)
    assert scene.said == ["SIGTERM", "SIGCONT"], "nobody waits without a time of grace"


def test_at_the_deadline_it_is_given_up(scene: Scene) -> None:
    stopped = end_all(scene.find, 0, scene.pause, deadline=0.005)
    assert scene.said == ["SIGTERM", "SIGCONT", "SIGKILL", 0.005]
    assert (stopped.signalled, stopped.left) == (1, [scene.process])


def test_a_group_is_killed_as_a_whole_once_its_processes_did_not_end_one_by_one(scene: Scene) -> None:
    end_all(scene.find, 0, scene.pause, deadline=0.015)
    assert scene.said[2:] == ["SIGKILL", 0.005, "SIGKILL", "SIGKILL to 77", 0.01]
