"""Who does a task: what settles that without a comparison, who is compared, and where a person is asked."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.deciding import Decided, Decider, Subject
from claudomator_py.dispatch.policing import Policing
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.embed import Hashed
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.ports import Encoder
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.profile import Request
from claudomator_py.routing.ranking import RoutingRules, to
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.schema.routing_settings import OnAmbiguity, Preset
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database
from claudomator_py.tasks.decisions import record_handoff
from tests.fakes.cards import card
from tests.fakes.handoffs import handed
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.unit.dispatch.test_text_vectors import Lengths

LIVE = "Drop the customers schema on the production cluster."
ODD = "Zwölf Boxkämpfer jagen Viktor."


def rule(name: str = "it", **fields: Any) -> Rule:
    return Rule.model_validate({"name": name, **fields})


class Deciding:
    """A decider with these rules over the specialists of a world. routes: whether any is looked for."""

    def __init__(
        self,
        database: Database,
        *rules: Rule,
        encoder: Encoder | None = None,
        routes: bool = True,
        default: str | None = None,
        on_ambiguity: OnAmbiguity = OnAmbiguity.SIGNALS,
    ) -> None:
        self.world = world = World(database)
        self.encoder = encoder or Hashed()

        def compared(encoder: Encoder) -> tuple[SpecialistDirectory, RoutingRules]:
            calibration = calibration_for(Preset.CALIBRATED, encoder.id)
            directory = SpecialistDirectory(database, encoder, calibration, world.clock)
            return directory, RoutingRules(calibration, default, on_ambiguity)

        directory, own = compared(self.encoder)
        words, by_words = compared(Hashed())
        self.decider = Decider(
            database,
            world.registry,
            directory if routes else None,
            words if routes else None,
            own,
            by_words,
            world.clock,
            Policing(Policy(rules), world.budgets, world.clock, reviews=True),
        )

    def register(self, *names: str, **fields: Any) -> None:
        for name in names:
            self.world.specialists.register(card(name, **fields))

    def submit(self, name: str = "t", by: Principal = OPERATOR, **fields: Any) -> Subject:
        """Its subject. Whoever is called ghost is there no more."""
        gone = fields.get("specialist") == "ghost"
        if gone:
            self.register("ghost")
        self.world.access.as_(by)[Tasks].submit(spec(name, **fields))
        if gone:
            self.world.specialists.remove("ghost")
        return self.subject(name)

    def subject(self, name: str = "t") -> Subject:
        task = self.world.row(name)

        def read(connection: Any) -> Subject:
            return self.decider.subject(connection, task, task_rows.spec_of(connection, task.id, task.revision))

        return self.world.database.read(read)

    def settled(self, subject: Subject) -> SpecialistRecord:
        """The decision, before the policy looks at whoever was chosen."""
        return self.decider.decide([subject])[subject.task.id]

    def decided(self, subject: Subject) -> SpecialistRecord:
        specialist = self.decider.decide_alone(subject).record
        assert specialist is not None
        return specialist


@pytest.fixture
def open_(database: Database) -> Deciding:
    """Without rules."""
    return Deciding(database)


def code(record: SpecialistRecord) -> tuple[RationaleCode | str, str | None]:
    """Why, and who does it, or of whom it speaks where a person is asked."""
    asked = record.route is Route.CLARIFY
    return record.reason.code, record.reason.params.specialist if asked else record.specialist


# --- who was given it -----------------------------------------------------------------------------------------------


def test_a_rule_counts_before_a_person_who_hands_it_on_its_file_its_text_and_its_thread(database: Database) -> None:
    deciding = Deciding(database, rule("other", risk="low"), rule("give", specialist="by-rule", tier={"floor": "fast"}))
    deciding.register("by-rule", "by-hand", "handed", "named", "addressed", "before", "like")
    world = deciding.world
    world.submit("first")
    world.submit("begun", specialist="before")
    world.router.route()
    world.tick()
    world.succeed("begun")
    subject = deciding.submit(
        specialist="named", instructions="@addressed, do some like.", depends_on=["first"], continues="begun"
    )
    subject = replace(subject, by_hand=" by-hand ", handed=handed("handed"))

    by_rule = deciding.settled(subject)
    assert code(by_rule) == (RationaleCode.GIVEN_BY_RULE, "by-rule")
    assert by_rule.reason.params.rule == "give"

    verdict = replace(subject.judged.verdict, specialist=None)
    subject = replace(subject, judged=replace(subject.judged, verdict=verdict))
    assert code(deciding.settled(subject)) == (RationaleCode.BY_HAND, "by-hand")
    assert code(deciding.settled(replace(subject, by_hand="nobody"))) == (RationaleCode.HANDED_ON, "handed")
    subject = replace(subject, by_hand=None)
    assert code(deciding.settled(subject)) == (RationaleCode.HANDED_ON, "handed")
    subject = replace(subject, handed=None)
    assert code(deciding.settled(subject)) == (RationaleCode.NAMED, "named")
    subject = replace(subject, spec=subject.spec.model_copy(update={"specialist": None}))
    assert code(deciding.settled(subject)) == (RationaleCode.MENTIONED, "addressed")
    request = replace(subject.asked.request, text="do some like")
    subject = replace(subject, addressed=None, asked=replace(subject.asked, request=request))
    assert code(deciding.settled(subject)) == (RationaleCode.CONTINUED, "before")
    assert code(deciding.settled(replace(subject, predecessor=None))) == (RationaleCode.BEST_MATCH, "like")


@pytest.mark.parametrize(
    ("rules", "fields", "to", "why"),
    [
        ((rule("give", specialist="ghost"),), {}, None, RationaleCode.GONE),
        ((), {}, "ghost", RationaleCode.GONE),
        ((), {"specialist": "ghost"}, None, RationaleCode.NAMED_GONE),
    ],
)
def test_a_person_is_asked_where_whoever_was_given_it_is_gone(
    database: Database, rules: tuple[Rule, ...], fields: dict[str, Any], to: str | None, why: RationaleCode
) -> None:
    deciding = Deciding(database, *rules)
    deciding.register("plumber")
    subject = deciding.submit(**fields, requires=["diving"])
    record = deciding.decided(subject if to is None else replace(subject, handed=handed(to)))
    assert (record.route, record.specialist, code(record)) == (Route.CLARIFY, None, (why, "ghost"))


def test_a_thread_whose_specialist_is_gone_is_for_whoever_is_most_like_it(open_: Deciding) -> None:
    open_.register("roofer", "plumber")
    open_.world.submit("begun", specialist="roofer")
    open_.world.router.route()
    open_.world.tick()
    open_.world.specialists.remove("roofer")
    assert code(open_.decided(open_.submit(continues="begun", instructions="do some plumber"))) == (
        RationaleCode.BEST_MATCH,
        "plumber",
    )


def test_the_last_of_those_to_whom_it_was_handed_on_continues(open_: Deciding) -> None:
    open_.register("ann", "ben", "cid")
    world = open_.world
    world.submit("t", specialist="ann")
    world.router.route()
    world.tick()
    task, first = world.row("t"), handed("ben")
    for number, handoff in enumerate((first, first.model_copy(update={"specialist": "cid", "hop": 2}))):
        told = handoff.model_copy(update={"run_id": f"run-{number}"})
        world.database.write(partial(record_handoff, task=task, record=told, now_ms=world.now_ms))
    assert open_.decided(open_.subject()).specialist == "cid"


# --- who gets it by default -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("default", "who"), [("rest", "rest"), ("ghost", None), (None, None)])
def test_what_is_like_nobody_is_for_the_default_specialist_if_there_is_one(
    database: Database, default: str | None, who: str | None
) -> None:
    deciding = Deciding(database, default=default)
    deciding.register("plumber", "rest")
    record = deciding.decided(deciding.submit(instructions=ODD))
    assert (record.route, record.specialist, record.degraded) == (Route.DEFAULT, who, False)


# --- what they may do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "rules", "why"),
    [
        ({"specialist": "novice"}, (), RationaleCode.TOO_RISKY),
        ({"specialist": "master"}, (), None),
        ({"specialist": "master", "requires": ["diving"]}, (), RationaleCode.LACKS),
        ({}, (rule("give", specialist="novice"),), None),
    ],
)
def test_a_person_is_asked_where_whoever_is_named_may_not_do_it_unless_a_rule_says_so(
    database: Database, fields: dict[str, Any], rules: tuple[Rule, ...], why: RationaleCode | None
) -> None:
    deciding = Deciding(database, rule("careful", risk="medium"), *rules)
    deciding.register("novice", risk_ceiling="low")
    deciding.register("master", capabilities=["welding"])
    record = deciding.decided(deciding.submit(**fields))
    assert record.risk is Risk.MEDIUM
    assert record.required_capabilities == tuple(fields.get("requires", ()))
    if why is None:
        assert (record.route, record.specialist) == (Route.SPECIALIST, fields.get("specialist", "novice"))
    else:
        assert (record.route, record.specialist, record.skill) == (Route.CLARIFY, None, None)
        assert code(record) == (why, fields["specialist"])


def test_what_a_person_has_said_holds_whatever_the_card_says(database: Database) -> None:
    deciding = Deciding(database, rule("careful", risk="medium"))
    deciding.register("novice", risk_ceiling="low")
    record = deciding.decided(replace(deciding.submit(), by_hand="novice"))
    assert code(record) == (RationaleCode.BY_HAND, "novice")


@pytest.mark.parametrize(
    ("default", "risk", "requires", "route"),
    [
        ("rest", "low", (), Route.DEFAULT),
        ("rest", "medium", (), Route.CLARIFY),
        ("rest", "low", ("diving",), Route.CLARIFY),
        ("rest", "low", ("welding",), Route.DEFAULT),
        (None, "low", (), Route.DEFAULT),
        (None, "low", ("welding",), Route.CLARIFY),
    ],
)
def test_by_default_only_what_is_harmless_and_possible_is_done(
    database: Database, default: str | None, risk: str, requires: tuple[str, ...], route: Route
) -> None:
    deciding = Deciding(database, rule("so-risky", risk=risk), default=default)
    deciding.register("rest", capabilities=["welding"])
    record = deciding.decided(replace(deciding.submit(requires=requires), handed=handed(None)))
    assert (record.route, record.specialist) == (route, default if route is Route.DEFAULT else None)


def test_who_goes_while_it_is_decided_is_judged_by_no_card(open_: Deciding) -> None:
    open_.register("plumber")
    subject = open_.submit(requires=["diving"])
    record = to(RationaleCode.NAMED, "ghost", open_.decider.versions)
    specialist = open_.decider.rejudge(subject, record).record
    assert specialist is not None
    assert specialist.specialist == "ghost"


def test_who_is_excluded_is_given_nothing(database: Database) -> None:
    deciding = Deciding(database, rule("keep", exclude_specialists=["painter"]))
    deciding.register("painter", "plumber")
    record = deciding.decided(deciding.submit("one", specialist="painter"))
    assert (record.route, code(record)) == (Route.CLARIFY, (RationaleCode.EXCLUDED, "painter"))
    assert deciding.decided(deciding.submit("two", specialist="plumber")).specialist == "plumber"


# --- of what nothing is decided ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "fields", "text", "nothing"),
    [
        ((), {}, None, True),
        (("plumber",), {}, None, False),
        ((), {"specialist": "ghost"}, None, False),
        ((), {}, "plumber", False),
        ((), {"requires": ["diving"]}, None, False),
        (("plumber",), {"agent": {"type": "claude"}}, None, False),
        (("plumber",), {"agent": {"type": "lint"}}, None, True),
        (("plumber",), {"agent": {"type": "command"}}, None, True),
        (("plumber",), {"agent": {"type": "lint"}, "specialist": "plumber"}, None, False),
        (("plumber",), {"agent": {"type": "lint"}}, "plumber", False),
    ],
)
def test_nothing_is_decided_where_nobody_could_do_it_and_nobody_was_asked_for(
    open_: Deciding, who: tuple[str, ...], fields: dict[str, Any], text: str | None, nothing: bool
) -> None:
    open_.register(*who)
    subject = replace(open_.submit(**fields), by_hand=text)
    assert open_.decider.needs_no_route(subject) is nothing
    assert not open_.decider.needs_no_route(replace(subject, handed=handed("plumber")))
    assert (open_.decider.decide_alone(subject).record is None) is nothing


def test_where_no_specialist_is_looked_for_only_the_policy_is_asked(database: Database) -> None:
    deciding = Deciding(database, routes=False)
    deciding.register("plumber")
    subject = deciding.submit(specialist="plumber")
    assert deciding.decider.decide_alone(subject).record is None
    assert deciding.decided(replace(subject, handed=handed("plumber"))).specialist == "plumber"
    assert deciding.decider.preview(Request("do some plumber"), OPERATOR) is None
    assert deciding.decider.answers_at_once
    deciding.decider.close()


def test_of_what_the_policy_stops_nothing_is_decided(open_: Deciding) -> None:
    open_.register("plumber")
    decided = open_.decider.decide_alone(open_.submit(specialist="plumber", instructions=LIVE))
    assert (decided.record, decided.judged.stopped) == (None, True)


def test_the_text_of_a_task_that_takes_no_role_is_no_order(database: Database) -> None:
    deciding = Deciding(database, rule("cheap", tier={"ceiling": "fast"}))
    deciding.register("plumber")
    world = deciding.world
    world.policy_rules = deciding.decider.policing.policy.rules
    world.restarted_daemon()
    subject = deciding.submit(instructions=LIVE, agent={"type": "lint"})
    assert not subject.stopped
    assert subject.asked.visible == frozenset(), "nobody asks who there is"
    world.router.route()
    world.now_ms += MINUTE_MS
    assert not world.database.read(partial(deciding.decider.is_outdated, task=world.row("t")))


# --- which tasks ------------------------------------------------------------------------------------------------------


def test_each_of_many_is_decided_by_itself(open_: Deciding) -> None:
    open_.register("plumber", "roofer")
    asked: dict[str, dict[str, Any]] = {
        "a": {"instructions": "do some roofer"},
        "b": {"specialist": "roofer"},
        "c": {"specialist": "ghost"},
    }
    subjects = [open_.submit(name, **fields) for name, fields in asked.items()]
    decide = open_.decider.decide([*subjects, open_.submit("d", instructions="do some plumber")])
    assert {open_.world.task(task_id).name: record.specialist for task_id, record in decide.items()} == {
        "a": "roofer",
        "b": "roofer",
        "c": None,
        "d": "plumber",
    }


# --- who is compared --------------------------------------------------------------------------------------------------


def test_only_those_are_compared_who_exist_for_whoever_asks_and_whose_agent_is_there(open_: Deciding) -> None:
    open_.register("plumber")
    open_.register("shepherd", url="ws-agent://shepherd")
    open_.register("secret", visibility="private")
    subject = open_.submit(by=Principal("ann", Role.OPERATE, "acme"), instructions="do some shepherd or secret")

    def compared() -> set[str]:
        return {
            specialist_candidate.specialist for specialist_candidate in open_.decided(subject).specialist_candidates
        }

    assert compared() == {"plumber"}
    open_.world.router.route()
    assert compared() == {"plumber", "shepherd"}


def test_whoever_was_asked_already_is_not_asked_who_of_two_is_meant_nor_what(database: Database) -> None:
    deciding = Deciding(database, on_ambiguity=OnAmbiguity.CLARIFY)
    for name in ("twin-a", "twin-b"):
        deciding.register(name, name="Twin", description="Mends leaking handles of pools.", skills=[])
    close = deciding.submit("close", instructions="Mend the leaking handles of our connection pools.")
    vague = deciding.submit("vague", instructions="Mend it.")
    assert deciding.decided(close).reason.code is RationaleCode.AMBIGUOUS
    assert deciding.decided(vague).reason.code is RationaleCode.VAGUE
    records = [deciding.decided(replace(entry, asked=replace(entry.asked, was_asked=True))) for entry in (close, vague)]
    assert [record.route for record in records] == [Route.SPECIALIST, Route.DEFAULT]


def test_words_are_compared_where_the_encoder_cannot_be_asked(database: Database) -> None:
    encoder = Lengths()
    deciding = Deciding(database, encoder=encoder)
    deciding.register("plumber", "roofer")
    subject = deciding.submit(instructions="do some plumber")
    assert not deciding.decider.answers_at_once
    encoder.broken = True
    record = deciding.decided(subject)
    assert (record.specialist, record.degraded, record.versions.encoder) == ("plumber", True, Hashed().id)


def test_the_encoder_is_closed_with_it(database: Database) -> None:
    deciding, closed = Deciding(database), list[bool]()
    deciding.encoder.close = partial(closed.append, True)  # type: ignore[method-assign]
    deciding.decider.close()
    assert closed == [True]


# --- what would become of a task --------------------------------------------------------------------------------------


def test_a_preview_knows_the_name_that_the_task_would_have(database: Database) -> None:
    nameless = rule("nameless", when='task.name == ""', deny="it has no name")
    deciding = Deciding(database, rule("deploys", when='task.name == "deploy"', risk="medium"), nameless)
    deciding.register("plumber")

    def previewed(name: str) -> Decided:
        decided = deciding.decider.preview(Request("do some plumber", name=name), OPERATOR)
        assert decided is not None
        return decided

    assert [previewed(name).judged.verdict.risk for name in ("deploy", "")] == [Risk.MEDIUM, Risk.LOW]
    assert not previewed("").judged.stopped, "a task has some name"
    record = previewed("").record
    assert record is not None
    assert record.specialist == "plumber"
