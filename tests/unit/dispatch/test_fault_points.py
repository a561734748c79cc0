"""A fault in every call that a tick makes on behalf of one task: every other task completes all the same.

The points are the calls of the tick's ports as they stand in its source, so that a new one is not forgotten.
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from claudomator_py.dispatch import collect
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK
from tests.fakes.agents import CLAUDE, CLAUDE_MODELS, CODEX
from tests.fakes.runs import EndedBy
from tests.fakes.world import START_MS, World

BYSTANDERS = 19
GEMINI = AgentSpec(name="gemini", kind="gemini", models=CLAUDE_MODELS)
MODULES = (
    *("apply_report", "collect", "agent_states", "heads", "lanes", "observe", "reconciler"),
    *("run_context", "start"),
    "../hosts/reporting",
)
PORTS = (
    *("applier", "budgets", "collector", "database", "host", "worktrees", "monitor", "registry"),
    *("resuming", "starter"),
)
OF_A_KIND = ("launch", "reader", "transcript")

WHOLE_TICK = {
    # What is asked once for all tasks: if that fails, so does the tick, and the next one begins it anew.
    "reporting.watch monitor.keep",
    *("observe.day_end budgets.day", "observe.present budgets.spent", "observe.present budgets.day_left"),
    *("observe._spent_holds budgets.day_holds", "observe._spent_holds budgets.window_holds"),
    "observe._spent_holds budgets.keeps_windows",
    *("reconciler._notice_clock database.write", "reconciler._notice_clock database.read"),
    *("reconciler.sweep database.read", "reconciler.sweep host.sweep", "reconciler.tick database.probe"),
    *("reconciler.tick database.read", "reconciler._flush database.flush", "reconciler._flush collector.begun"),
    "reconciler.tick database.together",
    *("reconciler._start database.read", "reconciler._start starter.start", "reconciler._start collector.expect"),
    "reconciler._forget_ended database.read",
    *("reconciler._report database.read", "reconciler._starting_again host.host_of"),
    *("agent_states.agent_states registry.health", "agent_states.agent_states registry.unfenced"),
}
ELSEWHERE = {
    "collect._subject database.read",  # of a run that an earlier daemon has started, see test_ends.py
    "collect._listen database.write",  # of a run that tests a limit
    "heads._asked registry.find",  # of a task whose tier is asked for
    # Of a check that the database does not know, as an older copy was put back: tests/e2e/test_backup.py.
    "collect._without_record host.reconcile",
    "collect._take_over_check database.write",
    # What no task is at: the daemon's begin and end, and what it is asked.
    *("reporting.start_reading monitor.start", "reporting.close monitor.close", "reporting.backlog monitor.backlog"),
    "start._discard host.remove",  # after a change in between, see test_starting.py
    # Of a success with `commit: true` that has left files in a tree: tests/e2e/test_worktrees.py.
    "apply_report.apply worktrees.committed",
}


@dataclass(frozen=True)
class Way:
    """How a task gets to a point. fields: of the task. outcome, exit_code, ended_by: of its agent, or of its check.

    then: what happens to it once it runs; stays: for how many seconds it runs on. also: other points that fail for it,
    without which this one is not passed.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=lambda: {"status": "succeeded"})
    check_exit: int = 0
    ended_by: EndedBy | None = None
    then: Callable[[World, str], None] = lambda world, name: None
    stays: int = 1
    also: tuple[str, ...] = ()


def cancelled(world: World, name: str) -> None:
    world.service.cancel(name)


def lost(world: World, name: str) -> None:
    world.host.kill_shim(world.live(name).id)


def orphaned(world: World, name: str) -> None:
    world.host.kill_shim(world.live(name).id, agent_lives=True)


def sleeping(world: World, name: str) -> None:
    world.host.write(world.live(name).id, str(world.now_ms + HOUR_MS).encode(), "stderr")


def saying(world: World, name: str) -> None:
    world.say(name, text="done")


def spending(world: World, name: str) -> None:
    world.use(name, cost_usd=0.1)


def overspending(world: World, name: str) -> None:
    world.use(name, cost_usd=2.0)


USUAL = Way({"check": ["make test"]})
BUDGET = {"budget": {"usd": 1.0}}
OVER = {"status": "failed", "reason": "budget", "cost_usd": 2.0}
LIMITED = {"status": "limited", "reason": "rate_limited", "reset_at": START_MS + HOUR_MS, "provenance": "reported"}

# A limit holds an account for an hour: that of others must not be it, whoever is picked first.
GEMINI_ONLY = {"agent": {"type": "gemini", "strict": True}}

