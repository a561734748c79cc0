"""What a run changed where there is no repository, or more than can be looked at."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.changes import MAX_FILES
from claudomator_py.domain.run import LaunchRequest, RunFate, RunSpec
from claudomator_py.domain.task import TaskSpec
from claudomator_py.hosts.git import files, look
from claudomator_py.hosts.git.changes import BEFORE, SCRATCH, ChangeRecorder
from claudomator_py.hosts.git.look import PATCH
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.hosts.local.sweep import kill_survivors
from tests.integration.hosts.described import Recorded, SlowRecorder, described
from tests.integration.hosts.repository import Repository
from tests.integration.hosts.rig import LIMITS, PATH
from tests.patience import wait_until

LONG_AGO_S = 1_700_000_000


def test_no_program_of_the_repository_is_run(recorded: Recorded, repository: Repository, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    repository.commit(".gitattributes", "* filter=evil diff=evil\n")
    for setting in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command"):
        repository.git("config", setting, f"touch {mark}; cat")
    repository.git("config", "core.fsmonitor", f"touch {mark}")
    run_changes = recorded(lambda: (repository.path / "readme").write_text("its\n"))
    assert described(run_changes) == [("readme", "modified", 1, 1)]
    assert not mark.exists()


def test_a_repository_that_is_removed_or_made_is_said(recorded: Recorded, repository: Repository) -> None:
    run_changes = recorded(lambda: (repository.path / ".git").rename(repository.path / "elsewhere"))
    assert run_changes.is_empty
    assert run_changes.fault is not None
    assert run_changes.summary == f"not recorded: {run_changes.fault}"


def test_a_repository_around_the_state_folder_is_none_of_a_run(repository: Repository) -> None:
    """Such as one of the user's home with its settings."""
    recorder = ChangeRecorder(repository.environ)
    first, second = repository.path / "state/runs/first", repository.path / "state/runs/second"
    scratch = first / SCRATCH
    scratch.mkdir(parents=True)
    second.mkdir()
    (scratch / "new").write_text("x")
    run_changes = recorder.after(first)
    assert run_changes is not None
    assert (run_changes.fault, run_changes.is_repository) == (None, False)
    assert [file.path for file in run_changes.files] == ["new"]

    recorder.before(second, str(scratch))
    (scratch / "newer").write_text("x")
    run_changes = recorder.after(second)
    assert run_changes is not None
    assert (run_changes.fault, run_changes.is_repository) == (None, False)
    assert [file.path for file in run_changes.files] == ["newer"]


def test_a_folder_without_a_repository(recorded: Recorded, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "below").mkdir(parents=True)
    for name in ("same", "other", "below/gone"):
        (folder / name).write_text("x")

    def act() -> None:
        (folder / "cache").mkdir()
        (folder / "cache/.gitignore").write_text("*\n")
        (folder / "other").write_text("longer")
        (folder / "below/gone").unlink()
        (folder / "new").write_text("x")

    run_changes = recorded(act, folder)
    assert not run_changes.is_repository
    assert described(run_changes) == [
        ("below/gone", "deleted", None, None),
        ("new", "added", None, None),
        ("other", "modified", None, None),
    ]
    assert run_changes.summary == "3 files"


@pytest.mark.parametrize("made", ["nothing", "file", "loop"])
def test_a_place_that_cannot_be_read_is_told_in_words(made: str, recorded: Recorded, run_dir: Path) -> None:
    place = run_dir.parent / "gone"
    if made == "file":
        place.touch()
    elif made == "loop":
        place.symlink_to(place)
    fault = recorded(lambda: None, place).fault
    assert fault is not None
    assert str(place) in fault
    assert "Errno" not in fault


