"""Everything derived from the configuration (rules, deciders, models to ask), rebuilt as a whole at a reload."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from claudomator_py.agents.programs import mcp_command
from claudomator_py.classify import CLI_VARIABLES, tier_model
from claudomator_py.daemon import calibrations
from claudomator_py.dispatch.alternative import OtherConfiguration
from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.cheap_model import Chooser, GuardedModel
from claudomator_py.dispatch.classify import CONCURRENCY, TierAsker
from claudomator_py.dispatch.deciding import Decided, Decider
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.run import Bounds
from claudomator_py.embed import Hashed, encoder
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import agent_environment
from claudomator_py.environment.workdirs import SYSTEM_FOLDERS, Workdirs, real_paths
from claudomator_py.faults import Faults
from claudomator_py.log import get_logger
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Clock
from claudomator_py.routing.calibration import Fitted, calibration_for
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.schema.configfile import ConfigError, LoadedConfig, load_config
from claudomator_py.schema.routing_settings import OnAmbiguity
from claudomator_py.schema.settings import Classifier, ClassifierKind, Settings, settings_hash
from claudomator_py.schema.trust import exposed_config
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from claudomator_py.routing.space import Twin

log = get_logger("claudomator")


@dataclass(frozen=True, slots=True)
class Configured:
    """Everything derived from the configuration; replaced as a whole, between two ticks."""

    settings: Settings
    rules: Rules
    launch: LaunchRules
    workdirs: Workdirs
    asker: TierAsker | None
    router: SpecialistRouter | None
    decider: Decider | None
    """Predicts what would become of a task; None: routing is off and there are no policy rules."""
    directory: SpecialistDirectory | None
    """The specialists as seen by the configured encoder; None: routing is off."""
    fitted: Mapping[str, Fitted]
    """Calibrations fitted on the operator's own tasks, by encoder id."""
    policing: Policing
    """Applies the rules on what tasks may do."""
    shadowed: Settings | None
    """Settings of the configuration that ``shadow`` names."""
    shadow: OtherConfiguration | None
    """The shadow configuration, which decides alongside this one; None: there is none."""

    @property
    def cheap_model(self) -> GuardedModel | None:
        """The model for small questions; None: no model is configured."""
        return None if self.asker is None else self.asker.model

    def cosines(self, query: str) -> dict[Found, float] | None:
        """Return the similarity of a query to each card's text; None if routing is off, as nothing is encoded then."""
        return None if self.directory is None else self.directory.cosines(query)

    def twins(self, specialist_id: str) -> "Sequence[Twin]":
        """Return the skills of other specialists that nearly equal one of this specialist's; none if nothing is
        encoded."""
        return () if self.directory is None else self.directory.twins(specialist_id)

    def preview(self, request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        """Return what would become of such a task from that principal; None if nothing decides."""
        return None if self.decider is None else self.decider.preview(request, by, requires)

    def close(self) -> None:
        """Let go of the executors that work beside the loop."""
        for beside in (self.asker, self.router):
            if beside is not None:
                beside.close()
        if self.shadow is not None:
            self.shadow.decider.close()


def now_ms() -> int:
    """Return the current time, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def agents_of(settings: Settings) -> tuple[AgentSpec, ...] | None:
    """Return the agents that the configuration names; None: it names none, so the detected agents are used."""
    return tuple(settings.agents.values()) if settings.agents_configured else None


def load_trusted(path: Path, *, named: bool) -> LoadedConfig:
    """Return the configuration, provided that other users cannot have written it: it names the programs to run.

    named: see ``trust.exposed_config``. Raises ConfigError.
    """
    try:
        problem = exposed_config(path, named=named)
    except OSError:
        problem = None  # what keeps it from being read is said when it is
    if problem is not None:
        raise ConfigError(path, [problem])
    return load_config(path)


@dataclass(frozen=True, slots=True)
class Deciders:
    """Makes what decides about tasks, by settings."""

    environ: Mapping[str, str]
    """Has the key of an encoder's service."""
    database: Database
    registry: AgentRegistry
    fitted: Mapping[str, Fitted]
    """See ``Configured``."""
    clock: Clock = now_ms
    """The time to decide at."""
    keeps: bool = True
    """See ``SpecialistDirectory``."""

    def other(self, settings: Settings) -> OtherConfiguration:
        """Return a configuration that decides as the daemon would with these settings. Raises ValueError if the encoder
        does not exist."""
        decider, _ = self.of(settings, _policing(settings, self.clock))
        return OtherConfiguration(rules_of(settings), agents_of(settings), decider)

    def of(self, settings: Settings, policing: Policing) -> tuple[Decider, SpecialistDirectory | None]:
        """Return the decider and its directory. Raises ValueError if the encoder does not exist."""
        routing, versions = settings.routing, Versions(configuration=settings_hash(settings))
        database, registry, clock = self.database, self.registry, self.clock
        if not routing.enabled:
            nobody = RoutingRules(calibration_for(routing.preset, Hashed().id, self.fitted), versions=versions)
            return Decider(database, registry, None, None, nobody, nobody, clock, policing), None
        chosen, plain = encoder(routing.encoder, self.environ), Hashed()
        calibration = calibration_for(routing.preset, chosen.id, self.fitted)
        own = RoutingRules(calibration, routing.default_specialist, routing.on_ambiguity, routing.on_vague, versions)
        without = replace(own, calibration=calibration_for(routing.preset, plain.id, self.fitted))
        directory = SpecialistDirectory(database, chosen, calibration, clock, keeps=self.keeps)
        fallback = SpecialistDirectory(database, plain, without.calibration, clock)
        return Decider(database, registry, directory, fallback, own, without, clock, policing), directory


def _shadow(
    settings: Settings, deciders: Deciders, former: Configured | None
) -> tuple[Settings | None, OtherConfiguration | None]:
    """Return the shadow's settings and deciders. Raises ConfigError and ValueError."""
    if settings.shadow is None:
        return None, None
    path = Path(settings.shadow)
    # Named by the configuration in force, which is already known to be safe from other users.
    other = load_trusted(path, named=True).settings
    if other.shadow is not None:
        message, remedy = "shadow: is the key of a configuration that is itself a shadow", "remove it there"
        raise ConfigError(path, [Problem(message=message, remedy=remedy)])
    if former is not None and former.shadowed == other and former.fitted == deciders.fitted:
        return other, former.shadow
    return other, deciders.other(other)


def _policing(settings: Settings, clock: Clock = now_ms) -> Policing:
    budgets, reviews = Budgets(lambda: settings.budget), settings.routing.enabled
    return Policing(Policy(settings.policy), budgets, clock, reviews=reviews)


def _asker(
    classifier: Classifier, environ: Mapping[str, str], database: Database, former: Configured | None
) -> TierAsker | None:
    """Return the former asker if its settings are unchanged, so that what it has learnt is kept."""
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
    deciders: Deciders,
    faults: Faults,
    asker: TierAsker | None,
    former: Configured | None,
    policing: Policing,
) -> tuple[SpecialistDirectory | None, SpecialistRouter]:
    """Return the former router and directory if their settings are unchanged, so that nothing is encoded again."""
    routing = settings.routing
    if former is not None and former.router is not None and (former.asker, former.fitted) == (asker, deciders.fitted):
        before, after = (
            (config.routing, config.policy, config.budget, config.reach, config.reach_configured)
            for config in (former.settings, settings)
        )
        if before == after:
            return former.directory, former.router
    decider, directory = deciders.of(settings, policing)
    asks = asker is not None and routing.enabled and routing.on_ambiguity is OnAmbiguity.CLASSIFIER
    weighs = asker is not None and routing.enabled and routing.judge_risk
    model = None if asker is None else Chooser(asker.model, deciders.database, settings.classifier.timeout, now_ms)
    router = SpecialistRouter(
        deciders.database,
        deciders.registry,
        decider,
        now_ms,
        faults,
        ThreadPoolExecutor(CONCURRENCY, "route"),
        model if asks else None,
        routing.max_handoffs,
        routing.answer_within,
        model if weighs else None,
        ThreadPoolExecutor(1, "route-long"),
        ThreadPoolExecutor(1, "route-rules"),
        settings.reach,
        is_reach_configured=settings.reach_configured,
    )
    return directory, router


