"""What lies in an inbox and is not a plain file of its own."""

import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.daemon.health import inbox_checks
from claudomator_py.sources.inbox import InboxWatcher
from claudomator_py.sources.inbox.files import Folder
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until


def rights_bind() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        os.fchmod(file.fileno(), 0)
        return not os.access(file.name, os.R_OK)


where_rights_bind = pytest.mark.skipif(not rights_bind(), reason="root may read everything")


def messages(inbox: InboxInSteps) -> dict[str, str]:
    return {Path(path).name: problems[0].message for path, problems in problems_of(inbox).items()}


def test_folders_pipes_and_sockets_are_refused_unopened(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "folder.yaml").mkdir()
    drop(folder / "folder.yaml", "inner.yaml", task("inner"))
    (folder / "sub").mkdir()
    drop(folder / "sub", "inner.yaml", task("inner"))
    os.mkfifo(folder / "pipe.yaml")
    monkeypatch.chdir(folder)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.yaml")
        inbox.scan_once()
    results = messages(inbox)
    assert "folder" in results.pop("folder.yaml")
    assert "pipe" in results.pop("pipe.yaml")
    assert "socket" in results.pop("socket.yaml")
    assert not results
    assert not intake.runs
    (folder / "pipe.yaml").unlink()
    drop(folder, "pipe.yaml", task("pipe"))
    inbox.scan_once()
    assert "pipe.yaml" not in messages(inbox)


def test_a_subfolder_is_named_once_in_the_log_and_by_the_check_of_the_inbox(
    inbox: InboxInSteps, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("night", ".hidden", "named.yaml", os.fsdecode(b"caf\xe9")):
        (folder / name).mkdir()
    for _ in range(2):
        inbox.scan_once()
    said = [record.getMessage() for record in caplog.records if "subfolders" in record.getMessage()]
    assert said == [f"subfolders are not searched; move up what is in {folder}/caf\\xe9, {folder}/night"]
    (check,) = inbox_checks(inbox.status())
    assert check.ok
    assert check.detail.endswith(f"; subfolders are not searched: {folder}/caf\\xe9, {folder}/night")
    (folder / "night").rmdir()
    inbox.scan_once()
    assert "night" not in inbox_checks(inbox.status())[0].detail


def test_a_pipe_put_in_the_place_of_a_file_blocks_nothing(
    inbox: InboxInSteps, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    read = Folder.read

    def read_late(self: Folder, entry: Any, *, quiet: bool) -> Any:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        monkeypatch.setattr(Folder, "read", read)
        return read(self, entry, quiet=quiet)

    monkeypatch.setattr(Folder, "read", read_late)
    inbox.scan_once()
    assert "pipe" in messages(inbox)["a.yaml"]


def test_a_link_out_of_the_inbox_is_refused_and_says_nothing_of_its_target(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("name: top-secret\ninstructions: Do it.\nwrong: key\n")
    (folder / "absolute.yaml").symlink_to(secret)
    (folder / "relative.yaml").symlink_to("../secret.yaml")
    (folder / "door").symlink_to(tmp_path)
    (folder / "nested.yaml").symlink_to("door/secret.yaml")
    (tmp_path / "tasks-too").mkdir()
    (tmp_path / "tasks-too" / "a.yaml").write_text(task("sibling"))
    (folder / "sibling.yaml").symlink_to("../tasks-too/a.yaml")
    inbox.scan_once()
    assert not intake.runs
    assert set(messages(inbox)) == {"absolute.yaml", "relative.yaml", "nested.yaml", "sibling.yaml"}
    for name in messages(inbox):
        assert "out of the inbox" in messages(inbox)[name]
        assert "secret" not in (folder / f"{name}.error.txt").read_text()


def test_a_link_to_nothing_and_one_to_itself_are_refused_until_they_lead_somewhere(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    (folder / "templates").mkdir()
    (folder / "link.yaml").symlink_to("templates/a.yaml")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    inbox.scan_once()
    assert "does not exist" in messages(inbox)["link.yaml"]
    assert "itself" in messages(inbox)["loop.yaml"]
    (folder / "loop.yaml").unlink()
    drop(folder / "templates", "a.yaml", task("a"))
    inbox.scan_once()
    assert not problems_of(inbox)
    assert intake.runs == [(str(folder / "link.yaml"), "a")]
    drop(folder / "templates", "a.yaml", task("a", "Do it otherwise."))
    inbox.scan_once()
    assert len(intake.runs) == 2


def test_hidden_files_and_what_editors_leave_are_no_tasks(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    for name in (".a.yaml", ".#a.yaml", "#a.yaml#", "a.yaml~", ".a.yaml.swp", "~a.yaml", "a.yaml.error.txt", "a.txt"):
        (folder / name).write_text(task("a"))
    report = inbox.scan_once()
    assert (report.accepted, report.refused, report.waiting) == ((), (), ())


@where_rights_bind
def test_a_file_that_may_not_be_read_is_taken_once_it_may(
    watching: InboxWatcher, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", task("a"))
    path.chmod(0)
    watching.start()
    wait_until(lambda: problems_of(watching))
    [problem] = problems_of(watching)[str(path)]
    assert "may not read" in problem.message
    assert "chmod" in str(problem.remedy)
    path.chmod(0o644)
    wait_until(lambda: intake.runs)
    wait_until(lambda: not problems_of(watching))


@where_rights_bind
def test_an_inbox_that_cannot_be_written_to_still_works(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    drop(folder, "good.yaml", task("good"))
    drop(folder, "bad.yaml", "name: [")
    folder.chmod(0o555)
    try:
        inbox.scan_once()
        assert len(intake.runs) == 1
        assert set(messages(inbox)) == {"bad.yaml"}
    finally:
        folder.chmod(0o755)


@where_rights_bind
@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400, 0o600])
def test_in_an_inbox_that_cannot_be_read_nothing_is_gone(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, mode: int
) -> None:
    drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    folder.chmod(mode)
    try:
        assert inbox.scan_once().unavailable == (str(folder),)
        problem = inbox.status()[str(folder)].problem
        assert problem is not None
        assert "may not read" in problem.message
    finally:
        folder.chmod(0o755)
    inbox.scan_once()
    assert inbox.status()[str(folder)].available
    assert not intake.gone_calls
    assert len(intake.runs) == 1
