"""Shims started through the fork server and without it: independent of both it and the daemon."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate, shim_identity
from claudomator_py.hosts.local.launcher import Launcher
from tests.integration.hosts.rig import INSTALLATION, PATH, Rig, alive, ended, stdout, until

ENV = {"PATH": PATH}
GATED = ("sh", "-c", "echo $$; while test ! -e go; do sleep .01; done; exit 6")


@pytest.fixture(params=["fork server", "directly"])
def launcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """Both ways to start a shim keep the same promises."""
    if request.param == "directly":
        monkeypatch.setattr(Launcher, "_ask", lambda *_: None)
    launcher = Launcher()
    yield launcher
    launcher.close()


def is_over(path: Path) -> Callable[[], bool]:
    return lambda: (path / "exit.json").exists() and decide_fate(path).fate is RunFate.ENDED


def is_dead(pid: int) -> bool:
    return not alive(pid)


def servers() -> list[int]:
    """Fork servers that are children of this test."""
    return forked_by(os.getpid())


def forked_by(pid: int) -> list[int]:
    """Children of that process that look like a fork server: as what waits for its run does, too."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                command = entry.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == pid and b"forkserver" in command:
                found.append(int(entry.name))
    return found


def test_a_run_is_run(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", 'echo "$KEY"; exit 3'), env_names=["PATH", "KEY"])
    pid = launcher.start(path, {**ENV, "KEY": "välue \udcff"})
    until(is_over(path))
    assert ended(path).exit.exit_code == 3
    assert (path / "stdout.jsonl").read_bytes() == b"v\xc3\xa4lue \xff\n"
    until(lambda: not alive(pid))


def test_secrets_are_in_no_file(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "test ${#KEY} = 12"), env_names=["PATH", "KEY"])
    launcher.start(path, {**ENV, "KEY": "s3cr3t-value"})
    until(is_over(path))
    assert ended(path).exit.exit_code == 0
    assert not [file for file in path.rglob("*") if file.is_file() and b"s3cr3t-value" in file.read_bytes()]


def test_the_variables_of_a_task_are_none_of_its_supervisor(rig: Rig, launcher: Launcher) -> None:
    """There LD_PRELOAD and the like would be code in the process that holds the agent to its limits."""
    path = rig.prepare(GATED, env_names=["PATH", "LD_PRELOAD"])
    pid = launcher.start(path, {**ENV, "LD_PRELOAD": "/nowhere/to-be-found.so"})
    until(lambda: stdout(path))
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"to-be-found" not in environ
    assert b"to-be-found" in Path(f"/proc/{int(stdout(path))}/environ").read_bytes()
    (path / "work" / "go").touch()
    until(is_over(path))


def test_the_shim_is_not_one_of_the_runs_processes(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = launcher.start(path, {**ENV, "CLAUDOMATOR_RUN": path.name})
    until(lambda: stdout(path))
    assert b"CLAUDOMATOR_RUN" not in Path(f"/proc/{pid}/environ").read_bytes()
    (path / "work" / "go").touch()
    until(is_over(path))


def test_nothing_leaks_into_shim_or_agent(rig: Rig, launcher: Launcher) -> None:
    listing = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))"
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        path = rig.prepare((sys.executable, "-I", "-S", "-c", listing))
        launcher.start(path, ENV)
        until(is_over(path))
        assert stdout(path) == "[0, 1, 2, 3]\n"
    finally:
        os.close(read)
        os.close(write)


def open_files(pid: int) -> list[str]:
    """What the process has open, but for what it closes meanwhile."""
    found = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(fd.readlink()))
    return found