def rules_of(settings: Settings) -> Rules:
    """Return the settings that planning depends on."""
    return Rules(
        total=settings.concurrency.total,
        per_organisation=settings.concurrency.share,
        remote=settings.concurrency.remote_total,
        remote_per_organisation=settings.concurrency.remote_share,
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


def configured_by(
    settings: Settings,
    environ: Mapping[str, str],
    state: Path,
    database: Database,
    run_token: Callable[[str], str] | None,
    former: Configured | None,
    registry: AgentRegistry,
    faults: Faults,
) -> Configured:
    """Return everything derived from the settings. former: what was in force; its unchanged parts are kept. Raises
    ConfigError and ValueError."""
    roots = tuple(Path(root) for root in settings.workdir_roots)
    # A card says what agents may do, so no agent may write to these folders.
    watched = (*settings.inbox.paths, *settings.routing.specialists)
    workdirs = Workdirs(roots, (state, *map(Path, watched)))
    rules = rules_of(settings)
    launch = LaunchRules(
        Bounds(real_paths(roots), (*real_paths(workdirs.reserved), *SYSTEM_FOLDERS)),
        settings.limits.grace,
        settings.limits.output_cap,
        environ,
        settings.limits.linger,
        settings.limits.background_idle,
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
    deciders = Deciders(environ, database, registry, fitted)
    shadowed, shadow = _shadow(settings, deciders, former)
    directory, router = _router(settings, deciders, faults, asker, former, policing)
    return Configured(
        settings, rules, launch, workdirs, asker, router, router.decider, directory, fitted, policing, shadowed, shadow
    )
