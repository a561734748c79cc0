"""Specialists for those who ask: what exists for each, tried in every way there is to ask, and what a search finds."""

from collections.abc import Callable, Mapping

import pytest
from pydantic import ValidationError

from claudomator_py.dispatch.specialists import SpecialistDirectory
from claudomator_py.domain.encoder import EncoderFault
from claudomator_py.domain.errors import BadCursor, Conflict, Forbidden, Invalid, KeyReused, NotFound, StaleVersion
from claudomator_py.domain.principal import OPERATOR, Principal, RequestKey, Role
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import TaskFilter
from claudomator_py.domain.views.routing import RouteRequest
from claudomator_py.embed.hashed import Hashed
from claudomator_py.policy.rule import Rule
from claudomator_py.queries.specialists import text_scores
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.service.specialists import Specialists
from claudomator_py.store.database import Database
from claudomator_py.store.full_text import Found
from tests.fakes.cards import card
from tests.fakes.world import World, spec

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
PRIVATE = {"visibility": "private"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def of(world: World, by: Principal = OPERATOR) -> Specialists:
    return world.access.as_(by).specialists


def ids(world: World, by: Principal = OPERATOR) -> list[str]:
    return [one.id for one in of(world, by).page().items]


def tasks_for(world: World, specialist: str, by: Principal = OPERATOR) -> list[str]:
    wanted = TaskFilter(specialist=specialist)
    return sorted(one.name for one in world.access.as_(by).queries.tasks(wanted, None, 50).items)


def found(world: World, query: str, by: Principal = OPERATOR) -> list[str]:
    result = of(world, by).search(query)
    assert result.total == len(result.items)
    return [one.specialist.id for one in result.items]


@pytest.mark.both_databases
def test_tasks_are_listed_by_their_specialist_as_far_as_they_exist_for_whoever_asks(world: World) -> None:
    of(world).register(card("plumber"))
    of(world, ANN).register(card("secret", **PRIVATE))
    for by, name, specialist in ((ANN, "sink", "plumber"), (ANN, "vault", "secret"), (BOB, "tap", "plumber")):
        world.access.as_(by).service.submit(spec(name, specialist=specialist))
    world.access.as_(BOB).service.submit(spec("tea"))
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
    world.access.as_(ANN).service.submit(spec("wall", instructions="Paint zebra stripes on the wall"))
    world.access.as_(ANN).service.submit(spec("fence", instructions="Paint it", specialist="zebra-painter"))
    world.router.route()
    colleague = Principal("amy", Role.OPERATE, ANN.organisation)

    def told(by: Principal, name: str) -> str:
        queries = world.access.as_(by).queries
        listed = [one for one in queries.tasks(TaskFilter(), None, 9).items if one.name == name]
        return "".join(one.model_dump_json() for one in (queries.task(name), queries.why(name), *listed))

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
        bob.one,
        lambda one: bob.change(card(one)),
        lambda one: bob.change(card(one), versions={1}),
        bob.remove,
        lambda one: bob.remove(one, versions={99}),
        lambda one: bob.grant(one, "bob"),
        lambda one: bob.revoke(one, "bob"),
    )
    for ask in asks:
        said = set()
        for name in ("plumber", "plumbez"):
            with pytest.raises(NotFound) as refused:
                ask(name)
            said.add(str(refused.value).replace(name, "ID"))
        assert said == {"There is no specialist 'ID'. There are no specialists yet."}
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
    assert [one.id for one in first.items] == ["a"]
    second = of(world, BOB).page(first.next_cursor, limit=1)
    assert [one.id for one in second.items] == ["c"]
    assert second.next_cursor is None
    for cursor in ("x", "", "bm90aGluZw=="):
        with pytest.raises(BadCursor):
            of(world, BOB).page(cursor)


def test_for_whom_it_is_shared_is_told_to_those_who_may_change_it(world: World) -> None:
    of(world, ANN).register(card("plumber", visibility="shared"))
    own = of(world, ANN).grant("plumber", "bob")
    assert (own.grants, own.changeable, own.version) == (("bob",), True, 2)
    other = of(world, BOB).one("plumber")
    assert (other.grants, other.changeable) == ((), False)
    with pytest.raises(Forbidden):
        of(world, BOB).grant("plumber", "org:bolt")
    assert of(world, ANN).revoke("plumber", "bob").grants == ()
    assert ids(world, BOB) == []


