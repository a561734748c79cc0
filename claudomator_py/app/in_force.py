"""What is in force: the agents and everything derived from the configuration, adopted at the start and at a reload."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

from claudomator_py.agents.programs import detected_agents
from claudomator_py.app.assemble import Components
from claudomator_py.app.configured import Configured, configured_by
from claudomator_py.daemon.health import agent_check
from claudomator_py.daemon.reload import ConfigurationRefused, Current
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.health import CheckView
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.log import get_logger
from claudomator_py.schema.configfile import ConfigError
from claudomator_py.schema.known_secrets import secrets_of
from claudomator_py.schema.routing_settings import RoutingSettings
from claudomator_py.schema.settings import AfterAccept, Inbox, Settings
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.card_files import CARD_FILES, CardIntake
from claudomator_py.sources.inbox import ConfiguredInbox
from claudomator_py.sources.inbox.claims import InboxInUse
from claudomator_py.values import dataclass

log = get_logger("claudomator")


def search_path() -> str:
    """Return the PATH that the daemon searches for programs."""
    return os.environ.get("PATH", os.defpath)


def agents_in(settings: Settings) -> list[AgentSpec]:
    """Return the configured agents; if none are configured, those whose programs are found."""
    agents = list(settings.agents.values()) if settings.agents_configured else detected_agents(search_path())
    if not settings.hosts:
        return agents
    kept = [agent.limited_by_login(os.environ) for agent in agents]
    for agent, saved in zip(agents, kept, strict=True):
        if saved.max_concurrent < agent.max_concurrent:
            log.warning("agent_kept_to_one_slot", agent=agent.name, note="a login is refreshed on one node at a time")
    return kept


def card_folders(settings: Settings) -> Inbox:
    """Return the card folders, to be watched like an inbox. The default folder is included only if it exists or can
    be made, which a read-only configuration may prevent."""
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


@dataclass(frozen=True, slots=True)
class Folders:
    """The watched folders."""

    tasks: ConfiguredInbox
    cards: ConfiguredInbox

    def follow(self, settings: Settings) -> None:
        """Watch exactly the folders of these settings from now on. Blocks, see ``ConfiguredInbox.follow``."""
        self.tasks.follow(settings.inbox)
        self.cards.follow(card_folders(settings))

    def close(self) -> None:
        """Watch nothing more."""
        self.tasks.close()
        self.cards.close()


def watched_folders(daemon: Components, wake: Callable[[], None]) -> Folders:
    """Return the folders, none of them watched yet. wake: called when a file had an effect."""
    arrivals, around = daemon.arrivals, daemon.surroundings
    cards = CardIntake(around.database, around.clock, lambda specialist_id: around.current().twins(specialist_id))
    folders = Folders(
        ConfiguredInbox(arrivals.intake, _guard, wake, arrivals.refusals),
        ConfiguredInbox(cards, _guard, wake, arrivals.refusals, CARD_FILES, claims=False),
    )
    daemon.engine.reconciler.arriving = folders.tasks.arriving
    arrivals.intake.hand_over = folders.tasks.hand_over
    return folders


def _guard(wanted: Inbox) -> InboxGuard:
    guard = InboxGuard(wanted)
    if guard.unknown:
        log.warning("trusted_but_unknown", names=", ".join(guard.unknown), note="no user or group of that name")
    return guard


@dataclass(frozen=True, slots=True)
class Renewal:
    """Applies new settings to a running daemon."""

    daemon: Components
    current: Current[Configured]
    host: LocalRunHost
    folders: Folders
    state: Path

    async def apply_settings(self, settings: Settings) -> None:
        """Take these settings into use. Everything new is built before anything is replaced.

        Raises ConfigurationRefused if an inbox belongs to another daemon, the encoder does not exist, or the shadow
        configuration is unusable.
        """
        around = self.daemon.surroundings
        agents = agents_in(settings)
        around.secrets.add(secrets_of(settings, agents, around.environ))
        health = await asyncio.to_thread(around.registry.look, agents)
        former = self.current()
        try:
            configured = configured_by(
                settings,
                around.environ,
                self.state,
                around.database,
                former.launch.run_token,
                former,
                around.registry,
                around.faults,
            )
        except (ConfigError, ValueError) as error:
            raise ConfigurationRefused(str(error)) from error
        try:
            self.folders.tasks.claim(settings.inbox)
        except InboxInUse as error:
            raise ConfigurationRefused(str(error)) from error
        around.registry.replace(agents, health)
        self.current.replace(configured)
        self.host.grace_ms = settings.limits.grace
        _let_go(former, configured)
        self.daemon.background.shadow.wake()
        await asyncio.to_thread(self.folders.follow, settings)
        await asyncio.to_thread(around.notifications.follow, settings.notify)
        log_agents(around.registry, configured=settings.agents_configured)


def _let_go(former: Configured, present: Configured) -> None:
    """Close what only the former configuration used."""
    if former.asker is not None and former.asker is not present.asker:
        # On a thread of its own, as closing waits until pending questions are answered.
        threading.Thread(target=former.asker.close, kwargs={"wait": True}, daemon=True).start()
    if former.router is not None and former.router is not present.router:
        former.router.close()
    if former.shadow is not None and former.shadow is not present.shadow:
        former.shadow.decider.close()


def refresh_agents(registry: AgentRegistry, *, configured: bool) -> None:
    """Look at every agent's program; if no agents are configured, also for newly installed programs."""
    before = len(registry.agents)
    registry.refresh([] if configured else detected_agents(search_path()))
    if len(registry.agents) != before:
        log_agents(registry, configured=configured)


def agents_check(registry: AgentRegistry, *, configured: bool) -> CheckView:
    """Return whether any agent can take a task that names none."""
    return agent_check(registry, search_path(), configured=configured)


def log_agents(registry: AgentRegistry, *, configured: bool) -> None:
    """Log which agents can run, which cannot and why, and whether no agent can take a task that names none."""
    if not (check := agents_check(registry, configured=configured)).ok:
        log.warning("no_agent", problem=check.detail, remedy=check.remedy)
    for agent in registry.agents:
        health = registry.health(agent.name)
        if health.problem is not None:
            log.warning("agent_unable", agent=agent.name, kind=agent.kind, problem=health.problem)
        else:
            log.info("agent_ready", agent=agent.name, kind=agent.kind, version=health.version or "not known")
