"""Work trees that are plain folders, made at once or when a test lets them."""

import threading
from collections.abc import Collection
from pathlib import Path

from claudomator_py.domain.worktree import Tree, TreeFault, TreeStanding, TreeState, WorktreeRequest
from tests.patience import PATIENCE_S


class FakeTrees:
    """Folders instead of work trees. made: lets ``ensure`` go on; fault: what it fails with, once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made = threading.Event()
        self.made.set()
        self.fault: TreeFault | None = None
        self.asked: list[str] = []
        self.orders: dict[str, WorktreeRequest] = {}
        self.states: dict[str, TreeState] = {}

    def ensure(self, order: WorktreeRequest) -> Tree:
        self.asked.append(order.name)
        self.orders[order.name] = order
        assert self.made.wait(PATIENCE_S)
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        (self.root / order.name).mkdir(exist_ok=True)
        tree = self.find(order.name)
        assert tree is not None
        return tree

    def all(self) -> list[Tree]:
        return [tree for name in self.orders if (tree := self.find(name)) is not None]

    def find(self, name: str) -> Tree | None:
        path, order = str(self.root / name), self.orders.get(name)
        if order is None:
            return None
        return Tree(name, path, order.branch, order.task_id, "/repo", "0" * 40, None, left_out=False, submodules=False)

    def look(self, tree: Tree, by_agent: Collection[str] | None = None) -> TreeState:
        self.states[tree.name] = TreeState(TreeStanding.AHEAD, commits=2)
        return self.states[tree.name]

    def seen(self, name: str) -> TreeState | None:
        return self.states.get(name)

    def by_check(self, name: str) -> frozenset[str]:
        return frozenset()

    def users(self, tree: Tree) -> list[int]:
        return []

    def size(self, tree: Tree) -> int:
        return 0

    def remove(self, tree: Tree) -> None:
        pass

    def close(self) -> None:
        self.made.set()
