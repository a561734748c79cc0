"""A shim that wakes late: what it finds in the run directory says whether the run may still be started."""

import subprocess
import sys
from pathlib import Path

import pytest

from claudomator_py.hosts.shim import record
from claudomator_py.hosts.shim.main import LEFT
from tests.patience import PATIENCE_S

INSTALLATION = Path(__file__).parents[3]
WAKE = "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.hosts.shim.main import main; main()"


def wake(directory: Path) -> int:
    """Run a shim on that directory, and wait for it; its exit status."""
    command = [sys.executable, "-I", "-S", "-c", WAKE, str(INSTALLATION), str(directory)]
    return subprocess.run(command, env={}, check=False, timeout=PATIENCE_S).returncode


@pytest.mark.parametrize("result", [record.REVOKED, record.CANCEL, record.STARTED, record.EXIT])
def test_a_shim_that_wakes_late_leaves_and_writes_nothing(tmp_path: Path, result: str) -> None:
    (tmp_path / result).touch()
    assert wake(tmp_path) == LEFT
    assert {path.name for path in tmp_path.iterdir()} == {record.LOCK, result}


def test_a_shim_that_finds_nothing_begins(tmp_path: Path) -> None:
    assert wake(tmp_path) != LEFT
    assert (tmp_path / record.SHIM).exists(), "though it cannot get far without a spec"
