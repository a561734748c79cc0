"""Inboxes and files that somebody else could have written are not obeyed, until that has changed."""

import os
from pathlib import Path

import pytest

from claudomator_py.schema.settings import Inbox as Trusting
from claudomator_py.sources.inbox import InboxWatcher
from tests.integration.inbox.conftest import MakeInbox, MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until

NOBODY = 65534


def names(intake: MemoryIntake) -> list[str]:
    return [name for _, name in intake.runs]


def refused(inbox: InboxWatcher | InboxInSteps) -> dict[str, str]:
    return {Path(path).name: str(problems[0]) for path, problems in problems_of(inbox).items()}


def unread(inbox: InboxInSteps, folder: Path) -> str:
    return str(inbox.status()[str(folder)].problem)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_an_inbox_that_others_can_write_to_is_not_read(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, mode: int
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    folder.chmod(mode)
    report = inbox.scan_once()
    assert (report.unavailable, intake.runs) == ((str(folder),), [])
    assert unread(inbox, folder) == f"every user can write to it (mode {mode:04o}); run `chmod go-w {folder}`"
    assert list(folder.iterdir()) == [path]
    folder.chmod(0o755)
    inbox.scan_once()
    assert names(intake) == ["a"]


def test_an_inbox_that_others_can_exchange_is_not_read_and_none_is_made(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path
) -> None:
    drop(folder, "a.yaml", task("a"))
    missing = folder.parent / "missing"
    folder.parent.chmod(0o777)
    inbox = make_steps(intake, folder, missing)
    inbox.scan_once()
    assert unread(inbox, folder).startswith(f"{folder.parent}, on the path to it: every user can write to it")
    assert intake.runs == []
    assert not missing.exists()


def test_one_that_is_exposed_keeps_no_other_from_being_read(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    good = tmp_path / "good"
    good.mkdir()
    drop(good, "a.yaml", task("a"))
    drop(folder, "b.yaml", task("b"))
    folder.chmod(0o777)
    inbox = make_inbox(intake, folder, good)
    inbox.start()
    wait_until(lambda: names(intake) == ["a"])
    folder.chmod(0o700)
    wait_until(lambda: "b" in names(intake))


def test_nothing_is_gone_while_an_inbox_is_exposed(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    folder.chmod(0o777)
    path.unlink()
    inbox.scan_once()
    assert intake.gone_calls == []


def test_a_file_that_others_can_write_to_is_refused_until_they_cannot(
    watching: InboxWatcher, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    path.chmod(0o666)
    watching.start()
    wait_until(lambda: (folder / "a.yaml.error.txt").exists())
    assert refused(watching) == {"a.yaml": f"every user can write to it (mode 0666); run `chmod go-w {path}`"}
    assert intake.runs == []
    path.chmod(0o644)
    wait_until(lambda: names(intake) == ["a"])
    wait_until(lambda: not (folder / "a.yaml.error.txt").exists())
    assert refused(watching) == {}
    path.chmod(0o666)
    wait_until(lambda: "a.yaml" in refused(watching))
    path.chmod(0o644)
    wait_until(lambda: not refused(watching))
    assert names(intake) == ["a"]


def test_a_file_at_rest_is_refused_by_the_rescan_after_others_can_write_to_it(
    inbox: InboxInSteps, folder: Path
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    os.utime(path, (1, 1))
    inbox.scan_once()
    path.chmod(0o666)
    inbox.scan_once()
    assert "every user can write to it" in refused(inbox)["a.yaml"]


@pytest.mark.needs_root
def test_a_file_of_somebody_else_is_refused(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    os.chown(path, NOBODY, -1)
    inbox.scan_once()
    assert "belongs to" in refused(inbox)["a.yaml"]
    assert "inbox.trusted_users" in refused(inbox)["a.yaml"]
    assert path.exists()
    assert intake.runs == []


@pytest.mark.needs_root
def test_files_of_trusted_users_are_taken(make_steps: MakeSteps, intake: MemoryIntake, folder: Path) -> None:
    os.chown(drop(folder, "a.yaml", task("a")), NOBODY, -1)
    os.chown(folder, NOBODY, -1)
    inbox = make_steps(intake, trusting=Trusting(trusted_users=(str(NOBODY),)))
    inbox.scan_once()
    assert names(intake) == ["a"]


@pytest.mark.needs_root
def test_links_in_the_inbox_lead_only_to_files_that_are_trusted(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    sub = folder / "sub"
    sub.mkdir(mode=0o755)
    drop(sub, "real.yaml", task("a"))
    (folder / "a.yaml").symlink_to("sub/real.yaml")
    sub.chmod(0o777)
    inbox.scan_once()
    assert f"{sub}, on the path to it: every user can write" in refused(inbox)["a.yaml"]
    sub.chmod(0o755)
    os.lchown(folder / "a.yaml", NOBODY, -1)
    inbox.scan_once()
    assert refused(inbox)["a.yaml"].startswith("it belongs to")
    os.lchown(folder / "a.yaml", 0, -1)
    os.chown(sub / "real.yaml", NOBODY, -1)
    inbox.scan_once()
    assert refused(inbox)["a.yaml"].startswith("it belongs to")
    assert intake.runs == []
    os.chown(sub / "real.yaml", 0, -1)
    inbox.scan_once()
    assert names(intake) == ["a"]


def test_a_hard_link_is_a_file_like_any_other(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    os.link(drop(tmp_path, "template.yaml", task("a")), folder / "a.yaml")
    inbox.scan_once()
    assert names(intake) == ["a"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_an_error_file_is_for_those_who_can_read_the_file(inbox: InboxInSteps, folder: Path, mode: int) -> None:
    drop(folder, "a.yaml", "instructions: [secret]").chmod(mode)
    before = os.umask(0)
    try:
        inbox.scan_once()
    finally:
        os.umask(before)
    assert (folder / "a.yaml.error.txt").stat().st_mode & 0o777 == mode


def test_an_error_file_of_what_is_no_file_is_private(inbox: InboxInSteps, folder: Path) -> None:
    os.mkfifo(folder / "a.yaml", 0o644)
    inbox.scan_once()
    assert (folder / "a.yaml.error.txt").stat().st_mode & 0o777 == 0o600
