"""Fixtures of the tests of runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.worktree import Tree
from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.described import Recorded, SlowRecorder
from tests.integration.hosts.repository import Repository, order
from tests.integration.hosts.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run directories in a fresh root; nothing of them lives on after the test."""
    root = tmp_path / "runs"
    root.mkdir()
    rig = Rig(root)
    yield rig
    rig.clean()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "home").mkdir()
    return Repository(tmp_path / "shop", tmp_path / "home")


@pytest.fixture
def trees(tmp_path: Path, repository: Repository) -> LocalTrees:
    return LocalTrees(tmp_path / "state" / "worktrees", repository.environ)


@pytest.fixture
def tree(trees: LocalTrees, repository: Repository) -> Tree:
    return trees.ensure(order(repository.path))


@pytest.fixture
def branches(trees: LocalTrees) -> LocalBranches:
    return LocalBranches(trees)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


@pytest.fixture
def recorded(repository: Repository, run_dir: Path) -> Recorded:
    """Records what is done between the two looks, at the repository or at another folder."""
    recorder = ChangeRecorder(repository.environ)

    def record(act: Callable[[], object], folder: Path = repository.path) -> RunChanges:
        recorder.before(run_dir, str(folder))
        act()
        run_changes = recorder.after(run_dir)
        assert run_changes is not None
        assert recorder.after(run_dir) == run_changes, "it is read again after a crash of the daemon"
        return run_changes

    return record


@pytest.fixture
def recorder() -> SlowRecorder:
    return SlowRecorder()
