"""Reading /proc: names that look like fields, ancestry, and signals that reach only who is meant."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from claudomator_py.hosts.shim import procfs, watch
from tests.patience import wait_until


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def fail_at_a_walk() -> NoReturn:
    raise AssertionError("a walk through /proc")


def test_a_process_with_parentheses_in_its_name_is_read(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        try:
            result = procfs.read(process.pid)
            assert result is not None
            assert result.ppid == os.getpid()
            assert result.alive
        finally:
            process.kill()


def test_a_zombie_is_not_alive(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procfs.read(sleeper.pid)
    assert process is not None
    assert procfs.is_same(process.pid, process.start)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not procfs.is_same(process.pid, process.start)


def test_nobody_has_the_pid_zero() -> None:
    assert procfs.read(0) is None
    assert procfs.open_pidfd(0, 0) is None


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_found_at_any_depth(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "_LISTS_CHILDREN", listed and procfs._LISTS_CHILDREN)
    script = "sh -c 'sh -c \"sleep 60; :\"; :'; :"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        try:
            wait_until(lambda: len(procfs.descendants([process.pid], procfs.snapshot())) == 3)
            descendants = procfs.descendants([process.pid], procfs.snapshot())
            assert process.pid not in {descendant.pid for descendant in descendants}
            assert {entry.identity for entry in procfs.descendants_now([process.pid])} == {
                entry.identity for entry in descendants
            }
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def await_environment(pid: int) -> None:
    wait_until(lambda: b"run-12" in Path(f"/proc/{pid}/environ").read_bytes())


def test_only_the_exact_run_is_found() -> None:
    with subprocess.Popen(["sleep", "60"], env={"CLAUDOMATOR_RUN": "run-12", "X": "CLAUDOMATOR_RUN=run-1"}) as process:
        try:
            await_environment(process.pid)
            processes = procfs.snapshot()
            assert [result.pid for result in procfs.of_run("run-12", processes)] == [process.pid]
            assert procfs.of_run("run-1", processes) == []
            begun = processes[process.pid].start
            assert procfs.is_carried("run-12", procfs.Beginning(0))
            assert procfs.is_carried("run-12", procfs.Beginning(begun))
            assert not procfs.is_carried("run-12", procfs.Beginning(begun + 1))
            assert not procfs.is_carried("run-1", procfs.Beginning(0))
        finally:
            process.kill()


def test_a_process_that_begins_one_program_after_the_other_is_always_found(tmp_path: Path) -> None:
    """The kernel shows no environment of a process while it replaces its program, which is every hundredth look."""
    script = tmp_path / "again.sh"
    script.write_text(f"exec /bin/sh {script}\n")
    with subprocess.Popen(["/bin/sh", str(script)], env={"CLAUDOMATOR_RUN": "run-12"}) as process:
        try:
            await_environment(process.pid)
            read = procfs.read(process.pid)
            assert read is not None
            assert all(procfs.of_run("run-12", {process.pid: read}) for _ in range(1_000))
        finally:
            process.kill()


def test_nobody_asks_for_the_environment_of_a_process_that_is_older_than_the_run(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def environ(pid: int) -> list[bytes]:
        asked.append(pid)
        return []

    monkeypatch.setattr(procfs, "_environ", environ)
    processes = procfs.snapshot()
    assert not procfs.is_carried("run", procfs.Beginning(processes[sleeper.pid].start))
    assert sleeper.pid in asked
    # Who is in no snapshot has begun since.
    older = {pid for pid, process in processes.items() if process.start < processes[sleeper.pid].start}
    assert older.isdisjoint(asked)


def test_of_a_short_run_only_the_pids_given_since_are_looked_at(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "_pids", fail_at_a_walk)
    monkeypatch.setattr(procfs, "_shortest_turn", lambda: 3600.0)
    since = procfs.Beginning(0, now=True)
    with subprocess.Popen(["sleep", "60"], env={"CLAUDOMATOR_RUN": "run-12"}) as process:
        try:
            await_environment(process.pid)
            assert process.pid in since.younger()
            assert sleeper.pid not in since.younger()
            assert procfs.is_carried("run-12", since)
            assert not procfs.is_carried("run-1", since)
        finally:
            process.kill()


@pytest.mark.parametrize(("ahead", "turn"), [(0, 0.0), (20_000, 3600.0)], ids=["there was time", "they have"])
def test_once_pids_may_have_gone_round_all_processes_are_looked_at(
    ahead: int, turn: float, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "_shortest_turn", lambda: turn)
    process = procfs.read(sleeper.pid)
    assert process is not None
    with monkeypatch.context() as patch:
        last = procfs.last_pid() + ahead
        patch.setattr(procfs, "last_pid", lambda: last)
        since = procfs.Beginning(process.start, now=True)
    assert sleeper.pid in since.younger()


def test_the_last_pid_is_that_of_the_newest_process() -> None:
    for _ in range(100):
        before = procfs.last_pid()
        with subprocess.Popen(["true"]) as process:
            if before < process.pid <= procfs.last_pid():
                return
    pytest.fail("pids are given in no order")


def test_a_signal_reaches_only_the_process_that_was_meant(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procfs.read(sleeper.pid)
    assert process is not None
    assert not procfs.send(process.pid, process.start + 1, signal.SIGKILL)
    assert sleeper.poll() is None
    assert procfs.send(process.pid, process.start, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
    assert not procfs.send(process.pid, process.start, signal.SIGKILL)


def test_work_is_seen_while_it_is_done() -> None:
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\ninput()"
    command = [sys.executable, "-I", "-S", "-c", busy]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            process_now = procfs.read(process.pid)
            while process_now is not None and process_now.cpu < 15:
                process_now = procfs.read(process.pid)
            assert process_now is not None
        finally:
            process.kill()


@pytest.mark.skipif(not procfs._LISTS_CHILDREN, reason="this kernel does not list children")
def test_what_is_below_is_measured_without_a_look_at_the_whole_machine(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand live runs that each did took both processors."""
    monkeypatch.setattr(procfs, "snapshot", fail_at_a_walk)
    assert sleeper.pid in watch.cpu_by_process()
    agent = procfs.read(os.getpid())
    assert agent is not None
    assert {agent.pid, sleeper.pid} <= set(watch.cpu_by_process(agent))


def test_the_children_of_every_thread_are_found() -> None:
    script = "import subprocess, threading; threading.Thread(target=lambda: subprocess.run(['sleep', '60'])).start()"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", script], start_new_session=True) as process:
        try:
            wait_until(lambda: procfs.descendants_now([process.pid]))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
