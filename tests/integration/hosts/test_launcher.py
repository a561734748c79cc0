"""Shims started through the fork server and without it: independent of both it and the daemon."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local import launcher as module
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate, shim_identity
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.hosts.local.launcher import ended as ended_by_itself
from tests.integration.hosts.rig import INSTALLATION, LIMITS, PATH, Rig, alive, ended, stdout, until

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


def start(launcher: Launcher, path: Path, env: dict[str, str] = ENV) -> int:
    """Have a shim do this run and no other; its pid."""
    with launcher.start(path, env) as shim:
        return shim.pid


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
    pid = start(launcher, path, {**ENV, "KEY": "välue \udcff"})
    until(is_over(path))
    assert ended(path).exit.exit_code == 3
    assert (path / "stdout.jsonl").read_bytes() == b"v\xc3\xa4lue \xff\n"
    until(lambda: not alive(pid))


def test_secrets_are_in_no_file(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "test ${#KEY} = 12"), env_names=["PATH", "KEY"])
    start(launcher, path, {**ENV, "KEY": "s3cr3t-value"})
    until(is_over(path))
    assert ended(path).exit.exit_code == 0
    assert not [file for file in path.rglob("*") if file.is_file() and b"s3cr3t-value" in file.read_bytes()]


def test_the_variables_of_a_task_are_none_of_its_supervisor(rig: Rig, launcher: Launcher) -> None:
    """There LD_PRELOAD and the like would be code in the process that holds the agent to its limits."""
    path = rig.prepare(GATED, env_names=["PATH", "LD_PRELOAD"])
    pid = start(launcher, path, {**ENV, "LD_PRELOAD": "/nowhere/to-be-found.so"})
    until(lambda: stdout(path))
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"to-be-found" not in environ
    assert b"to-be-found" in Path(f"/proc/{int(stdout(path))}/environ").read_bytes()
    (path / "work" / "go").touch()
    until(is_over(path))


def test_the_shim_is_not_one_of_the_runs_processes(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = start(launcher, path, {**ENV, "CLAUDOMATOR_RUN": path.name})
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
        start(launcher, path)
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


def test_the_shim_holds_nothing_but_what_it_needs(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = start(launcher, path)
    until(lambda: stdout(path))
    targets = [target.partition(":")[0] for target in open_files(pid) if not target.startswith("/")]
    assert sorted(targets) in (["pipe", "pipe"], ["pipe", "pipe", "socket"]), "to be woken, and to get a run"
    (path / "work" / "go").touch()
    until(is_over(path))


def test_shims_outlive_the_launcher(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    start(launcher, path)
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
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.hosts.local.launcher import ended as ended_by_itself
if {way!r} == "directly":
    Launcher._ask = lambda *_: None
launcher = Launcher()
shim = launcher.start(pathlib.Path({str(path)!r}), {ENV!r})
print(shim.pid, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    agent = int(until(lambda: stdout(path)))
    assert alive(agent)
    (path / "work" / "go").touch()
    until(is_over(path))
    assert ended(path).exit.exit_code == 6
    until(partial(is_dead, pid))


def test_the_fork_server_ends_with_the_launcher_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    launcher = Launcher()
    start(launcher, Path("/nowhere"))
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
        start(launcher, path)
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
            start(launcher, path)
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
        until(partial(is_dead, start(launcher, rig.root / "nowhere")))
        (server,) = servers()
        (spare,) = until(lambda: forked_by(server) or None)
        path = rig.prepare(("true",))
        assert start(launcher, path) == spare
        until(is_over(path))
        (spare,) = until(lambda: [pid for pid in forked_by(server) if pid != spare] or None)
    finally:
        launcher.close()
    until(partial(is_dead, spare))


def test_a_shim_that_was_ended_before_it_had_a_run_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        until(partial(is_dead, start(launcher, rig.root / "nowhere")))
        (server,) = servers()
        (spare,) = until(lambda: forked_by(server) or None)
        os.kill(spare, signal.SIGKILL)
        until(partial(is_dead, spare))
        path = rig.prepare(("true",))
        start(launcher, path)
        until(is_over(path))
    finally:
        launcher.close()


def waits_again(shim: Shim) -> bool:
    """Whether it says that it can take another run."""
    word = shim.listen()
    assert word is not None
    with word:
        return ended_by_itself(word) is True


def test_a_shim_whose_run_has_ended_by_itself_does_the_next_and_holds_nothing_of_it(rig: Rig) -> None:
    launcher = Launcher()
    try:
        pids: list[int] = []
        before: list[str] = []
        for code in range(3):
            path = rig.prepare(("sh", "-c", f"echo $KEY; exit {code}"), env_names=["PATH", "KEY"])
            shim = launcher.start(path, {**ENV, "KEY": f"key {code}"})
            until(partial(waits_again, shim))
            assert decide_fate(path).fate is RunFate.ENDED
            assert ended(path).exit.exit_code == code
            assert stdout(path) == f"key {code}\n"
            assert Path(f"/proc/{shim.pid}/cwd").readlink() == Path("/")
            now = open_files(shim.pid)
            assert not pids or now == before
            pids.append(shim.pid)
            before = now
            launcher.take_back(shim)
        assert len(set(pids)) == 1
    finally:
        launcher.close()
    until(partial(is_dead, pids[0]))


def test_a_later_run_of_a_shim_is_held_to_the_same(rig: Rig) -> None:
    """It ends what the run leaves in a session and with an environment of its own, and the run if it takes too long."""
    launcher = Launcher()
    later = {
        "setsid env -i /bin/sleep 60 & echo $!; sleep .1": (None, LIMITS),
        "sleep 60": ("timeout", replace(LIMITS, timeout_ms=300)),
    }
    try:
        for script, (ended_by, limits) in later.items():
            shim = launcher.start(rig.prepare(("true",)), ENV)
            until(partial(waits_again, shim))
            launcher.take_back(shim)
            path = rig.prepare(("sh", "-c", script), limits=limits)
            assert launcher.start(path, ENV) is shim
            until(partial(is_dead, shim.pid))
            shim.close()
            assert ended(path).exit.ended_by == ended_by
            assert ended_by or (ended(path).stragglers == 1 and not alive(int(stdout(path))))
    finally:
        launcher.close()


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("sleep 60 & exit", lambda *_: None),
        ("echo; sleep 60", lambda path, _: RunDirectory(path).request_cancel()),
        ("echo; sleep 60", lambda _, pid: os.kill(pid, signal.SIGTERM)),
        ("echo; sleep 60", lambda path, _: path.rename(path.with_suffix(".new"))),
        ("echo; sleep 60", lambda path, _: shutil.rmtree(path)),
    ],
    ids=["it has left something", "cancelled", "told to end", "moved", "removed"],
)
def test_a_shim_whose_run_has_ended_otherwise_leaves(rig: Rig, script: str, end: Callable[[Path, int], object]) -> None:
    launcher = Launcher()
    path = rig.prepare(("sh", "-c", script))
    with launcher.start(path, ENV) as shim:
        if script.startswith("echo"):
            until(lambda: stdout(path))
        end(path, shim.pid)
        until(partial(is_dead, shim.pid))
        launcher.take_back(shim)
        with launcher.start(rig.root / "nowhere", ENV) as other:
            assert other.pid != shim.pid
    launcher.close()


def test_a_program_that_cannot_be_started_ends_its_shim(rig: Rig) -> None:
    launcher = Launcher()
    path = rig.prepare(("no-such-program",))
    with launcher.start(path, ENV) as shim:
        until(partial(is_dead, shim.pid))
    assert ended(path).exit.error is not None
    launcher.close()


def test_an_idle_shim_that_is_killed_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        shim = launcher.start(rig.prepare(("true",)), ENV)
        until(partial(waits_again, shim))
        launcher.take_back(shim)
        os.kill(shim.pid, signal.SIGKILL)
        until(partial(is_dead, shim.pid))
        path = rig.prepare(("true",))
        assert start(launcher, path) != shim.pid
        until(is_over(path))
    finally:
        launcher.close()


def test_few_shims_are_kept(rig: Rig) -> None:
    launcher = Launcher()
    try:
        shims = [launcher.start(rig.prepare(("true",)), ENV) for _ in range(6)]
        for shim in shims:
            until(partial(waits_again, shim))
        for shim in shims:
            launcher.take_back(shim)
        for shim in shims[:2]:
            until(partial(is_dead, shim.pid))
        assert [is_dead(shim.pid) for shim in shims] == [True, True, False, False, False, False]
    finally:
        launcher.close()
    for shim in shims:
        until(partial(is_dead, shim.pid))


def test_of_many_runs_at_a_time_only_some_have_an_open_file_each(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CONNECTED", 2)
    launcher = Launcher()
    try:
        paths = [rig.prepare(GATED) for _ in range(3)]
        shims = [launcher.start(path, ENV) for path in paths]
        assert [shim.is_connected for shim in shims] == [True, True, False]
        for path in paths:
            (path / "work" / "go").touch()
        until(partial(is_dead, shims[2].pid))
        until(partial(waits_again, shims[0]))
        launcher.take_back(shims[0])
        shims[1].close()
        for _ in range(2):
            path = rig.prepare(("true",))
            shims.append(launcher.start(path, ENV))
            until(is_over(path))
        assert [shim.is_connected for shim in shims] == [True, False, False, True, True]
        assert shims[3] is shims[0]
    finally:
        for shim in shims:
            shim.close()
        launcher.close()


def test_a_closed_launcher_holds_no_connection_to_a_run_that_continues(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    shim = launcher.start(path, ENV)
    launcher.close()
    assert not shim.is_connected
    (path / "work" / "go").touch()
    until(is_over(path))
    assert ended(path).exit.exit_code == 6
    until(partial(is_dead, shim.pid))


def test_a_fork_server_that_cannot_be_used_is_done_without(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no sockets here")

    monkeypatch.setattr("socket.socketpair", refuse)
    launcher = Launcher()
    path = rig.prepare(("true",))
    start(launcher, path)
    until(is_over(path))
    launcher.close()
    assert "no sockets here" in caplog.text


def test_a_crash_of_a_shim_leaves_the_fork_server_alone(rig: Rig) -> None:
    launcher = Launcher()
    try:
        crashed = rig.prepare(GATED)
        pid = start(launcher, crashed, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-spawned"})
        (server,) = servers()
        until(lambda: not alive(pid))
        assert decide_fate(crashed).fate is RunFate.UNFINISHED
        path = rig.prepare(("true",))
        start(launcher, path)
        until(is_over(path))
        assert servers() == [server]
    finally:
        launcher.close()


def test_many_runs_at_once_from_many_threads(rig: Rig) -> None:
    launcher = Launcher()
    try:
        paths = [rig.prepare(("sh", "-c", f"exit {number}")) for number in range(24)]
        with ThreadPoolExecutor(6) as pool:
            pids = list(pool.map(lambda path: start(launcher, path), paths))
        for path in paths:
            until(is_over(path))
        assert [ended(path).exit.exit_code for path in paths] == list(range(24))
        assert len(set(pids)) == 24
    finally:
        launcher.close()


def test_a_long_environment_arrives(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "echo ${#LONG}"), env_names=["PATH", "LONG"])
    start(launcher, path, {**ENV, "LONG": "x" * 120_000})
    until(is_over(path))
    assert stdout(path) == "120000\n"


def test_a_shim_without_a_directory_leaves(rig: Rig, launcher: Launcher) -> None:
    pid = start(launcher, rig.root / "nowhere")
    until(lambda: not alive(pid))
    assert list(rig.root.iterdir()) == []


def test_a_cancelled_run_is_woken_at_once(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sleep", "60"))
    start(launcher, path)
    until(lambda: shim_identity(path))
    RunDirectory(path).request_cancel()
    until(is_over(path))
    assert ended(path).exit.ended_by == "cancel"
