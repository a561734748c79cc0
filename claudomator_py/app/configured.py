"""What follows from the configuration, put together from the concrete classes; and put anew at a reload."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.mcp import mcp_command
from claudomator_py.agents.programs import detected_agents
from claudomator_py.classify.configured import CLI_VARIABLES, tier_model
from claudomator_py.daemon import calibrations
from claudomator_py.daemon.health import agent_check
from claudomator_py.daemon.reload import ConfigurationRefused, Current
from claudomator_py.dispatch.apply_report import ReportApplier
from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.dispatch.choosing import Chooser
from claudomator_py.dispatch.classify import AT_ONCE, TierAsker
from claudomator_py.dispatch.collect import Collector
from claudomator_py.dispatch.deciding import Decided, Decider
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.notifications import NotificationDispatcher
from claudomator_py.dispatch.observe import Observer
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.reconciler import Reconciler
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.shadow import Shadow, ShadowConfiguration
from claudomator_py.dispatch.specialists import SpecialistDirectory
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.dispatch.start import Starter
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.decision import PolicyCheck, Versions
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.run import Bounds
from claudomator_py.domain.triage import Incoming
from claudomator_py.domain.views import CheckView
from claudomator_py.embed.configured import encoder
from claudomator_py.embed.hashed import Hashed
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.variables import agent_environment
from claudomator_py.environment.workdirs import SYSTEM_FOLDERS, Workdirs, real_paths
from claudomator_py.environment.worktrees import WorktreeManager
from claudomator_py.faults import Faults
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.hosts.local.host import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.log import get_logger
from claudomator_py.policy.verdict import Policy
from claudomator_py.routing.calibration import Fitted, calibration_for
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.schema.configfile import ConfigError, LoadedConfig, load_config
from claudomator_py.schema.known_secrets import secrets_of
from claudomator_py.schema.routing_settings import OnAmbiguity, Preset, RoutingSettings
from claudomator_py.schema.settings import AfterAccept, Classifier, ClassifierKind, Inbox, Settings, settings_hash
from claudomator_py.schema.trust import exposed_config
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
class Configured:
    """What follows from the configuration: replaced as a whole, between two ticks."""

    settings: Settings
    rules: Rules
    launch: LaunchRules
    workdirs: Workdirs
    asker: TierAsker | None
    router: SpecialistRouter | None
    directory: SpecialistDirectory | None
    """The specialists as the configured encoder sees them; None: nothing is routed."""
    fitted: Mapping[str, Fitted]
    """What was fitted on the operator's own tasks, by id of the encoder."""
    policy: Policy
    """The rules on what tasks may do."""
    policing: Policing | None
    """Asks them; None: there are none, and nothing is routed."""
    shadowed: Settings | None
    """Those of ``shadow``."""
    shadow: ShadowConfiguration | None
    """What decides beside this configuration; None: nothing does."""


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
        policing = self.current().policing
        return () if policing is None else policing.of_message(connection, channel, message)

    def close(self) -> None:
        """Let go of what works beside the loop."""
        self.shadow.close()
        self.host.close()
        self.isolating.close()
        current = self.current()
        for beside in (current.asker, current.router):
            if beside is not None:
                beside.close()
        if current.shadow is not None:
            current.shadow.decider.close()


def _agents(settings: Settings) -> list[AgentSpec]:
    return list(settings.agents.values()) if settings.agents_configured else detected_agents(search_path())


def agents_of(settings: Settings) -> tuple[AgentSpec, ...] | None:
    """Those that a configuration names; None: it names none, and leaves it at those that there are."""
    return tuple(settings.agents.values()) if settings.agents_configured else None


def load_trusted(path: Path, *, named: bool) -> LoadedConfig:
    """The configuration, unless others could have written it: it says which programs are run. Raises ConfigError.

    named: see ``trust.exposed_config``.
    """
    try:
        problem = exposed_config(path, named=named)
    except OSError:
        problem = None  # what keeps it from being read is said when it is
    if problem is not None:
        raise ConfigError(path, [problem])
    return load_config(path)


