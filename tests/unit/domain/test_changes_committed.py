"""What a run changed, once what it left uncommitted is committed for it."""

from claudomator_py.domain.changes import Commit, FileChange, RefChange, RunChanges

FILE = FileChange(path="a", change="added", added=1, removed=0)
LEFT = RunChanges(
    place="/t", branch="b", head="1" * 40, head_before="1" * 40, files=(FILE,), file_count=1, added=1, untracked_count=1
)
MADE = Commit(id="2" * 40, subject="t", author="n")


def test_the_commit_is_the_newest_and_nothing_is_left() -> None:
    done = LEFT.committed(MADE)
    assert LEFT.summary == "1 file (+1 -0), 1 not committed"
    assert done.summary == "1 commit, 1 file (+1 -0)"
    assert (done.head, done.ref_count) == (MADE.id, 1)
    assert done.refs == (RefChange(name="refs/heads/b", before="1" * 40, after="2" * 40),)


def test_a_branch_that_the_run_moved_is_told_once() -> None:
    moved = RefChange(name="refs/heads/b", before="0" * 40, after="1" * 40)
    other = RefChange(name="refs/tags/t", before=None, after="1" * 40)
    done = LEFT.model_copy(update={"refs": (other, moved), "ref_count": 2}).committed(MADE)
    assert done.ref_count == 2
    assert set(done.refs) == {other, moved.model_copy(update={"after": MADE.id})}


def test_a_repository_that_git_does_not_know_is_left() -> None:
    left = LEFT.model_copy(update={"untracked": ("new", "vendor/lib/"), "untracked_count": 2})
    assert left.committed(MADE).summary == "1 commit, 1 file (+1 -0), 1 not committed"
