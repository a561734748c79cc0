"""A record of changes takes few processes of git's, and git writes no index that the next commit makes worthless."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudomator_py.hosts.git import Git
from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.git.contents import Content, Contents
from tests.integration.hosts.repository import Repository

FILE_MODES = ("100644", "100755", "120000")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "shop", tmp_path / "home")
    repository.commit("src/deep/a.py", "1\n")
    return repository


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of git that are run."""
    texts: list[str] = []
    call = Git.__call__

    def note(git: Git, folder: Path | str, *arguments: str, **options: Any) -> str:
        texts.append(arguments[0])
        return call(git, folder, *arguments, **options)

    monkeypatch.setattr(Git, "__call__", note)
    return texts


RUNS: dict[str, tuple[Callable[[Repository], object], int]] = {
    "nothing": (lambda _: None, 5),
    "a new file": (lambda repository: (repository.path / "src" / "new").write_text("x"), 9),
    "a changed file": (lambda repository: (repository.path / "readme").write_text("bye\n"), 10),
    "a commit": (lambda repository: repository.commit("src/b.py", "2\n"), 8),
    "a branch": (lambda repository: repository.git("branch", "topic"), 5),
}


@pytest.mark.parametrize("what", RUNS)
def test_it_takes_so_many_processes(repository: Repository, tmp_path: Path, called: list[str], what: str) -> None:
    act, most = RUNS[what]
    recorder = ChangeRecorder(repository.environ)
    for number in range(2):
        (run_dir := tmp_path / f"run{number}").mkdir()
        called.clear()
        recorder.before(run_dir, str(repository.path))
        if number == 1:  # what is said of the configuration is known by then
            act(repository)
        run_changes = recorder.after(run_dir)
        assert run_changes is not None
        assert run_changes.fault is None
    assert len(called) <= most, called


def test_another_configuration_is_read_anew(repository: Repository, tmp_path: Path, called: list[str]) -> None:
    recorder = ChangeRecorder(repository.environ)
    for number, values in enumerate(("true", "true", "false", "true")):
        repository.git("config", "core.filemode", values)
        (run_dir := tmp_path / f"run{number}").mkdir()
        recorder.before(run_dir, str(repository.path))
        (repository.path / "readme").chmod(0o755 if number % 2 else 0o644)
        run_changes = recorder.after(run_dir)
        assert run_changes is not None
        assert run_changes.fault is None
        # It is what the configuration says at the time of the look that counts.
        assert [file.path for file in run_changes.files] == (
            ["readme"] if values == "true" and number in (1, 3) else []
        )
        (repository.path / "readme").chmod(0o644)


def test_an_index_is_written_once_it_has_outlived_a_run(repository: Repository, tmp_path: Path) -> None:
    recorder = ChangeRecorder(repository.environ)
    number = 0

    def run(act: Callable[[], object] = lambda: None) -> bool:
        """Whether a copy of the index is kept for the next run."""
        nonlocal number
        (run_dir := tmp_path / f"run{(number := number + 1)}").mkdir()
        recorder.before(run_dir, str(repository.path))
        act()
        assert recorder.after(run_dir) is not None
        return (run_dir / "index.kept").exists()

    assert [run(lambda: repository.commit("readme", f"{number}\n")) for _ in range(3)] == [False] * 3
    assert [run() for _ in range(12)] == [True] * 12
    assert not run(lambda: repository.commit("readme", "last\n"))
    assert len(list(tmp_path.glob("run*/index.kept"))) == 1


NAMES = st.text(st.sampled_from("ab.-/é\n\udcff "), min_size=1, max_size=6).filter(
    lambda name: not {"", ".", ".."} & set(name.split("/"))
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, st.sampled_from(FILE_MODES), min_size=1, max_size=8), st.sampled_from(["sha1", "sha256"]))
def test_a_tree_is_as_git_writes_it(tmp_path: Path, files: dict[str, str], kind: str) -> None:
    place = tmp_path / kind
    git = Git({"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    if not place.exists():
        git(tmp_path, "init", "-q", f"--object-format={kind}", str(place))
    blob = git(place, "hash-object", "-w", "--stdin", stdin=b"x")
    contents: dict[str, Content | None] = {}
    for path, mode in files.items():
        if not any(f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/") for other in contents):
            contents[path] = (mode, blob)
    index = {"GIT_INDEX_FILE": str(place / "index.of.test")}
    Path(index["GIT_INDEX_FILE"]).unlink(missing_ok=True)
    lines = "\0".join(f"{content[0]} {content[1]}\t{path}" for path, content in contents.items() if content)
    git(place, "update-index", "-z", "--index-info", variables=index, stdin=lines.encode(errors="surrogateescape"))
    expected = git(place, "write-tree", "--missing-ok", variables=index)
    own = Contents(lambda *words, **options: git(place, *words, **options), tmp_path, place / ".git" / "objects")
    assert own.tree({**contents, "gone": None}, len(blob)) == expected
    (place / ".git" / "objects" / expected[:2] / expected[2:]).unlink()
    own.tree(contents, len(blob))
    git(place, "fsck", "--no-dangling", "--no-reflogs", expected)  # fails for one that is not sound


def test_a_file_in_a_file_is_refused(tmp_path: Path) -> None:
    own = Contents(lambda *_: "", tmp_path, tmp_path / "objects")
    for paths in (("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b")):
        with pytest.raises(ValueError, match=r"a file|a folder"):
            own.tree(dict.fromkeys(paths, ("100644", "0" * 40)), 40)