def test_a_place_that_is_a_loop_of_links_is_said(recorded: Recorded, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert recorded(lambda: None, tmp_path / "loop").fault


def test_too_much_to_look_at_is_said(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    for number in range(6):
        (folder / str(number)).touch()
    monkeypatch.setattr(look, "MAX_ENTRIES", 5)
    monkeypatch.setattr(files, "MAX_ENTRIES", 5)
    assert recorded(lambda: None, folder).summary == (
        "not recorded: there are more than the 5 files that are looked at without a repository"
    )


def test_many_files_and_a_long_patch_are_cut(
    recorded: Recorded, repository: Repository, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "MAX_PATCH_BYTES", 1_000)
    monkeypatch.setattr(look, "MAX_RECORDED", 150)

    def act() -> None:
        for number in range(200):
            (repository.path / f"{number:03}").write_text(f"{number}\n")

    run_changes = recorded(act)
    assert (run_changes.file_count, len(run_changes.files), run_changes.added) == (200, 150, 200)
    assert len(run_changes.shortened().files) == MAX_FILES
    assert not run_changes.is_patch_whole
    patch = (run_dir / PATCH).read_text()
    assert len(patch.encode()) <= 1_001
    assert patch.splitlines()[-1] == f"+{patch.count('diff --git') - 1}", "it ends with a whole file"


def test_a_large_file_is_a_change_and_not_compared(
    recorded: Recorded, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "MAX_FILE_BYTES", 1_000)
    (repository.path / "mine").write_bytes(b"x" * 2_000)
    run_changes = recorded(lambda: (repository.path / "big").write_bytes(b"x" * 2_000))
    assert run_changes.untracked == ("big", "mine")
    assert described(run_changes) == [("big", "added", None, None)]


def test_a_repository_in_the_repository_and_a_submodule(recorded: Recorded, repository: Repository) -> None:
    lib = Repository(repository.path.parent / "lib", repository.path.parent / "home")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(lib.path), "lib")
    repository.git("commit", "-q", "-m", "lib")

    def act() -> None:
        repository.commit("new", "1\n", at=repository.path / "lib")
        Repository(repository.path / "inner", repository.path.parent / "home")

    assert described(recorded(act)) == [("inner/", "added", None, None), ("lib", "modified", 1, 1)]


def test_a_file_that_becomes_a_folder(recorded: Recorded, repository: Repository) -> None:
    def act() -> None:
        (repository.path / "readme").unlink()
        (repository.path / "readme").mkdir()
        (repository.path / "readme/first").write_text("1\n")

    assert described(recorded(act)) == [("readme", "deleted", 0, 1), ("readme/first", "added", 1, 0)]


def test_what_is_put_aside_is_no_commit(recorded: Recorded, repository: Repository) -> None:
    (repository.path / "readme").write_text("mine\n")
    run_changes = recorded(lambda: repository.git("stash"))
    assert (run_changes.commit_count, [ref.name for ref in run_changes.refs]) == (0, ["refs/stash"])


def test_a_record_that_was_never_begun_or_is_damaged_is_none(run_dir: Path) -> None:
    recorder = ChangeRecorder({})
    assert recorder.after(run_dir) is None
    (run_dir / BEFORE).write_text('{"place": 3')
    assert recorder.after(run_dir) is None


RUN_ID = "changes-test-run"


@pytest.fixture(autouse=True, scope="module")
def _own_run_id() -> None:
    """Tests in another process end the processes of theirs."""
    global RUN_ID
    RUN_ID = f"changes-test-run-{os.getpid()}"


@pytest.fixture
def host(tmp_path: Path, recorder: SlowRecorder) -> Iterator[LocalRunHost]:
    launcher = Launcher()
    yield LocalRunHost(tmp_path / "runs", launcher, grace_ms=100, kinds=AGENT_KINDS, recorder=recorder)
    recorder.go_on.set()
    launcher.close()
    kill_survivors(RUN_ID, grace_ms=0)


def order(folder: Path) -> RunSpec:
    return RunSpec(RUN_ID, (("sh", "-c", "echo x > new"),), str(folder), (), ("PATH",), "", LIMITS)


def test_a_run_begins_once_it_is_known_how_its_place_stands(
    host: LocalRunHost, recorder: SlowRecorder, repository: Repository
) -> None:
    host.prepare(order(repository.path))
    host.spawn(RUN_ID, {"PATH": PATH})
    assert host.reconcile(RUN_ID).fate is RunFate.STARTING
    assert not (repository.path / "new").exists()
    recorder.go_on.set()
    status = wait_until(lambda: run_status if (run_status := host.reconcile(RUN_ID)).fate is RunFate.ENDED else None)
    request = LaunchRequest(
        RUN_ID, AgentSpec(name="a", kind="command"), TaskSpec(name="t", instructions="x"), "", None, "c"
    )
    report = wait_until(lambda: host.report(request, status.exit))
    assert report.outcome is not None
    assert report.outcome.changes is not None
    assert report.outcome.changes.summary == "1 file (+1 -0), 1 not committed"


def test_a_daemon_that_stops_before_it_is_known_has_not_begun_the_run(
    host: LocalRunHost, recorder: SlowRecorder, repository: Repository
) -> None:
    host.prepare(order(repository.path))
    host.spawn(RUN_ID, {"PATH": PATH})
    host.close()
    recorder.go_on.set()
    assert wait_until(lambda: host.reconcile(RUN_ID).fate is RunFate.REVOKED)
    assert not (repository.path / "new").exists()


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("count", [1, 40])
def test_changes_of_the_same_size_in_the_second_of_a_commit_are_seen(
    recorded: Recorded, repository: Repository, run_dir: Path, count: int, is_before: bool
) -> None:
    """Commit, first look and change are of one second, which is long over when git looks."""
    files = [repository.path / f"f{number}" for number in range(count)]
    repository.git("config", "core.trustCtime", "false")  # that time nobody can set

    def write(text: str) -> None:
        for file in files:
            file.write_text(text)
        for path in (*files, *repository.path.glob(".git/index"), *([] if is_before else run_dir.rglob("index*"))):
            os.utime(path, (LONG_AGO_S, LONG_AGO_S))

    write("one\n")
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "files")
    os.utime(repository.path / ".git" / "index", (LONG_AGO_S, LONG_AGO_S))
    if is_before:
        write("two\n")
    result = recorded(lambda: write("two\n"))
    assert [(file.added, file.removed) for file in result.files] == [(1, 1)] * (0 if is_before else count)
    assert len(result.uncommitted) == count