WAYS = {
    "collect._attend host.cancel": Way(then=cancelled),
    "collect._listen host.cancel": Way(GEMINI_ONLY, then=sleeping),
    "collect.collect database.write": Way(also=("start._spawn host.spawn",)),
    "reporting.follow monitor.is_current": Way(GEMINI_ONLY, then=sleeping),
    "collect._count budgets.watches": Way(BUDGET),
    "collect._count budgets.change_and_record": Way(BUDGET, then=spending),
    "collect._count budgets.exceeded": Way(BUDGET, then=spending),
    "collect._count database.read": Way(BUDGET, then=spending),
    "collect._count database.write": Way(BUDGET, then=spending),
    "collect._count host.cancel": Way(BUDGET, then=overspending),
    "collect._wind_down host.wind_down": Way(then=saying, stays=3),
    "collect._without_record host.end_survivors": Way(then=lost),
    "collect._without_record database.flush": Way(then=lost),
    "collect._is_gone host.reconcile": Way(then=lost),
    "apply_report._end database.sees_as_of": Way(),
    "apply_report._ended budgets.exceeded": Way(BUDGET, OVER),
    "reconciler._change database.write": Way({"not_before": "2026-09-21T14:13:21Z"}),
    "start._usd_left database.read": Way(BUDGET),
    "start._usd_left budgets.usd_left": Way(BUDGET),
    "start._tree worktrees.tree": Way({"isolation": "worktree", "working_dir": "/srv/repository"}),
    "run_context._going_on resuming.obstacle": Way({"continues": "bystander-0"}),
    "run_context.scratch host.scratch": Way({"continues": "bystander-0"}),
    "run_context._transcript kind.transcript": Way({"agent": {"type": "gemini"}}, LIMITED),
    "start._refuse database.write": Way(also=("start._prepare kind.launch",)),
    "start._give_up registry.find": Way(also=("start._prepare registry.find",)),
    "start._give_up registry.kind_of": Way(also=("start._prepare registry.find",)),
}
"""Of the points that a task with a check does not pass by itself."""


def points_in_source() -> Iterator[str]:
    """``module.function port.method`` of each call."""
    for name in MODULES:
        path = Path(collect.__file__).parent / f"{name}.py"
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = ast.unparse(node.func.value).removeprefix("self._")
                    if owner in PORTS:
                        yield f"{path.stem}.{function.name} {owner}.{node.func.attr}"
                    elif node.func.attr in OF_A_KIND:
                        yield f"{path.stem}.{function.name} kind.{node.func.attr}"


POINTS = sorted(set(points_in_source()) - WHOLE_TICK - ELSEWHERE)


