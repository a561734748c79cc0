"""What a world is given: a way to those who are notified, and what follows from a configuration, on its own clock."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from claudomator_py.acts import Reach
from claudomator_py.app.configured import Configured
from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.embed import Hashed
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.faults import Faults
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Clock, Messenger
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.routing.space import Vector
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague, Preset
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from claudomator_py.workers.notifications import NotificationDispatcher


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


class NoCouriers(NotificationDispatcher):
    """Knows the ways to targets, and tells nobody by itself."""

    def __init__(self, database: Database, ways: Mapping[str, Messenger], clock: Clock) -> None:
        super().__init__(database, _nobody, clock)
        self._ways = ways

    @property
    def messengers(self) -> Mapping[str, Messenger]:
        return self._ways


def _nobody(target: NotifyTarget) -> Messenger:
    raise AssertionError("nobody is to be told in this world")


def configure(
    database: Database,
    registry: AgentRegistry,
    clock: Clock,
    faults: Faults,
    budgets: Budgets,
    policy: Sequence[Rule],
    launch: LaunchRules,
    workdirs: Workdirs,
    routes: bool = False,
    answer_within_ms: int | None = None,
    on_ambiguity: OnAmbiguity = OnAmbiguity.SIGNALS,
    on_vague: OnVague = OnVague.ASK,
    default_reach: Reach | None = None,
    **changes: Any,
) -> tuple[Configured, SpecialistRouter]:
    """Return what is in force, and what routes even where a tick does not. routes: whether a tick does.

    on_ambiguity and on_vague are such that somebody in particular does a task, or is asked for; by default neither
    would be.
    """
    encoder = _EncodesOnce()
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    directory = SpecialistDirectory(database, encoder, calibration, clock)
    routing = RoutingRules(calibration, default="generalist", on_ambiguity=on_ambiguity, on_vague=on_vague)
    policing = Policing(Policy(tuple(policy)), budgets, clock, reviews=True)
    decider = Decider(database, registry, directory, directory, routing, routing, clock, policing=policing)
    router = SpecialistRouter(
        database,
        registry,
        decider,
        clock,
        faults,
        ThreadPoolExecutor(1),
        answer_within_ms=answer_within_ms,
        default_reach=default_reach,
    )
    # Without an encoder for searches, whose scores are then those of words alone.
    configured = Configured(
        settings=Settings(),
        rules=rules(**changes),
        launch=launch,
        workdirs=workdirs,
        asker=None,
        router=router if routes else None,
        decider=decider,
        directory=None,
        fitted={},
        policing=policing,
        shadowed=None,
        shadow=None,
    )
    return configured, router
