"""Any interleaving of requests, files, ends of runs, crashes and time: no task is ever stuck, or run twice at once."""

import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import Connection, select

from claudomator_py.domain.errors import Conflict, NotFound
from claudomator_py.domain.lifecycle import Completed, NeedsInput, Queued, Running, Waiting, WaitReason
from claudomator_py.domain.outcome import REASON_POLICIES, Outcome, OutcomeStatus
from claudomator_py.domain.units import HOUR_MS, format_instant
from claudomator_py.scheduler.plan import plan
from claudomator_py.store import dependency_rows, task_rows
from claudomator_py.store.tables import RUN, TASK, Run, Task
from tests.databases import open_migrated
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

NAMES = ["a", "b", "c", "d"]
ENDS: list[dict[str, str]] = [
    *({"status": "succeeded"}, {"status": "succeeded"}, {"status": "needs_input"}),
    *({"status": "limited", "reason": "rate_limited"}, {"status": "failed", "reason": "auth"}),
    *({"status": "failed", "reason": reason} for reason in ("network", "refused", "overloaded", "agent_error")),
]
CONTENT = st.fixed_dictionaries(
    {"depends_on": st.lists(st.sampled_from(NAMES), max_size=2, unique=True)},
    optional={
        "priority": st.sampled_from(["low", "urgent"]),
        "not_before": st.integers(-1, 3).map(lambda hours: format_instant(START_MS + hours * HOUR_MS)),
        "working_dir": st.sampled_from(["/srv/a", "/srv/b"]),
        "check": st.just([["make", "test"]]),
        "on_lost": st.sampled_from(["fail", "retry"]),
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True),
        "agent": st.sampled_from([{"type": "codex"}, {"type": "claude", "strict": True}]),
    },
)