def _shadow(
    settings: Settings,
    environ: Mapping[str, str],
    state: Path,
    database: Database,
    registry: AgentRegistry,
    former: Configured | None,
) -> tuple[Settings | None, ShadowConfiguration | None]:
    """What decides beside these settings. Raises ConfigError and ValueError."""
    if settings.shadow is None:
        return None, None
    path = Path(settings.shadow)
    # The configuration in force names it, which others could not have written.
    other = load_trusted(path, named=True).settings
    if other.shadow is not None:
        message, remedy = "shadow: is the key of a configuration that is itself a shadow", "remove it there"
        raise ConfigError(path, [Problem(message=message, remedy=remedy)])
    fitted = calibrations.read(state)
    if former is not None and former.shadowed == other and former.fitted == fitted:
        return other, former.shadow
    rules = rules_of(other)
    decider, _ = _decider(other, environ, database, registry, rules, fitted, _policing(other))
    return other, ShadowConfiguration(rules, agents_of(other), decider)


def _policing(settings: Settings) -> Policing | None:
    if not (settings.policy or settings.routing.enabled):
        return None
    budgets, reviews = Budgets(lambda: settings.budget), settings.routing.enabled
    return Policing(Policy(settings.policy), budgets, now_ms, reviews=reviews)


def _asker(
    classifier: Classifier, environ: Mapping[str, str], database: Database, former: Configured | None
) -> TierAsker | None:
    """The former one as long as nothing that it depends on is different, so that it keeps what it has learnt."""
    if former is not None and former.settings.classifier == classifier:
        return former.asker
    nobody = AgentSpec(name="classifier", kind="gemini", pass_env=CLI_VARIABLES)
    model = tier_model(classifier, environ, agent_environment(environ, nobody))
    return (
        None
        if model is None
        else TierAsker(database, GuardedModel(model, now_ms, classifier.shared_account), classifier.timeout, now_ms)
    )


def _router(
    settings: Settings,
    environ: Mapping[str, str],
    database: Database,
    registry: AgentRegistry,
    faults: Faults,
    rules: Rules,
    asker: TierAsker | None,
    fitted: Mapping[str, Fitted],
    former: Configured | None,
    policing: Policing | None,
) -> tuple[SpecialistDirectory | None, SpecialistRouter | None]:
    """The former ones as long as nothing that they depend on is different, so that nothing is encoded again."""
    routing = settings.routing
    if not routing.enabled and policing is None:
        return None, None
    same = former is not None and former.settings.routing == routing and former.fitted == fitted
    asked = ("policy", "budget")
    same = same and all(getattr(former.settings, name) == getattr(settings, name) for name in asked if former)
    if former is not None and same and former.asker is asker:
        return former.directory, former.router
    decider, directory = _decider(settings, environ, database, registry, rules, fitted, policing)
    asks = asker is not None and routing.enabled and routing.on_ambiguity is OnAmbiguity.CLASSIFIER
    weighs = asker is not None and routing.enabled and routing.judge_risk
    model = None if asker is None else Chooser(asker.model, database, settings.classifier.timeout, now_ms)
    pool = ThreadPoolExecutor(AT_ONCE, "route") if asks or weighs or not decider.answers_at_once else None
    router = SpecialistRouter(
        database,
        registry,
        decider,
        now_ms,
        faults,
        model if asks else None,
        pool,
        routing.max_handoffs,
        routing.answer_within,
        model if weighs else None,
    )
    return directory, router


