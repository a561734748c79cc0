"""Very many files, most of them bad: they hold up neither a good one nor a stop, and can be asked for in parts."""

import errno
import logging
import os
import threading
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema import taskfile
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.sources.inbox import refusals
from claudomator_py.sources.inbox.files import Folder, InboxEntry
from claudomator_py.sources.inbox.ledger import FileReading
from claudomator_py.sources.inbox.refusals import MAX_PROBLEMS, Refusals
from tests.integration.inbox.conftest import MakeInbox
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until

MANY = 3_000


def flood(folder: Path, count: int) -> None:
    """Drop so many files that are no tasks."""
    for number in range(count):
        (folder / f"bad{number:06}.yaml").write_text("name: [")


@pytest.fixture
def slow_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a file takes 5 ms to parse."""
    parse = taskfile.parse_task_file

    def slowly(data: bytes, filename: str) -> ParsedFile[TaskSpec]:
        threading.Event().wait(0.005)
        return parse(data, filename)

    monkeypatch.setattr(taskfile, "parse_task_file", slowly)


@pytest.mark.usefixtures("slow_parser")
def test_what_comes_later_does_not_wait_for_a_flood_of_bad_files(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    flood(folder, MANY)
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox.refusals)
    for number in range(3):
        drop(folder, f"good{number}.yaml", task(f"good{number}"))
        wait_until(partial(intake.documents.__contains__, (f"{folder}/good{number}.yaml", f"good{number}")))
    assert len(inbox.refusals) < MANY
    status = inbox.status()[str(folder)]
    assert status.unread > 0
    assert status.refused + status.unread <= MANY


@pytest.mark.usefixtures("slow_parser")
def test_a_flood_that_comes_while_it_runs_holds_up_nothing_either(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox.status()[str(folder)].available)
    flood(folder, MANY)
    drop(folder, "good.yaml", task("good"))
    wait_until(lambda: intake.runs, deadline_s=600)
    assert len(inbox.refusals) < MANY


@pytest.mark.usefixtures("slow_parser")
def test_a_stop_does_not_wait_for_what_is_still_to_be_read(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    flood(folder, MANY)
    first = make_inbox(intake)
    first.start()
    wait_until(lambda: first.refusals)
    first.stop()
    assert first._thread is not None
    assert not first._thread.is_alive()
    assert len(first.refusals) < MANY
    assert len(list(folder.glob("*.error.txt"))) == len(first.refusals)


def test_a_slow_store_is_given_fewer_files_at_once(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(600):
        (folder / f"t{number:03}.yaml").write_text(task(f"t{number}"))
    sizes: list[int] = []
    take = intake.take

    def slowly(readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        sizes.append(len(readings))
        if len(readings) > 64:
            threading.Event().wait(1.1)
        return take(readings)

    monkeypatch.setattr(intake, "take", slowly)
    inbox.scan_once()
    assert len(intake.runs) == sum(sizes) == 600
    assert all(after <= before // 2 for before, after in pairwise(sizes) if before > 64)


def test_very_many_deletions_are_told_in_parts(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [folder / f"t{number}.yaml" for number in range(600)]
    for number, path in enumerate(paths):
        path.write_text(task(f"t{number}"))
    inbox.scan_once()
    for path in paths:
        path.unlink()
    sizes: list[int] = []
    gone = intake.gone

    def count(paths: Sequence[str]) -> None:
        sizes.append(len(paths))
        gone(paths)

    monkeypatch.setattr(intake, "gone", count)
    wait_until(lambda: inbox.scan_once() is None or not intake.known)
    assert sum(sizes) == 600
    assert max(sizes) <= 256


def test_the_refused_are_told_in_parts_the_last_one_first() -> None:
    refusals = Refusals()
    for number in range(10):
        refusals.put(f"/in/{number}.yaml", [Problem(message="bad")])
    refusals.put("/in/3.yaml", [Problem(message="worse")])
    first = refusals.page(limit=4)
    assert [refused.path for refused in first] == [f"/in/{number}.yaml" for number in (3, 9, 8, 7)]
    rest = refusals.page(before=first[-1].number)
    assert [refused.path for refused in rest] == [f"/in/{number}.yaml" for number in (6, 5, 4, 2, 1, 0)]
    refusals.drop("/in/9.yaml")
    assert len(refusals) == 9


def test_of_very_many_problems_of_one_file_the_first_are_kept(inbox: InboxInSteps, folder: Path) -> None:
    drop(folder, "a.yaml", "".join(f"---\ninstructions: x\nname: a\nx{number}: 1\n" for number in range(200)))
    inbox.scan_once()
    [problems] = problems_of(inbox).values()
    assert len(problems) == MAX_PROBLEMS + 1
    assert "more problems" in problems[-1].message


def test_a_name_too_long_for_an_error_file_is_refused_and_retaken(
    inbox: InboxInSteps,
    intake: MemoryIntake,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refusals._NOT_WRITTEN, "_next_s", 0.0)
    paths = [folder / f"{letter * 250}.yaml" for letter in "abc"]
    for path in paths:
        path.write_text("name: [")
    with caplog.at_level(logging.WARNING, "claudomator.inbox"):
        inbox.scan_once()
        inbox.scan_once()
    assert problems_of(inbox).keys() == {str(path) for path in paths}
    assert len(caplog.records) == 1, "one message for all of them"
    assert "File name too long" in caplog.text
    for path in paths:
        path.write_text(task(path.name[0]))
    inbox.scan_once()
    assert len(intake.runs) == 3
    assert not problems_of(inbox)
    assert len(list(folder.iterdir())) == 3, "nothing half written is left"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_where_no_error_file_can_be_written_nothing_else_fails(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    flood(folder, 20)
    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", fail)
        inbox.scan_once()
        assert len(inbox.refusals) == 20
        assert len(list(folder.iterdir())) == 20
        (folder / "good.yaml").write_text(task("good"))
        inbox.scan_once()
    assert len(intake.runs) == 1


@pytest.mark.parametrize("count", [pytest.param(50_000, marks=pytest.mark.slow)])
def test_fifty_thousand(make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, count: int) -> None:
    flood(folder, count)
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox.refusals)
    drop(folder, "good.yaml", task("good"))
    wait_until(lambda: intake.runs)
    assert len(inbox.refusals) < count
    wait_until(lambda: len(inbox.refusals) == count, deadline_s=600)
    inbox.stop()


def test_a_rescan_costs_little_for_files_at_rest(
    inbox: InboxInSteps, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        os.utime(drop(folder, f"{number}.yaml", task(f"t{number}")), (1, 1))
    inbox.scan_once()
    entries: list[str] = []
    examine = Folder._entry

    def examined(folder: Folder, name: str, status: os.stat_result) -> InboxEntry:
        entries.append(name)
        return examine(folder, name, status)

    monkeypatch.setattr(Folder, "_entry", examined)
    os.utime(folder / "1.yaml", (2, 2))
    assert inbox.scan_once().accepted == (str(folder / "1.yaml"),)
    assert set(entries) == {"1.yaml"}
