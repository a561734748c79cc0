"""Directories that no row knows are removed, and what runs in them is ended first."""

from importlib import import_module
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate, Swept
from claudomator_py.hosts.local.directory import remove_tree
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import survivors, sweep
from tests.integration.hosts.rig import Rig
from tests.patience import wait_until

WAIT = ("sh", "-c", "echo ready; exec sleep 600")


def test_known_runs_are_kept(rig: Rig) -> None:
    run = rig.sh("true")
    assert sweep(rig.root, {run.path.name}, grace_ms=100) == []
    assert decide_fate(run.path).fate is RunFate.ENDED


def test_unknown_runs_are_removed(rig: Rig) -> None:
    paths = [rig.sh("true").path, rig.prepare(("true",))]
    swept = sweep(rig.root, set(), grace_ms=100)
    assert swept == [Swept(path.name, "removed") for path in sorted(paths)]
    assert list(rig.root.iterdir()) == []


def test_what_a_crash_left_half_made_or_half_removed_is_removed(rig: Rig) -> None:
    (rig.root / ".a.new").mkdir()
    (rig.root / ".b.trash" / "work").mkdir(parents=True)
    (rig.root / "file").touch()
    assert sweep(rig.root, set(), grace_ms=100) == []
    assert [path.name for path in rig.root.iterdir()] == ["file"]


def test_a_live_run_without_a_row_is_cancelled_and_removed_after_its_end(rig: Rig) -> None:
    path = rig.prepare(WAIT)
    shim = rig.shim(path)
    shim.output("ready")
    assert sweep(rig.root, set(), grace_ms=100) == [Swept(path.name, "cancelled")]
    shim.wait()
    assert decide_fate(path).fate is RunFate.ENDED
    assert sweep(rig.root, set(), grace_ms=100) == [Swept(path.name, "removed")]


def test_survivors_without_a_row_are_ended_first(rig: Rig) -> None:
    path = rig.prepare(WAIT)
    shim = rig.shim(path)
    shim.output("ready")
    shim.process.kill()
    shim.wait()
    wait_until(lambda: survivors(path.name))
    assert sweep(rig.root, set(), grace_ms=100) == [Swept(path.name, "removed")]
    assert not survivors(path.name)


def test_a_directory_that_cannot_be_removed_is_named_and_the_others_are_removed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = sorted(rig.sh("true").path for _ in range(3))
    (rig.root / ".half.trash" / "work").mkdir(parents=True)

    def forbidden(path: Path) -> None:
        if path.name in (f".{paths[1].name}.trash", ".half.trash") and path.is_dir():
            raise PermissionError(1, "Operation not permitted", str(path / "work"))
        remove_tree(path)

    for name in ("sweep", "directory"):
        monkeypatch.setattr(import_module(f"claudomator_py.hosts.local.{name}"), "remove_tree", forbidden)
    swept = {each.name: each for each in sweep(rig.root, set(), grace_ms=100)}
    assert {name: each.action for name, each in swept.items()} == {
        ".half.trash": "stuck",
        paths[0].name: "removed",
        paths[1].name: "stuck",
        paths[2].name: "removed",
    }
    assert str(swept[paths[1].name].error).endswith("work'")
    monkeypatch.undo()
    sweep(rig.root, set(), grace_ms=100)
    assert list(rig.root.iterdir()) == []
