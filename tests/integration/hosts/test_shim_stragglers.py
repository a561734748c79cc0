"""What the daemon started, it can stop: no process of a run outlives it, however it hides."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.sweep import kill_survivors, survivors
from tests.integration.hosts.rig import LIMITS, Rig, alive, ended, stdout
from tests.patience import wait_until

DAEMON = """
import os, signal, sys, time
def daemon(stubborn):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    os.closerange(0, 3)
    time.sleep(60)
    os._exit(0)
for stubborn in (False, True, True):
    daemon(stubborn)
while os.path.getsize('/proc/self/fd/1') < 3 or open(os.readlink('/proc/self/fd/1')).read().count('\\n') < 3:
    time.sleep(0.01)
"""


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", script)


def test_an_agent_that_ignores_term_is_killed(rig: Rig) -> None:
    run = rig.sh("trap '' TERM; while :; do sleep 1; done", limits=replace(LIMITS, timeout_ms=500, grace_ms=100))
    assert (run.exit.exit_code, run.exit.ended_by) == (-signal.SIGKILL, "timeout")


def test_daemons_that_an_agent_leaves_are_ended(rig: Rig) -> None:
    run = rig.run(python(DAEMON), limits=replace(LIMITS, grace_ms=100))
    pids = [int(pid) for pid in run.stdout.split()]
    assert len(pids) == 3
    assert not any(alive(pid) for pid in pids)
    assert (run.exit.exit_code, run.exit.ended_by, run.stragglers) == (0, None, 3)


def test_daemons_are_ended_with_an_agent_that_is_stopped(rig: Rig) -> None:
    path = rig.prepare(python(DAEMON + "time.sleep(60)"), limits=replace(LIMITS, grace_ms=100))
    shim = rig.shim(path)
    wait_until(lambda: stdout(path).count("\n") == 3)
    pids = [int(pid) for pid in stdout(path).split()]
    assert all(alive(pid) for pid in pids)
    (path / "cancel").touch()
    shim.wait()
    assert not any(alive(pid) for pid in pids)


def test_a_tool_in_a_session_of_its_own_gets_its_grace(rig: Rig, tmp_path: Path) -> None:
    tool = f"trap 'echo tidied > {tmp_path}/tool; exit' TERM; echo ready; while :; do sleep .01; done"
    path = rig.prepare(("setsid", "-w", "sh", "-c", tool), limits=replace(LIMITS, grace_ms=10_000))
    shim = rig.shim(path)
    shim.output("ready")
    (path / "cancel").touch()
    shim.wait()
    assert (tmp_path / "tool").read_text() == "tidied\n"


def test_a_suspended_agent_is_ended(rig: Rig) -> None:
    run = rig.sh("kill -STOP $$", limits=replace(LIMITS, timeout_ms=200, grace_ms=10_000))
    assert (run.exit.exit_code, run.exit.ended_by) == (-signal.SIGTERM, "timeout")


def test_a_straggler_that_emptied_its_environment_is_ended(rig: Rig) -> None:
    run = rig.sh("setsid env -i /bin/sleep 60 & echo $!; sleep .1", limits=replace(LIMITS, grace_ms=100))
    assert run.stragglers == 1
    assert not alive(int(run.stdout))


def test_a_process_that_somebody_else_started_for_the_run_is_ended(rig: Rig) -> None:
    """As a server does that was there before: it is below that, not below the shim, but carries the run's id."""
    path = rig.prepare(("sh", "-c", f"while test ! -e {rig.root}/go; do sleep .01; done"))
    shim = rig.shim(path)
    wait_until(lambda: (path / "started").exists())
    with subprocess.Popen(["sleep", "60"], env={"CLAUDOMATOR_RUN": path.name}) as process:
        wait_until(lambda: process.pid in [survivor.pid for survivor in survivors(path.name)])
        (rig.root / "go").touch()
        shim.wait()
        assert process.wait() == -signal.SIGTERM
    assert ended(path).stragglers == 1


