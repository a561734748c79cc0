"""The service on a database, with a host, agents and a clock that a test drives: one world without processes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from claudomator_py.app.assemble import Components
from claudomator_py.app.configured import Configured
from claudomator_py.app.engine import Surroundings
from claudomator_py.dispatch.classify import TierAsker
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import DayBudget
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.reserve import Reserve
from claudomator_py.domain.run import Bounds
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import RunTokens, Secrets
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.faults import Faults
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.policy.rule import Rule
from claudomator_py.ports import Branches, Messenger, Trees
from claudomator_py.resources.access.service import AccessTokens
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.daemon.service import DaemonService
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.questions import Reply, ReplyQuestion
from claudomator_py.schema.settings import Balancing
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX, LINT, scripted_kinds
from tests.fakes.configuration import NoCouriers, configure
from tests.fakes.runs import MemoryRunHost
from tests.fakes.steps import Steps

START_MS = 1_790_000_000_000


class World(Steps):
    """Everything below the web. now_ms: the present, which a test sets."""

    def __init__(
        self,
        database: Database,
        *,
        agents: Sequence[AgentSpec] = (CLAUDE, CODEX, LINT),
        workdirs: Workdirs | None = None,
        trees: Trees | None = None,
        branches: Branches | None = None,
        **configuration: Any,
    ) -> None:
        """configuration: see ``configure``."""
        self.database = database
        self._configuration = configuration
        self.day_budget = DayBudget()
        self.reserves: tuple[Reserve, ...] = ()
        self.now_ms = START_MS
        self.host = MemoryRunHost()
        self.agents = tuple(agents)
        self.kinds = scripted_kinds()
        self.launch_rules = LaunchRules(Bounds(), 10_000, 2**20, {"PATH": "/bin", "SECRET": "s"}, max_subtasks=5)
        self.workdirs = workdirs or Workdirs((), ())
        nowhere = LocalTrees(Path("/proc/nonexistent"), {})
        self.trees, self.branches = trees or nowhere, branches or LocalBranches(nowhere)
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
        self._configured, self.router = configure(
            self.database,
            self.registry,
            self.clock,
            self.faults,
            Budgets(lambda: self.day_budget),
            self.policy_rules,
            self.launch_rules,
            self.workdirs,
            **self._configuration,
        )
        components = Components(
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
                disk_low=lambda: False,
                notifications=NoCouriers(self.database, self.messengers, self.clock),
                health=lambda: self.checks(),
                judge=lambda question: self.primary_says(question),
                files_known=lambda: True,
            )
        )
        self.host.serve(self.kinds, self.secrets.redactor, self.clock)
        engine, arrivals, desk = components.engine, components.arrivals, components.desk()
        self.budgets, self.observer, self.worktrees = engine.budgets, engine.observer, engine.worktrees
        self.applier, self.collector, self.starter = engine.applier, engine.collector, engine.starter
        self.access, self.keyring, self.repeats = desk.access, desk.keyring, desk.repeats
        self.intake, self.refusals, self.schedule_runner = arrivals.intake, arrivals.refusals, arrivals.schedule_runner
        self.reconciler, self.write_report = engine.reconciler, desk.daily_report
        self.schedule_faults, self.answers = arrivals.schedule_faults, components.background.answers
        granted = desk.access.as_(OPERATOR)
        self.service, self.overview, self.schedules = granted[Tasks], granted[Overview], granted[Schedules]
        self.notices, self.tokens, self.learned = granted[Notices], granted[AccessTokens], granted[Routing]
        self.specialists, self.channels, self.decisions = granted[Specialists], granted[Channels], granted[Decisions]
        self.run_requests, self.roster = granted[Runs], granted[Agents]
        self.daemon, self.events = granted[DaemonService], granted[Events]

    def _current(self) -> Configured:
        """The same with what a test has changed since."""
        changes = {"budget": self.day_budget, "balancing": Balancing(reserve=self.reserves)}
        return replace(
            self._configured,
            settings=self._configured.settings.model_copy(update=changes),
            launch=self.launch_rules,
            workdirs=self.workdirs,
            asker=self.asker,
        )

    def clock(self) -> int:
        return self.now_ms
