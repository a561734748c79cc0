"""``after_accept: move``: accepted files leave the inbox, each arrival is new, and no crash runs anything twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.schema.settings import Inbox as Trusting
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import archive
from claudomator_py.sources.inbox.files import Folder, InboxEntry
from claudomator_py.store import StoreUnavailable
from tests.integration.inbox.conftest import Crashed, MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until


@pytest.fixture
def intake() -> MemoryIntake:
    return MemoryIntake(each_arrival=True)


@pytest.fixture
def inbox(make_steps: MakeSteps, intake: MemoryIntake) -> InboxInSteps:
    return make_steps(intake, after_accept="move")


def archived(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[2] for path in (folder / ".accepted").iterdir())


def test_each_arrival_is_new(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    for _ in range(2):
        path = drop(folder, "a.yaml", task("a"))
        inbox.scan_once()
        assert not path.exists()
    assert len(intake.runs) == 2
    assert len(archived(folder)) == 2
    assert not intake.known
    assert (folder / ".accepted").stat().st_mode & 0o077 == 0


def test_a_file_moved_back_by_hand_runs_again(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    [kept] = (folder / ".accepted").iterdir()
    kept.rename(folder / "a.yaml")
    inbox.scan_once()
    assert len(intake.runs) == 2


def test_a_move_stops_no_schedule(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    inbox.scan_once()
    assert not intake.gone_calls
    assert (str(path), "a") in intake.scheduled


def test_bad_files_stay(inbox: InboxInSteps, folder: Path) -> None:
    path = drop(folder, "a.yaml", "name: [")
    inbox.scan_once()
    assert path.exists()
    assert problems_of(inbox)


@pytest.mark.parametrize("point", ["inbox-before-take", "inbox-after-take", "inbox-before-move", "inbox-after-move"])
def test_a_crash_anywhere_runs_it_once_and_moves_it_once(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path, crash_at: Callable[[str], None], point: str
) -> None:
    drop(folder, "a.yaml", task("a"))
    crash_at(point)
    with pytest.raises(Crashed):
        make_steps(intake, after_accept="move").scan_once()
    make_steps(intake, after_accept="move").scan_once()
    assert len(intake.runs) == 1
    assert archived(folder) == ["a.yaml"]
    assert not intake.known
    assert not intake.gone_calls, "it was moved, not deleted"


def test_a_store_that_fails_after_the_move_hears_of_it_later(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(paths: object) -> None:
        raise StoreUnavailable("the disk is full", "make room")

    drop(folder, "a.yaml", task("a"))
    with monkeypatch.context() as patch:
        patch.setattr(intake, "archived", fail)
        with pytest.raises(StoreUnavailable):
            inbox.scan_once()
    inbox.scan_once()
    assert not intake.known
    assert not intake.gone_calls
    assert len(intake.runs) == 1


def test_a_file_saved_again_before_the_move_is_a_new_arrival(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = archive.archive
    path = drop(folder, "a.yaml", task("a", "First."))

    def save_and_move(opened: Folder, entry: InboxEntry, now_ns: int) -> bool:
        monkeypatch.undo()
        path.write_text(task("a", "Second one."))
        return move(opened, entry, now_ns)

    monkeypatch.setattr("claudomator_py.sources.inbox.arrivals.archive", save_and_move)
    inbox.scan_once()
    assert path.read_text() == task("a", "Second one.")
    wait_until(lambda: inbox.scan_once().accepted)
    assert len(intake.runs) == 2
    assert intake.documents[str(path), "a"].instructions.strip() == "Second one."
    assert archived(folder) == ["a.yaml"]


def test_where_it_cannot_be_moved_it_runs_once_and_says_so(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    (folder / ".accepted").write_text("in the way")
    path = drop(folder, "a.yaml", task("a"))
    for _ in range(3):
        inbox.scan_once()
    assert len(intake.runs) == 1
    [problem] = problems_of(inbox)[str(path)]
    assert "cannot be moved" in problem.message
    (folder / ".accepted").unlink()
    inbox.scan_once()
    assert not path.exists()
    assert not problems_of(inbox)
    assert not (folder / "a.yaml.error.txt").exists()
    assert len(intake.runs) == 1


def test_nothing_is_moved_through_a_link(inbox: InboxInSteps, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / ".accepted").symlink_to(elsewhere)
    path = drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    assert path.exists()
    assert not list(elsewhere.iterdir())


def test_names_never_collide_and_the_longest_fits(inbox: InboxInSteps, folder: Path) -> None:
    longest = "x" * 245 + ".yaml"
    with Folder(str(folder), InboxGuard(Trusting())) as opened:
        for name in ("a.yaml", "a.yaml", longest):
            (folder / name).write_text(task("a"))
            entry = opened.entry(name)
            assert entry is not None
            assert archive.archive(opened, entry, 1_700_000_000_123_456_789)
            assert archive.archived_names(opened, {name: entry.stamp}) == {name}
    names = sorted(path.name for path in (folder / ".accepted").iterdir())
    assert names[:2] == ["20231114T221320.123Z-2-a.yaml", "20231114T221320.123Z-a.yaml"]
    assert len(names[2]) == 255
