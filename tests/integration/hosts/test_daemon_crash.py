"""The daemon killed between any two steps at a run directory: the next one finds either all of it or none."""

import os
import signal
import sys
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import sweep
from tests.integration.hosts.rig import INSTALLATION, Rig, ended
from tests.patience import wait_until
from tests.warm import bare

PRELUDE = f"""
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {str(INSTALLATION)!r})
from claudomator_py.domain import crashpoint
from claudomator_py.domain.run import RunLimits, RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import kill_survivors
point, path = sys.argv[1], Path(sys.argv[2])
assert point in crashpoint.CRASH_POINTS
crash = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == point else None
crashpoint.install(crash)
order = RunSpec(path.name, (("true",),), None, (), ("PATH",), "", RunLimits(5000, None, 100, 1 << 20))
"""


def daemon(point: str, path: Path, act: str, *, ends: int = -signal.SIGKILL) -> None:
    """Do this in a daemon that is killed at the crash point, if it passes it. ends: the exit status."""
    command = [sys.executable, "-c", PRELUDE + act, point, str(path)]
    with Path(os.devnull).open() as nothing:
        process = bare.of_daemons().start(command, environ=os.environ, files=(nothing.fileno(), 1, 2))
    assert process.wait() == ends


@pytest.mark.parametrize(("point", "there"), [("run-files-written", False), ("run-dir-renamed", True)])
def test_a_directory_is_complete_or_not_there(rig: Rig, point: str, there: bool) -> None:
    path = rig.root / "run"
    daemon(point, path, "RunDirectory(path).create(order)")
    assert path.exists() is there
    # The next daemon comes to the same plan, and makes it.
    daemon("run-spawned", path, "RunDirectory(path).create(order)", ends=0)
    assert [entry.name for entry in rig.root.iterdir()] == ["run"]
    assert rig.shim(path).wait() == 0
    assert ended(path).exit.exit_code == 0


def test_a_run_spawned_by_a_daemon_that_was_killed_goes_on(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", "exit 3"))
    daemon("run-spawned", path, f"Launcher().start(path, {{'PATH': {str(Path('/usr/bin'))!r} + ':/bin'}})")
    wait_until(lambda: (path / "exit.json").exists())
    wait_until(lambda: decide_fate(path).fate is RunFate.ENDED)
    assert ended(path).exit.exit_code == 3


def test_a_cancel_that_was_written_holds(rig: Rig) -> None:
    path = rig.prepare(("sleep", "60"))
    shim = rig.shim(path)
    wait_until(lambda: (path / "started").exists())
    daemon("cancel-written", path, "RunDirectory(path).request_cancel()")
    shim.wait()
    assert ended(path).exit.ended_by == "cancel"


def test_a_cancel_is_asked_to_the_end_though_the_shim_was_faster(rig: Rig) -> None:
    path = rig.prepare(("sleep", "60"))
    shim = rig.shim(path)
    wait_until(lambda: (path / "started").exists())
    # The daemon is held up once it has written the request, until the shim has seen it and left.
    slow = """
def hook(name):
    if name == "cancel-written":
        while decide_fate(path).exit is None:
            time.sleep(0.01)
    crash(name)
crashpoint.install(hook)
RunDirectory(path).request_cancel()
"""
    daemon("cancel-nudged", path, slow)
    shim.wait()
    assert ended(path).exit.ended_by == "cancel"


def test_a_run_that_was_given_up_stays_so(rig: Rig) -> None:
    path = rig.prepare(("true",))
    daemon("revoked-written", path, "decide_fate(path)")
    assert rig.shim(path).wait() == 3
    assert decide_fate(path).fate is RunFate.REVOKED


@pytest.mark.parametrize("point", ["revoked-written", "run-dir-trashed", "run-dir-removed"])
def test_a_removal_is_finished_by_the_next_sweep(rig: Rig, point: str) -> None:
    path = rig.prepare(("true",))
    daemon(point, path, "RunDirectory(path).remove()")
    for left in rig.root.iterdir():
        assert rig.shim(left).wait() == 3
    sweep(rig.root, set(), grace_ms=100)
    assert list(rig.root.iterdir()) == []


def test_survivors_that_were_ended_stay_so(rig: Rig) -> None:
    path = rig.prepare(("sleep", "60"))
    shim = rig.shim(path, crash="agent-spawned")
    shim.wait()
    daemon("survivors-ended", path, "kill_survivors(path.name, grace_ms=100)")
    assert decide_fate(path).fate is RunFate.UNFINISHED
    RunDirectory(path).remove()
