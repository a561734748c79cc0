"""What became of branches and tags is told by what it was: made, moved, renamed, deleted."""

import pytest

from claudomator_py.domain.changes import RefChange, RunChanges

A, B = "a" * 40, "b" * 40


def changes(*refs: tuple[str, str | None, str | None], **fields: object) -> RunChanges:
    made = tuple(RefChange(name=f"refs/{name}", before=before, after=after) for name, before, after in refs)
    return RunChanges.model_validate({"place": "/r", "refs": made, "ref_count": len(made), "head": A} | fields)


@pytest.mark.parametrize(
    ("refs", "fields", "summary"),
    [
        ([("heads/x", None, A)], {}, "1 branch made"),
        ([("heads/x", A, B)], {}, "1 branch moved"),
        ([("heads/x", A, B)], {"commit_count": 1}, "1 commit"),
        ([("heads/claudomator/x", None, B)], {"commit_count": 1, "branch": "claudomator/x"}, "1 commit"),
        ([("heads/claudomator/x", None, B)], {"commit_count": 1, "branch": "main"}, "1 commit, 1 branch made"),
        ([("tags/v", A, B)], {"commit_count": 2}, "2 commits, 1 tag moved"),
        ([("tags/v", A, None)], {}, "1 tag deleted"),
        ([("heads/x", A, None), ("heads/y", None, A)], {}, "1 branch renamed"),
        ([("heads/x", A, None), ("heads/y", None, B)], {}, "1 branch made, 1 branch deleted"),
        ([("heads/x", A, None), ("heads/y", None, A), ("heads/z", None, A)], {}, "2 branches made, 1 branch deleted"),
        ([("heads/x", A, None), ("tags/y", None, A)], {}, "1 tag made, 1 branch deleted"),
        ([("notes/x", A, B)], {}, "1 reference changed"),
        ([("heads/x", None, A)], {"branch": "x", "branch_before": "main"}, "1 branch made"),
        ([("heads/x", A, None), ("heads/y", None, A)], {"branch": "y", "branch_before": "x"}, "1 branch renamed"),
        ([], {"branch": "x", "branch_before": "main"}, "x is checked out"),
        ([], {"branch": "x", "branch_before": "main", "head_before": B}, "x is checked out"),
        ([], {"branch_before": "main"}, "HEAD is detached"),
        ([], {"branch": "main", "branch_before": "main", "head_before": B}, "another commit is checked out"),
    ],
)
def test_the_line_names_what_was_done(
    refs: list[tuple[str, str | None, str | None]], fields: dict[str, object], summary: str
) -> None:
    assert changes(*refs, **({"head_before": A} | fields)).summary == summary


def test_each_reference_is_told_once() -> None:
    ref_changes = changes(("heads/x", A, None), ("heads/y", None, A), ("tags/v", B, A)).ref_changes
    assert ref_changes == [("refs/heads/x", "renamed to refs/heads/y"), ("refs/tags/v", "bbbbbbbb -> aaaaaaaa")]


@pytest.mark.parametrize(
    ("branch", "before", "record"),
    [
        ("main", "main", "on branch main"),
        ("x", "main", "on branch x (before: main)"),
        (None, "main", "HEAD is detached (before: main)"),
        ("main", None, "on branch main"),
        (None, None, None),
    ],
)
def test_what_is_checked_out_is_told(branch: str | None, before: str | None, record: str | None) -> None:
    assert changes(branch=branch, branch_before=before).checked_out == record


def test_a_branch_of_the_task_was_made_where_it_began_and_moved_from_elsewhere() -> None:
    run_changes = changes(("heads/claudomator/t", A, B), ("heads/main", A, B))
    made = run_changes.with_new_branch("claudomator/t", A)
    assert [ref.word for ref in made.refs] == ["made", "moved"]
    assert run_changes.with_new_branch("claudomator/t", B) is run_changes
    assert run_changes.with_new_branch("claudomator/other", A) is run_changes


def test_a_branch_of_the_task_that_its_agent_deleted_or_renamed_was_not_made() -> None:
    deleted = changes(("heads/claudomator/t", A, None)).with_new_branch("claudomator/t", A)
    assert (deleted.summary.split(", ")[0], deleted.ref_changes[0][1]) == (
        "1 branch deleted",
        f"deleted, was at {A[:8]}",
    )
    renamed = changes(("heads/claudomator/t", A, None), ("heads/topic", None, A)).with_new_branch("claudomator/t", A)
    assert renamed.summary.split(", ")[0] == "1 branch renamed"
