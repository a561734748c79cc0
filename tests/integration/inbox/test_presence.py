"""Deleted, renamed, or the whole inbox gone: only what is really deleted is gone."""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.daemon.health import card_folder_checks, inbox_checks
from claudomator_py.schema.settings import Inbox as InboxSettings
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import ConfiguredInbox
from claudomator_py.sources.inbox.ledger import FileStamp
from claudomator_py.sources.inbox.refusals import Refusals
from tests.integration.inbox.conftest import MakeInbox, MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import PATIENCE_S, wait_until


def test_a_deleted_file_is_gone_once(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    drop(folder, "b.yaml", task("b"))
    inbox.scan_once()
    path.unlink()
    assert inbox.scan_once().waiting == (str(path),)
    wait_until(lambda: inbox.scan_once().gone)
    inbox.scan_once()
    assert intake.gone_calls == [str(path)]
    drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    assert intake.known.keys() == {str(path), str(folder / "b.yaml")}
    assert len(intake.runs) == 2, "unchanged content never runs again"


class SlowIntake(MemoryIntake):
    """Does not say to those who look at files what it knows before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    was_planned = False

    def known_files(self) -> Mapping[str, FileStamp]:
        if threading.current_thread() is not threading.main_thread():  # which follows the folders
            self.asked.set()
            assert self.may_answer.wait(PATIENCE_S)
        return super().known_files()


@pytest.mark.parametrize("there", [True, False])
def test_before_the_first_look_nobody_knows_which_files_are_gone(folder: Path, there: bool) -> None:
    """Schedules wait for it: the file of one may have been deleted while no daemon ran."""
    settings = InboxSettings(paths=(str(folder),))
    if not there:
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to("nowhere")
    intake = SlowIntake()
    inbox = ConfiguredInbox(intake, InboxGuard, lambda: None, Refusals())
    try:
        inbox.follow(settings)
        assert intake.asked.wait(PATIENCE_S)
        assert not inbox.is_surveyed()
        assert inbox_checks(inbox.status())[0].detail == f"{folder}: it was not looked at yet"
        assert all(check.ok for check in card_folder_checks(inbox.status())), "nothing waits for those"
        intake.may_answer.set()
        wait_until(inbox.is_surveyed)
        assert [check.ok for check in inbox_checks(inbox.status())] == [there]
    finally:
        intake.may_answer.set()
        inbox.close()


def test_a_file_deleted_while_nothing_watched_is_gone_at_the_start(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    make_steps(intake).scan_once()
    path.unlink()
    assert make_steps(intake).scan_once().gone == (str(path),)
    assert intake.gone_calls == [str(path)]


@pytest.mark.parametrize("down", [False, True])
def test_a_renamed_file_is_known_as_the_one_it_was(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path, *, down: bool
) -> None:
    inbox = make_steps(intake)
    old = drop(folder, "old.yaml", task("same-name"))
    inbox.scan_once()
    new = old.rename(folder / "new.yaml")
    inbox = make_steps(intake) if down else inbox
    report = inbox.scan_once()
    assert (report.gone, report.accepted, report.refused) == ((), (str(new),), ())
    assert intake.renames == [(str(old), str(new))]
    assert intake.runs == [(str(old), "same-name")]
    inbox.scan_once()
    new.unlink()
    wait_until(lambda: inbox.scan_once().gone)
    assert intake.gone_calls == [str(new)]


def test_a_file_that_is_renamed_while_it_waits_or_is_refused_is_still_known(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "old.yaml", task("a"))
    inbox.scan_once()
    poisoned = path.rename(folder / "poison.yaml")
    intake.poisonous = "poison"
    inbox.scan_once()
    assert problems_of(inbox).keys() == {str(poisoned)}
    last = poisoned.rename(folder / "last.yaml")
    inbox.scan_once()
    assert intake.renames == [(str(path), str(last))]
    assert not problems_of(inbox)
    assert not intake.gone_calls
    assert len(intake.runs) == 1


def test_a_renamed_file_that_is_then_deleted_is_gone(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "old.yaml", task("a"))
    inbox.scan_once()
    poisoned = path.rename(folder / "poison.yaml")
    intake.poisonous = "poison"
    inbox.scan_once()
    poisoned.unlink()
    wait_until(lambda: inbox.scan_once().gone)
    assert intake.gone_calls == [str(path)]


def test_a_copy_is_no_rename_and_a_rename_with_an_edit_is_none(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "old.yaml", task("a"))
    inbox.scan_once()
    shutil.copy2(path, folder / "copy.yaml")
    path.unlink()
    wait_until(lambda: len(intake.runs) == 2 or inbox.scan_once() is None)
    copy = (folder / "copy.yaml").rename(folder / "edited.yaml")
    copy.write_text(task("a", "Do it well."))
    wait_until(lambda: len(intake.runs) == 3 or inbox.scan_once() is None)
    assert not intake.renames


def test_files_of_other_inboxes_are_left_alone(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    drop(other, "a.yaml", task("a"))
    make_steps(intake, folder, other).scan_once()
    make_steps(intake, folder).scan_once()
    assert not intake.gone_calls


def test_an_inbox_that_vanishes_and_returns_has_lost_nothing(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    for name in "abc":
        drop(folder, f"{name}.yaml", task(name))
    wait_until(lambda: len(intake.runs) == 3)

    away = folder.rename(tmp_path / "away")
    wait_until(lambda: not inbox.status()[str(folder)].available)
    problem = inbox.status()[str(folder)].problem
    assert problem is not None
    assert "does not exist" in problem.message
    assert not folder.exists(), "a mount point must not be made up"
    drop(away, "d.yaml", task("d"))

    away.rename(folder)
    wait_until(lambda: inbox.status()[str(folder)].available)
    wait_until(lambda: len(intake.runs) == 4)
    drop(folder, "e.yaml", task("e"))
    wait_until(lambda: len(intake.runs) == 5)
    assert not intake.gone_calls


@pytest.mark.parametrize(
    ("broken", "text", "remedy"),
    [
        (lambda folder: folder.write_text(""), "it is not a folder", "put a folder there"),
        (os.mkfifo, "it is not a folder", "put a folder there"),
        (lambda folder: folder.symlink_to(folder), "links lead in a circle", "correct or delete the links"),
        (lambda folder: folder.symlink_to(folder.parent / "nowhere"), "does not exist", "create it"),
    ],
)
def test_what_stands_in_its_place_is_named_and_the_inbox_comes_back(
    make_inbox: MakeInbox,
    intake: MemoryIntake,
    folder: Path,
    tmp_path: Path,
    broken: Callable[[Path], object],
    text: str,
    remedy: str,
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    drop(folder, "a.yaml", task("a"))
    wait_until(lambda: intake.runs)
    away = folder.rename(tmp_path / "away")
    broken(folder)
    wait_until(lambda: text in str(inbox.status()[str(folder)].problem))
    assert remedy in str(inbox.status()[str(folder)].problem)
    folder.unlink()
    away.rename(folder)
    wait_until(lambda: inbox.status()[str(folder)].available)
    assert not intake.gone_calls


def test_an_inbox_that_is_deleted_and_made_again_is_watched_again(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    path = drop(folder, "a.yaml", task("a"))
    wait_until(lambda: intake.runs)
    shutil.rmtree(folder)
    wait_until(lambda: not inbox.status()[str(folder)].available)
    assert not intake.gone_calls
    folder.mkdir()
    wait_until(lambda: inbox.status()[str(folder)].available)
    wait_until(lambda: intake.gone_calls == [str(path)])
    drop(folder, "b.yaml", task("b"))
    wait_until(lambda: len(intake.runs) == 2)


def test_an_inbox_replaced_in_a_moment_is_watched_again(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    """The new folder may even have the inode of the old one."""
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox.status()[str(folder)].available)
    for name in "abcdefgh":
        shutil.rmtree(folder)
        folder.mkdir()
        path = str(drop(folder, f"{name}.yaml", task(name)))
        wait_until(partial(intake.known.__contains__, path))
        path = str(drop(folder, f"{name}-again.yaml", task(f"{name}-again")))
        wait_until(partial(intake.known.__contains__, path))


def test_a_file_in_the_place_of_the_inbox_is_said(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    assert inbox.scan_once().unavailable == (str(folder),)
    problem = inbox.status()[str(folder)].problem
    assert problem is not None
    assert "not a folder" in problem.message
    assert problem.remedy
    assert not intake.gone_calls


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    here = tmp_path.stat().st_dev
    for folder in map(Path, ("/dev/shm", "/var/tmp")):
        if folder.is_dir() and folder.stat().st_dev != here:
            with tempfile.TemporaryDirectory(dir=folder) as path:
                yield Path(path)
            return
    pytest.skip("needs a second file system")


def test_what_lay_on_a_file_system_that_is_not_mounted_now_is_not_gone(
    make_steps: MakeSteps, intake: MemoryIntake, tmp_path: Path, folder: Path, other_file_system: Path
) -> None:
    """As after an unmounting: the same path leads to an empty folder of another device."""
    place = tmp_path / "inbox"
    place.symlink_to(other_file_system)
    drop(other_file_system, "a.yaml", task("a"))
    inbox = make_steps(intake, place)
    inbox.scan_once()
    place.unlink()
    place.symlink_to(folder)
    drop(folder, "b.yaml", task("b"))
    wait_until(lambda: inbox.scan_once().waiting == ())
    place.unlink()
    place.symlink_to(other_file_system)
    wait_until(lambda: inbox.scan_once().waiting == ())
    assert str(place / "a.yaml") in intake.known
    assert str(place / "a.yaml") not in intake.gone_calls
    assert [name for _, name in intake.runs] == ["a", "b"]


def test_a_missing_inbox_is_made_at_the_start_where_its_parent_exists(
    make_steps: MakeSteps, intake: MemoryIntake, tmp_path: Path
) -> None:
    beside, below = tmp_path / "inbox", tmp_path / "no" / "parent"
    report = make_steps(intake, beside, below).scan_once()
    assert beside.is_dir()
    assert beside.stat().st_mode & 0o077 == 0
    assert not below.parent.exists()
    assert report.unavailable == (str(below),)
