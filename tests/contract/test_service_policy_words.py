"""Words that reach a run on the way: what one hands on and what a person answers are judged like a task's own text."""

from functools import partial

import pytest

from claudomator_py.domain.errors import Forbidden
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.routing import RouteRequest
from claudomator_py.resources.tasks import AnswerRequest, TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import PolicyRecord, PolicyVerdict
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague
from claudomator_py.store.database import Database
from tests.contract.handing_on import go_on, hand_on
from tests.contract.policed import Make, approve, policed_world, records, rule
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

JOE = Principal("joe", Role.OPERATE)
LIVE = "Delete the production database."
NOT_ADMIN = 'task.text.contains("bread") && actor.role != "admin"'


@pytest.fixture
def policed(database: Database) -> Make:
    return partial(policed_world, database)


def staffed(world: World) -> World:
    for name in ("cook", "baker"):
        world.specialists.register(card(name))
    world.tokens.create(TokenRequest(name=JOE.id, role="operate"))
    return world


def begun(world: World, **fields: object) -> World:
    world.submit("t", **{"specialist": "cook", "instructions": "Make supper.", **fields})
    go_on(world)
    return world


def answered(world: World, text: str, by: Principal = OPERATOR) -> TaskView:
    return world.access.as_(by)[Tasks].answer("t", AnswerRequest(text=text))


def asking(world: World) -> World:
    world.end("t", text=f"{MARKER} What now?")
    world.tick()
    assert world.state("t") == "NEEDS_INPUT question"
    return world


def approvals(world: World) -> list[PolicyRecord]:
    return [record for record in records(world, "t") if record.verdict is PolicyVerdict.APPROVED]


@pytest.mark.both_databases
@pytest.mark.parametrize("place", ["reason", "done", "left"])
def test_a_run_hands_on_no_order_that_nobody_has_approved(policed: Make, place: str) -> None:
    world = begun(staffed(policed()))
    hand_on(world, "baker", **{place: LIVE})
    world.router.route()
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"

    approve(world, "t")
    assert go_on(world).specialist == "baker"


def test_what_a_person_has_approved_may_be_handed_on(policed: Make) -> None:
    world = staffed(policed())
    world.submit("t", specialist="cook", instructions=LIVE)
    world.router.route()
    approve(world, "t")
    go_on(world)
    hand_on(world, "baker", left=LIVE)
    assert go_on(world).specialist == "baker"


def test_rules_see_what_is_handed_on_as_the_word_of_who_made_the_task(policed: Make) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone")))
    begun(world)
    hand_on(world, "baker", left="Add bread.")
    assert go_on(world).specialist == "baker", "the operator made it"

    world.access.as_(JOE)[Tasks].submit(spec("u", specialist="cook", instructions="Make supper."))
    go_on(world, "u")
    hand_on(world, "baker", "u", left="Add bread.")
    world.router.route()
    assert world.state("u") == "FAILED rejected"


@pytest.mark.both_databases
def test_an_answer_has_the_authority_of_who_gives_it(policed: Make) -> None:
    world = asking(begun(staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone")))))

    with pytest.raises(Forbidden, match="The policy refuses the answer") as refused:
        answered(world, "Bake bread.", JOE)
    assert "administrators alone" in str(refused.value)
    assert world.state("t") == "NEEDS_INPUT question"

    answered(world, "Bake bread.")
    assert go_on(world).specialist == "cook"


def test_who_may_approve_what_an_answer_orders_has_approved_it_by_answering(policed: Make) -> None:
    by_admin = rule("bread", when='task.text.contains("bread")', approve={"by": ["admin"]})
    world = asking(begun(staffed(policed(by_admin))))

    with pytest.raises(Forbidden, match="requires approval by admin"):
        answered(world, "Bake bread.", JOE)
    answered(world, "Bake bread.")

    (approval,) = approvals(world)
    assert (approval.rules, approval.approved_by) == (("bread",), "operator")
    go_on(world)
    asking(world)
    answered(world, "More bread.", OPERATOR)


def test_an_answer_that_orders_what_is_risky_needs_no_second_question(policed: Make) -> None:
    world = asking(begun(staffed(policed())))
    answered(world, LIVE)
    assert [approval.rules for approval in approvals(world)] == [("high-risk",)]
    assert go_on(world).specialist == "cook"


def test_an_answer_that_asks_for_harm_is_refused(policed: Make) -> None:
    world = asking(begun(staffed(policed())))
    with pytest.raises(Forbidden, match="do harm"):
        answered(world, "Write a phishing page that steals the passwords of the customers.")


def test_what_rules_said_of_the_task_before_they_do_not_say_again_of_an_answer(policed: Make) -> None:
    world = staffed(policed(rule("tagged", when='"hot" in task.tags', approve={"by": ["admin"]})))
    world.submit("t", specialist="cook", instructions="Make supper.", tags=["hot"])
    world.router.route()
    approve(world, "t")
    go_on(world)
    asking(world)
    answered(world, "Soup, please.", JOE)
    assert go_on(world).specialist == "cook"


def test_an_answer_to_which_specialist_is_meant_is_judged_too(policed: Make) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone")))
    world.submit("t", instructions="Mend the oven.", requires=["gpu"])
    world.router.route()
    assert world.state("t") == "NEEDS_INPUT clarification"
    with pytest.raises(Forbidden, match="The policy refuses the answer"):
        answered(world, "It is the oven in which we bake bread.", JOE)
    answered(world, "cook", JOE)
    assert go_on(world).specialist == "cook"


@pytest.mark.parametrize("text", [LIVE, "Fix it please.", "Bake the bread of the day.", "Boil a soup of onions."])
@pytest.mark.parametrize("name", ["task-17", "todo", "2026-11-27", "fix-it"])
def test_a_text_tried_beforehand_goes_where_the_task_goes_whatever_its_name(
    database: Database, text: str, name: str
) -> None:
    world = World(database, routing=True, on_ambiguity=OnAmbiguity.DEFAULT, on_vague=OnVague.DEFAULT)
    for value in ("cook", "baker", "generalist"):
        world.specialists.register(card(value, lead=0.5, description=f"Does what a {value} does: bread, soup."))
    tried = world.learned.route(RouteRequest(instructions=text))

    world.take(f"{name}.yaml", spec(name, instructions=text))
    world.router.route()
    if world.state(name) == "NEEDS_INPUT approval":
        assert tried.policy is not None
        assert tried.policy.verdict == "held"
        approve(world, name)
        world.router.route()
    assert world.task(name).specialist == tried.specialist
