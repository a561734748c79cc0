"""Routing between close candidates with a cheap model: whatever becomes of the question, the task is routed."""

from typing import Any

import pytest

from claudomator_py.dispatch import cheap_model
from claudomator_py.dispatch.card_vectors import SpecialistDirectory
from claudomator_py.dispatch.cheap_model import Chooser, GuardedModel
from claudomator_py.dispatch.deciding import Decider
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.embed import Hashed
from claudomator_py.policy.rule import Rule
from claudomator_py.policy.verdict import Policy
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.questions import Choice
from claudomator_py.routing.ranking import RoutingRules
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion
from claudomator_py.scheduler.records import DecisionKind, SpecialistRecord
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague, Preset
from claudomator_py.store import decision_rows
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World
from tests.unit.dispatch.asked_model import ACCOUNT, Later, Model

TASK = "Find out why the handles of the connection pool leak, and mend it."


class Routed:
    """A world with two specialists who are equally good at everything."""

    def __init__(
        self, database: Database, *says: str | Exception, policy: tuple[Rule, ...] = (), says_at_once: bool = True
    ) -> None:
        self.world = World(database)
        for name in ("twin-a", "twin-b"):
            mends = "Mends whatever is broken, leaking handles of connection pools too."
            entry = card(name, name="Twin", description=mends, skills=[])
            self.world.specialists.register(entry)
        self.model, self.pool = Model(*says), Later()
        clock, self.encoder = self.world.clock, Hashed()
        self.encoder.immediate = says_at_once
        calibration = calibration_for(Preset.CALIBRATED, self.encoder.id)
        directory = SpecialistDirectory(database, self.encoder, calibration, clock)
        rules = RoutingRules(calibration, on_ambiguity=OnAmbiguity.CLASSIFIER, on_vague=OnVague.ASK)
        self.chooser = Chooser(GuardedModel(self.model, clock, ACCOUNT), database, 5_000, clock)
        registry, faults = self.world.registry, self.world.faults
        policing = Policing(Policy(policy), self.world.budgets, clock, reviews=True)
        decider = Decider(database, registry, directory, directory, rules, rules, clock, policing)
        self.router = SpecialistRouter(database, registry, decider, clock, faults, self.pool, self.chooser)

    def submit(self, name: str, text: str = TASK) -> None:
        self.world.submit(name, instructions=text)

    def route(self) -> None:
        self.router.route()
        self.pool.work()

    def specialist(self, name: str) -> str | None:
        return self.world.service.get(name).specialist

    def record(self, name: str) -> SpecialistRecord:
        task_id = self.world.service.get(name).id
        decision = self.world.database.read(lambda c: decision_rows.latest(c, task_id, DecisionKind.SPECIALIST, 1))
        assert decision is not None
        return SpecialistRecord.model_validate(decision.data)


@pytest.mark.both_databases
def test_the_model_chooses_among_those_who_are_as_good(database: Database) -> None:
    routed = Routed(database)
    routed.submit("leak")

    routed.route()

    assert routed.specialist("leak") == "twin-b"
    record = routed.record("leak")
    assert record.reason.text == "none of twin-a, twin-b is clearly ahead, and the classifier picked twin-b"
    assert record.versions.classifier == "lite/1"
    assert [
        (specialist_candidate.specialist, specialist_candidate.rejected is None)
        for specialist_candidate in record.specialist_candidates
    ] == [
        ("twin-a", False),
        ("twin-b", True),
    ]


@pytest.mark.parametrize(
    "text",
    [ModelFault(Cause.TIMEOUT, "no answer"), "I do not know.", '{"specialist": "root"}', RuntimeError("broken")],
)
def test_without_an_answer_the_signals_choose_and_the_task_is_routed(database: Database, text: str | Exception) -> None:
    routed = Routed(database, text)
    routed.submit("leak")

    routed.route()
    if isinstance(text, RuntimeError):  # A fault of our own: it is tried again after a pause.
        (fault,) = routed.world.faults.all()
        assert fault.item.name == "leak"
        routed.route()
        assert len(routed.model.asked) == 1
        routed.world.now_ms = fault.again_ms
        routed.route()
        assert routed.world.faults.all() == []

    assert routed.specialist("leak") in ("twin-a", "twin-b")


def test_the_tick_does_not_wait_for_the_model_and_asks_once(database: Database) -> None:
    routed = Routed(database)
    routed.submit("leak")

    routed.router.route()
    routed.router.route()

    assert len(routed.pool.given) == 1
    assert routed.specialist("leak") is None
    routed.pool.work()
    assert routed.specialist("leak") == "twin-b"
    assert len(routed.model.asked) == 1


