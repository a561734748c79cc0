"""Where a work tree begins: where its task says, else where the task ended that it waited for."""

from dataclasses import replace

from claudomator_py.domain.worktree import BRANCHES, Tree, TreeFault, WorktreeRequest
from claudomator_py.hosts.git.git import GitRefused
from claudomator_py.hosts.git.records import TreeRecords
from claudomator_py.hosts.git.shadow import ShadowRepository

_HEADS = "refs/heads/"


def begun(shadow: ShadowRepository, tree: Tree, order: WorktreeRequest, records: TreeRecords) -> Tree:
    """Return the tree, which so far begins at what is checked out, with where it is to begin.

    Raises TreeFault where there is no such place; GitRefused.
    """
    if order.base is not None:
        return _at(shadow, tree, order.base)
    ends: dict[str, str] = {}
    changed = 0
    for name in order.after:
        record = records.read(name)
        if record is None or record[0].common_dir != tree.common_dir:
            continue
        state = records.state(name)
        changed += 0 if state is None else state.changed
        tip = _commit(shadow, f"{_HEADS}{record[0].branch}")
        # What is merged is in what is checked out, with all that came since.
        if tip is not None and not _has(shadow, tree.base, tip):
            ends[record[0].branch] = tip
    for branch, tip in ends.items():
        if all(_has(shadow, tip, other) for other in ends.values()):
            return replace(tree, base=tip, begun_at=branch, left_behind=changed)
    return replace(tree, passed_over=tuple(ends), left_behind=changed)


def _at(shadow: ShadowRepository, tree: Tree, base: str) -> Tree:
    commit = _commit(shadow, base)
    if commit is None:
        remedy = "correct `base`: a branch, a tag, or a task of depends_on"
        raise TreeFault(f"{tree.repository} has no branch, tag or commit {base}; {remedy}")
    is_branch = not base.startswith(BRANCHES) and _commit(shadow, f"{_HEADS}{base}") is not None
    return replace(tree, base=commit, begun_at=base, onto=f"{_HEADS}{base}" if is_branch else tree.onto)


def _commit(shadow: ShadowRepository, name: str) -> str | None:
    try:
        return shadow("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except GitRefused as refused:
        if refused.code == 1:
            return None
        raise


def _has(shadow: ShadowRepository, commit: str, other: str) -> bool:
    return shadow.says("merge-base", "--is-ancestor", other, commit)
