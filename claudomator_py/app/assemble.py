"""Assembles the daemon from its parts, in one place for ``serve`` and for the tests.

What differs between the two is passed in as ``Surroundings``: the host of the runs, the clock, the notification
dispatcher. The order follows the layers: the engine that ticks, the services that answer requests, the background
workers.
"""

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from claudomator_py.app.configured import Configured
from claudomator_py.dispatch.apply_report import ReportApplier
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.deciding import Decided
from claudomator_py.dispatch.observe import Observer
from claudomator_py.dispatch.reconciler import Reconciler
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.channel import Incoming
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import RunTokens, Secrets
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.environment.worktrees import WorktreeManager
from claudomator_py.faults import Faults
from claudomator_py.ports import Branches, Clock, RunHost, Trees
from claudomator_py.resources.access.service import AccessTokens, Keyring
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches.service import BranchService, Changes
from claudomator_py.resources.channels.service import Channels, Judge
from claudomator_py.resources.channels.webhook import IncomingWebhooks
from claudomator_py.resources.daemon.service import DaemonService, Hosts
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.report.daily import DailyReporter
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.logs import Logs
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.resources.tasks.views import TaskViews
from claudomator_py.routing.profile import Request
from claudomator_py.sources.inbox.intake import StoreIntake
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.sources.schedules import CronWorker, ScheduleRunner
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Channel
from claudomator_py.tasks.idempotency import IdempotentRequests
from claudomator_py.values import dataclass
from claudomator_py.workers import Worker
from claudomator_py.workers.channel_answers import AnswerDispatcher
from claudomator_py.workers.cleanup import Cleaner
from claudomator_py.workers.learning import Learner
from claudomator_py.workers.notifications import NotificationDispatcher
from claudomator_py.workers.retention import Retainer
from claudomator_py.workers.shadow import Shadow


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
    judge: Judge
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
class Services:
    """The services that answer requests, and what takes in files and schedules."""

    access: Access
    overview: Overview
    keyring: Keyring
    cleaner: Cleaner
    repeats: IdempotentRequests
    channels: Channels
    refusals: Refusals
    """Refused task files and card files."""
    intake: StoreIntake
    schedule_runner: ScheduleRunner
    schedule_faults: Faults
    """Faults of the schedules' thread."""
    cron: CronWorker


@dataclass(frozen=True, slots=True)
class Background:
    """Periodic work, each worker on its own thread."""

    answers: AnswerDispatcher
    shadow: Shadow
    retention_faults: Faults
    workers: tuple[Worker, ...]
    """All workers."""


@dataclass(frozen=True, slots=True)
class Components:
    """The daemon without its loop and its web server."""

    surroundings: Surroundings
    engine: Engine
    desk: Services
    background: Background


def assemble(around: Surroundings) -> Components:
    """Put the daemon together without starting any of it. Raises StoreUnavailable."""
    engine = _engine(around)
    desk = _services(around, engine)
    return Components(around, engine, desk, _background(around, desk))


def _engine(around: Surroundings) -> Engine:
    database, registry, host, current = around.database, around.registry, around.host, around.current
    faults, budgets = (
        around.faults,
        Budgets(lambda: current().settings.budget, lambda: current().settings.balancing.reserve),
    )
    observer = Observer(registry, lambda: current().rules, around.clock, around.disk_low, budgets, faults, host.closed)
    worktrees = WorktreeManager(around.trees, around.branches)
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


