"""A bad file is never lost and never stops anything: its author and the API are told, until it is mended."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.inbox.conftest import Crashed, MakeSteps
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake, drop, problems_of, task
from tests.patience import wait_until

BAD = "name: a\ninstructions: Do it.\npriorty: high\n"


def error_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "error" in path.name)


def test_the_error_file_names_line_field_problem_and_remedy(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", BAD)
    assert inbox.scan_once().refused == (str(path),)
    text = (folder / "a.yaml.error.txt").read_text()
    for part in ("a.yaml", "3", "priorty", "priority"):
        assert part in text
    [problem] = problems_of(inbox)[str(path)]
    assert problem.line == 3
    assert not intake.runs


def test_a_conflict_copy_is_told_and_does_not_run(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "plan.yaml", task("a"))
    inbox.scan_once()
    copy = folder / "plan (Ann's conflicted copy 2026-11-27).yaml"
    path.rename(copy)
    drop(folder, "plan.yaml", task("b"))
    assert inbox.scan_once().refused == (str(copy),)
    assert "second version of `plan.yaml`" in (folder / f"{copy.name}.error.txt").read_text()
    assert intake.runs == [(str(path), "a"), (str(path), "b")]
    copy.unlink()
    inbox.scan_once()
    assert error_files(folder) == []


def test_a_refused_file_is_known_by_every_name_that_it_gives(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    night = drop(folder, "night.yaml", f"{task('first')}---\n{BAD.replace('name: a', 'name: second')}---\n- no task\n")
    circle = drop(folder, "circle.yaml", f"{task('egg')}after: [hen]\n---\n{task('hen')}after: [egg]\n")
    elsewhere = drop(folder, "b.yaml", "name: c\ninstructions: Do it.\nagent: {type: gemini}\n")
    inbox.scan_once()
    names = {"first": night, "second": night, "night": night, "hen": circle, "c": elsewhere, "b": elsewhere}
    known = {name: inbox.refusals.of_task(name) for name in names}
    assert {name: refusal.path for name, refusal in known.items() if refusal} == {
        name: str(path) for name, path in names.items()
    }
    assert inbox.refusals.of_task("third") is None
    intake.agents.add("gemini")
    inbox.scan_once()
    assert inbox.refusals.of_task("c") is None


def test_it_goes_when_the_file_is_mended(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", BAD)
    inbox.scan_once()
    drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    assert error_files(folder) == []
    assert problems_of(inbox) == {}
    assert intake.runs == [(str(path), "a")]


def test_it_goes_when_the_file_is_deleted(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    drop(folder, "a.yaml", BAD).unlink()
    path = drop(folder, "a.yaml", BAD)
    inbox.scan_once()
    path.unlink()
    inbox.scan_once()
    assert error_files(folder) == []
    assert problems_of(inbox) == {}


def test_it_goes_when_the_file_is_put_back_as_it_was(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    path.rename(folder / "a.yaml.orig")
    drop(folder, "a.yaml", BAD)
    inbox.scan_once()
    assert problems_of(inbox)
    (folder / "a.yaml.orig").rename(path)
    inbox.scan_once()
    assert error_files(folder) == []
    assert problems_of(inbox) == {}
    assert len(intake.runs) == 1


def test_a_bad_change_leaves_what_was_accepted(inbox: InboxInSteps, intake: MemoryIntake, folder: Path) -> None:
    path = drop(folder, "a.yaml", task("a"))
    inbox.scan_once()
    drop(folder, "a.yaml", BAD)
    inbox.scan_once()
    assert problems_of(inbox)
    assert not intake.gone_calls
    path.unlink()
    wait_until(lambda: inbox.scan_once().gone)
    assert intake.gone_calls == [str(path)]


def test_a_restart_shows_the_same_problems(make_steps: MakeSteps, intake: MemoryIntake, folder: Path) -> None:
    drop(folder, "bad.yaml", BAD)
    drop(folder, "unknown.yaml", "name: b\ninstructions: Do it.\nagent: {type: nobody}\n")
    before = make_steps(intake)
    before.scan_once()
    after = make_steps(intake)
    after.scan_once()
    assert len(problems_of(before)) == 2
    assert problems_of(after) == problems_of(before)
    assert error_files(folder) == ["bad.yaml.error.txt", "unknown.yaml.error.txt"]


def test_a_start_removes_what_an_earlier_process_left(
    make_steps: MakeSteps, intake: MemoryIntake, folder: Path, crash_at: Callable[[str], None]
) -> None:
    path = drop(folder, "a.yaml", BAD)
    crash_at("inbox-before-error-file")
    with pytest.raises(Crashed):
        make_steps(intake).scan_once()
    assert len(error_files(folder)) == 1
    assert error_files(folder)[0].startswith(".")
    (folder / "deleted.yaml.error.txt").write_text("from before")
    (folder / "notes.error.txt").write_text("not ours: no task file has this name")
    make_steps(intake).scan_once()
    assert error_files(folder) == ["a.yaml.error.txt", "notes.error.txt"]
    crash_at("inbox-after-error-file")
    drop(folder, "b.yaml", BAD)
    with pytest.raises(Crashed):
        make_steps(intake).scan_once()
    path.unlink()
    drop(folder, "b.yaml", task("b"))
    make_steps(intake).scan_once()
    assert error_files(folder) == ["notes.error.txt"]


@pytest.mark.parametrize("link", [True, False])
def test_writing_it_follows_no_link(inbox: InboxInSteps, folder: Path, tmp_path: Path, link: bool) -> None:
    victim = tmp_path / "precious"
    victim.write_text("precious")
    place = folder / "a.yaml.error.txt"
    if link:
        place.symlink_to(victim)
    else:
        place.hardlink_to(victim)
    path = drop(folder, "a.yaml", BAD)
    inbox.scan_once()
    assert victim.read_text() == "precious"
    assert not place.is_symlink()
    assert "priorty" in place.read_text()
    path.unlink()
    place.unlink()
    place.symlink_to(victim)
    inbox.scan_once()
    assert not place.is_symlink()
    assert victim.read_text() == "precious"


def test_where_it_cannot_be_written_the_problem_still_shows(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", BAD)
    (folder / "a.yaml.error.txt").mkdir()
    long = drop(folder, "x" * 244 + ".yaml", BAD)
    drop(folder, "b.yaml", task("b"))
    inbox.scan_once()
    assert set(problems_of(inbox)) == {str(path), str(long)}
    assert len(intake.runs) == 1
    assert error_files(folder) == ["a.yaml.error.txt"]


def test_bombs_and_junk_are_refused_and_the_rest_goes_on(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for letter, former in zip("bcdefghij", "abcdefghi", strict=True):
        bomb += f"{letter}: &{letter} [{', '.join([f'*{former}'] * 9)}]\n"
    drop(folder, "bomb.yaml", bomb)
    (folder / "junk.yaml").write_bytes(os.urandom(4096) + b"\x00\xff")
    drop(folder, "deep.yaml", "[" * 100_000)
    drop(folder, "object.yaml", "!!python/object/apply:os.system ['true']\n")
    drop(folder, "large.yaml", "x" * (2**20 + 1))
    drop(folder, "good.yaml", task("good"))
    inbox.scan_once()
    assert [name for _, name in intake.runs] == ["good"]
    assert {Path(path).name for path in problems_of(inbox)} == {
        "bomb.yaml",
        "junk.yaml",
        "deep.yaml",
        "object.yaml",
        "large.yaml",
    }
    for path, problems in problems_of(inbox).items():
        assert all(problem.message and problem.remedy for problem in problems), path
        assert Path(f"{path}.error.txt").exists()


def test_a_name_that_is_not_utf8_is_refused_and_can_be_shown(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    (folder / os.fsdecode(b"caf\xe9.yaml")).write_text(task("a"))
    inbox.scan_once()
    [path] = problems_of(inbox)
    path.encode()
    assert path.endswith("caf\\xe9.yaml")
    assert (folder / os.fsdecode(b"caf\xe9.yaml.error.txt")).exists()
    assert not intake.runs


def test_a_name_that_becomes_free_is_taken_without_a_touch(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    first = drop(folder, "a.yaml", task("same"))
    inbox.scan_once()
    second = drop(folder, "b.yaml", task("same"))
    inbox.scan_once()
    assert "taken" in (folder / "b.yaml.error.txt").read_text()
    first.unlink()
    wait_until(lambda: inbox.scan_once().accepted)
    assert intake.runs[-1] == (str(second), "same")
    assert error_files(folder) == []


def test_what_the_intake_refused_is_offered_again_by_a_rescan(
    inbox: InboxInSteps, intake: MemoryIntake, folder: Path
) -> None:
    path = drop(folder, "a.yaml", "name: a\ninstructions: Do it.\nagent: {type: gemini}\n")
    inbox.scan_once()
    assert problems_of(inbox)[str(path)][0].field == "agent.type"
    intake.agents.add("gemini")
    assert inbox.scan_once().accepted == (str(path),)
    assert error_files(folder) == []
