"""However a task comes in, the same text under the same settings may act as far."""

from collections.abc import Callable

import pytest

from claudomator_py.acts import Reach
from claudomator_py.domain.outcome import OutcomeStatus
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.policy.rule import Approval, Rule
from claudomator_py.protocols.a2a.messages import Message
from claudomator_py.resources.tasks import ApproveRequest
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.store.database import Database
from tests.contract.handing_on import hand_on
from tests.contract.talk import made, said, task_of
from tests.contract.test_service_run_requests import create
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

TEXTS = ("Tidy the kitchen.", "Tidy the kitchen with make publish, tonight.")
RULES: dict[str, tuple[Rule, ...]] = {
    "no rule": (),
    "all": (Rule(name="all", reach=Reach.TREE),),
    "by text": (Rule(name="text", when='task.text.contains("tonight")', reach=Reach.TREE),),
    "farther": (Rule(name="far", when='task.text.contains("kitchen")', reach=Reach.PUBLISH),),
    "asked": (Rule(name="ask", approve=Approval()), Rule(name="all", reach=Reach.NETWORK)),
}


def by_api(world: World, text: str) -> str:
    return world.submit("api", instructions=text, specialist="cook").name


def by_file(world: World, text: str) -> str:
    world.take("/in/a.yaml", spec("file", instructions=text, specialist="cook"))
    return "file"


def by_schedule(world: World, text: str) -> str:
    world.schedules.add(spec("nightly", instructions=text, specialist="cook", schedule="0 3 * * *"))
    return world.schedules.run("nightly").name


def by_a2a(world: World, text: str) -> str:
    message = Message("m1", text, "", "", "cook", None, waits=False, key=None)  # type: ignore[arg-type]
    return world.service.submit(message.task("operator")).name


def by_hub(world: World, text: str) -> str:
    parsed = parse_task({"name": "hub", "instructions": text, "specialist": "cook"})
    assert isinstance(parsed, TaskSpec)
    return world.service.submit(parsed).name


def by_message(world: World, text: str) -> str:
    made(world)
    return task_of(said(world, f"@cook {text}"), world)


def by_restart(world: World, text: str) -> str:
    name = by_api(world, text)
    started(world, name)
    world.end(name, status=OutcomeStatus.SUCCEEDED, text="Done.")
    world.tick()
    world.restart(name)
    return name


def by_handing_on(world: World, text: str) -> str:
    name = by_api(world, text)
    started(world, name)
    hand_on(world, "baker", name)
    return name


def by_continuing(world: World, text: str) -> str:
    name = by_api(world, text)
    started(world, name)
    world.end(name, status=OutcomeStatus.SUCCEEDED, text="Done.")
    world.tick()
    return world.submit("next", instructions=text, continues=name).name


WAYS: dict[str, Callable[[World, str], str]] = {
    way.__name__.removeprefix("by_").replace("_", " "): way
    for way in (by_api, by_file, by_schedule, by_a2a, by_hub, by_message, by_restart, by_handing_on, by_continuing)
}
EACH_WAY = [pytest.param(way, marks=[pytest.mark.both_databases] if way == "api" else []) for way in WAYS]


def world_of(database: Database, rules: tuple[Rule, ...], default: Reach | None) -> World:
    world = World(database, routes=True, default_reach=default)
    world.policy_rules = rules
    world.restarted_daemon()
    for name in ("cook", "baker"):
        world.specialists.register(card(name, description=f"Does what {name} does."))
    return world


def started(world: World, name: str) -> Reach | None:
    """How far its run may act, once a person has approved it if one has to."""
    for _ in range(4):
        world.tick()
        if world.state(name).startswith("NEEDS_INPUT"):
            world.service.approve(name, ApproveRequest())
    assert world.state(name).startswith("RUNNING"), world.service.why(name).sentences
    return request_of(world, name).reach


def request_of(world: World, name: str) -> LaunchRequest:
    """How its live run was started."""
    run_id = world.live(name).id
    return next(
        launch_request
        for kind in world.kinds.values()
        for launch_request in kind.requests
        if launch_request.run_id == run_id
    )


def expected(text: str, rule: str, default: Reach | None) -> Reach | None:
    """How far such a task may act."""
    if rule == "by text":
        return Reach.TREE if "tonight" in text else default
    return {"no rule": default, "all": Reach.TREE, "farther": Reach.PUBLISH, "asked": Reach.NETWORK}[rule]


@pytest.mark.parametrize("way", EACH_WAY)
@pytest.mark.parametrize(
    ("rule", "default", "text"),
    [
        ("no rule", Reach.NETWORK, TEXTS[1]),
        ("no rule", Reach.TREE, TEXTS[0]),
        ("no rule", None, TEXTS[1]),
        ("all", Reach.NETWORK, TEXTS[0]),
        ("by text", Reach.NETWORK, TEXTS[0]),
        ("by text", None, TEXTS[1]),
        ("farther", Reach.TREE, TEXTS[0]),
        ("asked", None, TEXTS[1]),
    ],
)
def test_the_way_in_makes_no_difference(
    database: Database, way: str, rule: str, default: Reach | None, text: str
) -> None:
    world = world_of(database, RULES[rule], default)
    name = WAYS[way](world, text)
    reach = started(world, name)
    assert reach is expected(text, rule, default)
    origin = world.task(name).reach_origin
    assert (None if origin is None else origin.reach) is reach


@pytest.mark.parametrize("way", EACH_WAY)
def test_one_approval_covers_what_the_text_says_that_it_runs(database: Database, way: str) -> None:
    world = world_of(database, (Rule(name="ask", approve=Approval()),), Reach.NETWORK)
    name = WAYS[way](world, TEXTS[1])
    assert started(world, name) is Reach.NETWORK
    assert request_of(world, name).granted_commands == ("make publish",)
    world.end(name, status=OutcomeStatus.SUCCEEDED, text="Done.")
    world.tick()
    assert world.state(name) == "COMPLETED"


@pytest.mark.parametrize("asked", [None, Reach.NETWORK, Reach.ANY])
@pytest.mark.parametrize("ruled", [None, Reach.TREE])
def test_a_task_that_a_run_makes_goes_no_farther_than_its_own(
    database: Database, asked: Reach | None, ruled: Reach | None
) -> None:
    world = world_of(
        database, (Rule(name="own", when='task.name == "api"', reach=ruled),) if ruled else (), Reach.NETWORK
    )
    world.submit("api", instructions=TEXTS[0], specialist="cook", reach=None if asked is None else asked.value)
    own = started(world, "api")
    create(world, world.live("api"), "beside", specialist="baker")
    beside = started(world, "beside")
    assert own is not None
    assert beside is not None
    assert beside <= own