def _services(around: Surroundings, engine: Engine) -> Services:
    database, registry, clock = around.database, around.registry, around.clock
    current, secrets = around.current, around.secrets

    def workdirs() -> Workdirs:
        return current().workdirs

    def preview(request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        return current().preview(request, by, requires)

    schedule_faults = Faults(clock, secrets.redact_piece)
    runner = ScheduleRunner(database, registry, workdirs, clock, schedule_faults)
    cron = CronWorker(runner, around.files_known)
    refusals = Refusals(secrets.clean)
    task_views = TaskViews(registry, engine.observer, around.faults, clock, around.host.obstacle)
    overview = Overview(database, registry, engine.observer, clock, refusals, around.health, task_views, around.host)
    repeats = IdempotentRequests(database, clock)
    cleaner = Cleaner(database, around.host, engine.worktrees, clock)
    keyring = Keyring(database, clock, around.run_tokens)
    channels = Channels(database, clock, repeats, workdirs, around.judge, preview, around.message_checks)
    access = Access(
        [
            overview,
            DaemonService(database, cleaner, clock),
            Schedules(database, registry, workdirs, clock, task_views, repeats, cron.wake),
            Reports(database, task_views, clock, around.health, refusals),
            Nights(database, registry, clock, engine.budgets.zone, around.host.host_of),
            Agents(database, registry, engine.budgets, clock, repeats),
            AccessTokens(database, keyring, clock),
            Hosts(database, around.host, registry, lambda: (LOCAL, *current().settings.hosts), clock),
            channels,
            IncomingWebhooks(channels, around.environ, clock),
            *_about_tasks(around, engine, task_views, repeats, workdirs),
            *_about_decisions(around, repeats, preview),
        ]
    )
    intake = StoreIntake(database, registry, workdirs, clock, cron.wake)
    return Services(
        access, overview, keyring, cleaner, repeats, channels, refusals, intake, runner, schedule_faults, cron
    )


def _about_tasks(
    around: Surroundings,
    engine: Engine,
    task_views: TaskViews,
    repeats: IdempotentRequests,
    workdirs: Callable[[], Workdirs],
) -> Sequence[object]:
    """The services for tasks, their runs and what runs leave behind."""
    database, registry, host, clock = around.database, around.registry, around.host, around.clock
    current, secrets = around.current, around.secrets
    return [
        Tasks(
            database,
            registry,
            host,
            engine.observer,
            task_views,
            around.trees,
            workdirs,
            clock,
            repeats,
            lambda: current().policing,
        ),
        Runs(database, clock, host, lambda: current().launch, secrets, repeats),
        Logs(database, registry, host, secrets),
        Changes(database, host, secrets),
        BranchService(database, around.branches, around.trees, clock),
        Events(database),
        Notices(database, around.notifications, clock),
    ]


def _about_decisions(
    around: Surroundings, repeats: IdempotentRequests, preview: Callable[..., Decided | None]
) -> Sequence[object]:
    """The services for who does a task, whether it is allowed, and why."""
    database, clock, current = around.database, around.clock, around.current
    return [
        Decisions(database),
        Specialists(
            database,
            clock,
            repeats,
            lambda query: current().cosines(query),
            lambda specialist_id: current().twins(specialist_id),
        ),
        Routing(database, clock, lambda: current().settings.routing.default_specialist, preview),
        PolicyService(
            database,
            lambda: current().policing.policy,
            clock,
            lambda: current().settings.routing.enabled,
            lambda: current().settings.budget,
            around.registry,
        ),
    ]


def _background(around: Surroundings, desk: Services) -> Background:
    database, clock, current = around.database, around.clock, around.current
    answers = AnswerDispatcher(database, lambda: current().workdirs, clock, around.message_checks)
    shadow = Shadow(database, lambda: current().shadow, clock)
    retention_faults = Faults(clock, around.secrets.redact_piece)
    retainer = Retainer(
        database,
        lambda: current().settings.retention,
        lambda: current().settings.notify,
        desk.cleaner,
        around.host,
        around.trees,
        clock,
        retention_faults,
    )
    learner = Learner(database, lambda: current().settings.learning, clock)
    reporter = DailyReporter(database, desk.access.as_(OPERATOR)[Reports], lambda: current().settings, clock)
    return Background(answers, shadow, retention_faults, (retainer, learner, answers, shadow, reporter))
