"""The parts of the daemon, put together from the concrete classes; and what changes in them at a reload."""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.programs import detected_agents
from claudomator_py.app.configured import Configured, configured_by, now_ms
from claudomator_py.daemon import calibrations
from claudomator_py.daemon.health import agent_check, trouble_check
from claudomator_py.daemon.reload import ConfigurationRefused, Current
from claudomator_py.dispatch.apply_report import ReportApplier
from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.deciding import Decided
from claudomator_py.dispatch.notifications import NotificationDispatcher
from claudomator_py.dispatch.observe import Observer
from claudomator_py.dispatch.reconciler import Reconciler
from claudomator_py.dispatch.shadow import Shadow
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.decision import PolicyCheck
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.triage import Incoming
from claudomator_py.domain.views import CheckView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.environment.worktrees import WorktreeManager
from claudomator_py.faults import Faults
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.hosts.local.host import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.log import get_logger
from claudomator_py.routing.profile import Request
from claudomator_py.schema.configfile import ConfigError
from claudomator_py.schema.known_secrets import secrets_of
from claudomator_py.schema.routing_settings import Preset, RoutingSettings
from claudomator_py.schema.settings import AfterAccept, Inbox, Settings
from claudomator_py.sources.inbox.claims import InboxInUse
from claudomator_py.sources.inbox.inbox import ConfiguredInbox
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.full_text import Found
from claudomator_py.store.tables import Channel

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

log = get_logger("claudomator")


