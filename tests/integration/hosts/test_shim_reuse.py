"""A shim whose run has ended by itself takes the next; every other one leaves."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate, RunLimits
from claudomator_py.hosts.local import launcher as module
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher, Shim, ended_by_itself
from claudomator_py.hosts.shim.record import AGENT
from tests.integration.hosts.launching import ENV, GATED, is_dead, is_over, open_files, start
from tests.integration.hosts.rig import INSTALLATION, LIMITS, Rig, alive, ended, stdout
from tests.patience import wait_until


def waits_again(shim: Shim) -> bool:
    """Whether it says that it can take another run."""
    word = shim.listen()
    assert word is not None
    with word:
        return ended_by_itself(word) is True


def holds_nothing_of(path: Path, pid: int) -> bool:
    """Whether the shim has flushed the run's record, which it does after it has reported the end."""
    return not any(name.startswith(str(path)) for name in open_files(pid))


ORDER_OF_THE_END = """
import os, sys
sys.path.append(sys.argv[1])
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.shim import main
path, order = sys.argv[2], []
def fsync(descriptor):
    order.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
os.fsync = fsync
def report():
    order.append(decide_fate(path).fate.name)
main.run(path, {"PATH": os.environ["PATH"]}, main.detach(), report if sys.argv[3] == "reports" else None)
with open(f"{path}/order", "w") as file:
    file.write(" ".join(order))
"""


@pytest.mark.parametrize("reports", [True, False])
def test_an_end_is_reported_before_its_record_is_flushed(rig: Rig, reports: bool) -> None:
    """By then the lock is free, so that the daemon can read the record. Where nobody hears of it, nothing is free
    before the record is durable: on a cluster, another machine could not read it."""
    path = rig.prepare(("true",))
    command = [sys.executable, "-c", ORDER_OF_THE_END, str(INSTALLATION), str(path), "reports" if reports else ""]
    subprocess.run(command, check=True)
    order = (path / "order").read_text().split()
    assert order == [path.name, *(["ENDED"] if reports else []), "exit.json", path.name]


def test_a_shim_whose_run_has_ended_by_itself_does_the_next_and_holds_nothing_of_it(rig: Rig) -> None:
    launcher = Launcher()
    try:
        pids: list[int] = []
        before: list[str] = []
        for code in range(3):
            path = rig.prepare(("sh", "-c", f"echo $KEY; exit {code}"), env_names=["PATH", "KEY"])
            shim = launcher.start(path, {**ENV, "KEY": f"key {code}"})
            wait_until(partial(waits_again, shim))
            assert decide_fate(path).fate is RunFate.ENDED
            assert ended(path).exit.exit_code == code
            assert stdout(path) == f"key {code}\n"
            assert Path(f"/proc/{shim.pid}/cwd").readlink() == Path("/")
            wait_until(partial(holds_nothing_of, path, shim.pid))
            now = open_files(shim.pid)
            assert not pids or now == before
            pids.append(shim.pid)
            before = now
            launcher.take_back(shim)
        assert len(set(pids)) == 1
    finally:
        launcher.close()
    wait_until(partial(is_dead, pids[0]))


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
            wait_until(partial(waits_again, shim))
            launcher.take_back(shim)
            path = rig.prepare(("sh", "-c", script), limits=limits)
            assert launcher.start(path, ENV) is shim
            wait_until(partial(is_dead, shim.pid))
            shim.close()
            assert ended(path).exit.ended_by == ended_by
            assert ended_by or (ended(path).stragglers == 1 and not alive(int(stdout(path))))
    finally:
        launcher.close()


@pytest.mark.parametrize(
    ("script", "end", "limits"),
    [
        ("sleep 60 & exit", lambda *_: None, LIMITS),
        ("echo; sleep 60", lambda path, _: RunDirectory(path).request_cancel(), LIMITS),
        ("echo; sleep 60", lambda _, pid: os.kill(pid, signal.SIGTERM), LIMITS),
        # It is not missed: its time ends it.
        ("echo; sleep 60", lambda path, _: path.rename(path.with_suffix(".new")), replace(LIMITS, timeout_ms=2_000)),
        ("echo; sleep 60", lambda path, _: shutil.rmtree(path), LIMITS),
    ],
    ids=["it has left something", "cancelled", "told to end", "moved", "removed"],
)
def test_a_shim_whose_run_has_ended_otherwise_leaves(
    rig: Rig, script: str, end: Callable[[Path, int], object], limits: RunLimits
) -> None:
    launcher = Launcher()
    path = rig.prepare(("sh", "-c", script), limits=limits)
    with launcher.start(path, ENV) as shim:
        if script.startswith("echo"):
            wait_until(lambda: stdout(path) and (path / AGENT).exists())  # the last that the shim writes before the end
        end(path, shim.pid)
        wait_until(partial(is_dead, shim.pid))
        launcher.take_back(shim)
        with launcher.start(rig.root / "nowhere", ENV) as other:
            assert other.pid != shim.pid
    launcher.close()


def test_a_program_that_cannot_be_started_ends_its_shim(rig: Rig) -> None:
    launcher = Launcher()
    path = rig.prepare(("no-such-program",))
    with launcher.start(path, ENV) as shim:
        wait_until(partial(is_dead, shim.pid))
    assert ended(path).exit.error is not None
    launcher.close()


def test_an_idle_shim_that_is_killed_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        shim = launcher.start(rig.prepare(("true",)), ENV)
        wait_until(partial(waits_again, shim))
        launcher.take_back(shim)
        os.kill(shim.pid, signal.SIGKILL)
        wait_until(partial(is_dead, shim.pid))
        path = rig.prepare(("true",))
        assert start(launcher, path) != shim.pid
        wait_until(is_over(path))
    finally:
        launcher.close()


def test_few_shims_are_kept(rig: Rig) -> None:
    launcher = Launcher()
    try:
        shims = [launcher.start(rig.prepare(("true",)), ENV) for _ in range(6)]
        for shim in shims:
            wait_until(partial(waits_again, shim))
        for shim in shims:
            launcher.take_back(shim)
        for shim in shims[:2]:
            wait_until(partial(is_dead, shim.pid))
        assert [is_dead(shim.pid) for shim in shims] == [True, True, False, False, False, False]
    finally:
        launcher.close()
    for shim in shims:
        wait_until(partial(is_dead, shim.pid))


def test_of_many_runs_at_a_time_only_some_have_an_open_file_each(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CONNECTED", 2)
    launcher = Launcher()
    try:
        paths = [rig.prepare(GATED) for _ in range(3)]
        shims = [launcher.start(path, ENV) for path in paths]
        assert [shim.is_connected for shim in shims] == [True, True, False]
        for path in paths:
            (path / "work" / "go").touch()
        wait_until(partial(is_dead, shims[2].pid))
        wait_until(partial(waits_again, shims[0]))
        launcher.take_back(shims[0])
        shims[1].close()
        for _ in range(2):
            path = rig.prepare(("true",))
            shims.append(launcher.start(path, ENV))
            wait_until(is_over(path))
        assert [shim.is_connected for shim in shims] == [True, False, False, True, True]
        assert shims[3] is shims[0]
    finally:
        for shim in shims:
            shim.close()
        launcher.close()
