"""Searching specialists, and asking who would do a task: the same whatever does not exist for who asks."""

from collections.abc import Callable, Mapping

import pytest
from pydantic import ValidationError

from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.domain.errors import Conflict
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.task import TaskSpec
from claudomator_py.embed import Hashed
from claudomator_py.policy.rule import Rule
from claudomator_py.ports import EncoderFault
from claudomator_py.resources.routing import RouteRequest
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.specialists.service import Specialists, text_scores
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from tests.fakes.cards import card
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
PRIVATE = {"visibility": "private"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def of(world: World, by: Principal = OPERATOR) -> Specialists:
    return world.access.as_(by)[Specialists]


def routing(world: World, by: Principal = OPERATOR) -> Routing:
    return world.access.as_(by)[Routing]


def found(world: World, query: str, by: Principal = OPERATOR) -> list[str]:
    result = of(world, by).search(query)
    assert result.total == len(result.items)
    return [item.specialist.id for item in result.items]


# --- searching ------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_words_alone_decide_without_an_encoder_and_the_answer_says_so(world: World) -> None:
    leaks = {"id": "leaks", "name": "Leaks", "description": "Finds leaks under the sink."}
    taps = {"id": "taps", "name": "Taps", "description": "Replaces a dripping tap."}
    of(world).register(card("plumber", skills=[leaks, taps]))
    of(world).register(card("painter"))

    result = of(world).search("a leak under the sink")

    assert result.degraded
    (found_specialist,) = result.items
    assert (found_specialist.specialist.id, found_specialist.best_skill_id, found_specialist.score) == (
        "plumber",
        "leaks",
        1.0,
    )
    assert [(skill.id, skill.score, skill.text, skill.semantic) for skill in found_specialist.skills] == [
        ("leaks", 1.0, 1.0, None)
    ]


@pytest.mark.both_databases
def test_a_card_without_skills_is_found_by_its_own_text(world: World) -> None:
    of(world).register(card("plumber", description="Fixes pipes.", skills=[]))
    (found_specialist,) = of(world).search("pipes").items
    assert (found_specialist.specialist.id, found_specialist.best_skill_id, found_specialist.skills) == (
        "plumber",
        None,
        (),
    )


def test_rare_words_count_more_than_frequent_ones(world: World) -> None:
    for n in range(5):
        of(world).register(card(f"clerk-{n}", description="Writes reports.", skills=[]))
    of(world).register(card("plumber", description="Fixes pipes.", skills=[]))
    assert found(world, "reports of pipes")[0] == "plumber"


def test_a_word_that_nobody_has_lowers_every_score() -> None:
    place: Found = ("plumber", None)
    known = text_scores(["pipes"], {place: {"pipes"}}, 10)[place]
    both = text_scores(["pipes", "zyzzyva"], {place: {"pipes"}}, 10)[place]
    assert known == 1.0
    assert 0 < both < 0.5


@pytest.mark.parametrize("texts", [1, 2, 3, 1_000])
def test_text_scores_are_between_0_and_1(texts: int) -> None:
    places: list[Found] = [(str(n), None) for n in range(texts)]
    hits = {place: {"a", "b"} if n % 2 else {"a"} for n, place in enumerate(places)}
    assert all(0 < score <= 1 for score in text_scores(["a", "b", "c"], hits, texts).values())


def test_nothing_is_found_by_words_that_say_nothing(world: World) -> None:
    of(world).register(card("plumber"))
    result = of(world).search("the of and")
    assert (result.items, result.total) == ((), 0)


def alike(values: Mapping[Found, float]) -> Callable[[str], Mapping[Found, float]]:
    def similarity(query: str) -> Mapping[Found, float]:
        assert query == "drips"
        return values

    return similarity


def test_a_score_is_seven_tenths_meaning_and_three_tenths_words(database: Database) -> None:
    world = World(database)
    of(world).register(card("plumber", description="Fixes pipes."))
    of(world).register(card("dripper", description="Drips.", skills=[]))
    of(world).register(card("painter"))
    of(world, ANN).register(card("secret", **PRIVATE))
    values = {
        ("plumber", "plumber-work"): 0.9,
        ("plumber", None): 0.5,
        ("dripper", None): 0.2,
        ("painter", None): -0.3,
        ("secret", None): 1.5,
    }
    encoded = Specialists(database, world.repeats, world.clock, alike(values)).as_(BOB)

    result = encoded.search("drips")

    assert not result.degraded
    assert [(item.specialist.id, item.score, item.best_skill_id) for item in result.items] == [
        ("plumber", 0.63, "plumber-work"),
        ("dripper", 0.44, None),
    ]
    assert encoded.as_(ANN).search("drips").items[0].score == 0.7
    assert encoded.search("drips", limit=1).total == 2


@pytest.mark.both_databases
def test_with_an_encoder_too_a_search_says_the_same_whatever_does_not_exist(database: Database) -> None:
    world, encoder = World(database), Hashed()
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    directory = SpecialistDirectory(database, encoder, calibration, world.clock)
    specialists = Specialists(database, world.repeats, world.clock, directory.cosines).as_(OPERATOR)
    of(world).register(card("plumber", description="Fixes leaking pipes."))
    of(world).register(card("painter", description="Paints walls, and pipes."))

    before = specialists.as_(BOB).search("a leeking pipe")

    assert not before.degraded
    assert before.items[0].specialist.id == "plumber"
    assert 0 < before.items[0].score <= 1
    of(world, ANN).register(card("secret", description="Leaking pipes, walls, plumbers.", **PRIVATE))
    assert specialists.as_(BOB).search("a leeking pipe") == before
    assert specialists.as_(ANN).search("a leeking pipe").total == 3


def test_an_encoder_that_fails_leaves_the_words_at_their_full_score(database: Database) -> None:
    world = World(database)
    of(world).register(card("dripper", description="Drips.", skills=[]))

    def broken(query: str) -> Mapping[Found, float]:
        raise EncoderFault("no such model")

    result = Specialists(database, world.repeats, world.clock, broken).as_(OPERATOR).search("drips")

    assert result.degraded
    assert [item.score for item in result.items] == [1.0]


ROOFER = card(
    "roofer",
    description="Covers roofs with tiles.",
    skills=[{"id": "tiles", "name": "Tiles", "examples": ["Replace the broken tiles of the roof"]}],
)
TILER = card("tiler", description="Tiles of bathrooms and kitchens.", skills=[])


@pytest.mark.both_databases
def test_who_would_do_a_task_is_told_with_what_each_score_is_made_of(database: Database) -> None:
    world = World(database)
    of(world).register(ROOFER)
    of(world).register(TILER)

    tried_route = routing(world).route(
        RouteRequest(instructions="Replace broken tiles on the roof.", name="roof-tiles")
    )

    assert (tried_route.route, tried_route.specialist, tried_route.skill) == ("specialist", "roofer", "tiles")
    roofer, tiler = tried_route.candidates
    assert (roofer.specialist, roofer.rejected, roofer.needs) == ("roofer", None, None)
    assert roofer.score == tried_route.confidence == sum(roofer.parts.values())
    assert tiler.needs == pytest.approx(roofer.score - tiler.score)
    assert tiler.rejected in ("a weaker match", "below the threshold")
    assert tried_route.sentences[0].startswith("roof-tiles would go to roofer (skill tiles): ")
    assert f"It would go to tiler with {tiler.needs:.2f} more." in tried_route.sentences


@pytest.mark.parametrize(
    "given",
    [
        {"instructions": "Mend \x90 it."},
        {"instructions": " \n"},
        {"instructions": "a" * 1_000_001},
        {"instructions": "Mend it.", "tags": ["roof", "roof"]},
        {"instructions": "Mend it.", "tags": ["roof\x7f"]},
    ],
)
def test_nobody_would_do_what_no_task_can_say(database: Database, given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        routing(World(database)).route(RouteRequest.model_validate(given))
    with pytest.raises(ValidationError):
        TaskSpec.model_validate({"name": "a-task"} | given)


@pytest.mark.both_databases
def test_what_fits_nobody_would_go_to_the_default(database: Database) -> None:
    world = World(database)
    of(world).register(ROOFER)
    of(world).register(card("generalist", description="Whatever else."))

    tried_route = routing(world).route(
        RouteRequest(instructions="Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.")
    )

    assert (tried_route.route, tried_route.specialist) == ("default", "generalist")
    assert any(text.startswith("With a threshold of ") for text in tried_route.sentences)


@pytest.mark.both_databases
def test_a_route_says_the_same_whatever_does_not_exist(database: Database) -> None:
    world = World(database)
    of(world).register(ROOFER)
    asked = RouteRequest(instructions="Replace broken tiles on the roof.")
    before = routing(world, BOB).route(asked)

    of(world, ANN).register(card("secret", description="Replace broken tiles on the roof.", **PRIVATE))

    assert routing(world, BOB).route(asked) == before
    assert {candidate.specialist for candidate in routing(world, ANN).route(asked).candidates} == {"roofer", "secret"}


@pytest.mark.both_databases
def test_what_the_policy_would_do_to_it_is_told_first(database: Database) -> None:
    world = World(database)
    world.policy_rules = (
        Rule(name="no-roofs", when="'roof' in task.tags", deny="Too high."),
        Rule(name="tiles", when="task.text.contains('kitchen')", specialist="tiler"),
        Rule(name="bathrooms", when="task.text.contains('bathroom')", exclude_specialists=("tiler",)),
    )
    world.restarted_daemon()
    of(world).register(ROOFER)
    of(world).register(TILER)

    refused = routing(world).route(RouteRequest(instructions="Replace tiles.", name="high", tags=("roof",)))
    assert refused.policy is not None
    assert (refused.policy.verdict, refused.policy.rules) == ("denied", ("no-roofs",))
    assert refused.sentences[0] == "high is denied, with low risk: rule no-roofs of the policy refuses it: Too high."

    given = routing(world).route(RouteRequest(instructions="Replace broken tiles of the roof of the kitchen."))
    assert (given.specialist, given.reason) == ("tiler", "rule tiles of the policy gives it to tiler")

    without = routing(world).route(RouteRequest(instructions="The tiles of bathrooms."))
    assert without.specialist != "tiler"
    (tiler,) = [candidate for candidate in without.candidates if candidate.specialist == "tiler"]
    assert tiler.rejected == "excluded by a rule of the policy"

    free = routing(world).route(RouteRequest(instructions="Replace broken tiles on the roof."))
    assert free.policy is not None
    assert free.policy.verdict == "allowed"
    assert free.sentences[0].startswith("Such a task would go to ")


def test_where_nothing_is_routed_nobody_would_do_it(database: Database) -> None:
    world = World(database)

    with pytest.raises(Conflict, match="Nothing is routed"):
        Routing(database, world.clock, lambda: None).as_(OPERATOR).route(RouteRequest(instructions="any"))
