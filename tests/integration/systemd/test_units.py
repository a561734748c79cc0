"""The units as systemd itself judges them. No manager runs here: what it would do with them is not tried."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fakes.command import Command, QuickCommand
from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[3]
KINDS = ("user", "system")

# What a service needs, whatever it says itself.
TARGETS = ("sysinit", "basic", "shutdown", "network", "network-online")

# Versions of systemd differ a little in what they count; the guide's figures are those of 252.
OTHER_VERSIONS = 0.2

analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
control = pytest.mark.skipif(shutil.which("systemctl") is None, reason="systemctl is not installed")


def written(tmp_path: Path, kind: str, *drop_ins: str) -> Path:
    """The unit as ``init`` writes it below a root."""
    options = [word for name in drop_ins for word in ("--drop-in", name)]
    done = QuickCommand(tmp_path)("init", "--systemd", kind, "--root", "root", *options)
    assert done.returncode == 0, done.stderr
    return tmp_path / "root/etc/systemd" / kind / "claudomator.service"


def systemd(tmp_path: Path, kind: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """systemd-analyze, as the manager of that kind sees things; of the units of this machine, which may have faults of
    their own, it sees none."""
    (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
    (tmp_path / "units").mkdir(exist_ok=True)
    for target in TARGETS:
        (tmp_path / "units" / f"{target}.target").write_text("[Unit]\nDescription=A stand-in\n")
    environ: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "SYSTEMD_UNIT_PATH": f"{tmp_path / 'root/etc/systemd' / kind}:{tmp_path / 'units'}",
    }
    return subprocess.run(
        ["systemd-analyze", f"--{kind}", *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def within(tmp_path: Path, unit: Path, most: float) -> None:
    """systemd finds the service, from 0 to 10, at most so exposed. It knows services of the system's manager only, and
    takes a user's for one of root."""
    threshold = f"--threshold={round((most + OTHER_VERSIONS) * 10)}"
    done = systemd(tmp_path, "system", "security", "--offline=true", "--no-pager", threshold, str(unit))
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}{done.stderr}"


@analyze
@pytest.mark.parametrize(
    "which", ["user", "user drain", "user drain confined", "system", "system drain", "system drain strict"]
)
def test_systemd_understands_every_line(tmp_path: Path, which: str) -> None:
    """An unknown key or a bad value is only warned about; so nothing at all may be said."""
    kind, *drop_ins = which.split()
    unit = written(tmp_path, kind, *drop_ins)
    done = systemd(tmp_path, kind, "verify", "--man=no", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@analyze
def test_a_line_that_it_does_not_understand_would_be_found(tmp_path: Path) -> None:
    unit = written(tmp_path, "system")
    unit.write_text(unit.read_text() + "\n[Service]\nWatchdogSecs=1\n")
    assert "WatchdogSecs" in systemd(tmp_path, "system", "verify", "--man=no", str(unit)).stderr


@analyze
@pytest.mark.parametrize(
    ("which", "most"), [("user", 7.5), ("user confined", 3.9), ("system", 3.2), ("system strict", 1.4)]
)
def test_no_unit_is_more_exposed_than_it_was(tmp_path: Path, which: str, most: float) -> None:
    """As shipped: these are the figures of the guide."""
    kind, *drop_ins = which.split()
    within(tmp_path, written(tmp_path, kind, *drop_ins), most)


@analyze
def test_a_unit_that_is_more_exposed_would_be_found(tmp_path: Path) -> None:
    unit = written(tmp_path, "system")
    unit.write_text(unit.read_text().replace("CapabilityBoundingSet=\n", ""))
    with pytest.raises(AssertionError, match="exposure level"):
        within(tmp_path, unit, 3.2)


@control
@pytest.mark.parametrize(
    ("kind", "scope", "target"), [("system", "--system", "multi-user"), ("user", "--global", "default")]
)
def test_it_can_be_enabled_below_a_root(tmp_path: Path, kind: str, scope: str, target: str) -> None:
    unit = written(tmp_path, kind)
    done = subprocess.run(
        ["systemctl", f"--root={tmp_path / 'root'}", scope, "enable", "claudomator"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    link = unit.parent / f"{target}.target.wants" / "claudomator.service"
    assert link.is_symlink()
    assert link.readlink() == Path(f"/etc/systemd/{kind}/claudomator.service")


def test_runs_outlive_a_stop_and_one_drop_in_changes_that(tmp_path: Path) -> None:
    """What the rest of the program relies on, and no checker of units knows."""
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        lines = written(tmp_path / kind, kind).read_text().splitlines()
        for line in (
            "Type=notify",
            "KillMode=process",
            "OOMPolicy=continue",
            "PrivateTmp=no",
            "ExecReload=/bin/kill -HUP $MAINPID",
        ):
            assert line in lines, f"{kind}: {line}"
        assert any(line.startswith("WatchdogSec=") for line in lines)
        assert not any(line.startswith("MemoryDenyWriteExecute=") for line in lines)
    drain = written(tmp_path, "system", "drain").with_name("claudomator.service.d") / "drain.conf"
    assert {"KillMode=mixed", "Environment=CLAUDOMATOR_ON_STOP=drain"} <= set(drain.read_text().splitlines())


def test_a_wheel_carries_the_units_and_the_cards(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    cards = {path.name for path in (tmp_path / "installed/claudomator_py/specialists").iterdir()}
    assert cards == {path.name for path in (REPOSITORY / "claudomator_py/specialists").glob("*.yaml")} != set()
    command = Command(tmp_path, {"PYTHONPATH": str(tmp_path / "installed")})
    done = command("init", "--systemd", "user", "--root", "root", "--drop-in", "drain")
    assert done.returncode == 0, done.stderr
    of_wheel = (tmp_path / "root/etc/systemd/user/claudomator.service").read_text()
    (tmp_path / "other").mkdir()
    checkout = written(tmp_path / "other", "user").read_text()
    same = [line for line in checkout.splitlines() if "--config" not in line]
    assert [line for line in of_wheel.splitlines() if "--config" not in line] == same
