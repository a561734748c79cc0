"""What follows from the configuration: rules, who decides, who is asked. Made again as a whole at a reload."""

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
from claudomator_py.dispatch.cheap_model import Chooser, GuardedModel
from claudomator_py.dispatch.classify import CONCURRENCY, TierAsker
from claudomator_py.dispatch.deciding import Decided, Decider
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.specialists import SpecialistDirectory
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.run import Bounds
from claudomator_py.embed.configured import encoder
from claudomator_py.embed.hashed import Hashed
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
    """What follows from the configuration: replaced as a whole, between two ticks."""

    settings: Settings
    rules: Rules
    launch: LaunchRules
    workdirs: Workdirs
    asker: TierAsker | None
    router: SpecialistRouter | None
    decider: Decider | None
    """Says what would become of a task; None: nothing is routed."""
    directory: SpecialistDirectory | None
    """The specialists as the configured encoder sees them; None: nothing is routed."""
    fitted: Mapping[str, Fitted]
    """What was fitted on the operator's own tasks, by id of the encoder."""
    policing: Policing
    """Asks the rules on what tasks may do."""
    shadowed: Settings | None
    """Those of ``shadow``."""
    shadow: OtherConfiguration | None
    """What decides beside this configuration; None: nothing does."""

    @property
    def cheap_model(self) -> GuardedModel | None:
        """The model for small questions; None: none is configured."""
        return None if self.asker is None else self.asker.model

    def cosines(self, query: str) -> dict[Found, float] | None:
        """Return how alike a query is to what each card says; None where nothing is routed, and so nothing encoded."""
        return None if self.directory is None else self.directory.cosines(query)

    def twins(self, specialist_id: str) -> "Sequence[Twin]":
        """Return the skills of others that are nearly one of that specialist's; none where nothing is encoded."""
        return () if self.directory is None else self.directory.twins(specialist_id)

    def preview(self, request: Request, by: Principal, requires: tuple[str, ...] = ()) -> Decided | None:
        """Return what would become of such a task of that principal's; None where nothing is routed."""
        return None if self.decider is None else self.decider.preview(request, by, requires)

    def close(self) -> None:
        """Let go of what works beside the loop."""
        for beside in (self.asker, self.router):
            if beside is not None:
                beside.close()
        if self.shadow is not None:
            self.shadow.decider.close()


def now_ms() -> int:
    """Return the present, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def agents_of(settings: Settings) -> tuple[AgentSpec, ...] | None:
    """Return those that a configuration names; None: it names none, and leaves it at those that there are."""
    return tuple(settings.agents.values()) if settings.agents_configured else None


def load_trusted(path: Path, *, named: bool) -> LoadedConfig:
    """Return the configuration, unless others could have written it: it says which programs are run. Raises
    ConfigError.

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
) -> tuple[Settings | None, OtherConfiguration | None]:
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
    return other, other_configuration(other, environ, database, registry, fitted)


def other_configuration(
    settings: Settings,
    environ: Mapping[str, str],
    database: Database,
    registry: AgentRegistry,
    fitted: Mapping[str, Fitted],
    clock: Clock = now_ms,
    *,
    keeps: bool = True,
) -> OtherConfiguration:
    """Return what decides as the daemon would with these settings. clock: when; keeps: see ``SpecialistDirectory``.
    Raises ValueError where there is no such encoder."""
    rules = rules_of(settings)
    policing = _policing(settings, clock)
    decider, _ = _decider(settings, environ, database, registry, rules, fitted, policing, clock, keeps=keeps)
    return OtherConfiguration(rules, agents_of(settings), decider)


def _policing(settings: Settings, clock: Clock = now_ms) -> Policing:
    budgets, reviews = Budgets(lambda: settings.budget), settings.routing.enabled
    return Policing(Policy(settings.policy), budgets, clock, reviews=reviews)


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
    policing: Policing,
) -> tuple[SpecialistDirectory | None, SpecialistRouter | None]:
    """The former ones as long as nothing that they depend on is different, so that nothing is encoded again."""
    routing = settings.routing
    if not routing.enabled and not policing.has_rules:
        return None, None
    if former is not None and former.asker is asker and former.fitted == fitted:
        before, after = (
            (one.routing, one.policy, one.budget, one.reach, one.reach_configured)
            for one in (former.settings, settings)
        )
        if before == after:
            return former.directory, former.router
    decider, directory = _decider(settings, environ, database, registry, rules, fitted, policing)
    asks = asker is not None and routing.enabled and routing.on_ambiguity is OnAmbiguity.CLASSIFIER
    weighs = asker is not None and routing.enabled and routing.judge_risk
    model = None if asker is None else Chooser(asker.model, database, settings.classifier.timeout, now_ms)
    router = SpecialistRouter(
        database,
        registry,
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


def _decider(
    settings: Settings,
    environ: Mapping[str, str],
    database: Database,
    registry: AgentRegistry,
    rules: Rules,
    fitted: Mapping[str, Fitted],
    policing: Policing,
    clock: Clock = now_ms,
    *,
    keeps: bool = True,
) -> tuple[Decider, SpecialistDirectory | None]:
    """Raises ValueError where there is no such encoder."""
    routing, versions = settings.routing, Versions(configuration=rules.settings_hash)
    if not routing.enabled:
        nobody = RoutingRules(calibration_for(routing.preset, Hashed().id, fitted), versions=versions)
        return Decider(database, registry, None, None, nobody, nobody, clock, policing), None
    chosen, plain = encoder(routing.encoder, environ), Hashed()
    calibration = calibration_for(routing.preset, chosen.id, fitted)
    own = RoutingRules(calibration, routing.default_specialist, routing.on_ambiguity, routing.on_vague, versions)
    without = replace(own, calibration=calibration_for(routing.preset, plain.id, fitted))
    directory = SpecialistDirectory(database, chosen, calibration, clock, keeps=keeps)
    fallback = SpecialistDirectory(database, plain, without.calibration, clock)
    return Decider(database, registry, directory, fallback, own, without, clock, policing), directory


def rules_of(settings: Settings) -> Rules:
    """Return what planning depends on."""
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
    """Return all of it. former: what was in force; what has not changed since is kept. Raises ConfigError and
    ValueError."""
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
    shadowed, shadow = _shadow(settings, environ, state, database, registry, former)
    directory, router = _router(settings, environ, database, registry, faults, rules, asker, fitted, former, policing)
    decider = None if router is None else router.decider
    return Configured(
        settings, rules, launch, workdirs, asker, router, decider, directory, fitted, policing, shadowed, shadow
    )
