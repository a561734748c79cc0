"""The running inbox: events, rescans, restarts, a store that is down, a large inbox."""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

import claudomator_py.sources.inbox as inbox_module
from claudomator_py.domain.errors import Problem
from claudomator_py.schema import taskfile
from claudomator_py.sources.inbox import arrivals, watch
from claudomator_py.sources.inbox.ledger import FileReading, ScanReport
from claudomator_py.store import StoreUnavailable
from tests.integration.inbox.conftest import Crashed, MakeInbox, MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import PATIENCE_S, wait_until


def test_what_is_there_and_what_comes_is_taken_and_told(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    event = threading.Event()
    inbox = make_inbox(intake, on_change=event.set)
    drop(folder, "a.yaml", task("a"))
    inbox.start()
    wait_until(lambda: len(intake.runs) == 1)
    wait_until(event.is_set)
    event.clear()
    drop(folder, "b.md", "---\nname: b\n---\nDo it.\n")
    wait_until(lambda: len(intake.runs) == 2)
    wait_until(event.is_set)
    event.clear()
    path = drop(folder, "c.yaml", "name: [")
    wait_until(event.is_set)
    assert list(problems_of(inbox)) == [str(path)]


def test_events_alone_carry_edits_deletions_and_renames(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    path = drop(folder, "a.yaml", task("a"))
    wait_until(lambda: len(intake.runs) == 1)
    path.write_text(task("a", "Do it well."))
    wait_until(lambda: len(intake.runs) == 2)
    path = path.rename(folder / "b.yaml")
    wait_until(lambda: intake.renames == [(str(folder / "a.yaml"), str(path))])
    path.unlink()
    wait_until(lambda: intake.gone_calls == [str(path)])
    assert len(intake.runs) == 2


@pytest.mark.parametrize("endless", [False, True])
def test_what_comes_while_files_are_taken_is_taken_before_they_are_told(
    make_inbox: MakeInbox, folder: Path, monkeypatch: pytest.MonkeyPatch, *, endless: bool
) -> None:
    """Else the first of them has the only slot before a more urgent one of them is seen. Files that come one after the
    other without an end keep nobody waiting."""
    monkeypatch.setattr(arrivals, "MAX_BURST_S", 0.0 if endless else 10 * PATIENCE_S)
    arriving: list[bool] = []

    class Interrupted(MemoryIntake):
        def take(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
            arriving.append(inbox.arriving)
            if not self.runs:
                drop(folder, "urgent.yaml", task("urgent"))
                wait_until(lambda: inbox._dirty)
            return super().take(readings)

    intake = Interrupted()
    messages: list[list[str]] = []
    inbox = make_inbox(intake, on_change=lambda: messages.append([name for _, name in intake.runs]))
    inbox.start()
    wait_until(lambda: messages)
    messages.clear()
    drop(folder, "low.yaml", task("low"))
    wait_until(lambda: ["low", "urgent"] in messages)
    assert (messages[0] == ["low"]) is endless
    assert arriving == [not endless] * 2
    assert not inbox.arriving


def test_no_name_ends_the_watch(make_inbox: MakeInbox, intake: MemoryIntake, folder: Path) -> None:
    """The rescan is an hour away: whatever is found, an event has found it."""
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox._watcher is not None and inbox.status()[str(folder)].available)
    watcher = inbox._watcher
    (folder / os.fsdecode(b"caf\xe9")).touch()
    bad = folder / os.fsdecode(b"caf\xe9.yaml")
    bad.write_text(task("bad"))
    wait_until(lambda: Path(f"{bad}.error.txt").exists())
    (folder / "line\nbreak.yaml").write_text("name: [")
    wait_until(lambda: len(problems_of(inbox)) == 2)
    drop(folder, "good.yaml", task("good"))
    wait_until(lambda: [name for _, name in intake.runs] == ["good"])
    bad.unlink()
    wait_until(lambda: len(problems_of(inbox)) == 1)
    assert inbox._watcher is watcher
    assert watcher is not None
    assert watcher.alive


def test_what_the_kernel_drops_is_looked_for(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    wait_until(lambda: inbox._watcher is not None and inbox.status()[str(folder)].available)
    watcher = inbox._watcher
    assert watcher is not None
    with monkeypatch.context() as unseen:
        unseen.setattr(watcher, "_on_names", lambda *_: None)
        drop(folder, "a.yaml", task("a"))
        drop(folder, "b.yaml", task("b"))
    watcher._hand_on(watch._HEAD.pack(-1, watch.IN_Q_OVERFLOW, 0, 0))
    wait_until(lambda: {name for _, name in intake.runs} == {"a", "b"})


def test_the_rescan_finds_what_events_miss(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no inotify instances are left")

    monkeypatch.setattr(inbox_module, "Watcher", refuse)
    inbox = make_inbox(intake, rescan_s=0.05)
    inbox.start()
    wait_until(lambda: inbox.status()[str(folder)].available)
    path = drop(folder, "a.yaml", task("a"))
    wait_until(lambda: intake.runs)
    path.unlink()
    wait_until(lambda: intake.gone_calls)


def test_a_rescan_can_be_asked_for(make_inbox: MakeInbox, intake: MemoryIntake, folder: Path) -> None:
    inbox = make_inbox(intake)
    inbox.start()
    drop(folder, "a.yaml", "name: a\ninstructions: Do it.\nagent: {type: gemini}\n")
    wait_until(lambda: problems_of(inbox))
    intake.agents.add("gemini")
    inbox.rescan()
    wait_until(lambda: intake.runs)
    wait_until(lambda: not problems_of(inbox))


def test_several_inboxes_are_one(make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    inbox = make_inbox(intake, folder, other, folder)
    inbox.start()
    first = drop(folder, "a.yaml", task("same"))
    wait_until(lambda: intake.runs)
    second = drop(other, "b.yaml", task("same"))
    wait_until(lambda: str(second) in problems_of(inbox))
    first.unlink()
    wait_until(lambda: len(intake.runs) == 2)
    wait_until(lambda: not problems_of(inbox))
    assert inbox.status().keys() == {str(folder), str(other)}


def test_many_writers_at_once_lose_nothing(make_inbox: MakeInbox, intake: MemoryIntake, folder: Path) -> None:
    inbox = make_inbox(intake)
    inbox.start()

    def write(writer: int) -> None:
        for number in range(100):
            name = f"t{writer}-{number}"
            if number % 2:
                drop(folder, f"{name}.yaml", task(name))
            else:
                (folder / f"{name}.yaml").write_text(task(name))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    wait_until(lambda: len(intake.runs) == 400)
    assert len(set(intake.runs)) == 400
    wait_until(lambda: not inbox.status()[str(folder)].waiting)
    assert not problems_of(inbox)


def test_an_idle_inbox_is_left_in_peace(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is due any more once everything is settled: there is no poll."""
    inbox = make_inbox(intake)
    inbox.start()
    drop(folder, "a.yaml", task("a"))
    drop(folder, "b.yaml", "name: [")
    (folder / "empty.yaml").touch()
    wait_until(lambda: len(problems_of(inbox)) == 2 and intake.runs)
    wait_until(lambda: not inbox._due)
    scans = 0
    scan = inbox._scan

    def count(scan_now: Callable[[], ScanReport]) -> None:
        nonlocal scans
        scans += 1
        scan(scan_now)

    monkeypatch.setattr(inbox, "_scan", count)
    threading.Event().wait(0.5)
    assert scans == 0


@pytest.mark.parametrize("point", ["inbox-before-take", "inbox-after-take"])
def test_a_crash_around_the_taking_runs_it_once(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path, crash_at: Callable[[str], None], point: str
) -> None:
    drop(folder, "a.yaml", task("a"))
    crash_at(point)
    with pytest.raises(Crashed):
        make_steps(intake).scan_once()
    after = make_steps(intake)
    after.scan_once()
    after.scan_once()
    assert len(intake.runs) == 1


def test_a_store_that_is_down_is_asked_again(
    make_inbox: MakeInbox, make_steps: MakeSteps, intake: MemoryIntake, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    intake.available = False
    drop(folder, "a.yaml", task("a"))
    with pytest.raises(StoreUnavailable):
        make_steps(intake).scan_once()
    inbox = make_inbox(intake)
    with caplog.at_level(logging.WARNING, "claudomator.inbox"):
        inbox.start()
        wait_until(lambda: "the disk is full" in caplog.text)
    assert not problems_of(inbox), "the file is not at fault"
    intake.available = True
    wait_until(lambda: intake.runs)
    assert not (folder / "a.yaml.error.txt").exists()


def test_a_store_that_fails_after_its_commit_is_asked_what_it_knows(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake.each_arrival = True
    take = intake.take

    def commit_and_fail(readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        take(readings)
        raise StoreUnavailable("the connection was lost", "wait")

    drop(folder, "a.yaml", task("a"))
    drop(folder, "b.yaml", task("b"))
    with monkeypatch.context() as patch:
        patch.setattr(intake, "take", commit_and_fail)
        with pytest.raises(StoreUnavailable):
            inbox.scan_once()
    inbox.scan_once()
    assert len(intake.runs) == 2


def test_one_file_the_intake_stumbles_over_stops_no_other(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    for name in ("a", "poison", "z"):
        drop(folder, f"{name}.yaml", task(name))
    intake.poisonous = "poison"
    inbox.scan_once()
    assert {name for _, name in intake.runs} == {"a", "z"}
    [[problem]] = problems_of(inbox).values()
    assert "RuntimeError" in problem.message
    intake.poisonous = ""
    inbox.scan_once()
    assert len(intake.runs) == 3
    assert not problems_of(inbox)


def test_a_parser_and_a_listener_that_fail_end_nothing(
    make_inbox: MakeInbox, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(taskfile, "parse_task_file", fail)
    inbox = make_inbox(intake, on_change=fail)
    inbox.start()
    path = drop(folder, "a.yaml", task("a"))
    wait_until(lambda: str(path) in problems_of(inbox))
    monkeypatch.undo()
    drop(folder, "b.yaml", task("b"))
    wait_until(lambda: intake.runs)


def test_a_start_takes_files_in_the_order_of_their_arrival(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    for age, name in enumerate("dacb"):
        path = drop(folder, f"{name}.yaml", task(name))
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    inbox.scan_once()
    assert [name for _, name in intake.runs] == list("dacb")


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_full_inbox_is_taken_in_few_commits_and_never_parsed_again(
    make_steps: MakeSteps,
    intake: MemoryIntake,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    for number in range(count):
        path = folder / f"t{number}.yaml"
        path.write_text(task(f"t{number}"))
        os.utime(path, (1_700_000_000, 1_700_000_000))
    # On a busy machine, files would be offered in smaller batches.
    monkeypatch.setattr(arrivals, "Offering", partial(arrivals.Offering, clock=lambda: 0.0))
    report = make_steps(intake).scan_once()
    assert len(report.accepted) == len(intake.runs) == count
    assert intake.commits <= count / 100

    def fail(*_: object) -> None:
        raise AssertionError("an unchanged file was parsed")

    monkeypatch.setattr(taskfile, "parse_task_file", fail)
    again = make_steps(intake)
    report = again.scan_once()
    assert report.accepted == report.refused == report.gone == ()
    assert again.status()[str(folder)].files == count


def test_stopping_in_the_middle_loses_nothing(
    make_inbox: MakeInbox, make_steps: MakeSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(600):
        (folder / f"t{number}.yaml").write_text(task(f"t{number}"))
    first = make_inbox(intake)
    take = intake.take
    reached = threading.Event()
    stopped = threading.Event()

    def take_slowly(readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        reached.set()
        assert stopped.wait(PATIENCE_S)
        return take(readings)

    monkeypatch.setattr(intake, "take", take_slowly)
    first.start()
    assert reached.wait(PATIENCE_S)
    stopper = threading.Thread(target=first.stop)
    stopper.start()
    wait_until(first._stop.is_set)
    stopped.set()
    stopper.join()
    assert 0 < len(intake.runs) < 600
    make_steps(intake).scan_once()
    assert len(intake.runs) == len(set(intake.runs)) == 600
    assert not intake.gone_calls


def test_rescans_that_take_long_are_rarer_while_the_folder_is_watched(
    make_inbox: MakeInbox, intake: MemoryIntake
) -> None:
    inbox = make_inbox(intake, rescan_s=30.0)
    assert [inbox._rescan_pause_s(took_s) for took_s in (0.001, 0.05, 9)] == [30.0, 30.0, 30.0]
    inbox.start()
    wait_until(lambda: inbox._watcher is not None)
    assert [inbox._rescan_pause_s(took_s) for took_s in (0.001, 0.05, 9)] == [30.0, 100.0, 300.0]
