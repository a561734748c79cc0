"""Names of trees and branches: fit for git and for folders, whatever tasks and repositories are called."""

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.worktree import TreeStanding, branch_name, is_tree_of, tree_name

TASK = "6fb01c7e-3e0b-4d8e-9a51-0b7f4a0f2c11"
# What git refuses in a ref, of what can occur here at all: see git-check-ref-format.
BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)[.-]|\.lock(/|$)|\.$|/$")


def test_the_names_say_repository_task_and_generation() -> None:
    assert tree_name("shop", "fix-login", TASK, 1) == "shop-fix-login-6fb01c7e"
    assert tree_name("shop", "fix-login", TASK, 3) == "shop-fix-login-6fb01c7e.3"
    assert branch_name("fix-login", "shop-fix-login-6fb01c7e.3") == "claudomator/fix-login-6fb01c7e.3"


@given(st.text(), st.text(), st.uuids(), st.integers(1, 1000))
def test_every_name_is_a_valid_ref_and_a_plain_folder(repository: str, task: str, id_: uuid.UUID, number: int) -> None:
    tree = tree_name(repository, task, str(id_), number)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", tree)
    assert len(tree) < 200
    branch = branch_name(task, tree)
    assert not BAD.search(branch), branch
    assert branch.startswith("claudomator/")


@given(st.text(), st.uuids(), st.uuids(), st.integers(1, 1000))
def test_a_tree_is_known_as_that_of_its_task(task: str, mine: uuid.UUID, other: uuid.UUID, number: int) -> None:
    tree = tree_name("shop", task, str(mine), number)
    assert is_tree_of(tree, str(mine))
    assert is_tree_of(tree, str(other)) == (mine.hex[:8] == other.hex[:8])
    assert not is_tree_of("", str(mine))


def test_only_what_holds_nothing_of_its_own_is_spent() -> None:
    spent = {standing for standing in TreeStanding if standing.is_spent}
    assert spent == {TreeStanding.UNCHANGED, TreeStanding.MERGED, TreeStanding.GONE}
