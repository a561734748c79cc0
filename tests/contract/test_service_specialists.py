"""Specialists for those who ask: what exists for each, tried in every way there is to ask."""

from collections.abc import Callable

import pytest

from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.domain.errors import BadCursor, Conflict, Forbidden, Invalid, KeyReused, NotFound, StaleVersion
from claudomator_py.domain.principal import OPERATOR, Principal, RequestKey, Role
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.embed import Hashed
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.specialists import GrantRequest
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
PRIVATE = {"visibility": "private"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def of(world: World, by: Principal = OPERATOR) -> Specialists:
    return world.access.as_(by)[Specialists]


def ids(world: World, by: Principal = OPERATOR) -> list[str]:
    return [item.id for item in of(world, by).page().items]


def tasks_for(world: World, specialist: str, by: Principal = OPERATOR) -> list[str]:
    wanted = TaskFilter(specialist=specialist)
    return sorted(item.name for item in world.access.as_(by)[Tasks].page(wanted, None, 50).items)


def test_of_many_specialists_only_a_few_are_named_to_whoever_means_none_of_them(world: World) -> None:
    for number in range(20):
        of(world).register(card(f"painter-{number}"))
    with pytest.raises(Invalid) as refused:
        world.service.submit(spec("sink", specialist="zzz"))
    assert str(refused.value).count("painter-") <= 5
    assert "claudomator specialists list" in str(refused.value)


def test_a_card_is_at_the_hub_under_its_own_id_alone(world: World) -> None:
    of(world).register(card("writer", url="ws-agent://writer"))
    for put in (of(world).register, of(world).change):
        with pytest.raises(Invalid, match="write ws-agent://writer, or"):
            put(card("writer", url="ws-agent://painter"))


@pytest.mark.both_databases
def test_tasks_are_listed_by_their_specialist_as_far_as_they_exist_for_whoever_asks(world: World) -> None:
    of(world).register(card("plumber"))
    of(world, ANN).register(card("secret", **PRIVATE))
    for by, name, specialist in ((ANN, "sink", "plumber"), (ANN, "vault", "secret"), (BOB, "tap", "plumber")):
        world.access.as_(by)[Tasks].submit(spec(name, specialist=specialist))
    world.access.as_(BOB)[Tasks].submit(spec("tea"))
    world.router.route()

    assert tasks_for(world, "plumber") == ["sink", "tap"]
    assert tasks_for(world, "secret") == ["vault"]
    assert [tasks_for(world, "plumber", by) for by in (ANN, BOB)] == [["sink"], ["tap"]]
    # Whether there is no such card, or only none for whoever asks, makes no difference.
    assert tasks_for(world, "secret", BOB) == tasks_for(world, "nobody", BOB) == []
    of(world).remove("plumber")
    assert tasks_for(world, "plumber", BOB) == ["tap"]
    assert tasks_for(world, "PLUMBER", BOB) == tasks_for(world, "plumb\0er", BOB) == []


@pytest.mark.both_databases
def test_who_does_a_task_is_told_to_those_for_whom_that_card_exists(world: World) -> None:
    """Colleagues see each other's tasks, and not each other's private cards."""
    stripes = {"skills": [{"id": "stripes", "name": "Stripes", "examples": ["Paint zebra stripes on the wall"]}]}
    of(world, ANN).register(card("zebra-painter", **PRIVATE, **stripes))
    world.access.as_(ANN)[Tasks].submit(spec("wall", instructions="Paint zebra stripes on the wall"))
    world.access.as_(ANN)[Tasks].submit(spec("fence", instructions="Paint it", specialist="zebra-painter"))
    world.router.route()
    colleague = Principal("amy", Role.OPERATE, ANN.organisation)

    def told(by: Principal, name: str) -> str:
        service = world.access.as_(by)[Tasks]
        listed = [item for item in service.page(TaskFilter(), None, 9).items if item.name == name]
        return "".join(view.model_dump_json() for view in (service.get(name), service.why(name), *listed))

    assert world.task("wall").specialist == world.task("fence").specialist == "zebra-painter"
    assert "zebra-painter" in told(ANN, "wall")
    assert "zebra-painter" not in told(colleague, "wall")
    assert "zebra-painter" in told(colleague, "fence"), "the task itself names it"
    assert [tasks_for(world, "zebra-painter", by) for by in (ANN, colleague)] == [["fence", "wall"], []]

    of(world, ANN).remove("zebra-painter")
    assert "zebra-painter" not in told(colleague, "wall")
    assert tasks_for(world, "zebra-painter", colleague) == []


@pytest.mark.both_databases
def test_a_card_that_does_not_exist_for_somebody_is_told_of_in_no_way(world: World) -> None:
    of(world, ANN).register(card("plumber", **PRIVATE))
    bob = of(world, BOB)
    asks: tuple[Callable[[str], object], ...] = (
        bob.get,
        lambda name: bob.change(card(name)),
        lambda name: bob.change(card(name), versions={1}),
        bob.remove,
        lambda name: bob.remove(name, versions={99}),
        lambda name: bob.grant(name, GrantRequest(grantee="bob")),
        lambda name: bob.revoke(name, "bob"),
    )
    for ask in asks:
        texts = set()
        for name in ("plumber", "plumbez"):
            with pytest.raises(NotFound) as refused:
                ask(name)
            texts.add(str(refused.value).replace(name, "ID"))
        assert texts == {"There is no specialist 'ID'. There are no specialists yet."}
    assert ids(world, BOB) == []
    assert bob.search("plumber").total == 0
    assert ids(world, ANN) == ids(world) == ["plumber"]


@pytest.mark.both_databases
def test_a_search_says_the_same_whatever_does_not_exist_for_who_asks(world: World) -> None:
    of(world).register(card("plumber", description="Fixes leaking pipes."))
    of(world).register(card("painter", description="Paints walls, and pipes."))
    before = of(world, BOB).search("leaking pipes on walls")
    for n in range(5):
        of(world, ANN).register(card(f"secret-{n}", description="Walls, pipes, leaks.", **PRIVATE))
    assert of(world, BOB).search("leaking pipes on walls") == before
    assert of(world, ANN).search("leaking pipes on walls").total == 7


def test_pages_have_what_exists_for_who_asks_and_a_cursor_tells_of_nothing_else(world: World) -> None:
    for name in ("a", "b", "c", "d"):
        of(world, ANN).register(card(name, **({} if name in "ac" else PRIVATE)))
    first = of(world, BOB).page(limit=1)
    assert [item.id for item in first.items] == ["a"]
    second = of(world, BOB).page(first.next_cursor, limit=1)
    assert [item.id for item in second.items] == ["c"]
    assert second.next_cursor is None
    for cursor in ("x", "", "bm90aGluZw=="):
        with pytest.raises(BadCursor):
            of(world, BOB).page(cursor)


def test_for_whom_it_is_shared_is_told_to_those_who_may_change_it(world: World) -> None:
    of(world, ANN).register(card("plumber", visibility="shared"))
    own = of(world, ANN).grant("plumber", GrantRequest(grantee="bob"))
    assert (own.grants, own.changeable, own.version) == (("bob",), True, 2)
    other = of(world, BOB).get("plumber")
    assert (other.grants, other.changeable) == ((), False)
    with pytest.raises(Forbidden):
        of(world, BOB).grant("plumber", GrantRequest(grantee="org:bolt"))
    assert of(world, ANN).revoke("plumber", "bob").grants == ()
    assert ids(world, BOB) == []


def test_a_view_has_the_card_as_it_was_written(world: World) -> None:
    made = of(world, ANN).register(card("plumber", name="Pipe Doctor", risk_ceiling="low", extra={"x-a": [1]}))
    assert (made.name, made.creator, made.organisation, made.source) == ("Pipe Doctor", "ann", "acme", "api")
    assert (made.visibility, made.transport) == ("public", "local")
    assert made.content == card("plumber", name="Pipe Doctor", risk_ceiling="low", extra={"x-a": [1]})
    assert "visibility" not in made.card
    assert of(world, ANN).get("plumber") == made


@pytest.mark.both_databases
def test_a_request_that_is_sent_again_is_answered_as_it_was(world: World) -> None:
    key = RequestKey("k", "1")
    first = of(world, ANN).register(card("plumber"), key=key)
    of(world, ANN).change(card("plumber", description="Fixes pipes."))
    assert of(world, ANN).register(card("plumber"), key=key) == first
    assert of(world).get("plumber").description == "Fixes pipes."
    with pytest.raises(KeyReused):
        of(world, ANN).register(card("painter"), key=RequestKey("k", "2"))


def test_a_change_is_refused_to_who_has_seen_another_version(world: World) -> None:
    of(world, ANN).register(card("plumber"))
    with pytest.raises(StaleVersion):
        of(world, ANN).change(card("plumber", description="Late."), versions={7})
    with pytest.raises(Conflict):
        of(world, BOB).register(card("plumber"))


def test_changes_are_events_in_the_name_of_who_made_them(world: World) -> None:
    of(world, ANN).register(card("plumber", visibility="shared"))
    of(world, ANN).grant("plumber", GrantRequest(grantee="bob"))
    of(world, ANN).remove("plumber")
    live = world.access.as_(OPERATOR)[Events]
    record = live.events(live.event_filter(None, ()), 0, 9).items
    assert [(entry.kind, entry.by) for entry in record] == [
        ("specialist_registered", "ann"),
        ("specialist_granted", "ann"),
        ("specialist_removed", "ann"),
    ]


def test_what_is_odd_about_a_card_is_told_of_what_one_sees(database: Database) -> None:
    world = World(database)
    encoder = Hashed()
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    directory = SpecialistDirectory(database, encoder, calibration, world.clock)
    specialists = Specialists(database, world.repeats, world.clock, directory.cosines, twins=directory.twins).as_(
        OPERATOR
    )
    skill = {"id": "taps", "name": "Taps", "examples": ["The tap drips all night", "Mend the dripping tap"]}
    secret = card("secret", visibility="private", keywords=["drip"], skills=[skill])
    specialists.as_(ANN).register(secret)

    specialists.as_(ANN).register(card("nobody"))
    specialists.as_(ANN).register(card("hers", keywords=["drip"], skills=[skill], fallback="nobody"))
    specialists.as_(ANN).remove("nobody")
    hers = specialists.as_(ANN).get("hers")
    his = specialists.as_(BOB).register(card("his", keywords=["drop"], skills=[]))

    assert [warning.text for warning in hers.warnings] == [
        "its keyword `drip` is one of secret, too: it points to neither",
        "its `fallback` names nobody, and there is no such specialist",
        "its skill taps is nearly taps of secret: tasks go to either by chance",
    ]
    assert his.warnings == ()
    assert [warning.text for warning in specialists.as_(BOB).get("hers").warnings] == [
        "its `fallback` names nobody, and there is no such specialist"
    ]
    assert "secret" not in specialists.as_(BOB).get("hers").model_dump_json()
    assert specialists.as_(ANN).page().items[0].warnings == ()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"fallback": "florst"}, "fallback: there is no specialist `florst`; did you mean `florist`?"),
        ({"escalation": "secret"}, "escalation: there is no specialist `secret`; write one of florist, human_review"),
        ({"escalation": "clarify"}, "escalation: there is no specialist `clarify`; write one of florist, human_review"),
        ({"fallback": "plumber"}, "fallback: `plumber` is this card itself; name another one, or clarify or default"),
    ],
)
def test_a_card_names_only_who_exists_for_its_creator(database: Database, fields: dict[str, str], text: str) -> None:
    world = World(database)
    specialists = Specialists(database, world.repeats, world.clock).as_(OPERATOR)
    specialists.as_(ANN).register(card("secret", visibility="private"))
    specialists.as_(BOB).register(card("florist"))

    with pytest.raises(Invalid) as refused:
        specialists.as_(BOB).register(card("plumber", **fields))
    assert text in refused.value.detail
    specialists.as_(BOB).register(card("plumber", fallback="human_review", escalation="florist"))
    with pytest.raises(Invalid) as refused:
        specialists.as_(BOB).change(card("plumber", **fields))
    assert text in refused.value.detail
    assert specialists.get("plumber").content.fallback == "human_review"


def test_a_card_stays_good_when_whom_it_names_is_removed(database: Database) -> None:
    world = World(database)
    specialists = Specialists(database, world.repeats, world.clock).as_(OPERATOR)
    specialists.register(card("florist"))
    assert specialists.register_itself(card("plumber", fallback="florist")).is_new
    specialists.remove("florist")

    assert not specialists.register_itself(card("plumber", fallback="florist")).is_new
    again = specialists.get("plumber")

    assert [warning.text for warning in again.warnings] == [
        "its `fallback` names florist, and there is no such specialist"
    ]
    with pytest.raises(Invalid, match="there is no specialist `florist`"):
        specialists.register_itself(card("plumber", fallback="florist", name="Pipe Doctor"))
