"""What a run changed is what is recorded: exactly that, in any place, and whatever is there."""

import os
from pathlib import Path

import pytest

from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.git.look import PATCH
from tests.integration.hosts.described import Recorded, described
from tests.integration.hosts.repository import Repository


def test_a_run_that_changes_nothing(recorded: Recorded, repository: Repository) -> None:
    run_changes = recorded(lambda: None)
    assert (run_changes.is_empty, run_changes.summary, run_changes.fault) == (True, "no changes", None)
    assert (run_changes.branch, run_changes.head, run_changes.place) == (
        "main",
        repository.git("rev-parse", "HEAD"),
        str(repository.path),
    )


def test_commits_files_and_references(recorded: Recorded, repository: Repository, run_dir: Path) -> None:
    repository.git("branch", "old")

    def act() -> None:
        repository.commit("src/a.py", "1\n2\n")
        repository.git("checkout", "-q", "-b", "topic")
        repository.commit("readme", "hello\nworld\n")
        repository.git("branch", "-D", "old")
        repository.git("tag", "v1")
        (repository.path / "notes").write_text("later\n")

    result = recorded(act)
    assert [(commit.subject, commit.author) for commit in result.commits] == [("readme", "n"), ("src/a.py", "n")]
    assert (result.branch_before, result.branch, result.commit_count) == ("main", "topic", 2)
    names = {ref.name: (ref.before is None, ref.after is None) for ref in result.refs}
    assert names == {
        "refs/heads/main": (False, False),
        "refs/heads/old": (False, True),
        "refs/heads/topic": (True, False),
        "refs/tags/v1": (True, False),
    }
    assert described(result) == [
        ("notes", "added", 1, 0),
        ("readme", "modified", 1, 0),
        ("src/a.py", "added", 2, 0),
    ]
    assert (result.uncommitted, result.untracked) == ((), ("notes",))
    assert result.summary == "2 commits, 3 files (+4 -0), 1 branch made, 1 tag made, 1 branch deleted, 1 not committed"
    patch = (run_dir / PATCH).read_text()
    assert "+world\n" in patch
    assert result.patch_bytes == len(patch.encode())


def test_what_was_changed_before_the_run_is_none_of_its_changes(recorded: Recorded, repository: Repository) -> None:
    repository.commit("both", "1\n")
    (repository.path / "readme").write_text("mine\n")
    (repository.path / "both").write_text("1\nmine\n")
    (repository.path / "draft").write_text("mine\n")
    (repository.path / "gone").write_text("mine\n")

    def act() -> None:
        (repository.path / "both").write_text("1\nmine\nits\n")
        (repository.path / "gone").unlink()

    run_changes = recorded(act)
    assert described(run_changes) == [("both", "modified", 1, 0), ("gone", "deleted", 0, 1)]
    assert (sorted(run_changes.uncommitted), run_changes.untracked) == (["both", "readme"], ("draft",))
    assert run_changes.summary == "2 files (+1 -1), 1 not committed", "readme and draft were so before"


def test_committing_what_was_there_changes_no_file(recorded: Recorded, repository: Repository) -> None:
    (repository.path / "draft").write_text("mine\n")
    run_changes = recorded(lambda: repository.commit("draft", "mine\n"))
    assert (described(run_changes), run_changes.commit_count) == ([], 1)


def test_commits_that_leave_the_files_as_they_were_say_so(recorded: Recorded, repository: Repository) -> None:
    def act() -> None:
        repository.commit("readme", "changed\n")
        repository.git("revert", "--no-edit", "HEAD")

    result = recorded(act)
    assert (result.summary, result.has_content) == ("2 commits that change no file", False)


def test_work_on_a_branch_that_is_no_longer_checked_out_is_work(recorded: Recorded, repository: Repository) -> None:
    def act() -> None:
        repository.git("checkout", "-q", "-b", "topic")
        repository.commit("readme", "changed\n")
        repository.git("checkout", "-q", "main")

    assert recorded(act).has_content


