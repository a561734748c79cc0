"""What rules, risk and requirements say of who does a task."""

from functools import partial
from typing import Any

import pytest

from claudomator_py.domain.errors import Invalid, NotFound
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.scheduler.records import DecisionKind, SpecialistRecord
from claudomator_py.store import decision_rows
from claudomator_py.store.database import Database
from tests.contract.policed import Make, approve, policed_world, rule
from tests.fakes.agents import CLAUDE, LINT
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
BEN = Principal("ben", Role.OPERATE, "bolt")


@pytest.fixture
def policed(database: Database) -> Make:
    """A world with these rules."""
    return partial(policed_world, database)


def test_rules_give_a_task_to_a_specialist_or_keep_it_from_one(policed: Make) -> None:
    world = policed(
        rule("give", when='"pipes" in task.tags', specialist="plumber"),
        rule("keep", exclude_specialists=["painter"]),
    )
    for name in ("plumber", "painter"):
        world.access.as_(OPERATOR)[Specialists].register(card(name, description=f"Does all that a {name} does."))
    world.submit("one", instructions="Paint the wall, painter.", tags=["pipes"])
    world.submit("two", instructions="All that a painter does.")
    world.tick()
    assert world.task("one").specialist == "plumber"
    assert world.task("two").specialist != "painter"
    # That it was the best but for the rule is told.
    assert "Others: painter " in str(world.service.why("two").sentences)
    assert "excluded by a rule of the policy" in str(world.service.why("two").sentences)


def test_a_task_that_a_rule_allows_is_not_stopped_for_want_of_a_specialist(policed: Make) -> None:
    world = policed(rule("mine", when='"mine" in task.tags', allow=True))
    for name in ("generalist", "plumber"):
        world.access.as_(OPERATOR)[Specialists].register(card(name, description=f"Mends what a {name} mends."))
    for name, tags in (("one", ["mine"]), ("two", [])):
        world.submit(name, instructions="Refund the 12 duplicate charges of March.", tags=tags)
    world.tick()
    assert (world.state("two"), [*world.running()]) == ("NEEDS_INPUT approval", ["one"])
    assert world.task("one").specialist == "generalist"
    how = "The rule is built in; one of yours with `allow: true` exempts tasks from it."
    assert [how in world.service.why(name).sentences for name in ("one", "two")] == [False, True]


@pytest.mark.parametrize(
    "asked", [{"specialist": "painter"}, {"instructions": "@painter, have a look at the wall, please."}]
)
def test_an_excluded_specialist_gets_no_task_in_any_way(policed: Make, asked: dict[str, Any]) -> None:
    world = policed(rule("keep", exclude_specialists=["painter"]))
    for name in ("plumber", "painter"):
        world.access.as_(OPERATOR)[Specialists].register(card(name))
    world.submit("one", **asked)
    world.tick()
    assert world.state("one") == "NEEDS_INPUT clarification"
    world.service.answer("one", AnswerRequest(text="painter"))
    world.tick()
    assert world.state("one") == "NEEDS_INPUT clarification"
    world.service.answer("one", AnswerRequest(text="plumber"))
    world.tick()
    assert world.live("one").specialist == "plumber"


def test_a_rule_for_a_specialist_whom_there_is_not_asks(policed: Make) -> None:
    world = policed(rule("give", specialist="nobody"))
    world.access.as_(OPERATOR)[Specialists].register(card("plumber"))
    world.submit("one", instructions="Mend the sink.")
    world.tick()
    assert world.state("one") == "NEEDS_INPUT clarification"


def test_a_rule_looks_at_whoever_was_chosen(policed: Make) -> None:
    world = policed(rule("no-plumbers", when='task.specialist == "plumber"', deny="none in the house"))
    world.access.as_(OPERATOR)[Specialists].register(card("plumber"))
    world.submit("one", specialist="plumber")
    world.submit("two", instructions="@plumber, have a look at the sink, please.")
    world.tick()
    assert world.state("one") == world.state("two") == "FAILED rejected"


