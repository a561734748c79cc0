"""The service's way to runs: the steps of one run, from its order to its output."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.report import OutputPiece, tail_of
from claudomator_py.domain.run import RunFate, RunSpec, RunStatus, Stream, Swept
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.directory import RunStarted
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.hosts.local.sweep import kill_survivors, survivors
from claudomator_py.ports import RunHost
from tests.integration.hosts.rig import LIMITS, PATH
from tests.patience import wait_until

ENV = {"PATH": PATH}
RUN_ID = "host-test-run"


@pytest.fixture(autouse=True, scope="module")
def _own_run_id() -> None:
    """Tests in another process end and count the processes of theirs."""
    global RUN_ID
    RUN_ID = f"host-test-run-{os.getpid()}"


class CountingLauncher(Launcher):
    """Remembers whom it gave a run."""

    def __init__(self) -> None:
        super().__init__()
        self.shims: list[Shim] = []

    def start(self, run_dir: str | Path, env: Mapping[str, str], first: Callable[[], None] | None = None) -> Shim:
        self.shims.append(super().start(run_dir, env, first))
        return self.shims[-1]


@pytest.fixture
def launcher() -> CountingLauncher:
    return CountingLauncher()


@pytest.fixture
def host(tmp_path: Path, launcher: CountingLauncher) -> Iterator[LocalRunHost]:
    yield LocalRunHost(tmp_path / "state" / "runs", launcher, grace_ms=100)
    launcher.close()
    kill_survivors(RUN_ID, grace_ms=0)


def order(script: str, **changes: Any) -> RunSpec:
    plain = RunSpec(RUN_ID, (("sh", "-c", script),), None, (), ("PATH",), "the prompt\n", LIMITS)
    return replace(plain, **changes)


def end(host: LocalRunHost, step: int = 0) -> RunStatus:
    return wait_until(lambda: status if (status := host.reconcile(RUN_ID, step)).fate is RunFate.ENDED else None)


def run(host: LocalRunHost, script: str, step: int = 0) -> RunStatus:
    host.prepare(order(script), step)
    host.spawn(RUN_ID, ENV, step)
    return end(host, step)


def all_of(host: LocalRunHost, stream: Stream, step: int = 0) -> bytes:
    return tail_of(partial(host.read, RUN_ID, stream, step=step), 1 << 40)


def test_it_is_what_the_service_asks_for(host: LocalRunHost) -> None:
    service: RunHost = host
    assert service.reconcile(RUN_ID) == RunStatus(RunFate.MISSING)


def test_a_run_from_order_to_output(host: LocalRunHost) -> None:
    status = run(host, "cat; echo out; echo err >&2; exit 2")
    assert status.exit is not None
    assert status.exit.exit_code == 2
    assert all_of(host, "stdout") == b"the prompt\nout\n"
    assert all_of(host, "stderr") == b"err\n"
    assert host.read(RUN_ID, "stdout", 4, 6) == OutputPiece(4, b"prompt", 15)
    assert host.read(RUN_ID, "stdout", 1000, 6) == OutputPiece(1000, b"", 15)
    assert host.path(RUN_ID).parent.stat().st_mode & 0o777 == 0o700


def test_a_run_works_in_the_scratch_folder_of_the_one_it_goes_on_from(host: LocalRunHost) -> None:
    earlier = replace(order("true"), run_id="earlier-run")
    host.prepare(earlier)
    (host.path("earlier-run") / "work" / "note").write_text("remember\n")
    for step in (0, 1):
        host.prepare(order("cat note", scratch_of="earlier-run"), step)
        host.spawn(RUN_ID, ENV, step)
        end(host, step)
        assert all_of(host, "stdout", step) == b"remember\n"
    assert host.scratch("earlier-run") is not None
    assert host.scratch(RUN_ID) is None
    assert host.scratch("never-seen") is None


def test_a_run_just_spawned_is_never_revoked_by_a_look(host: LocalRunHost) -> None:
    host.prepare(order("echo once"))
    host.spawn(RUN_ID, ENV)
    fates = [host.reconcile(RUN_ID).fate for _ in range(200)]
    assert RunFate.REVOKED not in fates
    end(host)
    assert all_of(host, "stdout") == b"once\n"


def test_a_run_whose_shim_was_lost_from_sight_is_revoked_by_a_look(
    host: LocalRunHost, launcher: CountingLauncher
) -> None:
    host.prepare(order("echo never"))
    assert host.reconcile(RUN_ID).fate is RunFate.REVOKED
    host.spawn(RUN_ID, ENV)
    wait_until(lambda: not launcher.shims[0].is_alive)
    assert host.reconcile(RUN_ID).fate is RunFate.REVOKED
    assert all_of(host, "stdout") == b""


def test_a_run_is_prepared_again_only_if_it_never_started(host: LocalRunHost) -> None:
    host.prepare(order("echo first"))
    host.prepare(order("echo second"))
    run(host, "echo third")
    assert all_of(host, "stdout") == b"third\n"
    with pytest.raises(RunStarted):
        host.prepare(order("echo fourth"))


def test_checks_follow_in_the_runs_scratch_folder(host: LocalRunHost) -> None:
    run(host, "echo made > result")
    for step in (1, 2):
        status = run(host, f"cat result; exit {step}", step)
        assert status.exit is not None
        assert status.exit.exit_code == step
        assert all_of(host, "stdout", step) == b"made\n"
    assert host.reconcile(RUN_ID).exit is not None
    assert all_of(host, "stdout") == b""


def test_cancel_reaches_the_step_it_names(host: LocalRunHost) -> None:
    run(host, "true")
    host.prepare(order("echo ready; exec sleep 600"), 1)
    host.spawn(RUN_ID, ENV, 1)
    wait_until(lambda: all_of(host, "stdout", 1))
    host.cancel(RUN_ID, 1)
    host.cancel(RUN_ID, 1)
    status = end(host, 1)
    assert status.exit is not None
    assert status.exit.ended_by == "cancel"


def test_survivors_of_a_lost_shim_are_ended(host: LocalRunHost) -> None:
    host.prepare(order("echo ready; exec sleep 600"))
    host.spawn(RUN_ID, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-spawned"})
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.UNFINISHED)
    assert host.end_survivors(RUN_ID)
    assert not survivors(RUN_ID)


def test_an_agent_that_outlives_its_shim_is_taken_over_once(
    host: LocalRunHost, launcher: CountingLauncher, tmp_path: Path
) -> None:
    host.prepare(order(f"echo ready; until [ -e {tmp_path / 'go'} ]; do sleep 0.02; done; echo done"))
    host.spawn(RUN_ID, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-recorded"})
    # While the first is on its way out, the run is orphaned already, and nobody has taken it over yet.
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.ORPHANED and len(launcher.shims) == 2)

    assert host.reconcile(RUN_ID).fate in (RunFate.ORPHANED, RunFate.STARTING, RunFate.ALIVE), "there is one already"
    assert len(launcher.shims) == 2
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.ALIVE)

    (tmp_path / "go").touch()
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.UNFINISHED)
    assert all_of(host, "stdout") == b"ready\ndone\n"


def test_an_agent_whose_shims_are_killed_again_and_again_is_given_up(
    host: LocalRunHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.prepare(order("echo ready; exec sleep 600"))
    host.spawn(RUN_ID, {**ENV, "CLAUDOMATOR_CRASH_SHIM": "agent-recorded"})
    monkeypatch.setenv("CLAUDOMATOR_CRASH_SHIM", "shim-renamed")
    wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.UNFINISHED)
    assert host.end_survivors(RUN_ID)
    assert host.reconcile(RUN_ID).fate is RunFate.UNFINISHED
    assert not survivors(RUN_ID)


def test_output_is_read_across_the_hole_of_its_cap(host: LocalRunHost) -> None:
    """None of the zeros in between is read."""
    script = "i = 0\nwhile i < 400_000: print('line', i); i += 1"
    limits = replace(LIMITS, output_bytes=1 << 20)
    host.prepare(order("", commands=((sys.executable, "-I", "-S", "-c", script),), limits=limits))
    host.spawn(RUN_ID, ENV)
    end(host)
    data = all_of(host, "stdout")
    assert len(data) <= 1 << 20
    lines = [line for line in data.split(b"\n") if line]
    numbers = [int(line.split()[1]) for line in lines if line.startswith(b"line ")]
    assert numbers[0] == 0
    assert numbers[-1] == 399_999
    assert len(lines) - len(numbers) <= 2, "the lines at both ends of the hole"
    # Only the lines at the hole may be cut short.
    assert sum(later <= earlier for earlier, later in itertools.pairwise(numbers)) <= 1


def test_a_sweep_removes_what_no_row_knows(host: LocalRunHost) -> None:
    run(host, "true")
    assert host.sweep(frozenset({RUN_ID})) == []
    assert host.sweep(frozenset()) == [Swept(RUN_ID, "removed")]
    assert host.reconcile(RUN_ID).fate is RunFate.MISSING
