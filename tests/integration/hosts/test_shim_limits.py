"""The limits that the shim enforces by itself, with no daemon there."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from tests.integration.hosts.rig import COMPUTES, LIMITS, Rig, alive, ended, stdout, written
from tests.patience import wait_until

FOREVER = "while :; do sleep 1; done"
MIB = 1 << 20


def test_a_run_that_takes_too_long_is_ended(rig: Rig) -> None:
    run = rig.sh(FOREVER, limits=replace(LIMITS, timeout_ms=200))
    assert (run.exit.exit_code, run.exit.ended_by) == (-signal.SIGTERM, "timeout")


def test_the_timeout_holds_for_all_commands_together(rig: Rig) -> None:
    run = rig.run(("sleep", "0.1"), ("sleep", "30"), limits=replace(LIMITS, timeout_ms=400))
    assert (run.exit.ended_by, run.exit.step) == ("timeout", 1)


def test_what_the_agent_makes_of_term_is_its_exit_code(rig: Rig) -> None:
    run = rig.sh(f"trap 'exit 143' TERM; {FOREVER}", limits=replace(LIMITS, timeout_ms=200))
    assert (run.exit.exit_code, run.exit.ended_by) == (143, "timeout")


def test_a_silent_run_without_work_has_stalled(rig: Rig) -> None:
    run = rig.sh("echo begun; exec sleep 30", limits=replace(LIMITS, stall_ms=300))
    assert (run.exit.ended_by, run.stdout) == ("stall", "begun\n")


def test_an_idle_runtime_that_wakes_now_and_then_has_stalled(rig: Rig) -> None:
    waking = "import time\nwhile True: time.sleep(0.05)"
    run = rig.run((sys.executable, "-I", "-S", "-c", waking), limits=replace(LIMITS, stall_ms=600))
    assert run.exit.ended_by == "stall"


def test_a_silent_run_that_computes_has_not_stalled(rig: Rig) -> None:
    run = rig.run((sys.executable, "-I", "-S", "-c", COMPUTES), limits=replace(LIMITS, stall_ms=900))
    assert (run.exit.exit_code, run.exit.ended_by) == (0, None)


def test_work_of_a_process_far_below_counts(rig: Rig) -> None:
    run = rig.run(
        ("setsid", "-w", "sh", "-c", f"{sys.executable} -I -S -c '{COMPUTES}'; :"), limits=replace(LIMITS, stall_ms=900)
    )
    assert (run.exit.exit_code, run.exit.ended_by) == (0, None)


def test_a_run_that_writes_now_and_then_has_not_stalled(rig: Rig) -> None:
    script = "for i in 1 2 3 4 5 6; do echo $i >&2; sleep .2; done"
    run = rig.sh(script, limits=replace(LIMITS, stall_ms=900))
    assert (run.exit.exit_code, run.exit.ended_by) == (0, None)


def test_cancelling_a_running_run_ends_it(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", f"echo ready; {FOREVER}"))
    shim = rig.shim(path)
    shim.output("ready")
    RunDirectory(path).request_cancel()
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (-signal.SIGTERM, "cancel")


def test_cancelling_twice_is_cancelling_once(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", f"trap '' TERM; echo ready; {FOREVER}"), limits=replace(LIMITS, grace_ms=600))
    shim = rig.shim(path)
    shim.output("ready")
    RunDirectory(path).request_cancel()
    RunDirectory(path).request_cancel()
    shim.wait()
    RunDirectory(path).request_cancel()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (-signal.SIGKILL, "cancel")


def test_a_run_cancelled_before_its_start_never_starts(rig: Rig) -> None:
    path = rig.prepare(("echo", "never"))
    RunDirectory(path).request_cancel()
    rig.shim(path).wait()
    assert decide_fate(path).fate is RunFate.REVOKED
    assert not (path / "started").exists()


@pytest.mark.parametrize("repetition", range(5))
def test_a_run_cancelled_while_it_starts_never_starts_or_is_ended(rig: Rig, repetition: int) -> None:
    path = rig.prepare(("sh", "-c", FOREVER))
    shim = rig.shim(path)
    seen = ("lock", "shim.json", "started", "started", "exit.json.tmp")[repetition]
    wait_until(lambda: (path / seen).exists())
    RunDirectory(path).request_cancel()
    shim.wait()
    status = decide_fate(path)
    if status.fate is not RunFate.REVOKED:
        assert status.exit is not None
        assert status.exit.ended_by == "cancel"
        assert status.exit.exit_code in (None, -signal.SIGTERM)


def test_cancelling_a_run_that_has_ended_changes_nothing(rig: Rig) -> None:
    run = rig.sh("exit 4")
    RunDirectory(run.path).request_cancel()
    assert ended(run.path).exit == run.exit


def test_a_run_cancelled_between_two_commands_does_not_begin_the_second(rig: Rig, tmp_path: Path) -> None:
    path = rig.prepare(
        ("sh", "-c", 'touch "$RUN/cancel"'), ("touch", str(tmp_path / "second")), env_names=["PATH", "RUN"]
    )
    rig.shim(path, env={"RUN": str(path)}).wait()
    assert ended(path).exit.ended_by == "cancel"
    assert not (tmp_path / "second").exists()


def test_term_to_the_shim_ends_the_run_as_interrupted(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", f"echo $$; {FOREVER}"))
    shim = rig.shim(path)
    pid = int(shim.output("\n"))
    shim.signal(signal.SIGTERM)
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (-signal.SIGTERM, "interrupt")
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE])
def test_other_signals_to_the_shim_do_nothing(rig: Rig, tmp_path: Path, number: signal.Signals) -> None:
    path = rig.prepare(("sh", "-c", f"echo ready; while test ! -e {tmp_path}/go; do sleep .01; done"))
    shim = rig.shim(path)
    shim.output("ready")
    shim.signal(number)
    (tmp_path / "go").touch()
    shim.wait()
    assert (ended(path).exit.exit_code, ended(path).exit.ended_by) == (0, None)


def flood(rig: Rig, size: int, stream: int = 1) -> None:
    cap = MIB
    script = f"(echo first; yes 'a line of the flood' | head -c {size}; echo; echo last) >&{stream}"
    run = rig.sh(script, limits=replace(LIMITS, timeout_ms=None, output_bytes=cap))
    assert (run.exit.exit_code, run.exit.ended_by) == (0, None)
    path = run.path / ("stdout.jsonl" if stream == 1 else "stderr.log")
    status = path.stat()
    assert status.st_size == len("first\n") + size + len("\nlast\n")
    assert status.st_blocks * 512 <= cap
    with path.open("rb") as file:
        assert file.read(6) == b"first\n"
        file.seek(-6, os.SEEK_END)
        assert file.read() == b"\nlast\n"


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_of_output_keeps_its_beginning_and_end(rig: Rig, stream: int) -> None:
    flood(rig, 300 * MIB, stream)


@pytest.mark.slow
def test_a_flood_of_two_gigabytes(rig: Rig) -> None:
    flood(rig, 2048 * MIB)


def test_a_stream_at_rest_takes_no_more_than_its_cap(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", f"head -c 50M /dev/zero | tr '\\0' x; echo ready >&2; {FOREVER}"))
    rig.shim(path)
    wait_until(lambda: written(path / "stderr.log"))
    wait_until(lambda: (path / "stdout.jsonl").stat().st_blocks * 512 <= MIB)


def test_a_runaway_stream_is_ended(rig: Rig) -> None:
    script = "import os, time; os.ftruncate(1, 65 << 30); time.sleep(30)"
    run = rig.run((sys.executable, "-I", "-S", "-c", script))
    assert run.exit.ended_by == "output_limit"


def test_an_agent_that_empties_its_own_output_is_left_alone(rig: Rig) -> None:
    script = "import os; os.write(1, b'x' * 5000); os.ftruncate(1, 0); os.write(1, b'end')"
    run = rig.run((sys.executable, "-I", "-S", "-c", script))
    assert (run.exit.exit_code, run.exit.ended_by) == (0, None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    mount = tmp_path / "disk"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(mount)], check=False, capture_output=True
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode()}")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


@pytest.mark.needs_root
def test_a_full_disk_ends_the_run_and_is_recorded(small_disk: Path) -> None:
    rig = Rig(small_disk)
    try:
        run = rig.sh(f"yes | head -c 4M; echo ready >&2; {FOREVER}", limits=replace(LIMITS, output_bytes=100 * MIB))
        assert run.exit.ended_by == "disk_full"
    finally:
        rig.clean()


@pytest.mark.needs_root
def test_an_agent_that_dies_of_a_full_disk_is_recorded_so(small_disk: Path) -> None:
    rig = Rig(small_disk)
    try:
        run = rig.sh("cat /dev/zero", limits=replace(LIMITS, output_bytes=100 * MIB))
        assert run.exit.ended_by == "disk_full"
    finally:
        rig.clean()


@pytest.mark.needs_root
def test_nothing_is_started_where_no_end_could_be_recorded(small_disk: Path) -> None:
    rig = Rig(small_disk)
    try:
        path = rig.prepare(("echo", "never"))
        with (small_disk / "filler").open("wb", buffering=0) as file:
            while os.statvfs(small_disk).f_bfree:
                file.write(bytes(4096))
        rig.shim(path).wait()
        assert decide_fate(path).fate is RunFate.REVOKED
        assert stdout(path) == ""
    finally:
        rig.clean()
