"""Whether a branch has been taken over without its commits: squashed, rebased or picked one by one."""

import shutil

from claudomator_py.hosts.git.git import GitRefused
from claudomator_py.hosts.git.shadow import ShadowRepository

MAX_COMPARED = 1_000
"""Commits on either side whose patches are compared."""
_LOOK_S = 20.0


def is_absorbed(shadow: ShadowRepository, objects: str, commit: str, target: str) -> bool:
    """Return whether all that the commit brings is in the target, though it is no ancestor of that.

    objects: the repository's folder of them. Where git cannot tell it is not, as what is taken over may be removed.
    Nothing is written to the repository.
    """
    try:
        parted = shadow("merge-base", commit, target)
        if _tree(shadow, parted) == _tree(shadow, commit):
            return False  # it brings nothing in all, and that may be all there is of what was tried
        return _merges_to_nothing(shadow, objects, commit, target) or _is_picked(shadow, commit, target)
    except (GitRefused, OSError, ValueError):
        return False


def _merges_to_nothing(shadow: ShadowRepository, objects: str, commit: str, target: str) -> bool:
    (tried := shadow.path / "absorbed").mkdir()
    try:
        own = {"GIT_OBJECT_DIRECTORY": str(tried), "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        merged = shadow("merge-tree", "--write-tree", "--no-messages", target, commit, variables=own, timeout_s=_LOOK_S)
        return merged == _tree(shadow, target)
    except GitRefused:
        return False
    finally:
        shutil.rmtree(tried, ignore_errors=True)


def _is_picked(shadow: ShadowRepository, commit: str, target: str) -> bool:
    """By patches, which stay what they were where the target has gone on in the same lines since."""
    sides = shadow("rev-list", "--count", "--left-right", f"{target}...{commit}").split()
    merges = int(shadow("rev-list", "--count", "--merges", f"{target}..{commit}"))
    if merges or any(int(count) > MAX_COMPARED for count in sides):
        return False
    marks = shadow("cherry", target, commit, timeout_s=_LOOK_S).splitlines()
    return bool(marks) and all(mark.startswith("- ") for mark in marks)


def _tree(shadow: ShadowRepository, commit: str) -> str:
    return shadow("rev-parse", "--verify", f"{commit}^{{tree}}")
