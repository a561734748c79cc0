"""Branches of work trees: where a branch begins, which is given by its task or else by the task that this one waited
for, and whether its changes were taken over without its commits, by squashing, rebasing or cherry-picking."""

import shutil
from dataclasses import replace
from pathlib import Path

from claudomator_py.domain.worktree import BRANCHES, HEADS, Tree, TreeFault, TreeStanding, WorktreeRequest, short_ref
from claudomator_py.hosts.git import GitRefused
from claudomator_py.hosts.git.records import TreeRecords
from claudomator_py.hosts.git.shadow import ShadowRepository


def begun(shadow: ShadowRepository, tree: Tree, order: WorktreeRequest, records: TreeRecords) -> Tree:
    """Return the tree with the commit at which it begins, instead of the one that is checked out. Raises TreeFault if
    there is no such commit; GitRefused."""
    if order.base is not None:
        return _at(shadow, tree, order.base)
    ends: dict[str, str] = {}
    changed, unexamined = 0, list[str]()
    for name in order.after:
        record = records.read(name)
        if record is None or record[0].common_dir != tree.common_dir:
            continue
        state = records.state(name)
        changed += 0 if state is None else state.changed
        if state is not None and state.standing is TreeStanding.UNKNOWN:
            unexamined.append(record[0].branch)
        branch, tip = _end(shadow, record[0])
        # The checkout contains merged work, and everything since.
        if tip is not None and not shadow.contains(tree.base, tip):
            ends[branch] = tip
    tree = replace(tree, left_behind=changed, unexamined=tuple(unexamined))
    for branch, tip in ends.items():
        if all(shadow.contains(tip, other) for other in ends.values()):
            return replace(tree, base=tip, begun_at=branch)
    return replace(tree, passed_over=tuple(ends))


def _end(shadow: ShadowRepository, tree: Tree) -> tuple[str, str | None]:
    """Return the branch and the commit at which the runs in a tree ended: its own branch, or what is checked out there
    if that is ahead of it, because an agent has made another branch. None for the commit if there is none."""
    tip = shadow.tip(tree.ref)
    if not Path(tree.git_dir, "HEAD").is_file():
        return tree.branch, tip
    head = shadow("rev-parse", "--verify", "HEAD", git_dir=tree.git_dir)
    if head == tip or (tip is not None and not shadow.contains(head, tip)):
        return tree.branch, tip
    name = shadow("rev-parse", "--symbolic-full-name", "HEAD", git_dir=tree.git_dir)
    return short_ref(name) if name.startswith(HEADS) else tree.branch, head


def _at(shadow: ShadowRepository, tree: Tree, base: str) -> Tree:
    commit = _commit(shadow, base)
    if commit is None:
        remedy = "correct `base`: a branch, a tag, or a task of depends_on"
        raise TreeFault(f"{tree.repository} has no branch, tag or commit {base}; {remedy}")
    is_branch = not base.startswith(BRANCHES) and shadow.has(f"{HEADS}{base}")
    return replace(tree, base=commit, begun_at=base, onto=f"{HEADS}{base}" if is_branch else tree.onto)


def _commit(shadow: ShadowRepository, name: str) -> str | None:
    try:
        return shadow("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except GitRefused as refused:
        if refused.code == 1:
            return None
        raise


MAX_COMPARED = 1_000
"""Maximum number of commits on either side whose patches are compared."""
_LOOK_S = 20.0


def is_absorbed(shadow: ShadowRepository, commit: str, target: str) -> bool:
    """Return whether the target contains all changes of the commit, although the commit is not its ancestor. False if
    git cannot tell, because work that was taken over may be removed. Writes nothing to the repository."""
    try:
        parted = shadow("merge-base", commit, target)
        if _tree(shadow, parted) == _tree(shadow, commit):
            return False  # no changes in total; its commits may be the only record of what was tried
        return _merges_to_nothing(shadow, commit, target) or _is_picked(shadow, commit, target)
    except (GitRefused, OSError, ValueError):
        return False


def _merges_to_nothing(shadow: ShadowRepository, commit: str, target: str) -> bool:
    (tried := shadow.path / "absorbed").mkdir()
    try:
        merged = shadow.merge_tree(target, commit, variables=shadow.writing_to(tried), timeout_s=_LOOK_S)
        return merged == _tree(shadow, target)
    except GitRefused:
        return False
    finally:
        shutil.rmtree(tried, ignore_errors=True)


def _is_picked(shadow: ShadowRepository, commit: str, target: str) -> bool:
    """Return whether its patches are in the target, which also holds if the target has changed the same lines since."""
    sides = shadow("rev-list", "--count", "--left-right", f"{target}...{commit}").split()
    merges = int(shadow("rev-list", "--count", "--merges", f"{target}..{commit}"))
    if merges or any(int(count) > MAX_COMPARED for count in sides):
        return False
    marks = shadow("cherry", target, commit, timeout_s=_LOOK_S).splitlines()
    return bool(marks) and all(mark.startswith("- ") for mark in marks)


def _tree(shadow: ShadowRepository, commit: str) -> str:
    return shadow("rev-parse", "--verify", f"{commit}^{{tree}}")
