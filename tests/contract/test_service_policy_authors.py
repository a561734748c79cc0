"""Whose word a message, an edit or a restart is, as rules see it: that of who wrote it, and never more than that of
who made the channel or the task."""

from functools import partial

import pytest

from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.errors import Forbidden
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.channels import MessageView
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from claudomator_py.tasks.messages import PostedMessage
from tests.contract.policed import Make, policed_world, rule
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

JOE = Principal("joe", Role.OPERATE)
MARA = Principal("mara", Role.ADMIN)
NOT_ADMIN = 'task.text.contains("bread") && actor.role != "admin"'
STRANGER = "webhook:stranger"


@pytest.fixture
def policed(database: Database) -> Make:
    return partial(policed_world, database)


def staffed(world: World, by: Principal = OPERATOR) -> World:
    for name in ("cook", "baker"):
        world.specialists.register(card(name))
    for principal in (JOE, MARA):
        world.tokens.create(TokenRequest(name=principal.id, role="admin" if principal is MARA else "operate"))
    world.access.as_(by)[Channels].create(NewChannel(name="kitchen", participants=("cook", "baker")))
    return world


def said(world: World, text: str, by: Principal = OPERATOR) -> MessageView:
    return world.access.as_(by)[Channels].post("kitchen", NewMessage(content=text))


def by_webhook(world: World, text: str, author: str = STRANGER) -> MessageView:
    return world.access.as_(OPERATOR)[Channels].write("kitchen", PostedMessage(author, NewMessage(content=text)))


def task_of(world: World, message: MessageView) -> str:
    (answer,) = message.answers
    assert answer.task_id is not None
    return world.task(answer.task_id).name


def test_who_may_write_in_a_channel_does_not_have_the_role_of_who_made_it(policed: Make) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone")))
    assert [answer.specialist for answer in said(world, "@baker bread", OPERATOR).answers] == ["baker"]
    assert [answer.specialist for answer in said(world, "@baker bread", MARA).answers] == ["baker"]
    assert said(world, "@baker bread", JOE).answers == ()
    assert by_webhook(world, "@baker bread").answers == ()
    assert by_webhook(world, "@baker bread", "slack:U2147483697").answers == ()
    assert [answer.specialist for answer in by_webhook(world, "@baker cake").answers] == ["baker"]


def test_nor_does_an_administrator_lend_a_channel_more_than_its_creator_has(policed: Make) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone")), by=JOE)
    assert said(world, "@baker bread", MARA).answers == ()


@pytest.mark.both_databases
@pytest.mark.parametrize(("by", "state"), [(OPERATOR, "RUNNING"), (MARA, "RUNNING"), (JOE, "NEEDS_INPUT approval")])
def test_the_task_that_answers_is_judged_by_who_wrote(policed: Make, by: Principal, state: str) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, approve={})))
    name = task_of(world, said(world, "@baker bread", by))
    world.router.route()
    world.tick()
    assert world.state(name) == state


def test_a_webhook_has_a_role_of_its_own_and_rules_see_the_author(policed: Make) -> None:
    when = 'actor.role == "webhook" && task.author.contains(":") && task.creator == "operator"'
    world = staffed(policed(rule("stranger", when=when, approve={})))
    outside = [task_of(world, by_webhook(world, "@baker cake", author)) for author in (STRANGER, "slack:U2147483697")]
    inside = task_of(world, said(world, "@cook soup"))
    world.router.route()
    world.tick()
    assert [world.state(name) for name in (*outside, inside)] == [*["NEEDS_INPUT approval"] * 2, "RUNNING"]


def test_what_an_agent_asks_of_another_is_the_word_of_who_asked_first(policed: Make) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, approve={})))
    states = []
    for by in (OPERATOR, JOE):
        name = task_of(world, said(world, "@cook supper", by))
        world.router.route()
        world.tick()
        world.end(name, text="Soup. @baker, some bread please.")
        world.tick()
        assert world.answers.run_once() >= 1
        newest = world.access.as_(OPERATOR)[Channels].messages("kitchen").items[0]
        asked = task_of(world, newest)
        world.router.route()
        world.tick()
        states.append(world.state(asked))
        if states[-1] == "RUNNING":
            world.succeed(asked)
            world.tick()
    assert states == ["RUNNING", "NEEDS_INPUT approval"]


def edited(world: World, by: Principal, **fields: object) -> None:
    world.access.as_(by)[Tasks].edit("t", spec("t", **{"instructions": "Bake bread.", "specialist": "cook", **fields}))


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("creator", "editors", "state"),
    [
        (OPERATOR, (JOE,), "NEEDS_INPUT approval"),
        (MARA, (JOE,), "NEEDS_INPUT approval"),
        (JOE, (OPERATOR,), "NEEDS_INPUT approval"),  # the lesser of both
        (OPERATOR, (MARA,), "RUNNING"),
        (OPERATOR, (JOE, OPERATOR), "RUNNING"),
        (OPERATOR, (OPERATOR, JOE), "NEEDS_INPUT approval"),
    ],
)
def test_whoever_writes_a_task_anew_does_not_have_the_role_of_who_made_it(
    policed: Make, creator: Principal, editors: tuple[Principal, ...], state: str
) -> None:
    world = staffed(policed(rule("bread", when=NOT_ADMIN, approve={})))
    world.access.as_(creator)[Tasks].submit(spec("t", instructions="Make supper.", specialist="cook"))
    for number, by in enumerate(editors):
        edited(world, by, expected_output=f"loaf {number}")
    world.router.route()
    world.tick()
    assert world.state("t") == state


def begun(world: World) -> World:
    world.access.as_(OPERATOR)[Tasks].submit(spec("t", instructions="Make supper.", specialist="cook"))
    world.router.route()
    world.tick()
    assert world.state("t") == "RUNNING"
    return world


def test_nor_where_its_words_come_after_a_run_or_are_pinned_to_another_by_somebody_else(policed: Make) -> None:
    world = begun(staffed(policed(rule("bread", when=NOT_ADMIN, approve={}))))
    edited(world, JOE)
    world.succeed("t")
    world.tick()
    world.router.route()
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval"
    world.access.as_(OPERATOR)[Tasks].restart("t", RestartRequest(specialist="baker"))
    world.router.route()
    world.tick()
    assert world.state("t") == "NEEDS_INPUT approval", "a revision that was made of it is its author's"


@pytest.mark.parametrize(("by", "is_told"), [(OPERATOR, True), (MARA, True), (JOE, False)])
def test_what_a_restart_tells_a_conversation_is_judged_like_an_answer(
    policed: Make, by: Principal, is_told: bool
) -> None:
    world = begun(staffed(policed(rule("bread", when=NOT_ADMIN, deny="administrators alone"))))
    world.end("t", reason="agent_error", detail="It stopped.", status="failed")
    world.tick()
    tasks, asked = world.access.as_(by)[Tasks], RestartRequest(resume=True, reason="Bake bread instead.")
    if not is_told:
        with pytest.raises(Forbidden, match="administrators alone"):
            tasks.restart("t", asked)
        tasks.restart("t", RestartRequest(reason="Bake bread instead."))  # nobody is told
        return
    tasks.restart("t", asked)
    world.router.route()
    world.tick()
    assert world.state("t") == "RUNNING"
