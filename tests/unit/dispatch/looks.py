"""Looks at a queue of many lanes."""

import pytest

from claudomator_py.domain.agent import AgentSpec, Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.task import TaskSpec
from claudomator_py.scheduler.plan import Planner, StartRun
from claudomator_py.scheduler.snapshot import QueueHead
from claudomator_py.store import task_rows
from tests.fakes.agents import CLAUDE
from tests.fakes.world import World

SECOND = AgentSpec(
    name="second",
    kind="claude",
    max_concurrent=1,
    models=CLAUDE.models,
    fallback_model="haiku",
    default_tier=Tier.POWERFUL,
)


def queue(world: World, *contents: TaskSpec, path: str = "/in/queue.yaml") -> None:
    assert world.take(path, *contents) == []


class Looks:
    """What observing has done so far. read, decided: the names of the tasks whose content it has read, and on which it
    has decided, as often as it has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        self.decided: list[str] = []
        consider, read_spec = Planner.consider, task_rows.read_spec

        def considering(planner: Planner, head: QueueHead) -> StartRun | Blocked:
            self.decided.append(head.name)
            return consider(planner, head)

        def reading(content: object) -> TaskSpec:
            content_read = read_spec(content)
            self.read.append(content_read.name)
            return content_read

        monkeypatch.setattr(Planner, "consider", considering)
        monkeypatch.setattr(task_rows, "read_spec", reading)
