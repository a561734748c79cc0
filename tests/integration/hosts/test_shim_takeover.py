"""An agent whose shim was killed: another shim takes it over, holds it to its limits, and starts nothing."""

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.run import RunFate, RunStatus
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import survivors
from tests.integration.hosts.rig import LIMITS, Rig, Shim, alive
from tests.patience import wait_until

GATED = 'echo started >> starts; echo "ready $$"; until [ -e go ]; do sleep 0.02; done; echo done'
BUSY_GATED = 'echo "ready $$"; until [ -e go ]; do :; done; echo done'


def orphaned(rig: Rig, cwd: Path, script: str = GATED, **limits: Any) -> tuple[Path, int]:
    """A run whose shim was killed, and the pid of its agent."""
    path = rig.prepare(("sh", "-c", script), cwd=cwd, limits=replace(LIMITS, **limits))
    shim = rig.shim(path)
    pid = int(shim.output("ready").split()[1])
    wait_until((path / "agent.json").exists)
    kill(shim)
    assert decide_fate(path) == RunStatus(RunFate.ORPHANED)
    return path, pid


def kill(shim: Shim) -> None:
    shim.signal(signal.SIGKILL)
    shim.wait()


def taken_over(rig: Rig, path: Path, **fields: Any) -> Shim:
    """The shim that has it now."""
    shim = rig.shim(path, **fields)
    wait_until(lambda: decide_fate(path).fate is RunFate.ALIVE)
    return shim


def ended_by(path: Path) -> Sequence[object]:
    status = decide_fate(path)
    assert status.fate is RunFate.ENDED
    assert status.exit is not None
    return status.exit.ended_by, status.exit.exit_code


def test_it_is_waited_for_and_its_exit_code_is_not_made_up(rig: Rig, tmp_path: Path) -> None:
    path, pid = orphaned(rig, tmp_path)
    shim = taken_over(rig, path)
    assert alive(pid)
    (tmp_path / "go").touch()
    assert shim.wait() == 0
    assert (path / "stdout.jsonl").read_text() == f"ready {pid}\ndone\n"
    assert (tmp_path / "starts").read_text() == "started\n"
    assert decide_fate(path) == RunStatus(RunFate.UNFINISHED)
    assert rig.shim(path).wait() == 3, "there is nothing to take over any more"


def test_it_can_be_cancelled(rig: Rig, tmp_path: Path) -> None:
    path, pid = orphaned(rig, tmp_path)
    shim = taken_over(rig, path)
    RunDirectory(path).request_cancel()
    shim.wait()
    assert ended_by(path) == ("cancel", None)
    assert not alive(pid)


def test_it_is_held_to_what_is_left_of_its_timeout(rig: Rig, tmp_path: Path) -> None:
    path, pid = orphaned(rig, tmp_path, timeout_ms=1_000)
    rig.shim(path).wait()
    assert ended_by(path) == ("timeout", None)
    assert not alive(pid)
    status = decide_fate(path).exit
    assert status is not None
    # When a process began is known to a tick of the kernel, and this one may have had to wait for a processor.
    assert 900 <= status.ended_ms - status.started_ms < 15_000, "from the start of the agent"


def test_it_is_ended_if_it_hangs(rig: Rig, tmp_path: Path) -> None:
    path, pid = orphaned(rig, tmp_path, "echo ready $$; exec sleep 600", stall_ms=400)
    rig.shim(path).wait()
    assert ended_by(path) == ("stall", None)
    assert not alive(pid)


def test_it_does_not_hang_while_it_computes(rig: Rig, tmp_path: Path) -> None:
    path, _ = orphaned(rig, tmp_path, BUSY_GATED, stall_ms=1_500, timeout_ms=4_000)
    rig.shim(path).wait()
    assert ended_by(path) == ("timeout", None)


def test_its_output_is_kept_within_the_cap(rig: Rig, tmp_path: Path) -> None:
    script = f"{GATED}; head -c 3000000 /dev/zero | tr '\\0' x; echo end"
    path, _ = orphaned(rig, tmp_path, script, output_bytes=1 << 20)
    shim = taken_over(rig, path)
    (tmp_path / "go").touch()
    shim.wait()
    assert (path / "stdout.jsonl").stat().st_blocks * 512 <= (1 << 20) + 8192
    assert (path / "stdout.jsonl").read_bytes().endswith(b"xend\n")


def test_what_it_leaves_is_ended(rig: Rig, tmp_path: Path) -> None:
    path, _ = orphaned(rig, tmp_path, f"setsid sleep 60 & {GATED}", grace_ms=50)
    shim = taken_over(rig, path)
    (tmp_path / "go").touch()
    shim.wait()
    assert not survivors(path.name)


@pytest.mark.parametrize("point", ["lock-taken", "shim-renamed", "term-sent"])
def test_the_next_shim_may_be_killed_as_well(rig: Rig, tmp_path: Path, point: str) -> None:
    path, pid = orphaned(rig, tmp_path, "trap '' TERM; echo ready $$; while :; do sleep 0.05; done", timeout_ms=500)
    assert rig.shim(path, crash=point).wait() == -9
    assert alive(pid)
    assert decide_fate(path).fate is RunFate.ORPHANED
    rig.shim(path).wait()
    assert ended_by(path) == ("timeout", None)


def test_one_that_has_ended_while_nobody_looked_leaves_what_it_left_to_the_daemon(rig: Rig, tmp_path: Path) -> None:
    path, _ = orphaned(rig, tmp_path, f"setsid sleep 60 & {GATED}")
    shim = taken_over(rig, path, crash="orphan-ended")
    (tmp_path / "go").touch()
    assert shim.wait() == -9
    assert decide_fate(path).fate is RunFate.UNFINISHED
    assert len(survivors(path.name)) == 1


@pytest.mark.parametrize(
    "changes",
    [{"start_time": 1}, {"boot_id": "00000000-0000-0000-0000-000000000000"}, {"pid": "?"}, {"pid": 2**22 + 1}],
)
def test_a_process_that_only_has_its_pid_is_left_alone(rig: Rig, tmp_path: Path, changes: dict[str, object]) -> None:
    path, pid = orphaned(rig, tmp_path)
    record = path / "agent.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **changes}))
    assert decide_fate(path).fate is RunFate.UNFINISHED
    assert rig.shim(path).wait() == 3
    assert alive(pid)


def test_a_run_that_was_given_up_is_not_taken_over(rig: Rig, tmp_path: Path) -> None:
    path, pid = orphaned(rig, tmp_path)
    (path / "revoked").touch()
    assert rig.shim(path).wait() == 3
    assert alive(pid)