class Faults:
    """What fails, and for whom. passed: the tasks for which it has. on: whether anything fails at present."""

    def __init__(self, world: World, error: Callable[[], Exception]) -> None:
        self.world = world
        self.error = error
        self.of: dict[str, tuple[str, ...]] = {}
        self.passed: set[tuple[str, str]] = set()
        self.on = True

    def wrap(self, port: str, real: Any) -> Any:
        return _Port(self, port, real)

    def called(self, point: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        item = self.world.faults.current
        task = None if item is None else item.task_id
        if not self.on or task is None or point not in self.of.get(task, ()):
            return call(*given, **named)
        if point != self.of[task][0]:
            raise ValueError("on the way to another fault")
        self.passed.add((task, point))
        if not point.endswith(("database.write", "database.submit")):
            raise self.error()

        def undone(connection: Any) -> None:
            given[0](connection)
            raise self.error()

        return call(undone)


class _Port:
    def __init__(self, faults: Faults, port: str, real: Any) -> None:
        self._faults, self._port, self._real = faults, port, real

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if self._port == "registry" and name == "kinds":
            return {kind: self._faults.wrap("kind", real) for kind, real in value.items()}
        if not callable(value):
            return value

        def call(*given: Any, **named: Any) -> Any:
            code = sys._getframe(1).f_code
            function = code.co_qualname.partition(".<locals>")[0].rpartition(".")[2]
            point = f"{Path(code.co_filename).stem}.{function} {self._port}.{name}"
            result = self._faults.called(point, value, *given, **named)
            return self._faults.wrap("kind", result) if name == "kind_of" else result

        return call


class Night:
    """Tasks of which each victim has a point at which everything fails for it, and bystanders that have none."""

    def __init__(self, database: Database, error: Callable[[], Exception]) -> None:
        agents = [agent.model_copy(update={"max_concurrent": 100}) for agent in (CLAUDE, CODEX, GEMINI)]
        self.world = world = World(database, agents=agents, total=200)
        self.faults = Faults(world, error)
        kinds = {kind: self.faults.wrap("kind", real) for kind, real in world.kinds.items()}
        observing = (world.observer, world.observer.reader)
        parts = (world.collector, world.applier, world.starter, world.starter._contexts, *observing)
        world.host._kinds = kinds
        world.host._monitor = self.faults.wrap("monitor", world.host._monitor)
        for owner in (*parts, world.reconciler):
            for port in PORTS:
                if hasattr(owner, f"_{port}"):
                    setattr(owner, f"_{port}", self.faults.wrap(port, getattr(owner, f"_{port}")))
        self.ways: dict[str, Way] = {}
        self.ids: dict[str, str] = {}
        self.told: Counter[str] = Counter()
        self._submit("bystander-0", Way({"agent": {"type": "claude", "strict": True}}))
        for number in range(1, BYSTANDERS):
            self._submit(f"bystander-{number}", USUAL if number % 2 else Way())
        for point in POINTS:
            way = WAYS.get(point, USUAL)
            self._submit(point, way)
            self.faults.of[self.ids[point]] = (point, *way.also)

    def _submit(self, name: str, way: Way) -> None:
        view = self.world.submit(name.replace(" ", "_"), **way.fields)
        self.ids[name], self.ways[view.id] = view.id, way

    def second(self, after_ms: int = SECOND_MS) -> None:
        """A tick, and whatever runs does what it does."""
        self.world.tick(after_ms)
        host = self.world.host
        for (run_id, step), directory in list(host.directories.items()):
            if not (directory.shim and directory.started):
                continue
            run = self.world.run_requests.get(run_id)
            way = self.ways[run.task_id]
            if run.state == "starting" and step == 0:
                continue
            if step == 0 and self.told[run.task_id] < way.stays:
                # What it is told, or says, is to be seen while it runs.
                self.told[run.task_id] += 1
                if self.told[run.task_id] == 1:
                    way.then(self.world, self.world.service.get(run.task_id).name)
            elif step == 0:
                outcome = way.outcome if way.outcome is not LIMITED or run.agent == "gemini" else USUAL.outcome
                host.write(run_id, Outcome(**outcome).model_dump_json().encode() + b"\n")
                host.end(run_id, 0, ended_by=way.ended_by)
            else:
                host.end(run_id, way.check_exit, step=step)

    def last_until(self, over: Callable[[], bool], step_ms: int) -> None:
        """Ten seconds, and then steps, until that is so; forty at most."""
        for after_ms in (*[SECOND_MS] * 10, *[step_ms] * 40):
            if over():
                return
            self.second(after_ms)

    def bystanders(self) -> set[str]:
        """The states that they are in."""
        return {state for name, state in self._states().items() if name.startswith("bystander")}

    def going(self) -> dict[str, str]:
        """The tasks that have not ended."""
        return {name: state for name, state in self._states().items() if state not in ENDED}

    def missed(self) -> list[str]:
        """The points that no victim has come to."""
        return [point for point in POINTS if (self.ids[point], point) not in self.faults.passed]

    def _states(self) -> dict[str, str]:
        query = select(TASK.c.id, TASK.c.state)
        rows = self.world.database.read(lambda connection: connection.execute(query).all())
        results = {row.id: row.state for row in rows}
        return {name: results[task_id] for name, task_id in self.ids.items()}


def test_every_point_of_the_source_is_gone_through_or_concerns_the_whole_tick() -> None:
    results = set(points_in_source())
    assert results >= WHOLE_TICK | ELSEWHERE | set(WAYS)


def unreadable() -> Exception:
    return OSError(5, "Input/output error")


def bug() -> Exception:
    return RecursionError("maximum recursion depth exceeded")


@pytest.mark.parametrize("error", [unreadable, bug])
def test_a_fault_in_any_call_for_one_task_leaves_all_others_to_complete(
    database: Database, error: Callable[[], Exception]
) -> None:
    night = Night(database, error)
    night.last_until(lambda: night.bystanders() == {"COMPLETED"} and not night.missed(), MINUTE_MS)
    assert night.bystanders() == {"COMPLETED"}
    assert night.missed() == [], "WAYS has to say how a task gets there, or WHOLE_TICK that it is for all of them"

    night.faults.on = False
    night.last_until(lambda: not night.going(), HOUR_MS)
    assert night.going() == {}
    assert night.world.faults.all() == []