def test_what_was_changed_in_the_second_of_a_commit_before_the_run_is_none_of_its(
    recorded: Recorded, repository: Repository
) -> None:
    repository.commit("f", "one\n")
    (repository.path / "f").write_text("two\n")
    result = recorded(lambda: (repository.path / "f").write_text("six\n"))
    assert [(file.path, file.added) for file in result.files] == [("f", 1)]
    assert recorded(lambda: None).uncommitted == ("f",)


def test_what_is_kept_of_earlier_runs_hides_nothing_of_a_later_one(repository: Repository, tmp_path: Path) -> None:
    """git passes over folders that it has read before; what is made, removed or ignored in them is seen all the same,
    and a copy that is gone or is of another index is not used."""
    recorder = ChangeRecorder(repository.environ)
    repository.commit("deep/er/a.py", "1\n")
    place, dirs = repository.path, [tmp_path / f"run{number}" for number in range(8)]

    def run(number: int, act: Callable[[], object]) -> list[str]:
        dirs[number].mkdir()
        recorder.before(dirs[number], str(place))
        act()
        run_changes = recorder.after(dirs[number])
        assert run_changes is not None
        assert run_changes.fault is None
        git = repository.git("status", "--porcelain", "--untracked-files=all").splitlines()
        assert sorted(line[3:] for line in git if line.startswith("??")) == sorted(run_changes.untracked)
        return [file.path for file in run_changes.files]

    assert run(0, lambda: None) == []
    assert run(1, lambda: (place / "deep/er/new").write_text("1")) == ["deep/er/new"]
    assert [path for path in dirs if (path / "index.kept").exists()] == [dirs[1]]
    assert run(2, lambda: (place / "deep/er/new").unlink()) == ["deep/er/new"]
    assert run(3, lambda: (place / "deep/er/a.py").write_text("2\n")) == ["deep/er/a.py"]
    (place / "deep/er/log").write_text("1")
    assert run(4, lambda: (place / ".gitignore").write_text("log\n")) == [".gitignore", "deep/er/log"]
    (dirs[4] / "index.kept").unlink()
    assert run(5, lambda: (place / "other").write_text("1")) == ["other"]
    assert run(6, lambda: repository.commit("other", "2")) == ["other"]
    assert run(7, lambda: (place / "deep/er/b").write_text("1")) == ["deep/er/b"]