def test_much_risk_is_reviewed_and_harm_refused_without_any_rule(policed: Make) -> None:
    world = policed()
    world.access.as_(OPERATOR)[Specialists].register(card("plumber"))
    world.submit("risky", instructions="Drop the customers schema on the production cluster.")
    world.submit("harmful", instructions="Secretly record the chats of the works council.")
    world.submit("plain", instructions="Plan how to drop the customers schema in production.")
    world.tick()
    assert world.state("risky") == "NEEDS_INPUT approval"
    text = str(world.service.why("risky").sentences)
    assert "high-risk: Drop the customers schema on the production cluster)" in text
    # It fits nobody, and nothing of that risk is done by whoever does the rest.
    assert "it matches no specialist well; the closest is plumber, so whoever approves it says which" in text
    assert world.state("harmful") == "FAILED rejected"
    assert world.running().keys() == {"plain"}
    with pytest.raises(Invalid, match="specialist: is needed: it matches no specialist well"):
        approve(world, "risky")
    approve(world, "risky", specialist="plumber")
    world.tick()
    assert world.running().keys() == {"plain", "risky"}
    assert world.live("risky").risk == "high"


def test_whoever_approves_can_say_who_does_it_and_is_asked_nothing_else(policed: Make) -> None:
    world = policed(rule("watched", when='task.specialist == "plumber"', approve={}))
    for name in ("plumber", "painter"):
        world.access.as_(OPERATOR)[Specialists].register(card(name))
    for name in ("risky", "other"):
        world.submit(name, instructions="Drop the customers schema on the production cluster.")
    world.tick()
    with pytest.raises(Invalid, match="there is no specialist `plumbr`; did you mean `plumber`"):
        approve(world, "risky", specialist="plumbr")
    approve(world, "other", specialist="painter")
    approve(world, "risky", specialist="plumber")
    world.tick()
    assert world.live("other").specialist == "painter"
    # A rule that looks at who does it is asked as ever, and what was said before still holds.
    assert world.state("risky") == "NEEDS_INPUT approval"
    approve(world, "risky")
    world.tick()
    assert world.live("risky").specialist == "plumber"


@pytest.mark.parametrize("rules", [(), (rule("idle", when='task.specialist == "nobody"', approve={}),)])
def test_whom_an_approval_names_does_it_also_for_an_agent_that_takes_no_role(
    policed: Make, rules: tuple[Rule, ...]
) -> None:
    world = policed(*rules)
    world.access.as_(OPERATOR)[Specialists].register(card("painter"))
    world.submit("one", agent={"type": "lint"}, approval=True)
    world.tick()
    approve(world, "one", specialist="painter")
    world.tick()
    assert (world.live("one").specialist, world.live("one").agent) == ("painter", "lint")


def test_no_text_that_an_agent_reads_starts_before_it_is_judged(database: Database) -> None:
    """As for a task that comes between the routing and the planning of a tick. There are no specialists and no rules
    but the built-in ones."""
    wrapper = LINT.model_copy(update={"name": "wrapper", "reads_task": True})
    world = World(database, agents=[CLAUDE, LINT, wrapper], routing=True)
    names = ("any", "wrapper", "lint")
    for name in names:
        world.submit(name, agent={} if name == "any" else {"type": name})
    world.tick()
    assert [world.state(name).split()[0] for name in names] == ["QUEUED", "QUEUED", "RUNNING"]
    world.router.route()
    world.database.write(lambda _: None)  # after what was queued before
    world.tick()
    assert {world.state(name).split()[0] for name in names} == {"RUNNING"}


