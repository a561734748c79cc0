"""Who has a run, and who may decide about it: started at most once, dead only under the lock."""

import errno
import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from claudomator_py.domain.run import RunFate, RunSpec, RunStatus
from claudomator_py.hosts.local.directory import RunAlive, RunDirectory, RunStarted
from claudomator_py.hosts.local.fate import decide_fate, held_lock, shim_identity
from claudomator_py.hosts.shim import procfs, record
from tests.integration.hosts.rig import LIMITS, Rig, alive, ended
from tests.patience import wait_until

WAIT = ("sh", "-c", "echo ready; exec sleep 600")


def test_of_two_shims_exactly_one_starts_the_run(rig: Rig, tmp_path: Path) -> None:
    for _ in range(10):
        path = rig.prepare(("sh", "-c", "echo x >> starts; sleep .1"), cwd=tmp_path)
        shims = [rig.shim(path) for _ in range(3)]
        codes = sorted(shim.wait() for shim in shims)
        assert codes == [0, 3, 3]
        assert ended(path).exit.exit_code == 0
    assert (tmp_path / "starts").read_text() == "x\n" * 10


def test_a_run_that_was_given_up_is_never_started(rig: Rig) -> None:
    path = rig.prepare(("touch", "never"))
    assert decide_fate(path).fate is RunFate.REVOKED
    assert rig.shim(path).wait() == 3
    assert not (path / "started").exists()
    assert not (path / "work" / "never").exists()
    assert decide_fate(path).fate is RunFate.REVOKED


def test_a_shim_that_wakes_while_the_daemon_decides_respects_the_decision(rig: Rig) -> None:
    path = rig.prepare(("touch", "never"))
    with held_lock(path) as held:
        assert held
        shim = rig.shim(path)
        wait_until(lambda: _has_open(shim.process.pid, path / "lock"))
        (path / "revoked").touch()
    assert shim.wait() == 3
    assert not (path / "started").exists()


def test_a_shim_waits_out_a_daemon_that_decides_nothing(rig: Rig) -> None:
    path = rig.prepare(("true",))
    with held_lock(path):
        shim = rig.shim(path)
        wait_until(lambda: _has_open(shim.process.pid, path / "lock"))
    assert shim.wait() == 0


def _has_open(pid: int, path: Path) -> bool:
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if fd.readlink() == path:
                return True
        except FileNotFoundError:
            continue
    return False


def test_a_live_run_is_alive_until_the_lock_is_free(rig: Rig) -> None:
    path = rig.prepare(WAIT)
    shim = rig.shim(path)
    shim.output("ready")
    assert decide_fate(path).fate is RunFate.ALIVE
    identity = shim_identity(path)
    assert identity is not None
    assert identity.pid == shim.process.pid
    # A record alone is no end: the shim still holds the lock.
    (path / "exit.json").write_text("{}")
    assert decide_fate(path).fate is RunFate.ALIVE


def test_a_run_whose_shim_is_on_its_way_is_not_revoked(rig: Rig) -> None:
    path = rig.prepare(("true",))
    assert decide_fate(path, awaited=lambda: True).fate is RunFate.STARTING
    assert rig.shim(path).wait() == 0


def test_a_lock_without_a_known_holder_counts_as_a_start(rig: Rig) -> None:
    path = rig.prepare(("true",))
    with held_lock(path):
        assert decide_fate(path).fate is RunFate.STARTING
    assert decide_fate(path).fate is RunFate.REVOKED


def test_settling_at_the_same_time_gives_one_answer(rig: Rig) -> None:
    for _ in range(20):
        path = rig.prepare(("true",))
        barrier = threading.Barrier(4)

        def look(path: Path = path, barrier: threading.Barrier = barrier) -> RunFate:
            barrier.wait()
            return decide_fate(path).fate

        with ThreadPoolExecutor(4) as pool:
            fates = [future.result() for future in [pool.submit(look) for _ in range(4)]]
        assert fates == [RunFate.REVOKED] * 4


def test_a_missing_directory_is_missing(tmp_path: Path) -> None:
    assert decide_fate(tmp_path / "gone").fate is RunFate.MISSING


@pytest.mark.parametrize(
    ("names", "fate"),
    [
        (["started"], RunFate.UNFINISHED),
        (["started", "exit.json"], RunFate.ALIVE),
        (["revoked"], RunFate.REVOKED),
        ([], RunFate.REVOKED),
    ],
)
def test_what_a_network_file_system_has_cached_revokes_no_run_that_has_begun(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, names: list[str], fate: RunFate
) -> None:
    """What is not there may be an answer from a minute ago. Only a directory that is opened is listed as it is."""
    path = rig.prepare(("true",))
    end = {"exit_code": 7, "ended_by": None, "started_ms": 1, "ended_ms": 2, "error": None, "step": 0}
    for name in names:
        (path / name).write_text(json.dumps(end))
    with monkeypatch.context() as stale:
        for question in ("exists", "lexists"):
            stale.setattr(os.path, question, lambda _: False)
        stale.setattr(record, "read", _absent)
        assert decide_fate(path).fate is fate
    assert decide_fate(path).fate is (RunFate.ENDED if "exit.json" in names else fate)