class Changes(RuleBasedStateMachine):
    """Names are those of files; each file holds one task."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._database = open_migrated(Path(self._folder.name))
        self.world = World(self._database)
        self.stamp = 0
        self.versions: dict[str, int] = {}

    def teardown(self) -> None:
        self._everything_comes_to_rest()
        self._database.close()
        self._folder.cleanup()

    # --- what happens -----------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), content=CONTENT)
    def file(self, name: str, content: dict[str, Any]) -> None:
        depends_on = [other for other in content.get("depends_on", ()) if other != name]
        self.stamp += 1
        fields = content | {"depends_on": depends_on, "retry": {"max_attempts": 2, "backoff": "1m"}}
        problems = self.world.take(f"/in/{name}.yaml", spec(name, **fields), mtime_ns=self.stamp)
        assert all(problem.field == "depends_on" for problem in problems)

    @rule(name=st.sampled_from(NAMES))
    def cancel(self, name: str) -> None:
        self._ask(lambda: self.world.service.cancel(name))

    @rule(name=st.sampled_from(NAMES), force=st.booleans(), agent=st.sampled_from([None, "codex"]))
    def restart(self, name: str, force: bool, agent: str | None) -> None:
        self._ask(lambda: self.world.restart(name, force=force, agent=agent))

    @rule(ms=st.sampled_from([0, 1_000, 90_000, HOUR_MS]))
    def tick(self, ms: int) -> None:
        self.world.tick(ms)

    @rule(data=st.data(), end=st.sampled_from(ENDS), seen=st.booleans())
    def end(self, data: st.DataObject, end: dict[str, str], seen: bool) -> None:
        if not self.world.running():
            self.world.tick()
        if not self.world.running():
            return
        name = data.draw(st.sampled_from(sorted(self.world.running())))
        run = self.world.live(name)
        directory = self.world.host.directories[run.id, self._step(run)]
        if not (directory.shim and directory.started):
            return
        if self._step(run) == 0:
            self.world.say(name, **end)
        exit_code = 0 if end["status"] == "succeeded" else 1
        self.world.host.end(run.id, exit_code, step=self._step(run))
        if seen:
            self.world.tick()

    @precondition(lambda self: self.world.running())
    @rule(data=st.data(), survivors=st.integers(0, 1))
    def kill_shim(self, data: st.DataObject, survivors: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.running())))
        run = self.world.live(name)
        self.world.host.kill_shim(run.id, self._step(run))
        self.world.host.survivors[run.id] = survivors

    @rule(slow=st.booleans(), stubborn=st.booleans())
    def weather(self, slow: bool, stubborn: bool) -> None:
        self.world.host.slow, self.world.host.stubborn = slow, stubborn
        for (run_id, step), directory in self.world.host.directories.items():
            if directory.shim and not slow:
                self.world.host.begin(run_id, step)
            if directory.shim and directory.started and directory.cancelled and not stubborn:
                self.world.host.end(run_id, None, ended_by="cancel", step=step)

    @rule(agent=st.sampled_from(["claude", "codex"]))
    def release(self, agent: str) -> None:
        self.world.roster.release(agent)

    @rule()
    def daemon_restarts(self) -> None:
        self.world.restarted_daemon()

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def states_are_valid_and_versions_rise(self) -> None:
        tasks, _ = self._rows()
        for task in tasks:
            assert task_rows.columns_of(task_rows.state_of(task)).items() <= task.model_dump().items()
            assert task.version >= self.versions.get(task.id, 0)
            self.versions[task.id] = task.version

    @invariant()
    def a_running_task_has_one_live_run_and_no_other_has_any(self) -> None:
        tasks, runs = self._rows()
        live = Counter(run.task_id for run in runs if run.live)
        for task in tasks:
            assert live[task.id] == (1 if task.state == "RUNNING" else 0), task
            if task.state == "RUNNING":
                assert any(run.live and run.id == task.last_run_id for run in runs)

    @invariant()
    def runs_are_numbered_and_no_attempt_exceeds_its_allowance(self) -> None:
        _, runs = self._rows()
        assert len({(run.task_id, run.generation, run.seq) for run in runs}) == len(runs)
        assert len({run.id for run in runs}) == len(runs)
        assert all(1 <= run.attempt <= 2 for run in runs)
        by_generation: dict[tuple[str, int], list[int]] = {}
        for run in sorted(runs, key=lambda run: run.seq):
            by_generation.setdefault((run.task_id, run.generation), []).append(run.attempt)
        assert all(attempts == sorted(attempts) for attempts in by_generation.values())

    @invariant()
    def a_failure_that_counts_uses_up_an_attempt(self) -> None:
        _, runs = self._rows()
        for run in runs:
            later = [other for other in runs if other.task_id == run.task_id and other.generation == run.generation]
            following = next((other for other in later if other.seq == run.seq + 1), None)
            if following is not None and run.state == "ended":
                outcome = Outcome.model_validate(run.outcome)
                assert outcome.reason is not None
                limited = outcome.status is OutcomeStatus.LIMITED
                counts = REASON_POLICIES[outcome.reason].counts_attempt and not limited
                assert following.attempt == run.attempt + counts

    @invariant()
    def no_cap_is_exceeded(self) -> None:
        _, runs = self._rows()
        live = [run for run in runs if run.live]
        assert len(live) <= 4
        assert all(number <= 2 for number in Counter(run.agent for run in live).values())
        assert all(number == 1 for directory, number in Counter(run.dir_key for run in live).items() if directory)

    @invariant()
    def no_task_is_stuck(self) -> None:
        """Each waits for something that exists or a time, needs a person, runs, is about to start, or says why not."""
        tasks, _ = self._rows()
        for task in tasks:
            match task_rows.state_of(task):
                case Waiting(WaitReason.DEPENDENCY):
                    states = self._database.read(partial(dependency_rows.states, task_id=task.id))
                    open_states = {state.state for state in states} - {"COMPLETED"}
                    assert open_states, f"{task.name} waits for nothing"
                    assert not open_states & {"FAILED", "CANCELLED"}, f"{task.name} waits for what has failed"
                case Waiting(_, until):
                    assert until is not None
                case Queued():
                    assert self.world.task(task.name).reason in ("ready", "slots", "limited", "workdir")
                case Running():
                    assert task.last_run_id is not None
                case Completed() | NeedsInput():
                    pass
            assert task.state == "RUNNING" or task.cancel_requested_ms is None
            assert task.state == "RUNNING" or task.restart_requested is None

    @invariant()
    def dependencies_form_no_cycle(self) -> None:
        tasks, _ = self._rows()
        names: dict[str, list[str]] = {}
        for task in tasks:
            states = self._database.read(partial(dependency_rows.states, task_id=task.id))
            names[task.id] = [state.name for state in states]
        assert self._database.read(partial(dependency_rows.cycle, wanted=names, coming={})) is None

    @invariant()
    def what_is_done_waits_for_no_further_tick(self) -> None:
        """With nothing new, a second tick at the same time starts nothing that the first did not."""
        observed = self._database.read(self.world.observer.observe)
        if observed is None:
            return
        assert plan(observed.snapshot) == observed.actions
        names = [start.head.task_id for start in observed.starts]
        assert len(set(names)) == len(names)

    def _everything_comes_to_rest(self) -> None:
        """With willing agents, no limits and time, all that is left open waits for a person or an unseen name."""
        host = self.world.host
        for _ in range(60):
            self.weather(slow=False, stubborn=False)
            for name in self.world.running():
                run = self.world.live(name)
                directory = host.directories[run.id, self._step(run)]
                if directory.shim and directory.started:
                    if self._step(run) == 0:
                        self.world.say(name)
                    host.end(run.id, 0, step=self._step(run))
            for agent in ("claude", "codex"):
                self.world.roster.release(agent)
            self.world.tick(HOUR_MS)
            if not any(task.state in ("RUNNING", "QUEUED") or task.until_ms is not None for task in self._rows()[0]):
                break
        tasks, _ = self._rows()
        open_tasks = {task.id: task for task in tasks if task.state not in ("COMPLETED", "FAILED", "CANCELLED")}
        for task in open_tasks.values():
            if task.state != "NEEDS_INPUT":
                assert (task.state, task.reason) == ("WAITING", "dependency"), f"{task.name} is stuck: {task}"
                assert self._waits_for_somebody(task.id), f"{task.name} waits for nobody who could come"

    def _waits_for_somebody(self, task_id: str) -> bool:
        waits = self._database.read(lambda connection: dependency_rows.bound(connection, task_id))
        return any(
            state in (None, "NEEDS_INPUT") or (state == "WAITING" and bound and self._waits_for_somebody(bound))
            for _, bound, state in waits
        )

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _ask(self, request: Callable[[], object]) -> None:
        try:
            request()
        except (Conflict, NotFound):
            # A refusal changes nothing, which the invariants see.
            pass

    def _step(self, run: Run) -> int:
        return run.check_seq if run.state == "checking" else 0

    def _rows(self) -> tuple[list[Task], list[Run]]:
        def read(connection: Connection) -> tuple[list[Task], list[Run]]:
            tasks = Task.rows(connection, select(TASK))
            return tasks, [Run(**row._mapping) for row in connection.execute(select(RUN))]

        return self._database.read(read)


Changes.TestCase.settings = settings(
    max_examples=10, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestChanges = Changes.TestCase