def test_the_shim_holds_no_socket(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = launcher.start(path, ENV)
    until(lambda: stdout(path))
    targets = open_files(pid)
    assert not [target for target in targets if target.startswith("socket:")]
    assert sorted(target for target in targets if not target.startswith(("/", "pipe:"))) == []
    (path / "work" / "go").touch()
    until(is_over(path))


def test_shims_outlive_the_launcher(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    launcher.start(path, ENV)
    agent = int(until(lambda: stdout(path)))
    launcher.close()
    assert not servers()
    assert alive(agent)
    (path / "work" / "go").touch()
    until(is_over(path))
    assert ended(path).exit.exit_code == 6


@pytest.mark.parametrize("way", ["fork server", "directly"])
def test_shims_outlive_a_killed_daemon(rig: Rig, way: str) -> None:
    path = rig.prepare(GATED)
    daemon = f"""
import pathlib, sys, time
sys.path.insert(0, {str(INSTALLATION)!r})
from claudomator_py.hosts.local.launcher import Launcher
if {way!r} == "directly":
    Launcher._ask = lambda *_: None
launcher = Launcher()
launcher.start(pathlib.Path({str(path)!r}), {ENV!r})
print("started", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.kill()
    agent = int(until(lambda: stdout(path)))
    assert alive(agent)
    (path / "work" / "go").touch()
    until(is_over(path))
    assert ended(path).exit.exit_code == 6


def test_the_fork_server_ends_with_the_launcher_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    launcher = Launcher()
    launcher.start(Path("/nowhere"), ENV)
    assert len(servers()) == 1
    launcher.close()
    assert servers() == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("way", ["fork server", "directly"])
def test_a_run_has_the_users_umask_whatever_the_daemons_own_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "directly":
        monkeypatch.setattr(Launcher, "_ask", lambda *_: None)
    before = os.umask(0o077)
    launcher = Launcher(0o002)
    try:
        path = rig.prepare(("sh", "-c", "touch file; mkdir folder"))
        launcher.start(path, ENV)
        until(is_over(path))
    finally:
        launcher.close()
        os.umask(before)
    modes = {made.name: made.stat().st_mode & 0o777 for made in (path / "work").iterdir()}
    assert modes == {"file": 0o664, "folder": 0o775}
    assert {made.stat().st_mode & 0o077 for made in path.iterdir()} == {0}


def test_a_lost_fork_server_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        killed = []
        for _ in range(4):
            path = rig.prepare(("true",))
            launcher.start(path, ENV)
            until(is_over(path))
            # The next run may get the process that the lost one has offered already, and only then another is missed.
            for server in servers():
                os.kill(server, signal.SIGKILL)
                until(partial(is_dead, server))
                killed.append(server)
        assert len(killed) >= 2
    finally:
        launcher.close()


def test_a_shim_is_forked_before_there_is_a_run_for_it_and_ends_with_the_fork_server(rig: Rig) -> None:
    launcher = Launcher()
    try:
        until(partial(is_dead, launcher.start(rig.root / "nowhere", ENV)))
        (server,) = servers()
        (spare,) = until(lambda: forked_by(server) or None)
        path = rig.prepare(("true",))
        assert launcher.start(path, ENV) == spare
        until(is_over(path))
        (spare,) = until(lambda: [pid for pid in forked_by(server) if pid != spare] or None)
    finally:
        launcher.close()
    until(partial(is_dead, spare))


def test_a_shim_that_was_ended_before_it_had_a_run_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        until(partial(is_dead, launcher.start(rig.root / "nowhere", ENV)))
        (server,) = servers()
        (spare,) = until(lambda: forked_by(server) or None)
        os.kill(spare, signal.SIGKILL)
        until(partial(is_dead, spare))
        path = rig.prepare(("true",))
        launcher.start(path, ENV)
        until(is_over(path))
    finally:
        launcher.close()


def test_a_fork_server_that_cannot_be_used_is_done_without(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no sockets here")

    monkeypatch.setattr("socket.socketpair", refuse)
    launcher = Launcher()
    path = rig.prepare(("true",))
    launcher.start(path, ENV)
    until(is_over(path))
    launcher.close()
    assert "no sockets here" in caplog.text


def test_a_crash_of_a_shim_leaves_the_fork_server_alone(rig: Rig) -> None:
    launcher = Launcher()
    try:
        crashed = rig.prepare(GATED)
        pid = launcher.start(crashed, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-spawned"})
        (server,) = servers()
        until(lambda: not alive(pid))
        assert decide_fate(crashed).fate is RunFate.UNFINISHED
        path = rig.prepare(("true",))
        launcher.start(path, ENV)
        until(is_over(path))
        assert servers() == [server]
    finally:
        launcher.close()


def test_many_runs_at_once_from_many_threads(rig: Rig) -> None:
    launcher = Launcher()
    try:
        paths = [rig.prepare(("sh", "-c", f"exit {number}")) for number in range(24)]
        with ThreadPoolExecutor(6) as pool:
            pids = list(pool.map(lambda path: launcher.start(path, ENV), paths))
        for path in paths:
            until(is_over(path))
        assert [ended(path).exit.exit_code for path in paths] == list(range(24))
        assert len(set(pids)) == 24
    finally:
        launcher.close()


def test_a_long_environment_arrives(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "echo ${#LONG}"), env_names=["PATH", "LONG"])
    launcher.start(path, {**ENV, "LONG": "x" * 120_000})
    until(is_over(path))
    assert stdout(path) == "120000\n"


def test_a_shim_without_a_directory_leaves(rig: Rig, launcher: Launcher) -> None:
    pid = launcher.start(rig.root / "nowhere", ENV)
    until(lambda: not alive(pid))
    assert list(rig.root.iterdir()) == []


def test_a_cancelled_run_is_woken_at_once(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sleep", "60"))
    launcher.start(path, ENV)
    until(lambda: shim_identity(path))
    RunDirectory(path).request_cancel()
    until(is_over(path))
    assert ended(path).exit.ended_by == "cancel"
