"""A specialist that exists for few: whoever else sees its tasks is not told who has them, and cannot find it out."""

import pytest
from pydantic import ValidationError

from claudomator_py.api.page.task_model import task_page_of
from claudomator_py.domain.errors import Conflict, Invalid, NotFound
from claudomator_py.domain.handoff import HANDOFF_MARKER
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.requests import DecisionFilter, TaskFilter
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists import GrantRequest
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.role import agent_of
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
EVE = Principal("eve", Role.OPERATE, "acme")
SHEEP = {"id": "count-woolly", "name": "Sheep", "examples": ["Count the sheep.", "How many sheep are there?"]}


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routing=True)


def test_the_agent_that_a_hidden_specialist_is_exists_for_nobody_else(world: World) -> None:
    hidden = card("shepherd", url="ws-agent://shepherd", visibility="private")
    world.access.as_(ANN)[Specialists].register(hidden)
    world.registry.reach([agent_of(hidden)])
    ann, bob = world.access.as_(ANN), world.access.as_(BOB)

    assert "hub:shepherd" in {entry.name for entry in ann[Agents].all()}
    assert "hub:shepherd" not in {entry.name for entry in (*bob[Agents].all(), *bob[Overview].status().agents)}
    texts = []
    for name in ("shepherd", "sheperd"):
        with pytest.raises(Invalid) as refused:
            bob[Tasks].submit(spec(f"t-{name}", agent={"type": f"hub:{name}", "strict": True}))
        texts.append(refused.value.detail.replace(name, "X"))
    assert texts[0] == texts[1]
    assert "write `specialist: X` instead" in texts[0]
    with pytest.raises(ValidationError, match="is a specialist, not an agent"):
        card("mine", allowed_agents=["hub:shepherd"])


def told_of(desk: Session, name: str) -> str:
    """All that a principal can read that is about that task, as one text."""
    listed = desk[Decisions].page(DecisionFilter(task=name), None, 50).items
    shadows = desk[Decisions].page(DecisionFilter(task=name, kind="shadow"), None, 50).items
    live = desk[Events]
    runs = desk[Tasks].runs(name)
    pages = [task_page_of(desk[Tasks].why(name), runs, run.id) for run in runs]
    handoff = [desk[Runs].handoff(run.id) for run in runs]
    answers = [
        *(desk[Tasks].get(name), desk[Tasks].why(name), desk[Overview].status(), *desk[Agents].all(), *runs),
        *(desk[Runs].get(run.id) for run in runs),
        *desk[Tasks].page(TaskFilter(), None, 50).items,
        *(*listed, *shadows, *(desk[Decisions].get(entry.id) for entry in listed)),
        *(desk[Decisions].explained(entry.id) for entry in listed),
        *live.events(live.event_filter(name, ()), 0, 500).items,
        *live.last_events(live.event_filter(None, ()), 500).items,
        *(
            *handoff,
            desk[PolicyService].approvals(),
            desk[Routing].stats(),
            desk[Routing].all(),
            desk[Routing].labelled(),
        ),
    ]
    return "\n".join([*(answer.model_dump_json() for answer in answers), *map(repr, pages)])


