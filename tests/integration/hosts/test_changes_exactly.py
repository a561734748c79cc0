"""The record of a run names the files that are other than before, whatever stands in commits, index and work tree."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.hosts.git.changes import ChangeRecorder
from tests.integration.hosts.repository import Repository

NAMES = ("a", "b", "c/d", "c/e", "f/g/h", "two words", "-n", ":(glob)*", "k.txt")
TEXTS = ("", "1\n", "1\n2\n", "\0\1", "x" * 40)


def contents(place: Path) -> dict[str, tuple[bool, bytes]]:
    """What git has to know of: bytes, and whether it can be started."""
    results = {}
    for path in place.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            results[str(path.relative_to(place))] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return results


def differences(before: dict[str, tuple[bool, bytes]], after: dict[str, tuple[bool, bytes]]) -> dict[str, str]:
    return {
        path: "added" if path not in before else "deleted" if path not in after else "modified"
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


def acts(repository: Repository, chance: random.Random) -> None:
    """Some acts of a person or an agent, in any order; one that git refuses is none."""
    place = repository.path

    def write() -> None:
        file = place / chance.choice(NAMES)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(chance.choice(TEXTS))
        file.chmod(chance.choice((0o644, 0o755)))

    def git(*words: str) -> Callable[[], object]:
        return lambda: repository.attempt(*words)

    def remove() -> None:
        (place / chance.choice(NAMES)).unlink(missing_ok=True)

    texts = (
        git("add", "--all"),
        git("commit", "-q", "-a", "-m", "some"),
        git("commit", "-q", "-m", "staged"),
        git("rm", "-q", "--cached", "--", f":(literal){chance.choice(NAMES)}"),
        git("checkout", "-q", "-B", chance.choice(("main", "topic"))),
        git("checkout", "-q", chance.choice(("main", "topic"))),
        git("merge", "-q", "-m", "merged", chance.choice(("main", "topic"))),
        git("reset", "-q", chance.choice(("--soft", "--mixed", "--hard")), "HEAD~1"),
        git("stash", "-q", "-u"),
        git("stash", "pop", "-q"),
        git("add", "-N", "."),
    )
    for _ in range(chance.randrange(1, 9)):
        chance.choice((write, write, write, remove, *texts))()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_done_with_git_the_files_that_differ_are_named(
    seed: int, repository: Repository, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    recorder = ChangeRecorder(repository.environ)
    for number in range(5):
        acts(repository, chance)
        (run_dir := tmp_path / f"run{number}").mkdir()
        before = contents(repository.path)
        recorder.before(run_dir, str(repository.path))
        acts(repository, chance)
        run_changes = recorder.after(run_dir)
        assert run_changes is not None
        assert run_changes.fault is None
        expected = differences(before, contents(repository.path))
        named = {file.path: "added" if file.old_path else file.change for file in run_changes.files}
        assert named | {file.old_path: "deleted" for file in run_changes.files if file.old_path} == expected


def test_a_merge_that_conflicts_and_one_that_is_given_up(repository: Repository, tmp_path: Path) -> None:
    recorder = ChangeRecorder(repository.environ)
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("readme", "topic\n")
    repository.git("checkout", "-q", "main")
    repository.commit("readme", "main\n")

    def run(name: str, act: Callable[[], object]) -> list[tuple[str, str, int | None, int | None]]:
        (tmp_path / name).mkdir()
        recorder.before(tmp_path / name, str(repository.path))
        act()
        run_changes = recorder.after(tmp_path / name)
        assert run_changes is not None
        assert run_changes.fault is None
        return [(file.path, file.change, file.added, file.removed) for file in run_changes.files]

    assert run("merge", lambda: repository.attempt("merge", "-q", "topic")) == [("readme", "modified", 4, 0)]
    assert run("nothing", lambda: None) == []
    assert run("given up", lambda: repository.git("merge", "--abort")) == [("readme", "modified", 0, 4)]


@pytest.mark.parametrize(("setting", "value"), [("core.fileMode", "false"), ("core.autocrlf", "true")])
def test_modes_and_line_ends_are_compared_as_the_repository_has_it(
    setting: str, value: str, repository: Repository, tmp_path: Path
) -> None:
    (repository.path / "tool").write_bytes(b"1\r\n2\r\n")
    (repository.path / "tool").chmod(0o755)
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "tool")
    repository.git("config", setting, value)
    recorder = ChangeRecorder(repository.environ)
    (repository.path / "tool").write_bytes(b"1\r\n3\r\n")
    if setting == "core.fileMode":
        (repository.path / "tool").chmod(0o644)
    recorder.before(tmp_path, str(repository.path))
    (repository.path / "tool").write_bytes(b"1\r\n2\r\n")
    run_changes = recorder.after(tmp_path)
    assert run_changes is not None
    assert [(file.path, file.change, file.added, file.removed) for file in run_changes.files] == [
        ("tool", "modified", 1, 1)
    ]
    assert "mode" not in (tmp_path / "changes.patch").read_text()