def test_fetched_commits_are_not_those_of_the_run_and_pushed_ones_are(
    recorded: Recorded, repository: Repository, tmp_path: Path
) -> None:
    repository.git("clone", "-q", "--bare", str(repository.path), str(tmp_path / "remote"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote"))
    repository.git("fetch", "-q", "origin")
    repository.git("clone", "-q", str(tmp_path / "remote"), str(tmp_path / "other"))
    repository.commit("theirs", "1\n", at=tmp_path / "other")
    repository.git("push", "-q", "origin", "main", at=tmp_path / "other")

    def act() -> None:
        repository.git("pull", "-q", "--no-rebase", "origin", "main")
        repository.commit("own", "1\n")
        repository.git("push", "-q", "origin", "main")

    result = recorded(act)
    assert [commit.subject for commit in result.commits] == ["own"]
    assert result.summary == "1 commit, 2 files (+2 -0), 1 branch pushed"


def test_a_renamed_file_is_one_change(recorded: Recorded, repository: Repository, run_dir: Path) -> None:
    repository.commit("Größe/a b.txt", "".join(f"{number}\n" for number in range(30)))
    repository.commit("kept", "1\n2\n3\n")

    def act() -> None:
        (repository.path / "kept").rename(repository.path / "moved")
        repository.git("mv", "Größe/a b.txt", "文.txt")
        repository.git("commit", "-q", "-m", "Rename it", "文.txt", "Größe/a b.txt")
        with (repository.path / "文.txt").open("a") as file:
            file.write("more\n")

    result = recorded(act)
    assert [(file.path, file.words, file.added, file.removed) for file in result.files] == [
        ("moved", "renamed from kept", 0, 0),
        ("文.txt", "renamed from Größe/a b.txt", 1, 0),
    ]
    assert result.summary == "1 commit, 2 files (+1 -0), 2 not committed"
    assert "rename to moved\n" in (run_dir / PATCH).read_text()


def test_tests_that_are_skipped_since_are_named(recorded: Recorded, repository: Repository) -> None:
    for path in ("tests/test_a.py", "tests/test_b.py", "tests/test_ä.py"):
        repository.commit(path, "import pytest\n\ndef test_one():\n    assert 1 == 2\n")

    def act() -> None:
        skipped = "import pytest\n\n@pytest.mark.skip\ndef test_one():\n    assert 1 == 2\n"
        repository.commit("tests/test_a.py", skipped)
        (repository.path / "tests" / "test_b.py").write_text("import pytest\n\ndef test_one():\n    assert 2 == 2\n")
        (repository.path / "tests" / "test_ä.py").write_text(skipped)
        (repository.path / "tests" / "test_new.py").write_text(skipped)

    assert recorded(act).skips == ("tests/test_a.py", "tests/test_ä.py")


def test_a_changed_mode_is_named_and_no_lines_are_counted_where_there_are_none(
    recorded: Recorded, repository: Repository
) -> None:
    repository.commit("run.sh", "true\n")
    repository.commit("image", "\0\1")

    def act() -> None:
        (repository.path / "run.sh").chmod(0o755)
        (repository.path / "image").write_bytes(b"\0\2")

    result = recorded(act)
    assert [(file.path, file.words) for file in result.files] == [
        ("image", "modified"),
        ("run.sh", "modified, mode 100644 -> 100755"),
    ]
    assert result.summary == "2 files, 2 not committed"


def test_work_put_away_is_called_a_stash(recorded: Recorded, repository: Repository) -> None:
    def act() -> None:
        (repository.path / "readme").write_text("changed\n")
        repository.git("stash", "-q")

    assert recorded(act).summary == "1 stash made"


def test_uncommitted_work_in_a_submodule_is_a_change_of_it(
    recorded: Recorded, repository: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "other", tmp_path)
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "inner")
    repository.git("commit", "-q", "-m", "Add it")
    (repository.path / "inner" / "mine").write_text("was there before\n")
    result = recorded(lambda: (repository.path / "inner" / "readme").write_text("changed\n"))
    assert [(file.path, file.words) for file in result.files] == [("inner", "modified")]


def test_a_repository_made_by_the_run_hides_no_files(run_dir: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "plain").mkdir()
    recorder = ChangeRecorder({"PATH": os.environ["PATH"]})
    recorder.before(run_dir, str(folder))
    Repository(tmp_path / "made", tmp_path).path.rename(folder)
    result = recorder.after(run_dir)
    assert result is not None
    assert (described(result), result.fault) == ([("readme", "added", None, None)], None)


def test_a_branch_that_is_reset_and_commits_on_another(recorded: Recorded, repository: Repository) -> None:
    repository.commit("second", "2\n")

    def act() -> None:
        repository.git("checkout", "-q", "-b", "aside")
        repository.commit("third", "3\n")
        repository.git("checkout", "-q", "main")
        repository.git("reset", "-q", "--hard", "HEAD~1")

    result = recorded(act)
    assert [commit.subject for commit in result.commits] == ["third"]
    assert described(result) == [("second", "deleted", 0, 1)]
    assert result.head != result.head_before


def test_names_of_any_kind_and_files_that_are_no_text(recorded: Recorded, repository: Repository) -> None:
    def act() -> None:
        (repository.path / "two words\tand a tab").write_text("x\n")
        (repository.path / "line\nbreak").write_text("x\n")
        (repository.path / "ümläut").write_text("x\n")
        Path(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9")).write_bytes(b"x\n")
        (repository.path / "image").write_bytes(b"\0\1\2")
        (repository.path / "link").symlink_to("/nowhere")

    result = recorded(act)
    assert [name for name, *_ in described(result)] == [
        "caf�",
        "image",
        "line\nbreak",
        "link",
        "two words\tand a tab",
        "ümläut",
    ]
    assert ("image", "added", None, None) in described(result)


def test_a_work_tree_that_is_linked(recorded: Recorded, repository: Repository, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    repository.git("worktree", "add", "-q", "-b", "topic", str(tree))
    (repository.path / "of the person").write_text("x\n")

    run_changes = recorded(lambda: repository.commit("new", "1\n", at=tree), tree)

    assert (run_changes.place, run_changes.branch, run_changes.commit_count) == (str(tree), "topic", 1)
    assert run_changes.repository == str(repository.path)
    assert described(run_changes) == [("new", "added", 1, 0)]


def test_what_other_tasks_do_in_work_trees_of_theirs_is_none_of_a_runs_doing(
    recorded: Recorded, repository: Repository, tmp_path: Path
) -> None:
    names = ("mine", "before", "meanwhile")
    for name in names[:2]:
        repository.git("worktree", "add", "-q", "-b", f"claudomator/{name}", str(tmp_path / name))

    def act() -> None:
        repository.git("worktree", "add", "-q", "-b", "claudomator/meanwhile", str(tmp_path / "meanwhile"))
        repository.git("branch", "topic")
        for name in names:
            (tmp_path / name / f"{name}.txt").write_text("x\n")
            repository.git("-C", str(tmp_path / name), "add", "-A")
            repository.git("-C", str(tmp_path / name), "commit", "-q", "-m", name)

    result = recorded(act, tmp_path / "mine")
    assert [commit.subject for commit in result.commits] == ["mine"]
    assert [ref.name for ref in result.refs] == ["refs/heads/claudomator/mine", "refs/heads/topic"]
    assert result.summary == "1 commit, 1 file (+1 -0), 1 branch made"


@pytest.mark.parametrize(("tree", "made"), [("shop-other-0a1b2c3d", []), ("elsewhere", ["refs/heads/topic"])])
def test_a_branch_that_another_task_begins_in_its_tree_is_not_its_own(
    recorded: Recorded, repository: Repository, tmp_path: Path, tree: str, made: list[str]
) -> None:
    """Of a tree that is named otherwise than its branch, nobody knows whose it is."""
    repository.git("worktree", "add", "-q", "-b", "claudomator/mine-4e5f6a7b", str(tmp_path / "shop-mine-4e5f6a7b"))
    repository.git("worktree", "add", "-q", "-b", "claudomator/other-0a1b2c3d", str(tmp_path / tree))
    result = recorded(
        lambda: repository.git("-C", str(tmp_path / tree), "checkout", "-q", "-b", "topic"),
        tmp_path / "shop-mine-4e5f6a7b",
    )
    assert [ref.name for ref in result.refs] == made


def test_a_branch_that_another_task_is_rebasing_is_not_its_own(
    recorded: Recorded, repository: Repository, tmp_path: Path
) -> None:
    for name in ("mine-4e5f6a7b", "other-0a1b2c3d"):
        repository.git("worktree", "add", "-q", "-b", f"claudomator/{name}", str(tmp_path / f"shop-{name}"))
    other = tmp_path / "shop-other-0a1b2c3d"

    def act() -> None:
        repository.commit("readme", "one\n", at=other)
        repository.git("checkout", "-q", "-b", "topic", "HEAD~1", at=other)
        repository.commit("readme", "two\n", at=other)
        assert repository.attempt("rebase", "-q", "claudomator/other-0a1b2c3d", at=other).returncode == 1

    assert recorded(act, tmp_path / "shop-mine-4e5f6a7b").summary == "no changes"


@pytest.mark.parametrize(
    ("branch", "made"),
    [
        ("claudomator/other-0a1b2c3d", []),
        ("claudomator/other-0a1b2c3d.2", []),
        ("claudomator/other-topic", ["refs/heads/claudomator/other-topic"]),
    ],
)
def test_a_branch_whose_work_tree_git_is_still_making_is_not_its_own(
    recorded: Recorded, repository: Repository, branch: str, made: list[str]
) -> None:
    result = recorded(lambda: repository.git("branch", branch), repository.path)
    assert [ref.name for ref in result.refs] == made


def test_commits_that_a_run_merges_from_another_task_are_not_its_own(
    recorded: Recorded, repository: Repository, tmp_path: Path
) -> None:
    for name in ("mine", "other"):
        repository.git("worktree", "add", "-q", "-b", f"claudomator/{name}", str(tmp_path / name))

    def act() -> None:
        repository.commit("theirs", "1\n", at=tmp_path / "other")
        repository.commit("own", "1\n", at=tmp_path / "mine")
        repository.git("-C", str(tmp_path / "mine"), "merge", "-q", "-m", "merged", "claudomator/other")

    run_changes = recorded(act, tmp_path / "mine")
    assert (run_changes.commit_count, run_changes.commits[0].subject) == (2, "merged")
    assert [file.path for file in run_changes.files] == ["own", "theirs"]


def test_a_folder_in_a_repository_is_that_repository(recorded: Recorded, repository: Repository) -> None:
    repository.commit("src/a", "1\n")
    run_changes = recorded(lambda: (repository.path / "readme").unlink(), repository.path / "src")
    assert (run_changes.place, described(run_changes)) == (str(repository.path), [("readme", "deleted", 0, 1)])


def test_the_first_commit_of_a_repository(tmp_path: Path, run_dir: Path) -> None:
    repository = Repository(tmp_path / "new", tmp_path / "home", commit=False)
    recorder = ChangeRecorder(repository.environ)
    recorder.before(run_dir, str(repository.path))
    repository.commit("readme", "hello\n")

    run_changes = recorder.after(run_dir)

    assert run_changes is not None
    assert (run_changes.head_before, run_changes.commit_count, described(run_changes)) == (
        None,
        1,
        [("readme", "added", 1, 0)],
    )


def test_nothing_is_written_to_the_repository(recorded: Recorded, repository: Repository) -> None:
    (repository.path / "draft").write_text("mine\n")

    def listing() -> list[tuple[str, int]]:
        files = (path for path in (repository.path / ".git").rglob("*") if path.is_file())
        return sorted((str(path), path.stat().st_mtime_ns) for path in files)

    before = listing()
    recorded(lambda: (repository.path / "draft").write_text("its\n"))
    assert listing() == before
