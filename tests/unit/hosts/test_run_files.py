"""What the files of a run directory say: started at most once, given up for good, and whose processes are whose."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from claudomator_py.domain.run import ExitRecord, RunFate, RunStatus
from claudomator_py.hosts.local.fate import decide_fate, held_lock, shim_identity
from claudomator_py.hosts.shim import main, procfs, record

ENDED: dict[str, Any] = {
    "exit_code": 0,
    "ended_by": None,
    "started_ms": 1,
    "ended_ms": 2,
    "error": None,
    "step": 0,
    "stragglers": 0,
}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """The run directory, opened as a shim has it."""
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


class ReluctantFile:
    """An exit record that can be written only after so many faults."""

    def __init__(self, *faults: int) -> None:
        self.faults = list(faults)
        self.written = False

    def write(self, ending: record.ExitFields) -> None:
        if self.faults:
            raise OSError(self.faults.pop(0), "not now")
        self.written = True


@pytest.mark.parametrize(
    ("faults", "told_to_stop", "is_written"),
    [
        ((errno.EROFS, errno.EIO, errno.ESTALE), False, True),
        ((errno.EROFS,), True, False),
        ((errno.EISDIR,), False, False),
        ((errno.EIO, errno.ENOENT), False, False),
    ],
)
def test_the_end_is_recorded_once_the_disk_is_there_again(
    directory: int, monkeypatch: pytest.MonkeyPatch, faults: tuple[int, ...], told_to_stop: bool, is_written: bool
) -> None:
    monkeypatch.setattr(main, "_RECORD_PAUSE_S", 0)
    file, told = ReluctantFile(*faults), SimpleNamespace(interrupted=told_to_stop)
    supervisor = main.Supervisor(directory, {}, cast("Any", told))
    with nullcontext() if is_written else pytest.raises(OSError, match="not now"):
        supervisor._record(cast("Any", file), record.ExitFields())
    assert file.written == is_written


def own_process() -> procfs.Process:
    process = procfs.read(os.getpid())
    assert process is not None
    return process


def names_itself(path: Path, **changes: Any) -> None:
    """The file says that this process is the shim, or the agent."""
    own = own_process()
    named = {"boot_id": procfs.boot_id(), "pid": own.pid, "start_time": own.start}
    path.write_text(json.dumps(named | changes))


def write(path: Path, *names: str) -> None:
    for name in names:
        match name:
            case record.EXIT:
                (path / name).write_text(json.dumps(ENDED))
            case record.AGENT | record.SHIM:
                names_itself(path / name)
            case _:
                (path / name).touch()


# --- what became of a run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "fate"),
    [
        ((), RunFate.REVOKED),
        ((record.SHIM,), RunFate.REVOKED),
        ((record.CANCEL,), RunFate.REVOKED),
        ((record.REVOKED,), RunFate.REVOKED),
        ((record.STARTED,), RunFate.UNFINISHED),
        ((record.STARTED, record.REVOKED), RunFate.UNFINISHED),
        ((record.STARTED, record.AGENT), RunFate.ORPHANED),
        ((record.STARTED, record.AGENT, record.REVOKED), RunFate.UNFINISHED),
        ((record.STARTED, record.AGENT, record.EXIT), RunFate.ENDED),
        ((record.EXIT,), RunFate.ENDED),
    ],
)
@pytest.mark.parametrize("awaited", [False, True])
def test_a_run_that_nobody_holds_is_what_its_files_say(
    tmp_path: Path, results: tuple[str, ...], fate: RunFate, awaited: bool
) -> None:
    write(tmp_path, *results)
    decided = decide_fate(tmp_path, awaited=lambda: awaited)
    if awaited and fate is RunFate.REVOKED and record.REVOKED not in results:
        assert decided == RunStatus(RunFate.STARTING)
        assert not (tmp_path / record.REVOKED).exists(), "its shim is on its way"
        return
    assert decided.fate is fate
    assert (decided.exit is not None) is (fate is RunFate.ENDED)
    assert (tmp_path / record.REVOKED).exists() is (fate is RunFate.REVOKED or record.REVOKED in results)
    assert decide_fate(tmp_path, awaited=lambda: awaited) == decided


@pytest.mark.parametrize(("results", "fate"), [((), RunFate.STARTING), ((record.STARTED,), RunFate.ALIVE)])
@pytest.mark.parametrize("known", [True, False], ids=["by a shim that says so", "by somebody"])
def test_nothing_is_decided_about_a_run_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: tuple[str, ...], fate: RunFate, known: bool
) -> None:
    # Whoever says who they are is not waited for: nothing here would ever end a longer wait.
    monkeypatch.setattr("claudomator_py.hosts.local.fate._BUSY_S", 3600.0 if known else 0.0)
    write(tmp_path, *results, *((record.SHIM,) if known else ()))
    with held_lock(tmp_path) as held:
        assert held
        assert decide_fate(tmp_path) == RunStatus(fate)
    assert not (tmp_path / record.REVOKED).exists()


class Clock:
    """Stands for the module ``time``: it advances by what is slept and a little with each look at it. Once the given
    number of seconds are over, the lock is released."""

    def __init__(self, release: Callable[[], object], after_s: float) -> None:
        self.now = 0.0
        self._release, self._after_s = release, after_s

    def monotonic(self) -> float:
        self.now += 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self._after_s:
            self._release()


@pytest.mark.parametrize(
    ("results", "fate", "longest_s"),
    [((), RunFate.REVOKED, 1.1), ((record.STARTED, record.EXIT), RunFate.ALIVE, 0.1)],
    ids=["who decides", "who has recorded the end"],
)
def test_another_who_holds_a_run_for_a_moment_is_waited_for_but_not_long_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: tuple[str, ...], fate: RunFate, longest_s: float
) -> None:
    write(tmp_path, *results)
    with ExitStack() as holder:
        assert holder.enter_context(held_lock(tmp_path))
        clock = Clock(holder.close, after_s=1.0)
        monkeypatch.setattr("claudomator_py.hosts.local.fate.time", clock)
        assert decide_fate(tmp_path).fate is fate
    assert clock.now < longest_s


@pytest.mark.parametrize("made_again", [False, True])
def test_a_run_whose_directory_goes_while_its_lock_is_taken_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_again: bool
) -> None:
    path = tmp_path / "run"
    path.mkdir()
    flock = fcntl.flock

    def removed_first(fd: int, how: int) -> None:
        shutil.rmtree(path)
        if made_again:
            path.mkdir()
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    assert decide_fate(path) == RunStatus(RunFate.MISSING)
    assert not (path / record.REVOKED).exists(), "another run may have the directory"


@pytest.mark.parametrize(
    "changes",
    [
        {"exit_code": "0"},
        {"exit_code": 2**53 + 1},
        {"started_ms": None},
        {"ended_ms": -(2**53) - 1},
        {"step": 2**64},
        {"ended_by": "boredom"},
        {"error": "\0"},
        {"error": "\ud800"},
    ],
)
def test_what_no_shim_writes_is_no_record_and_the_run_was_started_nevertheless(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    (tmp_path / record.EXIT).write_text(json.dumps(ENDED | changes))
    assert decide_fate(tmp_path) == RunStatus(RunFate.UNFINISHED)
    assert not (tmp_path / record.REVOKED).exists()


@pytest.mark.parametrize(
    "changes", [{}, {"exit_code": None, "error": "no such program"}, {"ended_by": "stall"}, {"ended_ms": 2**53}]
)
def test_what_a_shim_writes_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / record.EXIT).write_text(json.dumps(ENDED | changes))
    expected = {name: value for name, value in (ENDED | changes).items() if name != "stragglers"}
    assert decide_fate(tmp_path) == RunStatus(RunFate.ENDED, ExitRecord(**expected))


# --- who may start it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "given_up"),
    [
        ((), False),
        ((record.SHIM, record.AGENT), False),
        ((record.REVOKED,), True),
        ((record.CANCEL,), True),
        ((record.STARTED,), True),
        ((record.EXIT,), True),
    ],
)
def test_a_run_is_not_begun_that_was_given_up_or_begun_before(
    tmp_path: Path, directory: int, results: tuple[str, ...], given_up: bool
) -> None:
    write(tmp_path, *results)
    assert record.given_up(directory) is given_up


def test_a_link_to_nowhere_is_there(tmp_path: Path, directory: int) -> None:
    (tmp_path / record.REVOKED).symlink_to("nowhere")
    assert record.given_up(directory)


def test_only_one_has_the_lock_and_a_moment_is_waited_for_it(tmp_path: Path, directory: int) -> None:
    lock = record.take_lock(directory)
    assert lock is not None
    assert record.take_lock(directory) is None
    threading.Timer(0.05, os.close, [lock]).start()
    taken = record.take_lock(directory)
    assert taken is not None
    os.close(taken)


def test_a_run_is_started_once(tmp_path: Path, directory: int) -> None:
    record.claim_start(directory)
    with pytest.raises(FileExistsError):
        record.claim_start(directory)


def test_a_directory_that_was_removed_is_gone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    fd = os.open(tmp_path / "run", os.O_RDONLY | os.O_DIRECTORY)
    assert not record.is_gone(fd)
    (tmp_path / "run").rmdir()
    assert record.is_gone(fd)
    assert record.take_lock(fd) is None
    os.close(fd)


# --- whose process it is --------------------------------------------------------------------------------------------


def test_a_process_is_known_by_its_boot_its_pid_and_its_start(tmp_path: Path, directory: int) -> None:
    own = own_process()
    record.write_shim(directory, own)
    result = shim_identity(tmp_path)
    assert result is not None
    assert (result.pid, result.start_time) == own.identity
    for changes in ({"boot_id": "another"}, {"start_time": own.start + 1}, {"pid": 2**22}, {"pid": 0}, {"pid": "1"}):
        names_itself(tmp_path / record.SHIM, **changes)
        assert shim_identity(tmp_path) is None, changes
    write(tmp_path, record.SHIM, record.EXIT)
    assert shim_identity(tmp_path) is None, "it may have another run"


def test_an_agent_is_taken_over_only_if_it_is_that_very_process_and_alive(tmp_path: Path, directory: int) -> None:
    assert record.living_agent(directory) is None
    record.write_agent(directory, os.getpid())
    process = record.living_agent(directory)
    assert process is not None
    own = own_process()
    assert process.identity == own.identity
    for changes in ({"boot_id": "another"}, {"start_time": own.start + 1}, {"pid": 2**22}):
        names_itself(tmp_path / record.AGENT, **changes)
        assert record.living_agent(directory) is None, changes


def test_an_agent_that_has_ended_is_not_taken_over(tmp_path: Path, directory: int) -> None:
    with subprocess.Popen(["true"]) as agent:
        record.write_agent(directory, agent.pid)
        os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)
        assert record.living_agent(directory) is None, "it is a zombie"
    gone = agent.pid
    (tmp_path / record.AGENT).unlink()
    record.write_agent(directory, gone)
    assert not (tmp_path / record.AGENT).exists(), "there is nothing to say of it"


@pytest.mark.parametrize(
    ("results", "orphaned"),
    [
        ((record.STARTED, record.AGENT), True),
        ((record.AGENT,), False),
        ((record.STARTED,), False),
        ((record.STARTED, record.AGENT, record.EXIT), False),
        ((record.STARTED, record.AGENT, record.REVOKED), False),
    ],
)
def test_an_orphan_is_an_agent_of_a_run_that_was_started_and_has_no_end(
    tmp_path: Path, directory: int, results: tuple[str, ...], orphaned: bool
) -> None:
    write(tmp_path, *results)
    assert (record.orphan(directory) is not None) is orphaned


# --- reading and writing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["[1]", "", "{", "[" * 20_000 + "]" * 20_000, "{}" + " " * 65_535],
    ids=["no object", "empty", "half", "deep", "long"],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, directory: int, text: str) -> None:
    (tmp_path / record.EXIT).write_text(text)
    with pytest.raises(ValueError, match=r"."):
        record.read(record.EXIT, directory)


def test_up_to_its_longest_a_file_is_read(tmp_path: Path, directory: int) -> None:
    text = json.dumps({"a": "x"})
    (tmp_path / record.EXIT).write_text(text + " " * (64 * 1024 - len(text)))
    assert record.read(record.EXIT, directory) == {"a": "x"}


def test_nothing_else_in_its_place_is_waited_for_or_followed(tmp_path: Path, directory: int) -> None:
    os.mkfifo(tmp_path / record.AGENT)
    with pytest.raises(ValueError, match="not a file"):
        record.read(record.AGENT, directory)
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / record.EXIT).symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        record.read(record.EXIT, directory)


def test_variables_are_taken_once(tmp_path: Path, directory: int) -> None:
    (tmp_path / record.VARIABLES).write_text(json.dumps({"TOKEN": "secret"}))
    assert record.take_variables(directory)["TOKEN"] == "secret"
    with pytest.raises(FileNotFoundError):
        record.take_variables(directory)


def test_a_record_whose_space_is_reserved_says_how_the_run_ended(tmp_path: Path, directory: int) -> None:
    reserved = record.ExitFile(directory)
    assert (tmp_path / record.EXIT_TEMPORARY).stat().st_blocks > 0
    assert not (tmp_path / record.EXIT).exists()
    ending = record.ExitFields()
    ending.exit_code, ending.ended_by, ending.error = 3, "timeout", "x" * 600
    reserved.write(ending)
    assert record.read(record.EXIT, directory) == {
        "ended_by": "timeout",
        "ended_ms": 0,
        "error": "x" * 500,
        "exit_code": 3,
        "started_ms": ending.started_ms,
        "step": 0,
        "stragglers": 0,
    }
    assert not (tmp_path / record.EXIT_TEMPORARY).exists()