def _absent(path: str, *_: object) -> NoReturn:
    raise FileNotFoundError(errno.ENOENT, "not there", path)


def test_an_unfinished_temporary_record_is_ignored(rig: Rig) -> None:
    path = rig.prepare(("true",))
    (path / "started").touch()
    (path / "exit.json.tmp").write_text(json.dumps({"exit_code": 0}))
    assert decide_fate(path).fate is RunFate.UNFINISHED


def test_a_part_of_a_record_that_a_loss_of_power_has_left_is_no_record(rig: Rig) -> None:
    path = rig.prepare(("true",))
    rig.shim(path).wait()
    whole = (path / "exit.json").read_bytes()
    assert decide_fate(path).fate is RunFate.ENDED
    for size in range(len(whole)):
        for left in (whole[:size], whole[:size].ljust(4096, b"\0"), whole[:size].ljust(len(whole), b"\0")):
            (path / "exit.json").write_bytes(left)
            assert decide_fate(path) == RunStatus(RunFate.UNFINISHED), left


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"exit_code": 0}', "\0" * 100])
def test_a_record_that_cannot_be_read_is_no_record(rig: Rig, text: str) -> None:
    path = rig.prepare(("true",))
    (path / "exit.json").write_text(text)
    assert decide_fate(path).fate is RunFate.UNFINISHED
    assert decide_fate(path).exit is None


def _write_shim(path: Path, **changes: object) -> None:
    own = procfs.read(os.getpid())
    assert own is not None
    data = {"boot_id": procfs.boot_id(), "pid": own.pid, "start_time": own.start}
    (path / "shim.json").write_text(json.dumps({**data, **changes}))


def test_a_pid_in_use_again_is_not_taken_for_the_shim(rig: Rig) -> None:
    """The pid of a shim long dead now belongs to a stranger, who must not be signalled."""
    path = rig.prepare(("true",))
    (path / "started").touch()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        _write_shim(path, pid=stranger.pid, start_time=1)
        assert shim_identity(path) is None
        RunDirectory(path).request_cancel()
        assert decide_fate(path).fate is RunFate.UNFINISHED
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_even_a_process_that_fits_is_not_signalled_unless_it_holds_the_lock(rig: Rig) -> None:
    path = rig.prepare(("true",))
    stranger = subprocess.Popen(["sleep", "60"])
    process = procfs.read(stranger.pid)
    assert process is not None
    try:
        _write_shim(path, pid=process.pid, start_time=process.start)
        RunDirectory(path).request_cancel()
        # USR1 would have ended it.
        assert stranger.poll() is None
        stranger.terminate()
        assert stranger.wait() == -signal.SIGTERM
    finally:
        stranger.kill()
        stranger.wait()


def test_a_run_from_before_a_reboot_is_unfinished(rig: Rig) -> None:
    path = rig.prepare(("true",))
    (path / "started").touch()
    _write_shim(path, boot_id="00000000-0000-0000-0000-000000000000")
    assert shim_identity(path) is None
    assert decide_fate(path).fate is RunFate.UNFINISHED


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}'])
def test_a_shim_file_that_cannot_be_read_names_nobody(rig: Rig, text: str) -> None:
    path = rig.prepare(("true",))
    (path / "shim.json").write_text(text)
    assert shim_identity(path) is None


def _order(path: Path) -> RunSpec:
    return RunSpec(path.name, (("true",),), None, (), ("PATH",), "second", LIMITS)


def test_a_directory_that_was_never_started_is_made_anew(rig: Rig) -> None:
    path = rig.prepare(("true",), stdin="first")
    (path / "work" / "left").touch()
    RunDirectory(path).create(_order(path))
    assert (path / "prompt.md").read_text() == "second"
    assert not (path / "revoked").exists()
    assert not list((path / "work").iterdir())
    assert rig.shim(path).wait() == 0


def test_a_directory_of_a_started_run_is_kept(rig: Rig) -> None:
    run = rig.sh("echo done")
    with pytest.raises(RunStarted):
        RunDirectory(run.path).create(_order(run.path))
    assert ended(run.path).stdout == "done\n"


def test_a_live_run_cannot_be_removed(rig: Rig) -> None:
    path = rig.prepare(WAIT)
    rig.shim(path).output("ready")
    with pytest.raises(RunAlive):
        RunDirectory(path).remove()
    assert decide_fate(path).fate is RunFate.ALIVE


def test_a_removed_run_is_never_started(rig: Rig) -> None:
    """The shim has the lock file open, and gets the lock only when the directory is gone."""
    path = rig.prepare(("touch", str(rig.root / "never")))
    with held_lock(path):
        shim = rig.shim(path)
        wait_until(lambda: _has_open(shim.process.pid, path / "lock"))
        os.kill(shim.process.pid, signal.SIGSTOP)
    RunDirectory(path).remove()
    os.kill(shim.process.pid, signal.SIGCONT)
    assert shim.wait() == 3
    assert list(rig.root.iterdir()) == []


def test_what_an_agent_made_unwritable_is_removed_too(rig: Rig) -> None:
    run = rig.sh("mkdir -p a/b && touch a/b/c && chmod 500 a/b && chmod 000 a")
    RunDirectory(run.path).remove()
    RunDirectory(run.path).remove()
    assert list(rig.root.iterdir()) == []
