"""The shim killed at every line that matters: nothing lives on, nothing starts twice, no exit status is made up."""

from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate, RunStatus
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import kill_survivors, survivors
from claudomator_py.hosts.shim.crash import POINTS as ALL_POINTS
from tests.integration.hosts.rig import LIMITS, Rig

# It passes every crash point: it ignores TERM, leaves a daemon and has to be killed for its timeout.
AGENT = """
echo started >> starts
trap '' TERM
setsid sh -c 'trap "" TERM; sleep 60' &
sleep 60
"""
SHORT = replace(LIMITS, timeout_ms=300, grace_ms=50)
# The others are passed by a shim that takes over an agent from another one: see test_shim_takeover.py.
POINTS = tuple(point for point in ALL_POINTS if not point.startswith("orphan-"))
STARTS_AFTER = POINTS.index("agent-spawned")
MARKED_FROM = POINTS.index("started-made")
RECORDED_FROM = POINTS.index("exit-renamed")


def crashed(rig: Rig, point: str, cwd: Path) -> Path:
    path = rig.prepare(("sh", "-c", AGENT), cwd=cwd, limits=SHORT)
    assert rig.shim(path, crash=point).wait() == -9, "the crash point was not passed"
    return path


def starts(cwd: Path) -> int:
    return len((cwd / "starts").read_text().splitlines()) if (cwd / "starts").exists() else 0


def check_ending(status: RunStatus) -> None:
    """Either there is the true record, or none. Of an agent that was taken over nobody learns the exit code."""
    if status.fate is RunFate.ENDED:
        assert status.exit is not None
        assert status.exit.exit_code in (-9, None)
        assert status.exit.ended_by == "timeout"
    else:
        assert status.fate is RunFate.UNFINISHED
        assert status.exit is None


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_shim_is_settled_for_good(rig: Rig, tmp_path: Path, point: str) -> None:
    path = crashed(rig, point, tmp_path)

    run_status = decide_fate(path)
    assert run_status.fate is not RunFate.ORPHANED or point in ("agent-recorded", "term-sent", "kill-sent")
    assert not kill_survivors(path.name, grace_ms=50).left
    assert not survivors(path.name)

    status = decide_fate(path)
    assert status == run_status or run_status.fate is RunFate.ORPHANED
    if POINTS.index(point) < MARKED_FROM:
        assert status.fate is RunFate.REVOKED
    else:
        check_ending(status)
        assert (status.fate is RunFate.ENDED) == (POINTS.index(point) >= RECORDED_FROM)
    # A shim that wakes late changes nothing, and neither does asking again.
    rig.shim(path).wait()
    assert decide_fate(path) == status
    assert starts(tmp_path) <= (1 if POINTS.index(point) >= STARTS_AFTER else 0)


@pytest.mark.parametrize("point", POINTS)
def test_a_second_shim_after_a_killed_one_never_starts_it_twice(rig: Rig, tmp_path: Path, point: str) -> None:
    path = crashed(rig, point, tmp_path)

    rig.shim(path).wait()

    check_ending(decide_fate(path))
    if POINTS.index(point) < MARKED_FROM:
        assert decide_fate(path).fate is RunFate.ENDED
        assert starts(tmp_path) == 1
    kill_survivors(path.name, grace_ms=50)
    assert starts(tmp_path) <= 1


def test_a_name_that_is_no_crash_point_is_refused(rig: Rig) -> None:
    path = rig.prepare(("true",))
    assert rig.shim(path, crash="no-such-point").wait() == 1
    assert decide_fate(path).fate is RunFate.REVOKED


def test_a_fault_of_the_shim_itself_ends_the_run_without_a_status(rig: Rig) -> None:
    """The record cannot be put in place: a folder stands there."""
    path = rig.prepare(("sh", "-c", 'mkdir "$RUN/exit.json"; setsid sleep 60 & exit 0'), env_names=["PATH", "RUN"])
    assert rig.shim(path, env={"RUN": str(path)}).wait() == 4
    assert decide_fate(path) == RunStatus(RunFate.UNFINISHED)
    assert not survivors(path.name)
    assert "Traceback" in (path / "shim.log").read_text()
