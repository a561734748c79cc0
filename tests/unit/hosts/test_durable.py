"""What is to be there after a loss of power: all of it is flushed, at once, and a flush that fails is told."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunLimits, RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.shim import record

ORDER = RunSpec("r", (("true",),), None, (), (), "", RunLimits(1_000, None, 100, 1_000), handoff="{}")
FLUSHED = ("folder", "r", "spec.json", "prompt.md", "handoff.json")
WAIT_S = 10.0


def name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


def number_opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_all_of_a_run_directory_is_flushed_at_the_same_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = []
    all_there = threading.Barrier(len(FLUSHED))

    def fsync(descriptor: int) -> None:
        flushed.append(name_of(descriptor))
        all_there.wait(WAIT_S)  # raises if one of them is waited for before another one has begun

    monkeypatch.setattr(os, "fsync", fsync)
    RunDirectory(folder / "r").create(ORDER)
    assert sorted(flushed) == sorted(FLUSHED)


@pytest.mark.parametrize("failing", FLUSHED)
def test_a_directory_of_which_a_part_cannot_be_flushed_is_not_taken_for_durable(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fsync(descriptor: int) -> None:
        if name_of(descriptor) == failing:
            raise OSError("no")

    opened = number_opened()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="no"):
            RunDirectory(folder / "r").create(ORDER)
    assert number_opened() == opened
    # It is tried again, under the same name.
    RunDirectory(folder / "r").create(ORDER)


@pytest.mark.parametrize("lost", ["spec.json", "prompt.md", "handoff.json"])
def test_what_a_loss_of_power_has_left_of_a_directory_is_made_again(folder: Path, lost: str) -> None:
    directory = RunDirectory(folder / "r")
    directory.create(ORDER)
    whole = {path.name: path.read_bytes() for path in directory.path.iterdir() if path.is_file()}
    (directory.path / lost).unlink()
    directory.create(ORDER)
    assert {path.name: path.read_bytes() for path in directory.path.iterdir() if path.is_file()} == whole


@pytest.fixture
def run(folder: Path) -> Iterator[int]:
    RunDirectory(folder / "r").create(ORDER)
    opened = os.open(folder / "r", os.O_RDONLY | os.O_DIRECTORY)
    yield opened
    os.close(opened)


def test_a_run_is_marked_as_started_by_one_flush(run: int, flushed: list[tuple[str, set[str]]]) -> None:
    record.claim_start(run)
    assert [name for name, _ in flushed] == ["r"]
    assert record.STARTED in flushed[0][1]


def test_the_record_of_an_end_has_its_name_before_the_first_of_its_two_flushes(
    run: int, flushed: list[tuple[str, set[str]]]
) -> None:
    record.ExitFile(run).commit(record.ExitFields())
    assert [name for name, _ in flushed] == [record.EXIT, "r"]
    assert record.EXIT in flushed[0][1]


@pytest.fixture
def flushed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """What was flushed, and what lay in the run directory then."""
    results = []

    def fsync(descriptor: int) -> None:
        results.append((name_of(descriptor), {path.name for path in (folder / "r").iterdir()}))

    monkeypatch.setattr(os, "fsync", fsync)
    return results


def test_a_process_that_was_forked_flushes_with_threads_of_its_own(folder: Path) -> None:
    RunDirectory(folder / "before").create(ORDER)
    child = os.fork()
    if child == 0:
        signal.alarm(int(WAIT_S))  # it waits for threads that it has not
        try:
            RunDirectory(folder / "after").create(ORDER)
        finally:
            os._exit(0 if (folder / "after").is_dir() else 1)
    assert os.waitpid(child, 0)[1] == 0
