"""What is to be there after a loss of power is flushed, and a flush that fails is told."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate, RunLimits, RunSpec
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.directory import CHECK, RunDirectory
from claudomator_py.hosts.local.fate import decide_fate, mark
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.shim import record
from claudomator_py.private_files import flush_files

ORDER = RunSpec("r", (("true",),), None, (), (), "", RunLimits(1_000, None, 100, 1_000), handoff="{}")
FILES = ("spec.json", "prompt.md", "handoff.json")
WAIT_S = 10.0


def name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


def number_opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def host(folder: Path) -> Iterator[LocalRunHost]:
    opened = LocalRunHost(folder, Launcher(), grace_ms=100)
    yield opened
    opened.close()


def test_of_run_directories_only_the_names_are_flushed_and_all_at_once(
    host: LocalRunHost, flushed: list[tuple[str, set[str]]]
) -> None:
    for run_id in ("q", "r"):
        host.prepare(replace(ORDER, run_id=run_id))
    assert flushed == []
    host.flush_prepared()
    assert flushed == [("folder", {*FILES, "work"})]
    host.flush_prepared()
    assert len(flushed) == 1
    host.prepare(ORDER, 1)
    host.flush_prepared()
    assert flushed[1:] == [("r", {*FILES, "work", CHECK})]


def test_names_that_cannot_be_flushed_are_not_taken_for_durable(
    host: LocalRunHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError("no")

    host.prepare(ORDER)
    opened = number_opened()
    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            host.flush_prepared()
    assert number_opened() == opened


@pytest.mark.parametrize("lost", [*((name,) for name in FILES), (*FILES, "work")])
def test_what_a_loss_of_power_has_left_of_a_directory_never_starts_and_is_made_again(
    folder: Path, lost: tuple[str, ...]
) -> None:
    directory = RunDirectory(folder / "r")
    directory.create(ORDER)
    whole = {path.name: path.read_bytes() for path in directory.path.iterdir() if path.is_file()}
    for name in lost:
        path = directory.path / name
        path.rmdir() if path.is_dir() else path.unlink()
    assert decide_fate(directory.path).fate is RunFate.REVOKED
    directory.create(ORDER)
    assert {path.name: path.read_bytes() for path in directory.path.iterdir() if path.is_file()} == whole


def test_all_that_a_node_reads_is_flushed_at_the_same_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunDirectory(folder / "r").create(ORDER)
    flushed = []
    all_there = threading.Barrier(len(FILES) + 1)

    def fsync(descriptor: int) -> None:
        flushed.append(name_of(descriptor))
        all_there.wait(WAIT_S)  # raises if one of them is waited for before another one has begun

    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(len(FILES) + 1) as helpers:
        flush_files(folder / "r", helpers)
    assert sorted(flushed) == sorted(("r", *FILES))


@pytest.mark.parametrize("failing", ["r", *FILES])
def test_a_file_that_cannot_be_flushed_is_not_taken_for_durable(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    RunDirectory(folder / "r").create(ORDER)

    def fsync(descriptor: int) -> None:
        if name_of(descriptor) == failing:
            raise OSError("no")

    opened = number_opened()
    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(1) as helpers, pytest.raises(OSError, match="no"):
        flush_files(folder / "r", helpers)
    assert number_opened() == opened


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
    exit_file = record.ExitFile(run)
    exit_file.write(record.ExitFields())
    assert not flushed
    exit_file.flush()
    assert [name for name, _ in flushed] == [record.EXIT, "r"]
    assert record.EXIT in flushed[0][1]


def test_a_run_is_given_up_by_a_flush_of_the_mark_and_one_of_its_name(
    run: int, folder: Path, flushed: list[tuple[str, set[str]]]
) -> None:
    assert decide_fate(folder / "r").fate is RunFate.REVOKED
    assert [name for name, _ in flushed] == [record.REVOKED, "r"]
    assert record.REVOKED in flushed[0][1]


def test_a_mark_that_cannot_be_made_is_told_unless_something_is_in_its_place(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mark(folder / "nowhere" / record.REVOKED)
    (folder / record.REVOKED).symlink_to("nowhere")
    mark(folder / record.REVOKED)


def test_no_file_is_left_open_once_a_run_has_ended(run: int, folder: Path) -> None:
    opened = number_opened()
    record.claim_start(run)
    record.write_agent(run, os.getpid())
    assert decide_fate(folder / "r").fate is RunFate.ORPHANED
    exit_file = record.ExitFile(run)
    exit_file.write(record.ExitFields())
    exit_file.flush()
    assert decide_fate(folder / "r").fate is RunFate.ENDED
    assert number_opened() == opened


@pytest.fixture
def flushed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """What was flushed, and what lay in the run directory then."""
    results = []

    def fsync(descriptor: int) -> None:
        results.append((name_of(descriptor), {path.name for path in (folder / "r").iterdir()}))

    monkeypatch.setattr(os, "fsync", fsync)
    return results