def test_a_view_has_the_card_as_it_was_written(world: World) -> None:
    made = of(world, ANN).register(card("plumber", name="Pipe Doctor", risk_ceiling="low", extra={"x-a": [1]}))
    assert (made.name, made.creator, made.organisation, made.source) == ("Pipe Doctor", "ann", "acme", "api")
    assert (made.visibility, made.transport) == ("public", "local")
    assert made.content == card("plumber", name="Pipe Doctor", risk_ceiling="low", extra={"x-a": [1]})
    assert "visibility" not in made.card
    assert of(world, ANN).one("plumber") == made


@pytest.mark.both_databases
def test_a_request_that_is_sent_again_is_answered_as_it_was(world: World) -> None:
    key = RequestKey("k", "1")
    first = of(world, ANN).register(card("plumber"), key=key)
    of(world, ANN).change(card("plumber", description="Fixes pipes."))
    assert of(world, ANN).register(card("plumber"), key=key) == first
    assert of(world).one("plumber").description == "Fixes pipes."
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
    of(world, ANN).grant("plumber", "bob")
    of(world, ANN).remove("plumber")
    live = world.access.as_(OPERATOR).queries.live
    told = live.events(live.event_filter(None, ()), 0, 9).items
    assert [(one.kind, one.by) for one in told] == [
        ("specialist_registered", "ann"),
        ("specialist_granted", "ann"),
        ("specialist_removed", "ann"),
    ]


# --- searching ------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_words_alone_decide_without_an_encoder_and_the_answer_says_so(world: World) -> None:
    leaks = {"id": "leaks", "name": "Leaks", "description": "Finds leaks under the sink."}
    taps = {"id": "taps", "name": "Taps", "description": "Replaces a dripping tap."}
    of(world).register(card("plumber", skills=[leaks, taps]))
    of(world).register(card("painter"))

    result = of(world).search("a leak under the sink")

    assert result.degraded
    (one,) = result.items
    assert (one.specialist.id, one.best_skill_id, one.score) == ("plumber", "leaks", 1.0)
    assert [(skill.id, skill.score, skill.text, skill.semantic) for skill in one.skills] == [("leaks", 1.0, 1.0, None)]