def test_those_are_offered_who_may_be_given_the_task(policed: Make) -> None:
    world = policed(
        rule("keep", exclude_specialists=["roofer"]),
        rule("give", when='"pipes" in task.tags', specialist="plumber"),
    )
    registered = world.access.as_(OPERATOR)[Specialists]
    for name in ("plumber", "painter", "roofer"):
        registered.register(card(name))
    registered.register(card("secret", visibility="private"))
    world.access.as_(BEN)[Specialists].register(card("gardener", visibility="shared"))
    texts = {"mine": "Drop the customers schema on the production cluster.", "pipes": "Deploy to production."}
    for name, text in texts.items():
        world.access.as_(ANN)[Tasks].submit(spec(name, instructions=text, tags=[name]))
    world.tick()

    def offered(name: str, by: Principal) -> list[str]:
        return [candidate.id for candidate in world.access.as_(by)[PolicyService].candidates(name, 10)]

    # Of the operator, too, nobody whom Ann does not see: she would have a task that is done by somebody hidden.
    assert offered("mine", ANN) == offered("mine", OPERATOR) == ["painter", "plumber"]
    assert offered("pipes", OPERATOR) == ["plumber"]
    with pytest.raises(Invalid, match="there is no specialist `gardener`"):
        approve(world, "mine", ANN, specialist="gardener")
    with pytest.raises(NotFound):
        offered("mine", BEN)
    approve(world, "mine", ANN, specialist="painter")
    world.tick()
    assert world.live("mine").specialist == "painter"


@pytest.mark.both_databases
def test_nobody_is_given_more_risk_than_they_take_on_but_by_a_person(policed: Make) -> None:
    """However it came to them: alike, addressed in the text, named in the file, or by a thread."""
    world = policed(rule("careful", when='"prod" in task.tags', risk="medium"))
    specialists = world.access.as_(OPERATOR)[Specialists]
    for trade in ("painter", "roofer", "gardener"):
        specialists.register(card(trade, description=f"All that a {trade} does."))
    specialists.register(card("apprentice", risk_ceiling="low", description="Leaking pipes, and joints of pipes."))
    specialists.register(card("plumber", description="Leaking pipes, their valves and joints."))
    world.submit("alike", instructions="The valves and joints of leaking pipes.", tags=["prod"])
    world.submit("named", specialist="apprentice", tags=["prod"])
    world.submit("addressed", instructions="@apprentice, mend the leaking pipe.", tags=["prod"])
    world.submit("harmless", specialist="apprentice")
    world.tick()
    assert world.live("alike").specialist == "plumber"
    assert world.live("harmless").specialist == "apprentice"
    asked = "Apprentice takes tasks up to low risk, and this one has medium risk"
    for name in ("named", "addressed"):
        assert world.state(name) == "NEEDS_INPUT clarification"
        assert asked in str(world.task(name))
    world.service.answer("named", AnswerRequest(text="apprentice"))
    world.succeed("harmless")
    world.submit("after", continues="harmless", tags=["prod"])
    world.tick()
    assert (world.live("named").specialist, world.live("named").risk) == ("apprentice", "medium")
    assert world.state("after") == "NEEDS_INPUT clarification"


@pytest.mark.both_databases
def test_what_a_task_or_a_rule_requires_is_had_by_whoever_does_it(policed: Make) -> None:
    world = policed(rule("cleared", when='"prod" in task.tags', requires=["production"]))
    specialists = world.access.as_(OPERATOR)[Specialists]
    for trade in ("painter", "roofer", "gardener"):
        specialists.register(card(trade, description=f"All that a {trade} does."))
    specialists.register(card("apprentice", description="Leaking pipes, and joints of pipes."))
    able = ["welding", "production"]
    specialists.register(card("plumber", capabilities=able, description="Leaking pipes, their valves and joints."))
    world.submit("welds", instructions="The valves and joints of leaking pipes.", requires=["welding"])
    world.submit("live", instructions="The valves and joints of leaking pipes.", tags=["prod"])
    world.submit("named", specialist="apprentice", requires="welding")
    world.submit("dives", instructions="The valves and joints of leaking pipes.", requires=["diving"])
    world.submit("unlike", instructions="Zwölf Boxkämpfer jagen Viktor.", requires=["diving"])
    world.tick()
    assert {name: world.live(name).specialist for name in ("welds", "live")} == {"welds": "plumber", "live": "plumber"}
    assert "Apprentice lacks welding" in str(world.task("named"))
    for name in ("named", "dives", "unlike"):
        assert world.state(name) == "NEEDS_INPUT clarification"
    kept = world.database.read(partial(decision_rows.of_task, task_id=world.row("welds").id))
    (specialist,) = (
        SpecialistRecord.model_validate(decision.data) for decision in kept if decision.kind == DecisionKind.SPECIALIST
    )
    assert specialist.required_capabilities == ("welding",)
    assert "lacks welding" in str(world.service.why("welds").sentences)