@dataclass(frozen=True, slots=True)
class Parts:
    """What ticks, and what it is made of."""

    host: LocalRunHost
    registry: AgentRegistry
    reconciler: Reconciler
    observer: Observer
    current: Current[Configured]
    isolating: WorktreeManager
    faults: Faults
    shadow: Shadow

    @property
    def workdirs(self) -> Workdirs:
        """Where tasks may work at present."""
        return self.current().workdirs

    def cosines(self, query: str) -> dict[Found, float] | None:
        """How alike a query is to what each card says; None where nothing is routed, and so nothing encoded."""
        directory = self.current().directory
        return None if directory is None else directory.cosines(query)

    def twins(self, specialist_id: str) -> "Sequence[Twin]":
        """Skills of others that are nearly one of that specialist's; none where nothing is encoded."""
        directory = self.current().directory
        return () if directory is None else directory.twins(specialist_id)

    def preview(self, request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        """What would become of such a task of that principal's; None where nothing is routed."""
        router = self.current().router
        return None if router is None else router.decider.preview(request, by, requires)

    def cheap_model(self) -> GuardedModel | None:
        """The model for small questions; None: none is configured."""
        asker = self.current().asker
        return None if asker is None else asker.model

    def message_checks(self, connection: Connection, channel: Channel, message: Incoming) -> tuple[PolicyCheck, ...]:
        """What the policy says of a message."""
        return self.current().policing.of_message(connection, channel, message)

    def close(self) -> None:
        """Let go of what works beside the loop."""
        self.host.close()
        self.isolating.close()
        current = self.current()
        for beside in (current.asker, current.router):
            if beside is not None:
                beside.close()
        if current.shadow is not None:
            current.shadow.decider.close()


def assemble(
    settings: Settings,
    environ: Mapping[str, str],
    state: Path,
    database: Database,
    launcher: Launcher,
    secrets: Secrets,
    run_token: Callable[[str], str] | None = None,
) -> Parts:
    """The parts for these settings. environ: the daemon's, with its credentials; state: the state folder.

    secrets: learns those of the settings, and is what takes secrets out of anything. run_token: see
    ``LaunchRules``.
    """
    agents = _agents(settings)
    secrets.add(secrets_of(settings, agents, environ))
    registry = AgentRegistry(agents, AGENT_KINDS, search_path(), secrets.clean)
    host = LocalRunHost(
        state / "runs",
        launcher,
        grace_ms=settings.limits.grace,
        kinds=registry.kinds,
        redactor=secrets.redactor,
        clock=now_ms,
    )
    faults = Faults(now_ms, secrets.redact_piece)
    current = Current(configured_by(settings, environ, state, database, run_token, None, registry, faults))

    def disk_low() -> bool:
        return shutil.disk_usage(state).free < current().settings.limits.min_free

    isolating = WorktreeManager(LocalTrees(state / "worktrees", environ, umask=launcher.umask, clean=secrets.redact))
    budgets = Budgets(lambda: current().settings.budget)
    observer = Observer(registry, lambda: current().rules, now_ms, disk_low, budgets, faults)
    reconciler = Reconciler(
        database,
        host,
        observer=observer,
        starter=Starter(database, registry, host, lambda: current().launch, isolating, faults, budgets, secrets),
        collector=Collector(
            database,
            registry,
            host,
            lambda: current().launch,
            ReportApplier(database, registry, lambda: current().launch, budgets, isolating, secrets),
            budgets,
        ),
        clock=now_ms,
        faults=faults,
        asker=lambda: current().asker,
        router=lambda: current().router,
    )
    shadow = Shadow(database, lambda: current().shadow, now_ms)
    return Parts(host, registry, reconciler, observer, current, isolating, faults, shadow)


async def put_in_force(
    parts: Parts,
    inbox: ConfiguredInbox,
    cards: ConfiguredInbox,
    notifications: NotificationDispatcher,
    environ: Mapping[str, str],
    state: Path,
    database: Database,
    secrets: Secrets,
    settings: Settings,
) -> None:
    """Put other settings in force. Everything is made before anything is replaced. Raises ConfigurationRefused where
    an inbox is another daemon's, there is no such encoder, or the shadow configuration cannot be used."""
    agents = _agents(settings)
    secrets.add(secrets_of(settings, agents, environ))
    found = await asyncio.to_thread(parts.registry.look, agents)
    former = parts.current()
    try:
        configured = configured_by(
            settings, environ, state, database, former.launch.run_token, former, parts.registry, parts.faults
        )
    except (ConfigError, ValueError) as error:
        raise ConfigurationRefused(str(error)) from error
    try:
        inbox.claim(settings.inbox)
    except InboxInUse as error:
        raise ConfigurationRefused(str(error)) from error
    parts.registry.replace(agents, found)
    parts.current.replace(configured)
    parts.host.grace_ms = settings.limits.grace
    if former.asker is not None and former.asker is not configured.asker:
        # Beside everything else: what it was asked is still answered.
        threading.Thread(target=former.asker.close, kwargs={"wait": True}, daemon=True).start()
    if former.router is not None and former.router is not configured.router:
        former.router.close()
    if former.shadow is not None and former.shadow is not configured.shadow:
        former.shadow.decider.close()
    parts.shadow.wake()
    await asyncio.to_thread(inbox.follow, settings.inbox)
    await asyncio.to_thread(cards.follow, card_folders(settings))
    await asyncio.to_thread(notifications.follow, settings.notify)
    log_agents(parts)


def card_folders(settings: Settings) -> Inbox:
    """The folders of specialists, to be watched as the inbox is. The default one only if it is there or can be made, as
    it need not be where the configuration is read-only."""
    folders = settings.routing.specialists
    if tuple(Path(folder).name for folder in folders) == RoutingSettings().specialists:
        folders = tuple(folder for folder in folders if _is_there(Path(folder)))
    return settings.inbox.model_copy(update={"paths": folders, "after_accept": AfterAccept.KEEP})


def _is_there(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return folder.is_dir()
    return True


def _agents(settings: Settings) -> list[AgentSpec]:
    return list(settings.agents.values()) if settings.agents_configured else detected_agents(search_path())


def refresh_agents(parts: Parts) -> None:
    """Look at every agent's program; without a configuration, also for programs installed since the last look."""
    known = parts.registry.agents
    parts.registry.refresh([] if parts.current().settings.agents_configured else detected_agents(search_path()))
    if len(parts.registry.agents) != len(known):
        log_agents(parts)


def search_path() -> str:
    """Where the daemon looks for programs."""
    return os.environ.get("PATH", os.defpath)


def agents_check(parts: Parts) -> CheckView:
    """Whether any agent can take a task that names none."""
    return agent_check(parts.registry, search_path(), configured=parts.current().settings.agents_configured)


def trouble_checks(parts: Parts) -> list[CheckView]:
    """Whether the encoder and the classifier answer, as far as they were asked. Nothing waits for either."""
    current, model = parts.current(), parts.cheap_model()
    return [
        *trouble_check(
            "encoder",
            None if current.router is None else current.router.decider.trouble,
            "words alone are compared, and tasks are routed by them",
            "see routing.encoder; it is asked again with the next task",
        ),
        *trouble_check(
            "classifier",
            None if model is None else model.trouble,
            "agents run with their default tier",
            "see classifier; it is asked again with the next task",
        ),
    ]


def calibration_checks(parts: Parts, database: Database) -> list[CheckView]:
    """Whether thresholds mean what they should for the encoder in use."""
    current = parts.current()
    if current.directory is None or current.settings.routing.preset is not Preset.CALIBRATED:
        return []
    try:
        cards = database.read(specialist_rows.content_hashes)
    except StoreUnavailable:  # which has a check of its own
        return []
    return calibrations.checks(current.directory.encoder.id, current.fitted, cards)


def log_agents(parts: Parts) -> None:
    """Log which agents can run, and which cannot, and why; and that there is none, if so."""
    registry = parts.registry
    if not (check := agents_check(parts)).ok:
        log.warning("no_agent", problem=check.detail, remedy=check.remedy)
    for agent in registry.agents:
        health = registry.health(agent.name)
        if health.problem is not None:
            log.warning("agent_unable", agent=agent.name, kind=agent.kind, problem=health.problem)
        else:
            log.info("agent_ready", agent=agent.name, kind=agent.kind, version=health.version or "not known")