@pytest.mark.parametrize(
    ("end", "via"),
    [
        ("succeeds", "hub"),
        ("meets a limit", "http"),
        pytest.param("is handed on", "hub", marks=pytest.mark.both_databases),
        ("fails", "hub"),
        ("is cut off", "http"),
    ],
)
def test_colleagues_are_not_told_which_hidden_agent_has_their_task(world: World, end: str, via: str) -> None:
    url = "ws-agent://shepherd" if via == "hub" else "https://agents.example/sheep"
    hidden = card("shepherd", url=url, visibility="private" if via == "hub" else "shared", skills=[SHEEP])
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    (ann[Specialists] if via == "hub" else world.specialists).register(hidden)
    if via == "http":  # which only an operator's card is reached by
        world.specialists.grant("shepherd", GrantRequest(grantee="ann"))
    world.specialists.register(card("ben", description="Bakes bread."))
    world.registry.reach([agent_of(hidden)])
    ann[Tasks].submit(spec("tally", instructions="Count the sheep. How many sheep are there?"))
    world.router.route()
    world.tick()
    run = world.live("tally")
    assert (run.agent, run.specialist, run.skill) == (f"{via}:shepherd", "shepherd", "count-woolly")
    assert f"on {via}" in eve[Tasks].why("tally").sentences[0]

    if end == "succeeds":
        world.succeed("tally")
    elif end == "meets a limit":
        world.limit("tally", reset_at=world.now_ms + HOUR_MS)
    elif end == "is handed on":
        world.end("tally", text=f'{HANDOFF_MARKER} {{"to": "ben"}}')
    elif end == "is cut off":
        server = "https://agents.example:443"
        world.fail("tally", detail=f"{server} answered with HTTP 502: no upstream for AGENTS.example/sheep. Gave up")
    else:
        world.fail("tally", "not_running", detail="its agent is not connected, and hub:shepherd has no wake_url")
    world.tick()

    known = told_of(ann, "tally")
    assert all(word in known for word in (f"{via}:shepherd", '"shepherd"', "count-woolly"))
    record = told_of(eve, "tally")
    assert [word for word in ("shepherd", "woolly", "agents.example", "AGENTS.example") if word in record] == []
    assert any(sentence.startswith("tally went to somebody else: ") for sentence in eve[Tasks].why("tally").sentences)
    if end == "is cut off":
        assert "agents.example:443 answered" in known
        assert "its server answered with HTTP 502: no upstream for its server. Gave up" in record
    assert eve[Runs].get(run.id).agent == via
    for desk, finds in ((ann, True), (eve, False)):
        tasks = desk[Tasks].page(TaskFilter(agent=run.agent), None, 9).items
        decided = desk[Decisions].page(DecisionFilter(agent=run.agent), None, 9).items
        assert (bool(tasks), bool(decided)) == (finds, finds)
    assert eve[Tasks].get("tally").spec == ann[Tasks].get("tally").spec


@pytest.mark.parametrize("on_input", ["wait", "deny"])
def test_colleagues_are_not_told_to_which_hidden_specialist_a_task_was_not_handed_on(
    world: World, on_input: str
) -> None:
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    ann[Specialists].register(card("shepherd", visibility="private"))
    for name in ("ben", "cid"):
        world.specialists.register(card(name))
    ann[Tasks].submit(spec("tally", specialist="ben", on_input=on_input))
    for by, to in (("ben", "shepherd"), ("shepherd", "cid"), ("cid", "shepherd")):
        world.router.route()
        world.tick()
        assert world.live("tally").specialist == by
        world.end("tally", text=f'Counted.\n{HANDOFF_MARKER} {{"to": "{to}"}}')
        world.tick()
    assert world.state("tally") == ("NEEDS_INPUT approval" if on_input == "wait" else "FAILED handoff_refused")
    assert "It was not handed on to shepherd: shepherd already had it." in told_of(ann, "tally")
    text = told_of(eve, "tally")
    assert "It was not handed on to somebody else: somebody else already had it." in text
    assert "shepherd" not in text


@pytest.mark.both_databases
def test_colleagues_are_not_told_which_hidden_specialist_may_be_meant(world: World) -> None:
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    ann[Specialists].register(card("shepherd", visibility="private", skills=[SHEEP]))
    world.specialists.register(card("ben", description="Bakes bread."))
    ann[Tasks].submit(spec("tally", instructions="please just fix it"))
    world.router.route()
    assert world.state("tally") == "NEEDS_INPUT clarification"
    assert "Candidates: " in (ann[Tasks].get("tally").reason_text or "")
    assert "shepherd" in told_of(ann, "tally")
    assert "shepherd" not in told_of(eve, "tally")
    assert unknown_to(eve, "shepherd") == unknown_to(eve, "shopherd").replace("shopherd", "shepherd")

    ann[Tasks].answer("tally", AnswerRequest(text="shepherd"))
    world.router.route()
    world.tick()
    assert world.live("tally").specialist == "shepherd"
    assert "answered: shepherd" in told_of(ann, "tally")
    text = told_of(eve, "tally")
    assert "answered: somebody else" in text
    assert [word for word in ("shepherd", "woolly") if word in text] == []


def unknown_to(desk: Session, name: str) -> str:
    """What is said where that name is the answer to which specialist is meant."""
    with pytest.raises(Invalid) as refused:
        desk[Tasks].answer("tally", AnswerRequest(text=name))
    return refused.value.detail