@pytest.mark.both_databases
def test_a_card_without_skills_is_found_by_its_own_text(world: World) -> None:
    of(world).register(card("plumber", description="Fixes pipes.", skills=[]))
    (one,) = of(world).search("pipes").items
    assert (one.specialist.id, one.best_skill_id, one.skills) == ("plumber", None, ())


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
    encoded = Specialists(database, world.clock, world.repeats, alike(values)).as_(BOB)

    result = encoded.search("drips")

    assert not result.degraded
    assert [(one.specialist.id, one.score, one.best_skill_id) for one in result.items] == [
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
    specialists = Specialists(database, world.clock, world.repeats, directory.cosines)
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

    result = Specialists(database, world.clock, world.repeats, broken).search("drips")

    assert result.degraded
    assert [one.score for one in result.items] == [1.0]


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

    found = of(world).route(RouteRequest(instructions="Replace broken tiles on the roof.", name="roof-tiles"))

    assert (found.route, found.specialist, found.skill) == ("specialist", "roofer", "tiles")
    roofer, tiler = found.candidates
    assert (roofer.specialist, roofer.rejected, roofer.needs) == ("roofer", None, None)
    assert roofer.score == found.confidence == sum(roofer.parts.values())
    assert tiler.needs == pytest.approx(roofer.score - tiler.score)
    assert tiler.rejected in ("less alike", "below the threshold")
    assert found.sentences[0].startswith("roof-tiles would go to roofer (skill tiles): ")
    assert f"It would go to tiler with {tiler.needs:.2f} more." in found.sentences


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
        of(World(database)).route(RouteRequest.model_validate(given))
    with pytest.raises(ValidationError):
        TaskSpec.model_validate({"name": "a-task"} | given)


@pytest.mark.both_databases
def test_what_fits_nobody_would_go_to_the_default(database: Database) -> None:
    world = World(database)
    of(world).register(ROOFER)
    of(world).register(card("generalist", description="Whatever else."))

    found = of(world).route(RouteRequest(instructions="Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich."))

    assert (found.route, found.specialist) == ("default", "generalist")
    assert any(text.startswith("With a threshold of ") for text in found.sentences)


@pytest.mark.both_databases
def test_a_route_says_the_same_whatever_does_not_exist(database: Database) -> None:
    world = World(database)
    of(world).register(ROOFER)
    asked = RouteRequest(instructions="Replace broken tiles on the roof.")
    before = of(world, BOB).route(asked)

    of(world, ANN).register(card("secret", description="Replace broken tiles on the roof.", **PRIVATE))

    assert of(world, BOB).route(asked) == before
    assert {one.specialist for one in of(world, ANN).route(asked).candidates} == {"roofer", "secret"}


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

    refused = of(world).route(RouteRequest(instructions="Replace tiles.", name="high", tags=("roof",)))
    assert refused.policy is not None
    assert (refused.policy.verdict, refused.policy.rules) == ("denied", ("no-roofs",))
    assert refused.sentences[0] == "high is denied, with low risk: rule no-roofs of the policy refuses it: Too high."

    given = of(world).route(RouteRequest(instructions="Replace broken tiles of the roof of the kitchen."))
    assert (given.specialist, given.reason) == ("tiler", "rule tiles of the policy gives it to tiler")

    without = of(world).route(RouteRequest(instructions="The tiles of bathrooms."))
    assert without.specialist != "tiler"
    assert "tiler" not in {one.specialist for one in without.candidates}

    free = of(world).route(RouteRequest(instructions="Replace broken tiles on the roof."))
    assert free.policy is not None
    assert free.policy.verdict == "allowed"
    assert free.sentences[0].startswith("Such a task would go to ")


def test_where_nothing_is_routed_nobody_would_do_it(database: Database) -> None:
    world = World(database)

    with pytest.raises(Conflict, match="Nothing is routed"):
        Specialists(database, world.clock, world.repeats).route(RouteRequest(instructions="any"))


def test_what_is_odd_about_a_card_is_told_of_what_one_sees(database: Database) -> None:
    world = World(database)
    encoder = Hashed()
    calibration = calibration_for(Preset.CALIBRATED, encoder.id)
    directory = SpecialistDirectory(database, encoder, calibration, world.clock)
    specialists = Specialists(database, world.clock, world.repeats, directory.cosines, twins=directory.twins)
    skill = {"id": "taps", "name": "Taps", "examples": ["The tap drips all night", "Mend the dripping tap"]}
    secret = card("secret", visibility="private", keywords=["drip"], skills=[skill])
    specialists.as_(ANN).register(secret)

    specialists.as_(ANN).register(card("nobody"))
    specialists.as_(ANN).register(card("hers", keywords=["drip"], skills=[skill], fallback="nobody"))
    specialists.as_(ANN).remove("nobody")
    hers = specialists.as_(ANN).one("hers")
    his = specialists.as_(BOB).register(card("his", keywords=["drop"], skills=[]))

    assert [one.text for one in hers.warnings] == [
        "its keyword `drip` is one of secret, too: it points to neither",
        "its `fallback` names nobody, and there is no such specialist",
        "its skill taps is nearly taps of secret: tasks go to either by chance",
    ]
    assert his.warnings == ()
    assert [one.text for one in specialists.as_(BOB).one("hers").warnings] == [
        "its `fallback` names nobody, and there is no such specialist"
    ]
    assert "secret" not in specialists.as_(BOB).one("hers").model_dump_json()
    assert specialists.as_(ANN).page().items[0].warnings == ()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fallback": "florst"}, "fallback: there is no specialist `florst`; did you mean `florist`?"),
        ({"escalation": "secret"}, "escalation: there is no specialist `secret`; write one of florist, human_review"),
        ({"escalation": "clarify"}, "escalation: there is no specialist `clarify`; write one of florist, human_review"),
        ({"fallback": "plumber"}, "fallback: `plumber` is this card itself; name another one, or clarify or default"),
    ],
)
def test_a_card_names_only_who_exists_for_its_creator(database: Database, fields: dict[str, str], said: str) -> None:
    world = World(database)
    specialists = Specialists(database, world.clock, world.repeats)
    specialists.as_(ANN).register(card("secret", visibility="private"))
    specialists.as_(BOB).register(card("florist"))

    with pytest.raises(Invalid) as refused:
        specialists.as_(BOB).register(card("plumber", **fields))
    assert said in refused.value.detail
    specialists.as_(BOB).register(card("plumber", fallback="human_review", escalation="florist"))
    with pytest.raises(Invalid) as refused:
        specialists.as_(BOB).change(card("plumber", **fields))
    assert said in refused.value.detail
    assert specialists.one("plumber").content.fallback == "human_review"


def test_a_card_stays_good_when_whom_it_names_is_removed(database: Database) -> None:
    world = World(database)
    specialists = Specialists(database, world.clock, world.repeats)
    specialists.register(card("florist"))
    specialists.register(card("plumber", fallback="florist"), source="hub")
    specialists.remove("florist")

    again = specialists.register(card("plumber", fallback="florist"), source="hub")

    assert [one.text for one in again.warnings] == ["its `fallback` names florist, and there is no such specialist"]
    with pytest.raises(Invalid, match="there is no specialist `florist`"):
        specialists.register(card("plumber", fallback="florist", name="Pipe Doctor"), source="hub")
