"""A half-written file is never acted on, however it is written."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema import taskfile
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.sources.inbox import InboxWatcher, files
from tests.integration.inbox.conftest import MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until

WHOLE = b"name: fix-login\ninstructions: |\n  The login page redirects twice.\n  Find out why, fix it, run the tests.\n"


def test_a_file_written_byte_by_byte_is_never_taken_before_it_is_closed(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    prefixes = [WHOLE[:length] for length in range(len(WHOLE) + 1)]
    valid = [prefix for prefix in prefixes if not taskfile.parse_task_file(prefix, "a.yaml").problems]
    assert len(valid) > 40, "the prefixes have to be tempting"
    with (folder / "a.yaml").open("wb", buffering=0) as file:
        for byte in WHOLE:
            file.write(bytes([byte]))
            report = inbox.scan_once()
            assert report.waiting == (str(folder / "a.yaml"),)
        assert not intake.runs
        assert not problems_of(inbox)
        assert "open for writing" in inbox.status()[str(folder)].waiting[str(folder / "a.yaml")]
    assert inbox.scan_once().accepted == (str(folder / "a.yaml"),)
    assert intake.runs == [(str(folder / "a.yaml"), "fix-login")]
    assert "run the tests" in intake.documents[intake.runs[0]].instructions


def test_a_slow_writer_in_another_process_is_waited_for(
    watching: InboxWatcher, intake: MemoryIntake, folder: Path
) -> None:
    watching.start()
    script = (
        "import sys\n"
        "with open(sys.argv[1], 'wb', buffering=0) as file:\n"
        "    for line in sys.stdin.buffer:\n"
        "        file.write(line)\n"
        "        print('written', flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-I", "-c", script, str(folder / "a.yaml")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    for line in WHOLE.splitlines(keepends=True):
        writer.stdin.write(line)
        writer.stdin.flush()
        assert writer.stdout.readline() == b"written\n"
        wait_until(lambda: watching.status()[str(folder)].waiting)
        assert not intake.runs
    writer.stdin.close()
    assert writer.wait() == 0
    writer.stdout.close()
    wait_until(lambda: intake.runs)
    assert "run the tests" in intake.documents[intake.runs[0]].instructions
    wait_until(lambda: not watching.status()[str(folder)].waiting)
    assert not problems_of(watching)


def test_a_file_built_up_by_reopening_ends_as_its_last_state(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = folder / "a.yaml"
    for line in WHOLE.splitlines(keepends=True):
        with path.open("ab") as file:
            file.write(line)
        inbox.scan_once()
    assert "run the tests" in intake.documents[str(path), "fix-login"].instructions
    assert not problems_of(inbox)
    assert not (folder / "a.yaml.error.txt").exists()


def test_a_move_a_copy_and_a_save_by_an_editor_are_each_seen_once(
    watching: InboxWatcher, make_steps: MakeSteps, intake: MemoryIntake, folder: Path, tmp_path: Path
) -> None:
    source = tmp_path / "moved.yaml"
    source.write_text(task("moved"))
    watching.start()
    source.rename(folder / "moved.yaml")
    subprocess.run(["cp", "/dev/stdin", str(folder / "copied.yaml")], input=task("copied").encode(), check=True)
    wait_until(lambda: len(intake.runs) == 2)

    saved = folder / "moved.yaml"
    saved.rename(folder / "moved.yaml~")  # as vim does: the old one becomes the backup, a new one is written
    (folder / "4913").write_text("")
    (folder / ".moved.yaml.swp").write_bytes(b"b0VIM 9.0")
    saved.write_text(task("moved", "Do it better."))
    (folder / "moved.yaml~").unlink()
    (folder / "4913").unlink()
    wait_until(lambda: len(intake.runs) == 3)

    saved.write_text(task("moved", "Do it better.") + "# a comment\n")
    drop(folder, "last.yaml", task("last"))
    wait_until(lambda: any(name == "last" for _, name in intake.runs))
    watching.stop()
    make_steps(intake).scan_once()
    assert sorted(name for _, name in intake.runs) == ["copied", "last", "moved", "moved"]
    assert not intake.gone_calls
    assert not problems_of(watching)


def test_an_empty_file_is_given_a_second(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    (folder / "a.yaml").touch()
    assert inbox.scan_once().waiting == (str(folder / "a.yaml"),)
    assert not problems_of(inbox)
    wait_until(lambda: inbox.scan_once() and problems_of(inbox))
    (folder / "a.yaml").write_text(task("a"))
    inbox.scan_once()
    assert not problems_of(inbox)
    assert not (folder / "a.yaml.error.txt").exists()


def test_where_leases_say_nothing_a_file_must_be_quiet_for_a_second(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "written_elsewhere", lambda device: True)
    path = drop(folder, "a.yaml", task("a"))
    assert inbox.scan_once().waiting == (str(path),)
    path.write_text(task("a", "Do it differently."))
    wait_until(lambda: inbox.scan_once().accepted)
    assert intake.documents[str(path), "a"].instructions.strip() == "Do it differently."
    assert len(intake.runs) == 1


def test_a_writer_that_comes_while_the_file_is_read_ends_nothing(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    """Breaking a lease sends its holder a signal, which by default would end the process."""
    assert signal.getsignal(signal.SIGIO) is signal.SIG_DFL
    path = folder / "a.yaml"
    path.write_text(task("a"))
    done = threading.Event()

    def rewrite() -> None:
        count = 0
        while not done.is_set():
            count += 1
            path.write_text(task("a", f"Round {count}."))

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(300):
            inbox.scan_once()
    finally:
        done.set()
        writer.join()
    wait_until(lambda: not inbox.scan_once().waiting)
    assert path.read_text() == task("a", intake.documents[str(path), "a"].instructions.strip())
    assert not problems_of(inbox)


def test_a_change_while_the_file_is_parsed_is_read_again(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop(folder, "a.yaml", task("a", "Old."))
    parse = taskfile.parse_task_file

    def parse_and_change(data: bytes, filename: str) -> ParsedFile[TaskSpec]:
        monkeypatch.setattr(taskfile, "parse_task_file", parse)
        parsed = parse(data, filename)
        drop(folder, "a.yaml", task("a", "New."))
        return parsed

    monkeypatch.setattr(taskfile, "parse_task_file", parse_and_change)
    report = inbox.scan_once()
    assert report.accepted == ()
    assert report.waiting == (str(path),)
    wait_until(lambda: inbox.scan_once().accepted)
    assert len(intake.runs) == 1
    assert intake.documents[str(path), "a"].instructions.strip() == "New."


def test_a_change_that_the_stamp_does_not_show_is_found_by_a_second_look(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", task("a", "Plan A."))
    before = path.stat()
    inbox.scan_once()
    path.write_text(task("a", "Plan B."))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (before.st_mtime_ns, before.st_size, before.st_ino)
    wait_until(lambda: inbox.scan_once() and len(intake.runs) == 2)
    assert intake.documents[str(path), "a"].instructions.strip() == "Plan B."
