"""What was decided by a policy or a configuration that is in force no more: it is not written, whenever it is ready."""

from typing import Any

import pytest

from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.cheap_model import Chooser, GuardedModel
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.embed import Hashed
from claudomator_py.faults import Activity, item_of
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World
from tests.unit.dispatch.asked_model import ACCOUNT, Later, Model
from tests.unit.dispatch.test_choosing import Routed

LONG = "The log says that all is well.\n" * 1_000
NEVER = Rule.model_validate({"name": "never", "when": "false", "deny": "never"})
CHEAP = Rule.model_validate({"name": "cheap", "tier": {"ceiling": "fast"}})


class Configuration:
    """A router with these rules. pool: where it does what takes its time, when the test says so. weighs: whether a
    model says how risky each task is. immediate: whether its encoder answers at once."""

    def __init__(self, world: World, *rules: Rule, immediate: bool = True, weighs: bool = False) -> None:
        database, clock, encoder = world.database, world.clock, Hashed()
        encoder.immediate = immediate
        calibration = calibration_for(Preset.CALIBRATED, encoder.id)
        directory, routing = SpecialistDirectory(database, encoder, calibration, clock), RoutingRules(calibration)
        policing = Policing(Policy(rules), world.budgets, clock, reviews=True)
        decider = Decider(database, world.registry, directory, directory, routing, routing, clock, policing)
        model = GuardedModel(Model('{"risk": "low"}'), clock, ACCOUNT)
        weigher = Chooser(model, database, 5_000, clock) if weighs else None
        self.pool = Later()
        self.router = SpecialistRouter(
            database, world.registry, decider, clock, world.faults, self.pool, risk_model=weigher
        )

    def route(self) -> None:
        self.router.route()
        self.pool.work()


@pytest.mark.both_databases
@pytest.mark.parametrize("before", [(NEVER,), ()])
@pytest.mark.parametrize(
    ("text", "how"), [(LONG, {}), ("Mend the sink.", {"immediate": False}), ("Mend the sink.", {"weighs": True})]
)
def test_what_is_ready_once_other_rules_are_in_force_is_judged_by_those(
    database: Database, before: tuple[Rule, ...], text: str, how: dict[str, Any]
) -> None:
    world = World(database)
    if text != LONG:
        world.specialists.register(card("plumber"))
    old, new = Configuration(world, *before, **how), Configuration(world, CHEAP, **how)
    old.route()
    world.submit("t", instructions=text)
    old.router.route()
    assert len(old.pool.given) == 1
    world.faults.note(item_of(Activity.ROUTE, world.row("t")), ValueError("no such field"))
    world.now_ms += MINUTE_MS

    new.router.route()
    while old.pool.given:
        old.pool.work()
    world.database.write(lambda _: None)  # that nobody in particular does a task is written a moment later
    assert world.row("t").constraints is None
    assert world.faults.all() != [], "nothing was done for the task yet"

    while new.pool.given:
        new.pool.work()
    assert world.faults.all() == []
    assert '"fast"' in str(world.row("t").constraints)


def test_what_is_ready_before_that_is_judged_again(database: Database) -> None:
    world = World(database)
    old, new = Configuration(world, NEVER), Configuration(world, CHEAP)
    world.submit("t", instructions=LONG)
    old.route()
    assert world.row("t").constraints is not None

    new.route()
    assert '"fast"' in str(world.row("t").constraints)


def test_an_answer_that_comes_once_the_router_is_closed_changes_nothing(database: Database) -> None:
    routed = Routed(database, RuntimeError("closed"), '{"specialist": "twin-b"}')
    for name in ("first", "second"):
        routed.submit(name)
    routed.router.route()
    assert len(routed.pool.given) == 2

    routed.router.close()
    routed.pool.work()

    assert len(routed.model.asked) == 2
    assert [routed.world.row(name).constraints for name in ("first", "second")] == [None, None]
    assert routed.world.faults.all() == [], "of the next router's tasks"


def test_once_it_is_closed_nothing_more_is_given_to_its_pool(database: Database) -> None:
    routed = Routed(database, says_at_once=False)
    routed.submit("leak")
    routed.router.route()
    routed.router.close()

    routed.pool.work()

    assert (routed.pool.given, routed.model.asked) == ([], [])