@pytest.mark.both_databases
def test_a_colleague_cannot_find_out_a_name_by_handing_on_to_it(world: World) -> None:
    ann, eve = world.access.as_(ANN), world.access.as_(EVE)
    ann[Specialists].register(card("shepherd", visibility="private"))
    world.specialists.register(card("ben"))
    ann[Tasks].submit(spec("tally", specialist="ben"))
    world.router.route()
    world.tick()
    run = world.live("tally")
    texts = []
    for name in ("shepherd", "shopherd"):
        with pytest.raises(Conflict) as refused:
            eve[Runs].hand_on(run.id, HandoffRequest(to=name))
        texts.append(refused.value.detail.replace(name, "X"))
    assert texts[0] == texts[1]
    ann[Runs].hand_on(run.id, HandoffRequest(to="shepherd"))
    with pytest.raises(Conflict, match="tally goes to somebody else already"):
        eve[Runs].hand_on(run.id, HandoffRequest(to="ben"))
    assert "shepherd" not in told_of(eve, "tally")


@pytest.mark.parametrize("named", [True, pytest.param(False, marks=pytest.mark.both_databases)])
def test_a_queued_task_does_not_keep_a_specialist_whose_grant_was_revoked(world: World, named: bool) -> None:
    ann, bob = world.access.as_(ANN), world.access.as_(BOB)
    ann[Specialists].register(card("shepherd", visibility="shared", skills=[SHEEP]))
    ann[Specialists].grant("shepherd", GrantRequest(grantee="bob"))
    world.specialists.admit("shepherd")
    for user in (ann, bob):
        fields = {"specialist": "shepherd"} if named else {}
        user[Tasks].submit(spec("tally", instructions="Count the sheep. How many sheep are there?", **fields))
    world.router.route()
    assert bob[Tasks].get("tally").specialist == "shepherd"

    ann[Specialists].revoke("shepherd", "bob")
    world.router.route()
    world.tick()

    task = bob[Tasks].get("tally")
    assert (task.state, task.specialist) == (("NEEDS_INPUT" if named else "RUNNING"), "shepherd" if named else None)
    if named:
        why = "The task names shepherd, and there is no specialist of that id any more."
        assert (task.reason_text or "").startswith(why)
        assert any(why[1:] in sentence for sentence in bob[Tasks].why("tally").sentences)
    assert ann[Tasks].get("tally").specialist == "shepherd"
    assert ann[Tasks].get("tally").state == "RUNNING"


@pytest.mark.both_databases
def test_another_organisation_can_read_nothing_of_a_hidden_specialist_and_its_tasks(world: World) -> None:
    ann, bob = world.access.as_(ANN), world.access.as_(BOB)
    world.specialists.register(card("ben", description="Bakes bread."))
    before = bob[Specialists].search("How many sheep are there?")
    ann[Specialists].register(card("shepherd", visibility="private", description="Tends sheep.", skills=[SHEEP]))
    ann[Tasks].submit(spec("tally", instructions="Count the sheep. How many sheep are there?"))
    world.router.route()
    world.tick()
    run = world.live("tally")
    assert run.specialist == "shepherd"
    world.succeed("tally")

    match = bob[Specialists].search("How many sheep are there?")
    assert (match.total, match.items) == (before.total, before.items), "not even a score has changed"
    live = bob[Events]
    answers = [
        *(match, bob[Overview].status(), *bob[Agents].all(), *bob[Specialists].page().items),
        *bob[Tasks].page(TaskFilter(), None, 50).items,
        *(item for kind in (None, "shadow") for item in bob[Decisions].page(DecisionFilter(kind=kind), None, 50).items),
        *live.events(live.event_filter(None, ()), 0, 500).items,
        *(
            bob[Routing].stats(),
            bob[Routing].all(),
            bob[Routing].labelled(),
            bob[PolicyService].view(),
            bob[PolicyService].approvals(),
        ),
        *(*bob[Specialists].public_cards(), *bob[PolicyService].test("instructions: Count the sheep.")),
    ]
    text = "\n".join(answer.model_dump_json() for answer in answers)
    assert "ben" in text
    assert [
        word for word in ("shepherd", "woolly", "tally", "sheep") if word in text.replace("Count the sheep", "")
    ] == []
    with pytest.raises(NotFound):
        bob[Tasks].get("tally")
    with pytest.raises(NotFound):
        bob[Runs].get(run.id)