def test_the_same_task_is_not_asked_about_again_until_it_is_restarted(database: Database) -> None:
    routed = Routed(database)
    routed.submit("leak")
    routed.route()
    first = routed.specialist("leak")

    routed.world.service.cancel("leak")
    routed.world.submit("leak-2", instructions=TASK)
    routed.route()

    assert (routed.specialist("leak-2"), first) == ("twin-b", "twin-b")
    assert len(routed.model.asked) == 2, "its name is part of the question"
    routed.world.service.restart("leak", RestartRequest())
    routed.route()
    assert len(routed.model.asked) == 3


def test_a_limit_that_it_meets_holds_its_account_and_it_is_left_alone(database: Database) -> None:
    routed = Routed(database, ModelFault(Cause.LIMITED, "quota", retry_after_s=60.0))
    routed.submit("leak")
    routed.route()
    routed.submit("second")

    routed.route()

    assert len(routed.model.asked) == 1
    assert routed.specialist("second") in ("twin-a", "twin-b")


def test_where_whom_a_person_has_named_is_gone_nobody_else_is_asked(database: Database) -> None:
    routed = Routed(database)
    routed.world.specialists.register(card("third"))
    routed.submit("job", "Please do it.")
    routed.route()
    assert routed.world.state("job") == "NEEDS_INPUT clarification"
    routed.world.service.answer("job", AnswerRequest(text="third"))
    routed.world.specialists.remove("third")

    routed.route()

    assert (routed.world.state("job"), routed.model.asked) == ("QUEUED ready", [])


def test_where_one_of_two_is_gone_by_then_the_model_is_not_asked(database: Database) -> None:
    routed = Routed(database)
    routed.submit("leak")
    routed.router.route()
    routed.world.specialists.remove("twin-b")

    routed.pool.work()

    assert (routed.specialist("leak"), routed.model.asked) == ("twin-a", [])


def test_whoever_goes_while_the_model_chooses_does_not_get_the_task(database: Database) -> None:
    routed = Routed(database)
    ask = routed.model.ask

    def gone_meanwhile(question: ModelQuestion, timeout_s: float) -> str:
        routed.world.specialists.remove("twin-b")
        return ask(question, timeout_s)

    routed.model.ask = gone_meanwhile  # type: ignore[method-assign]
    routed.submit("leak")
    routed.route()
    task = routed.world.row("leak")
    assert (task.state, task.specialist, task.constraints) == ("QUEUED", None, None)
    assert routed.world.database.read(lambda connection: decision_rows.of_task(connection, task.id)) == []

    routed.route()
    assert routed.specialist("leak") == "twin-a"


def test_any_other_fault_holds_nothing_and_the_next_task_is_asked_about(database: Database) -> None:
    routed = Routed(database, ModelFault(Cause.TIMEOUT, "no answer"))
    routed.submit("leak")
    routed.route()
    routed.submit("second")

    routed.route()

    assert (len(routed.model.asked), routed.specialist("second")) == (2, "twin-b")


def test_a_model_that_keeps_failing_is_left_alone_but_for_a_task_that_is_restarted(database: Database) -> None:
    routed = Routed(database, *[ModelFault(Cause.TIMEOUT, "no answer")] * 20)
    for number in range(8):
        routed.submit(f"leak-{number}")
        routed.route()
    asked = len(routed.model.asked)
    assert asked < 8

    routed.world.service.cancel("leak-0")
    routed.world.service.restart("leak-0", RestartRequest())
    routed.route()

    assert len(routed.model.asked) == asked + 1


def test_the_latest_choices_are_remembered(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheap_model, "_CACHE_SIZE", 2)
    routed = Routed(database)
    routed.submit("leak")
    task = routed.world.row("leak")

    def asked(*texts: str) -> int:
        for text in texts:
            routed.chooser.choose(Choice("leak", text, {"twin-a": "Mends.", "twin-b": "Mends."}), task)
        return len(routed.model.asked)

    assert asked("first", "second", "third") == 3
    assert asked("third", "second") == 3
    assert asked("first") == 4


@pytest.mark.parametrize(
    ("effect", "state"),
    [
        ({"deny": "not that one"}, "FAILED rejected"),
        ({"approve": {}}, "NEEDS_INPUT approval"),
        ({"exclude_agents": ["claude"]}, "QUEUED"),
    ],
)
def test_rules_are_asked_again_about_whoever_the_model_picked(
    database: Database, effect: dict[str, Any], state: str
) -> None:
    rule = Rule.model_validate({"name": "it", "when": 'task.specialist == "twin-b"', **effect})
    routed = Routed(database, policy=(rule,))
    routed.submit("leak")

    routed.route()

    assert routed.world.state("leak").startswith(state)
    assert ("claude" in str(routed.world.row("leak").constraints)) is ("exclude_agents" in effect)


def test_a_model_picks_nobody_whom_rules_exclude(database: Database) -> None:
    rule = Rule.model_validate({"name": "it", "exclude_specialists": ["twin-b"]})
    routed = Routed(database, '{"specialist": "twin-b"}', policy=(rule,))
    routed.submit("leak")

    routed.route()

    assert (routed.specialist("leak"), routed.model.asked) == ("twin-a", [])
