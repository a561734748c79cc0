"""The process that shims are forked from: there before they are needed, replaced when it is lost, done without."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher
from tests.integration.hosts.launching import ENV, GATED, forked_by, is_dead, is_over, servers, start
from tests.integration.hosts.rig import Rig, alive
from tests.patience import wait_until


def test_the_fork_server_ends_with_the_launcher_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    launcher = Launcher()
    start(launcher, Path("/nowhere"))
    assert len(servers()) == 1
    launcher.close()
    assert servers() == []
    assert capfd.readouterr().err == ""


def test_a_lost_fork_server_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        killed = []
        for _ in range(4):
            path = rig.prepare(("true",))
            start(launcher, path)
            wait_until(is_over(path))
            # The next run may get the process that the lost one has offered already, and only then another is missed.
            for server in servers():
                os.kill(server, signal.SIGKILL)
                wait_until(partial(is_dead, server))
                killed.append(server)
        assert len(killed) >= 2
    finally:
        launcher.close()


def test_a_shim_is_forked_before_there_is_a_run_for_it_and_ends_with_the_fork_server(rig: Rig) -> None:
    launcher = Launcher()
    try:
        wait_until(partial(is_dead, start(launcher, rig.root / "nowhere")))
        (server,) = servers()
        (spare,) = wait_until(lambda: forked_by(server) or None)
        path = rig.prepare(("true",))
        assert start(launcher, path) == spare
        wait_until(is_over(path))
        (spare,) = wait_until(lambda: [pid for pid in forked_by(server) if pid != spare] or None)
    finally:
        launcher.close()
    wait_until(partial(is_dead, spare))


def test_a_shim_that_was_ended_before_it_had_a_run_is_replaced(rig: Rig) -> None:
    launcher = Launcher()
    try:
        wait_until(partial(is_dead, start(launcher, rig.root / "nowhere")))
        (server,) = servers()
        (spare,) = wait_until(lambda: forked_by(server) or None)
        os.kill(spare, signal.SIGKILL)
        wait_until(partial(is_dead, spare))
        path = rig.prepare(("true",))
        start(launcher, path)
        wait_until(is_over(path))
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
    start(launcher, path)
    wait_until(is_over(path))
    launcher.close()
    assert "no sockets here" in caplog.text


def test_a_crash_of_a_shim_leaves_the_fork_server_alone(rig: Rig) -> None:
    launcher = Launcher()
    try:
        crashed = rig.prepare(GATED)
        pid = start(launcher, crashed, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-spawned"})
        (server,) = servers()
        wait_until(lambda: not alive(pid))
        assert decide_fate(crashed).fate is RunFate.UNFINISHED
        path = rig.prepare(("true",))
        start(launcher, path)
        wait_until(is_over(path))
        assert servers() == [server]
    finally:
        launcher.close()
