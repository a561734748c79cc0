"""Somebody removes files of a run, or all of it, while it works."""

import os
import shutil
from pathlib import Path

from claudomator_py.domain.report import OutputPiece
from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.local.sweep import survivors
from claudomator_py.hosts.shim.main import BROKEN
from tests.integration.hosts.rig import Rig, ended, stdout, written
from tests.patience import wait_until

TALK = "echo one; echo aside >&2; until [ -e go ]; do sleep 0.02; done; echo two"


def test_output_that_is_removed_is_back_at_the_end(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", TALK))
    shim = rig.shim(path)
    shim.output("one")
    wait_until(lambda: "aside" in written(path / "stderr.log"))

    (path / "stdout.jsonl").unlink()
    (path / "stderr.log").unlink()
    (path / "work" / "go").touch()
    shim.wait()

    assert ended(path).exit.exit_code == 0
    assert stdout(path) == "one\ntwo\n"
    assert (path / "stderr.log").read_text() == "aside\n"
    assert (path / "stdout.jsonl").stat().st_mode & 0o777 == 0o600


def test_output_that_is_removed_is_no_trouble_to_who_reads_along(rig: Rig, tmp_path: Path) -> None:
    path = rig.prepare(("sh", "-c", TALK))
    shim = rig.shim(path)
    shim.output("one")
    host = LocalRunHost(rig.root, Launcher(), grace_ms=0)

    (path / "stdout.jsonl").unlink()

    assert host.read(path.name, "stdout", 0, 100) == OutputPiece(0, b"", 0)
    (path / "work" / "go").touch()
    shim.wait()
    assert host.read(path.name, "stdout", 0, 100).data == b"one\ntwo\n"
    assert tmp_path.exists()


def test_a_run_whose_directory_is_removed_is_ended_by_its_shim(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", "setsid sh -c 'trap \"\" TERM; echo up; sleep 600' & wait"))
    shim = rig.shim(path)
    shim.output("up")
    assert survivors(path.name)

    shutil.rmtree(path)

    assert shim.wait() == BROKEN
    assert survivors(path.name) == []
    assert decide_fate(path).fate is RunFate.MISSING
    assert not os.path.lexists(path), "nothing is made in its place"


def test_a_run_whose_directory_is_moved_goes_on(rig: Rig, tmp_path: Path) -> None:
    path = rig.prepare(("sh", "-c", "echo one; until [ -e go ]; do sleep 0.02; done; echo two"))
    shim = rig.shim(path)
    shim.output("one")

    moved = tmp_path / "moved"
    path.rename(moved)
    (moved / "work" / "go").touch()
    shim.wait()

    assert ended(moved).exit.exit_code == 0
    assert stdout(moved) == "one\ntwo\n"
