"""The services that answer requests; imported for the first request, see ``Components.desk``."""

from collections.abc import Callable, Sequence
from datetime import datetime

from claudomator_py.app.engine import Engine, Sources, Surroundings
from claudomator_py.dispatch.deciding import Decided
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.resources.access.service import AccessTokens, Keyring
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches.service import BranchService, Changes
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.channels.webhook import IncomingWebhooks
from claudomator_py.resources.daemon.service import DaemonService, Hosts
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.report import ReportSpan
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.report.text import Instants, markdown
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.logs import Logs
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.resources.tasks.views import TaskViews
from claudomator_py.routing.profile import Request
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.tasks.idempotency import IdempotentRequests
from claudomator_py.values import dataclass
from claudomator_py.workers.cleanup import Cleaner


@dataclass(frozen=True, slots=True)
class Desk:
    """The services that answer requests."""

    access: Access
    keyring: Keyring
    repeats: IdempotentRequests

    def daily_report(self, begin: datetime, at: Instants) -> tuple[str, str]:
        """Return headline and text of the report since then."""
        report = self.access.as_(OPERATOR)[Reports].report(ReportSpan(since=begin))
        return report.headline, markdown(report, at)


def make_desk(around: Surroundings, engine: Engine, arrivals: Sources, cleaner: Cleaner) -> Desk:
    """Return the services of this daemon. Raises StoreUnavailable."""
    database, registry, clock, current = around.database, around.registry, around.clock, around.current
    refusals, wake = arrivals.refusals, arrivals.cron.wake

    def workdirs() -> Workdirs:
        return current().workdirs

    def preview(request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        return current().preview(request, by, requires)

    task_views = TaskViews(registry, engine.observer, around.faults, clock, around.host.obstacle)
    repeats = IdempotentRequests(database, clock)
    keyring = Keyring(database, clock, around.run_tokens)
    channels = Channels(database, repeats, clock, workdirs, around.judge, preview, around.message_checks)
    access = Access(
        [
            Overview(database, registry, engine.observer, clock, refusals, around.health, task_views, around.host),
            DaemonService(database, cleaner, clock),
            Schedules(database, repeats, registry, workdirs, clock, task_views, wake),
            Reports(database, task_views, clock, around.health, refusals),
            Nights(database, registry, clock, engine.budgets.zone, around.host.host_of),
            Agents(database, repeats, registry, engine.budgets, clock),
            AccessTokens(database, keyring, clock),
            Hosts(database, around.host, registry, lambda: (LOCAL, *current().settings.hosts), clock),
            channels,
            IncomingWebhooks(channels, around.environ, clock),
            *_about_tasks(around, engine, task_views, repeats, workdirs, refusals),
            *_about_decisions(around, repeats, preview),
        ]
    )
    return Desk(access, keyring, repeats)


def _about_tasks(
    around: Surroundings,
    engine: Engine,
    task_views: TaskViews,
    repeats: IdempotentRequests,
    workdirs: Callable[[], Workdirs],
    refusals: Refusals,
) -> Sequence[object]:
    """The services for tasks, their runs and what runs leave behind."""
    database, registry, host, clock = around.database, around.registry, around.host, around.clock
    current, secrets = around.current, around.secrets
    return [
        Tasks(
            database,
            repeats,
            registry,
            host,
            engine.observer,
            task_views,
            around.trees,
            workdirs,
            clock,
            lambda: current().policing,
            refusals,
        ),
        Runs(database, repeats, clock, host, lambda: current().launch, secrets),
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
            repeats,
            clock,
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
