"""What a daemon is given, and what it acts with: the reconciler, which ticks, and what takes in files and schedules."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from claudomator_py.app.configured import Configured
from claudomator_py.dispatch.apply_report import ReportApplier
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.observe import Observer
from claudomator_py.dispatch.reconciler import Reconciler
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.channel import Incoming
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.health import CheckView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import RunTokens, Secrets
from claudomator_py.environment.worktrees import WorktreeManager
from claudomator_py.faults import Faults
from claudomator_py.ports import Branches, Clock, RunHost, Trees
from claudomator_py.sources.inbox.intake import StoreIntake
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.sources.schedules import CronWorker, ScheduleRunner
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Channel
from claudomator_py.values import dataclass
from claudomator_py.workers.notifications import NotificationDispatcher

if TYPE_CHECKING:
    from claudomator_py.resources.channels.service import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What exists before the daemon and is passed in from outside."""

    database: Database
    registry: AgentRegistry
    host: RunHost
    trees: Trees
    branches: Branches
    clock: Clock
    faults: Faults
    """Faults met during ticks."""
    secrets: Secrets
    """Removes secrets from everything that is stored, shown or sent."""
    run_tokens: RunTokens
    environ: Mapping[str, str]
    """The daemon's environment variables, which include the secrets of webhooks."""
    current: Callable[[], Configured]
    """Returns the configuration in force."""
    disk_low: Callable[[], bool]
    """Whether too little disk space is free for another run."""
    notifications: NotificationDispatcher
    health: Callable[[], list[CheckView]]
    """Returns the readiness checks."""
    judge: "Judge"
    """Asks a cheap model whether a channel's primary specialist should answer."""
    files_known: Callable[[], bool]
    """Whether the task folders have been scanned, so that schedules with a file are known."""

    def message_checks(self, connection: Connection, channel: Channel, message: Incoming) -> tuple[PolicyCheck, ...]:
        """Return what the policy in force says about a message."""
        return self.current().policing.judge_message(connection, channel, message)


@dataclass(frozen=True, slots=True)
class Engine:
    """The reconciler, which ticks, and its parts."""

    budgets: Budgets
    observer: Observer
    worktrees: WorktreeManager
    applier: ReportApplier
    collector: Collector
    starter: Starter
    reconciler: Reconciler


@dataclass(frozen=True, slots=True)
class Sources:
    """What takes in files and schedules."""

    refusals: Refusals
    """Refused task files and card files."""
    intake: StoreIntake
    schedule_runner: ScheduleRunner
    schedule_faults: Faults
    """Faults of the schedules' thread."""
    cron: CronWorker


def make_engine(around: Surroundings) -> Engine:
    """Return the reconciler and its parts, not started."""
    database, registry, host, current = around.database, around.registry, around.host, around.current
    faults, budgets = (
        around.faults,
        Budgets(lambda: current().settings.budget, lambda: current().settings.balancing.reserve),
    )
    observer = Observer(registry, lambda: current().rules, around.clock, around.disk_low, budgets, faults, host.closed)
    worktrees = WorktreeManager(around.trees, around.branches, host.changes)
    applier = ReportApplier(database, registry, lambda: current().launch, budgets, worktrees, around.secrets)
    collector = Collector(database, registry, host, lambda: current().launch, applier, budgets)
    starter = Starter(database, registry, host, lambda: current().launch, worktrees, faults, budgets, around.secrets)
    reconciler = Reconciler(
        database,
        host,
        observer=observer,
        starter=starter,
        collector=collector,
        clock=around.clock,
        faults=faults,
        asker=lambda: current().asker,
        router=lambda: current().router,
    )
    return Engine(budgets, observer, worktrees, applier, collector, starter, reconciler)


def make_sources(around: Surroundings) -> Sources:
    """Return what takes in files and schedules, not started."""
    database, registry, clock, secrets = around.database, around.registry, around.clock, around.secrets

    faults = Faults(clock, secrets.redact_piece)
    runner = ScheduleRunner(database, registry, lambda: around.current().workdirs, clock, faults)
    cron = CronWorker(runner, around.files_known)
    intake = StoreIntake(database, registry, lambda: around.current().workdirs, clock, cron.wake)
    return Sources(Refusals(secrets.clean), intake, runner, faults, cron)