def _decider(
    settings: Settings,
    environ: Mapping[str, str],
    database: Database,
    registry: AgentRegistry,
    rules: Rules,
    fitted: Mapping[str, Fitted],
    policing: Policing | None,
) -> tuple[Decider, SpecialistDirectory | None]:
    """Raises ValueError where there is no such encoder."""
    routing, versions = settings.routing, Versions(configuration=rules.settings_hash)
    if not routing.enabled:
        nobody = RoutingRules(calibration_for(routing.preset, Hashed().id, fitted), versions=versions)
        return Decider(database, registry, None, None, nobody, nobody, now_ms, policing), None
    chosen, plain = encoder(routing.encoder, environ), Hashed()
    calibration = calibration_for(routing.preset, chosen.id, fitted)
    own = RoutingRules(calibration, routing.default_specialist, routing.on_ambiguity, versions)
    without = replace(own, calibration=calibration_for(routing.preset, plain.id, fitted))
    directory = SpecialistDirectory(database, chosen, calibration, now_ms)
    fallback = SpecialistDirectory(database, plain, without.calibration, now_ms)
    return Decider(database, registry, directory, fallback, own, without, now_ms, policing), directory


def rules_of(settings: Settings) -> Rules:
    """What planning depends on."""
    return Rules(
        total=settings.concurrency.total,
        per_workdir=settings.concurrency.per_workdir,
        type_hint=settings.balancing.type_hint.value,
        when_all_limited=settings.balancing.when_all_limited.value,
        near_limit=settings.balancing.near_limit.value,
        prefer_wait=settings.balancing.prefer_wait,
        routing=settings.routing.enabled or bool(settings.policy),
        policed=bool(settings.policy),
        classifier=settings.classifier.kind is not ClassifierKind.NONE,
        settings_hash=settings_hash(settings),
    )


def _configured(
    settings: Settings,
    environ: Mapping[str, str],
    state: Path,
    database: Database,
    run_token: Callable[[str], str] | None,
    former: Configured | None,
    registry: AgentRegistry,
    faults: Faults,
) -> Configured:
    roots = tuple(Path(root) for root in settings.workdir_roots)
    # A card says what agents may do, so no agent is to write one.
    watched = (*settings.inbox.paths, *settings.routing.specialists)
    workdirs = Workdirs(roots, (state, *map(Path, watched)))
    rules = rules_of(settings)
    launch = LaunchRules(
        Bounds(real_paths(roots), (*real_paths(workdirs.reserved), *SYSTEM_FOLDERS)),
        settings.limits.grace,
        settings.limits.output_cap,
        environ,
        settings.concurrency.input_hold,
        settings.routing.max_handoffs if settings.routing.enabled else 0,
        run_token,
        () if run_token is None else mcp_command(state),
        settings.limits.subtasks,
        settings.telemetry.endpoint is not None,
    )
    asker = _asker(settings.classifier, environ, database, former)
    fitted = calibrations.read(state)
    policing = _policing(settings)
    shadowed, shadow = _shadow(settings, environ, state, database, registry, former)
    directory, router = _router(settings, environ, database, registry, faults, rules, asker, fitted, former, policing)
    policy = Policy(settings.policy) if policing is None else policing.policy
    return Configured(
        settings, rules, launch, workdirs, asker, router, directory, fitted, policy, policing, shadowed, shadow
    )


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
    current = Current(_configured(settings, environ, state, database, run_token, None, registry, faults))

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


async def take(
    parts: Parts,
    inbox: ConfiguredInbox,
    cards: ConfiguredInbox,
    herald: NotificationDispatcher,
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
        configured = _configured(
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
    await asyncio.to_thread(herald.follow, settings.notify)
    tell_agents(parts)


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


def look_again(parts: Parts) -> None:
    """Look at every agent's program; without a configuration, also for programs installed since the last look."""
    known = parts.registry.agents
    parts.registry.refresh([] if parts.current().settings.agents_configured else detected_agents(search_path()))
    if len(parts.registry.agents) != len(known):
        tell_agents(parts)


def search_path() -> str:
    """Where the daemon looks for programs."""
    return os.environ.get("PATH", os.defpath)


def agents_check(parts: Parts) -> CheckView:
    """Whether any agent can take a task that names none."""
    return agent_check(parts.registry, search_path(), configured=parts.current().settings.agents_configured)


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


def tell_agents(parts: Parts) -> None:
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


def now_ms() -> int:
    """The present, in epoch milliseconds."""
    return time.time_ns() // 1_000_000
