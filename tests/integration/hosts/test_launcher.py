"""Shims started through the fork server and without it: independent of both it and the daemon."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import shim_identity
from claudomator_py.hosts.local.launcher import Launcher
from tests.integration.hosts.launching import ENV, GATED, is_dead, is_over, open_files, servers, start
from tests.integration.hosts.rig import INSTALLATION, Rig, alive, ended, stdout
from tests.patience import wait_until


@pytest.fixture(params=["fork server", "directly"])
def launcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """Both ways to start a shim keep the same promises."""
    if request.param == "directly":
        monkeypatch.setattr(Launcher, "_from_server", lambda *_: None)
    launcher = Launcher()
    yield launcher
    launcher.close()


def test_a_run_is_run(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", 'echo "$KEY"; exit 3'), env_names=["PATH", "KEY"])
    pid = start(launcher, path, {**ENV, "KEY": "välue \udcff"})
    wait_until(is_over(path))
    assert ended(path).exit.exit_code == 3
    assert (path / "stdout.jsonl").read_bytes() == b"v\xc3\xa4lue \xff\n"
    wait_until(lambda: not alive(pid))


def test_secrets_are_in_no_file(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "test ${#KEY} = 12"), env_names=["PATH", "KEY"])
    start(launcher, path, {**ENV, "KEY": "s3cr3t-value"})
    wait_until(is_over(path))
    assert ended(path).exit.exit_code == 0
    assert not [file for file in path.rglob("*") if file.is_file() and b"s3cr3t-value" in file.read_bytes()]


def test_the_variables_of_a_task_are_none_of_its_supervisor(rig: Rig, launcher: Launcher) -> None:
    """There LD_PRELOAD and the like would be code in the process that holds the agent to its limits."""
    path = rig.prepare(GATED, env_names=["PATH", "LD_PRELOAD"])
    pid = start(launcher, path, {**ENV, "LD_PRELOAD": "/nowhere/to-be-found.so"})
    wait_until(lambda: stdout(path))
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"to-be-found" not in environ
    assert b"to-be-found" in Path(f"/proc/{int(stdout(path))}/environ").read_bytes()
    (path / "work" / "go").touch()
    wait_until(is_over(path))


def test_the_shim_is_not_one_of_the_runs_processes(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = start(launcher, path, {**ENV, "CLAUDOMATOR_RUN": path.name})
    wait_until(lambda: stdout(path))
    assert b"CLAUDOMATOR_RUN" not in Path(f"/proc/{pid}/environ").read_bytes()
    (path / "work" / "go").touch()
    wait_until(is_over(path))


def test_nothing_leaks_into_shim_or_agent(rig: Rig, launcher: Launcher) -> None:
    listing = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))"
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        path = rig.prepare((sys.executable, "-I", "-S", "-c", listing))
        start(launcher, path)
        wait_until(is_over(path))
        assert stdout(path) == "[0, 1, 2, 3]\n"
    finally:
        os.close(read)
        os.close(write)


def test_the_shim_holds_nothing_but_what_it_needs(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    pid = start(launcher, path)
    wait_until(lambda: stdout(path))
    targets = [target.partition(":")[0] for target in open_files(pid) if not target.startswith("/")]
    assert sorted(targets) in (["pipe", "pipe"], ["pipe", "pipe", "socket"]), "to be woken, and to get a run"
    (path / "work" / "go").touch()
    wait_until(is_over(path))


def test_shims_outlive_the_launcher(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    start(launcher, path)
    agent = int(wait_until(lambda: stdout(path)))
    launcher.close()
    assert not servers()
    assert alive(agent)
    (path / "work" / "go").touch()
    wait_until(is_over(path))
    assert ended(path).exit.exit_code == 6


@pytest.mark.parametrize("way", ["fork server", "directly"])
def test_shims_outlive_a_killed_daemon(rig: Rig, way: str) -> None:
    path = rig.prepare(GATED)
    daemon = f"""
import pathlib, sys, time
sys.path.insert(0, {str(INSTALLATION)!r})
from claudomator_py.hosts.local.launcher import Launcher
if {way!r} == "directly":
    Launcher._from_server = lambda *_: None
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
    agent = int(wait_until(lambda: stdout(path)))
    assert alive(agent)
    (path / "work" / "go").touch()
    wait_until(is_over(path))
    assert ended(path).exit.exit_code == 6
    wait_until(partial(is_dead, pid))


@pytest.mark.parametrize("way", ["fork server", "directly"])
def test_a_run_has_the_users_umask_whatever_the_daemons_own_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "directly":
        monkeypatch.setattr(Launcher, "_from_server", lambda *_: None)
    before = os.umask(0o077)
    launcher = Launcher(0o002)
    try:
        path = rig.prepare(("sh", "-c", "touch file; mkdir folder"))
        start(launcher, path)
        wait_until(is_over(path))
    finally:
        launcher.close()
        os.umask(before)
    modes = {made.name: made.stat().st_mode & 0o777 for made in (path / "work").iterdir()}
    assert modes == {"file": 0o664, "folder": 0o775}
    assert {made.stat().st_mode & 0o077 for made in path.iterdir()} == {0}


def test_a_closed_launcher_holds_no_connection_to_a_run_that_continues(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(GATED)
    shim = launcher.start(path, ENV)
    launcher.close()
    assert not shim.is_connected
    (path / "work" / "go").touch()
    wait_until(is_over(path))
    assert ended(path).exit.exit_code == 6
    wait_until(partial(is_dead, shim.pid))


def test_many_runs_at_once_from_many_threads(rig: Rig) -> None:
    launcher = Launcher()
    try:
        paths = [rig.prepare(("sh", "-c", f"exit {number}")) for number in range(24)]
        with ThreadPoolExecutor(6) as pool:
            pids = list(pool.map(lambda path: start(launcher, path), paths))
        for path in paths:
            wait_until(is_over(path))
        assert [ended(path).exit.exit_code for path in paths] == list(range(24))
        assert len(set(pids)) == 24
    finally:
        launcher.close()


def test_a_long_environment_arrives(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sh", "-c", "echo ${#LONG}"), env_names=["PATH", "LONG"])
    start(launcher, path, {**ENV, "LONG": "x" * 120_000})
    wait_until(is_over(path))
    assert stdout(path) == "120000\n"


def test_a_shim_without_a_directory_leaves(rig: Rig, launcher: Launcher) -> None:
    pid = start(launcher, rig.root / "nowhere")
    wait_until(lambda: not alive(pid))
    assert list(rig.root.iterdir()) == []


def test_a_cancelled_run_is_woken_at_once(rig: Rig, launcher: Launcher) -> None:
    path = rig.prepare(("sleep", "60"))
    start(launcher, path)
    wait_until(lambda: shim_identity(path))
    RunDirectory(path).request_cancel()
    wait_until(is_over(path))
    assert ended(path).exit.ended_by == "cancel"
