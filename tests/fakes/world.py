"""The service on a database, with a host, agents and a clock that a test drives: one world without processes."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import select

from claudomator_py.acts.reach import Reach
from claudomator_py.app.assemble import Surroundings, assemble
from claudomator_py.app.configured import Configured
from claudomator_py.dispatch.classify import TierAsker
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.reconciler import TickReport
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.specialists import SpecialistDirectory
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec, ModelChoice, Tier
from claudomator_py.domain.budget import DayBudget
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.reserve import Reserve
from claudomator_py.domain.run import Bounds
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.vectors import Vector
from claudomator_py.embed.hashed import Hashed
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.variables import RunTokens
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.faults import Faults
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Branches, Clock, Messenger, Trees
from claudomator_py.resources.access.service import Tokens
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.daemon.service import DaemonService
from claudomator_py.resources.decisions.ask import Decisions
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.resources.tasks.shape import TaskView
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.routing.reply_question import Reply, ReplyQuestion
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague, Preset
from claudomator_py.schema.settings import Balancing, Settings
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.taskfiles import ParsedFile
from claudomator_py.sources.inbox.values import FileStamp, InboxReading
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK, Run, Task
from claudomator_py.workers.notifications import NotificationDispatcher
from tests.fakes.agents import ScriptedKind
from tests.fakes.runs import EndedBy, MemoryRunHost

START_MS = 1_790_000_000_000

CLAUDE_MODELS = {tier: ModelChoice(model=name) for tier, name in zip(Tier, ("haiku", "sonnet", "opus"), strict=True)}
CODEX_MODELS = {
    Tier.FAST: ModelChoice(model="luna", effort="low"),
    Tier.BALANCED: ModelChoice(model="sol"),
    Tier.POWERFUL: ModelChoice(model="sol", effort="high"),
}
CLAUDE = AgentSpec(name="claude", kind="claude", models=CLAUDE_MODELS)
CODEX = AgentSpec(name="codex", kind="codex", models=CODEX_MODELS)
LINT = AgentSpec(name="lint", kind="command", auto_select=False, reads_task=False)


def spec(name: str, **fields: Any) -> TaskSpec:
    """A valid task with these fields, as a file would write them."""
    parsed = parse_task({"name": name, "instructions": f"do {name}", **fields})
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


def rules(**changes: Any) -> Rules:
    """The default configuration with these changes."""
    usual: dict[str, Any] = {
        "total": 4,
        "per_workdir": 1,
        "type_hint": "prefer",
        "when_all_limited": "wait",
        "settings_hash": "",
    }
    return Rules(**(usual | changes))


class _NoCouriers(NotificationDispatcher):
    """Knows the ways to targets, and tells nobody by itself."""

    def __init__(self, database: Database, ways: Mapping[str, Messenger], clock: Clock) -> None:
        super().__init__(database, _nobody, clock)
        self._ways = ways

    @property
    def messengers(self) -> Mapping[str, Messenger]:
        return self._ways


def _nobody(target: NotifyTarget) -> Messenger:
    raise AssertionError("nobody is to be told in this world")


class _EncodesOnce(Hashed):
    """The encoder of a daemon, for which a process with many worlds encodes the cards that come with them once."""

    def encode(self, texts: Sequence[str]) -> Vector:
        return _encoded(tuple(texts)) if len(texts) > _FEW_TEXTS else super().encode(texts)


_FEW_TEXTS = 100


@lru_cache(maxsize=2)
def _encoded(texts: tuple[str, ...]) -> Vector:
    rows = Hashed().encode(texts)
    rows.flags.writeable = False
    return rows


class World:
    """Everything below the web. now_ms: the present, which a test sets."""

    def __init__(
        self,
        database: Database,
        *,
        agents: Sequence[AgentSpec] = (CLAUDE, CODEX, LINT),
        workdirs: Workdirs | None = None,
        trees: Trees | None = None,
        branches: Branches | None = None,
        routes: bool = False,
        answer_within_ms: int | None = None,
        on_ambiguity: OnAmbiguity = OnAmbiguity.SIGNALS,
        on_vague: OnVague = OnVague.ASK,
        default_reach: Reach | None = None,
        **changes: Any,
    ) -> None:
        """routes: whether a tick routes tasks, too; without it, ``router`` does when a test says so. on_ambiguity and
        on_vague are such that somebody in particular does a task, or is asked for; by default neither would be."""
        self.database = database
        self._changes = changes
        self._routes = routes
        self._answer_within_ms = answer_within_ms
        self._on_ambiguity, self._on_vague = on_ambiguity, on_vague
        self._default_reach = default_reach
        self.day_budget = DayBudget()
        self.reserves: tuple[Reserve, ...] = ()
        self.now_ms = START_MS
        self.disk_low = False
        self.host = MemoryRunHost()
        self.agents = tuple(agents)
        self.kinds = {kind: ScriptedKind(kind) for kind in ("claude", "codex", "gemini", "command", "hub", "a2a")}
        self.kinds["codex"].conversations = Conversations.NAMED
        for kind in ("command", "hub", "a2a"):
            self.kinds[kind].conversations = Conversations.NONE
        self.launch_rules = LaunchRules(Bounds(), 10_000, 2**20, {"PATH": "/bin", "SECRET": "s"}, max_subtasks=5)
        self.workdirs = workdirs or Workdirs((), ())
        self.trees = trees or LocalTrees(Path("/nonexistent"), {})
        self.branches = branches or LocalBranches(LocalTrees(Path("/nonexistent"), {}))
        self.policy_rules: tuple[Rule, ...] = ()
        self.checks: Callable[[], list[CheckView]] = list
        self.messengers: dict[str, Messenger] = {}
        self.webhook_secrets: dict[str, str] = {}
        self.primary_says: Callable[[ReplyQuestion], Reply] = lambda _: Reply(yes=False)
        self.secrets = Secrets()
        self.asker: TierAsker | None = None
        self.restarted_daemon()

    def restarted_daemon(self) -> None:
        """Everything that a daemon keeps in memory is gone; database and runs are there."""
        self.registry = AgentRegistry(self.agents, self.kinds, "/bin")
        self.registry.refresh()
        self.faults = Faults(self.clock)
        self._configured = self._configure()
        components = assemble(
            Surroundings(
                database=self.database,
                registry=self.registry,
                host=self.host,
                trees=self.trees,
                branches=self.branches,
                clock=self.clock,
                faults=self.faults,
                secrets=self.secrets,
                run_tokens=RunTokens("x" * 32),
                environ=self.webhook_secrets,
                current=self._current,
                disk_low=lambda: self.disk_low,
                notifications=_NoCouriers(self.database, self.messengers, self.clock),
                health=lambda: self.checks(),
                judge=lambda question: self.primary_says(question),
                files_known=lambda: True,
            )
        )
        self.host.serve(self.kinds, self.secrets.redactor, self.clock)
        engine, desk = components.engine, components.desk
        self.budgets, self.observer, self.isolating = engine.budgets, engine.observer, engine.isolating
        self.applier, self.collector, self.starter = engine.applier, engine.collector, engine.starter
        self.reconciler = engine.reconciler
        self.access, self.keyring, self.repeats, self.intake = desk.access, desk.keyring, desk.repeats, desk.intake
        self.refusals, self.schedule_runner = desk.refusals, desk.schedule_runner
        self.schedule_faults, self.answers = desk.schedule_faults, components.background.answers
        granted = desk.access.as_(OPERATOR)
        self.roster = granted[Agents]
        self.service, self.overview, self.schedules = granted[Tasks], granted[Overview], granted[Schedules]
        self.notices, self.tokens, self.learned = granted[Notices], granted[Tokens], granted[Routing]
        self.specialists, self.channels = granted[Specialists], granted[Channels]
        self.decisions = granted[Decisions]
        self.run_requests, self.policy_desk = granted[Runs], granted[PolicyService]
        self.daemon, self.events = granted[DaemonService], granted[Events]

    def _configure(self) -> Configured:
        """What follows from the configuration of this world."""
        encoder = _EncodesOnce()
        calibration = calibration_for(Preset.CALIBRATED, encoder.id)
        directory = SpecialistDirectory(self.database, encoder, calibration, self.clock)
        routing = RoutingRules(
            calibration, default="generalist", on_ambiguity=self._on_ambiguity, on_vague=self._on_vague
        )
        budgets = Budgets(lambda: self.day_budget)
        policing = Policing(Policy(self.policy_rules), budgets, self.clock, reviews=True)
        decider = Decider(
            self.database, self.registry, directory, directory, routing, routing, self.clock, policing=policing
        )
        self.router = SpecialistRouter(
            self.database,
            self.registry,
            decider,
            self.clock,
            self.faults,
            ThreadPoolExecutor(1),
            answer_within_ms=self._answer_within_ms,
            default_reach=self._default_reach,
        )
        # Without an encoder for searches, whose scores are then those of words alone.
        return Configured(
            settings=Settings(),
            rules=rules(**self._changes),
            launch=self.launch_rules,
            workdirs=self.workdirs,
            asker=self.asker,
            router=self.router if self._routes else None,
            decider=decider,
            directory=None,
            fitted={},
            policing=policing,
            shadowed=None,
            shadow=None,
        )

    def _current(self) -> Configured:
        """The same with what a test has changed since."""
        return replace(
            self._configured,
            settings=self._configured.settings.model_copy(
                update={"budget": self.day_budget, "balancing": Balancing(reserve=self.reserves)}
            ),
            launch=self.launch_rules,
            workdirs=self.workdirs,
            asker=self.asker,
        )

    def clock(self) -> int:
        return self.now_ms

    def tick(self, after_ms: int = 0) -> TickReport:
        """A tick, so much later."""
        self.now_ms += after_ms
        self.host.now_ms = self.now_ms
        report = self.reconciler.tick()
        self.host.watch((step.run_id, step.step) for step in report.live)
        return report

    # --- asking -----------------------------------------------------------------------------------------------------

    def submit(self, name: str, **fields: Any) -> TaskView:
        return self.service.submit(spec(name, **fields))

    def restart(self, name: str, **fields: Any) -> TaskView:
        return self.service.restart(name, RestartRequest(**fields))

    def take(
        self, path: str, *specs: TaskSpec, mtime_ns: int = 1, renamed_from: str | None = None
    ) -> Sequence[Problem]:
        """The file was read with these documents. renamed_from: where it lay before, unchanged."""
        reading = InboxReading(path, FileStamp(mtime_ns, 1, 1), ParsedFile(tuple(specs), ()), renamed_from)
        return self.intake.take([reading])[0]

    def take_many(self, files: Mapping[str, Sequence[TaskSpec]]) -> Sequence[Sequence[Problem]]:
        """These files were read at once."""
        readings = [
            InboxReading(path, FileStamp(1, 1, 1), ParsedFile(tuple(specs), ())) for path, specs in files.items()
        ]
        return self.intake.take(readings)

    def names(self, **wanted: Any) -> list[str]:
        """The names of all tasks that such a filter finds, newest first."""
        return [view.name for view in self.service.page(TaskFilter(**wanted), None, 200).items]

    def keep_tier(self, task_ids: Sequence[str], tier: str) -> None:
        """These tasks are to be tried again on that tier."""
        change = TASK.update().where(TASK.c.id.in_(task_ids)).values(tier=tier)
        self.database.write(lambda connection: connection.execute(change))

    def task(self, name: str) -> TaskView:
        return self.service.one(name)

    def state(self, name: str) -> str:
        """State and reason, such as ``WAITING dependency``."""
        view = self.task(name)
        return f"{view.state} {view.reason}" if view.reason is not None else view.state

    def row(self, name: str) -> Task:
        def newest(connection: Any) -> Task:
            query = select(TASK).where(TASK.c.name == name).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc())
            return task_rows.task_from(connection.execute(query.limit(1)).one())

        return self.database.read(newest)

    def live(self, name: str) -> Run:
        """The live run of the newest task of that name."""
        task_id = self.row(name).id
        live = [run for run in self.database.read(run_rows.live) if run.task_id == task_id]
        assert live, f"{name} has no live run: {self.state(name)}"
        return live[0]

    def running(self) -> dict[str, str]:
        """The agent of each live run, by the task's name."""

        def read(connection: Any) -> dict[str, str]:
            runs = run_rows.live(connection)
            return {task_rows.get(connection, run.task_id).name: run.agent for run in runs}

        return self.database.read(read)

    # --- what agents do ---------------------------------------------------------------------------------------------

    def say(self, name: str, **outcome: Any) -> None:
        """The task's agent writes its outcome."""
        told = Outcome(**({"status": "succeeded"} | outcome)).model_dump(mode="json")
        self.host.write(self.live(name).id, json.dumps(told).encode() + b"\n")

    def answer(self, name: str) -> None:
        """The model of the task's run says something; the daemon has not seen it yet."""
        self.host.write(self.live(name).id, b"# on it\n")

    def use(self, name: str, **used: Any) -> None:
        """The task's agent says what its run has used so far; the daemon has not seen it yet."""
        self.host.write(self.live(name).id, b"#used " + json.dumps(used).encode() + b"\n")

    def end(self, name: str, *, exit_code: int | None = 0, ended_by: EndedBy | None = None, **outcome: Any) -> None:
        """The task's agent writes its outcome and ends; the daemon has not seen it yet."""
        self.say(name, **outcome)
        self.host.end(self.live(name).id, exit_code, ended_by=ended_by)

    def succeed(self, name: str) -> None:
        self.end(name)
        self.tick()

    def fail(self, name: str, reason: str = "refused", **outcome: Any) -> None:
        self.end(name, exit_code=1, status="failed", reason=reason, **outcome)
        self.tick()

    def limit(self, name: str, *, reset_at: int | None = None, reason: str = "rate_limited") -> None:
        provenance = "reported" if reset_at is not None else None
        outcome: dict[str, Any] = {"reason": reason, "reset_at": reset_at, "limit": "five_hour"}
        self.end(name, exit_code=1, status="limited", provenance=provenance, **outcome)
        self.tick()