@pytest.mark.both_databases
def test_rules_name_no_specialist_to_whom_it_is_hidden(policed: Make) -> None:
    world = policed(
        rule("give", when='"sheep" in task.tags', specialist="shepherd"),
        rule("keep", when="'wolf' in task.tags", exclude_specialists=["shepherd", "painter"]),
        rule("look", when='task.specialist == "shepherd" || task.specialist == "painter"', deny="not now"),
    )
    world.access.as_(OPERATOR)[Specialists].register(card("shepherd", visibility="private"))
    world.access.as_(OPERATOR)[Specialists].register(card("painter"))
    world.access.as_(ANN)[Tasks].submit(spec("both", tags=["sheep", "wolf"]))
    world.access.as_(ANN)[Tasks].submit(spec("sheep", tags=["sheep"]))
    world.tick()
    fields = {}
    for by in (OPERATOR, ANN):
        user = world.access.as_(by)
        tried = [
            user[PolicyService].test(f"instructions: Count.\ntags: {tags}")
            for tags in ("[sheep]", "[wolf]", "[sheep, wolf]")
        ]
        shown = [
            user[PolicyService].view(),
            user[PolicyService].approvals(),
            *(verdict for verdicts in tried for verdict in verdicts),
        ]
        shown += [
            user[Tasks].why("both"),
            user[Tasks].why("sheep"),
            *user[Decisions].page(DecisionFilter(), None, 50).items,
        ]
        fields[by.id] = "\n".join(view.model_dump_json() for view in shown)
    assert "shepherd" in fields["operator"]
    assert "shepherd" not in fields["ann"]
    assert "painter" in fields["ann"]
    assert "somebody else" in fields["ann"]


def test_who_was_named_with_the_approval_does_it_whatever_cards_have_changed_since(policed: Make) -> None:
    world = policed()
    specialists = world.access.as_(OPERATOR)[Specialists]
    for name in ("plumber", "painter"):
        specialists.register(card(name, description=f"Does all that a {name} does."))
    text = "Do all that a plumber does."
    for name in ("same", "gone"):
        world.submit(name, instructions=text, approval=True)
    world.tick()
    assert "lets plumber start it" in str(world.service.why("same").sentences)
    skill = {"id": "all", "name": "All that a plumber does", "description": text, "examples": (text,)}
    specialists.register(card("rival", description=text, skills=(skill,)))
    approve(world, "same")
    world.tick(1_000)
    assert world.live("same").specialist == "plumber"
    assert "its first run was approved with plumber" in str(world.service.why("same").sentences)
    world.succeed("same")
    specialists.remove("plumber")
    approve(world, "gone")
    world.tick(1_000)
    assert world.state("gone") == "NEEDS_INPUT clarification"
    assert "There is no specialist plumber any more" in str(world.service.why("gone").sentences)
    world.service.answer("gone", AnswerRequest(text="rival"))
    world.tick()
    assert world.live("gone").specialist == "rival"


def test_who_was_chosen_with_the_approval_hands_it_on_like_anybody(policed: Make) -> None:
    world = policed()
    specialists = world.access.as_(OPERATOR)[Specialists]
    specialists.register(card("painter"))
    specialists.register(card("plumber", fallback="painter"))
    world.submit("t", approval=True, retry={"max_attempts": 5, "backoff": "1s"})
    world.tick()
    approve(world, "t", specialist="plumber")
    world.tick()
    for _ in range(2):
        assert world.live("t").specialist == "plumber"
        world.fail("t", "agent_error")
        world.tick(60_000)
    assert world.live("t").specialist == "painter"