@pytest.mark.parametrize("leave", ["", "os.setsid()"], ids=["same-session", "new-sessions"])
def test_processes_that_hop_from_fork_to_fork_are_caught(rig: Rig, leave: str) -> None:
    run = rig.run(python(hop(rig, leave)), limits=replace(LIMITS, timeout_ms=10_000, grace_ms=50))
    assert run.exit.exit_code == 0
    assert_stands_still(rig)


def test_hopping_survivors_of_a_killed_shim_are_caught(rig: Rig) -> None:
    path = rig.prepare(python(hop(rig, "")))
    shim = rig.shim(path)
    wait_until(lambda: trace(rig).exists())
    shim.process.kill()
    shim.wait()
    assert kill_survivors(path.name, grace_ms=50).left == ()
    assert_stands_still(rig)


def trace(rig: Rig) -> Path:
    return rig.root / "hops"


def hop(rig: Rig, leave: str) -> str:
    """Forks and leaves, over and over, for 20 seconds at most; each incarnation touches the trace."""
    return (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "end = time.monotonic() + 20\n"
        "while time.monotonic() < end:\n"
        f" os.close(os.open({str(trace(rig))!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))\n"
        " if os.fork(): os._exit(0)\n"
        f" {leave}\n"
    )


def assert_stands_still(rig: Rig) -> None:
    """Nothing touches the trace any more: a look at /proc would miss who does."""
    trace(rig).unlink(missing_ok=True)
    for _ in range(100):
        assert not trace(rig).exists()
        time.sleep(0.003)


def test_many_processes_are_all_ended(rig: Rig) -> None:
    script = "for i in $(seq 60); do setsid sh -c 'trap \"\" TERM; sleep 60' & done; echo ready; wait"
    run = rig.sh(script, limits=replace(LIMITS, timeout_ms=800, grace_ms=50))
    assert run.exit.ended_by == "timeout"
    assert not survivors(run.path.name)


@pytest.mark.parametrize("grace_ms", [0, 100])
def test_survivors_of_a_killed_shim_are_found_and_ended(rig: Rig, grace_ms: int) -> None:
    path = rig.prepare(python(DAEMON + "time.sleep(60)"))
    shim = rig.shim(path)
    wait_until(lambda: stdout(path).count("\n") == 3)
    wait_until((path / "agent.json").exists)
    shim.process.kill()
    shim.wait()
    assert decide_fate(path).fate is RunFate.ORPHANED
    wait_until(lambda: len(survivors(path.name)) == 4)  # once those between them have gone
    report = kill_survivors(path.name, grace_ms=grace_ms)
    assert (report.ended, report.left) == (4, ())
    assert not survivors(path.name)
    assert decide_fate(path).fate is RunFate.UNFINISHED
    assert decide_fate(path).exit is None


def test_a_child_that_emptied_its_environment_is_found_below_one_that_did_not(rig: Rig) -> None:
    path = rig.prepare(("sh", "-c", "env -i /bin/sleep 60 & echo $!; wait"))
    shim = rig.shim(path)
    pid = int(shim.output("\n"))
    shim.process.kill()
    shim.wait()
    kill_survivors(path.name, grace_ms=100)
    assert not alive(pid)


def test_survivors_of_another_run_are_left_alone(rig: Rig) -> None:
    first, second = (rig.prepare(("sh", "-c", "echo $$; exec sleep 600")) for _ in range(2))
    shims = [rig.shim(first), rig.shim(second)]
    pids = [int(shim.output("\n")) for shim in shims]
    shims[0].process.kill()
    shims[0].wait()
    kill_survivors(first.name, grace_ms=100)
    assert [alive(pid) for pid in pids] == [False, True]
    (second / "cancel").touch()
    shims[1].wait()
    assert ended(second).exit.ended_by == "cancel"


def test_without_survivors_there_is_nothing_to_end(rig: Rig) -> None:
    run = rig.sh("exit 0")
    report = kill_survivors(run.path.name, grace_ms=100)
    assert (report.ended, report.left) == (0, ())
