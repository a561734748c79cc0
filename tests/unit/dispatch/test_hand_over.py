"""A file that comes alone is accepted by the tick that starts its task, in one commit."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.settings import Inbox
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import InboxWatcher, intake
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.integration.inbox.fakes import MemoryIntake
from tests.patience import PATIENCE_S


class _Ticking:
    """Has a tick do at once what is handed over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ticks = ThreadPoolExecutor(1)
        world.intake.hand_over = self.hand_over

    def hand_over(self, submit: Callable[[], None]) -> bool:
        submit()
        self._ticks.submit(self._world.tick)
        return True


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "TICK_S", PATIENCE_S)


@pytest.fixture
def commits(world: World) -> list[int]:
    counted: list[int] = []
    world.database.on_commit(lambda: counted.append(1))
    return counted


def _taken(world: World, *names: str) -> Sequence[Problem]:
    return world.take("/in/t.yaml", *(spec(name) for name in names))


def test_acceptance_and_start_are_one_commit(world: World, commits: list[int]) -> None:
    unplanned: list[int] = []
    world.database.on_commit(lambda: unplanned.append(1), planned=False)
    _Ticking(world)
    assert _taken(world, "t") == []
    assert (world.state("t"), len(commits), unplanned) == ("RUNNING", 1, [])
    assert world.intake.was_planned


def test_a_file_that_is_refused_leaves_the_tick_as_it_is(world: World) -> None:
    world.submit("before")
    _Ticking(world)
    [problem] = world.take("/in/t.yaml", spec("t", specialist="nobody"))
    assert "nobody" in problem.message
    assert world.names() == ["before"]
    assert world.state("before") == "RUNNING"


def test_without_a_tick_the_writer_accepts_it_and_has_one_woken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    world.database.on_commit(lambda: woken.append(1), planned=False)
    monkeypatch.setattr(intake, "TICK_S", 0.001)

    def hand_over(submit: Callable[[], None]) -> bool:
        submit()
        return True

    world.intake.hand_over = hand_over
    assert _taken(world, "t") == []
    assert (world.state("t"), woken) == ("QUEUED ready", [1])


def test_many_tasks_or_files_are_accepted_on_the_thread_that_read_them(world: World) -> None:
    handed: list[bool] = []

    def hand_over(submit: Callable[[], None]) -> bool:
        handed.append(True)
        return False

    world.intake.hand_over = hand_over
    assert _taken(world, *(f"t{number}" for number in range(intake.MAX_IN_TICK + 1))) == []
    assert world.take_many({f"/in/{name}.yaml": [spec(name)] for name in ("a", "b")}) == [[], []]
    assert handed == []
    assert world.take("/in/c.yaml", spec("c")) == []
    assert (handed, world.intake.was_planned, world.state("c")) == ([True], False, "QUEUED ready")


def test_nothing_is_handed_over_while_more_files_are_arriving(tmp_path: Path) -> None:
    calls: list[str] = []
    inbox = InboxWatcher([tmp_path], MemoryIntake(), on_change=lambda: calls.append("woken"), guard=InboxGuard(Inbox()))
    folder = str(tmp_path)

    def hand_over() -> bool:
        return inbox.hand_over(lambda: calls.append("queued"))

    inbox._on_names(folder, ["a.yaml"])
    assert not hand_over(), "its event has not been taken yet"
    inbox._dirty.clear()
    assert inbox.arriving
    assert hand_over()
    assert not inbox.arriving, "the tick would start nothing"
    assert calls == ["queued", "woken"]
    inbox._on_names(folder, ["b.yaml", "c.yaml"])
    inbox._dirty.clear()
    assert not hand_over()
    assert calls == ["queued", "woken"]
