"""What was learned: as figures, as a labelled set, and forgotten."""

import json

import pytest

from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.units import DAY_MS
from claudomator_py.embed.hashed import Hashed
from claudomator_py.lab.evaluation import evaluate
from claudomator_py.lab.labelled_set import case_of
from claudomator_py.resources.routing import ForgetRequest
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.routing.calibration import calibration_for
from claudomator_py.routing.profile import Request
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store.database import Database
from tests.contract.taught import ANSWER, LATER_QUERIES, QUERIES, Taught
from tests.fakes.cards import card

LLAMAS = ["Feed the llamas of the northern meadow", "Give the llamas their hay"]

ANN, BOB = Principal("ann", Role.OPERATE, "acme"), Principal("bob", Role.OPERATE, "bolt")


@pytest.fixture
def taught(database: Database) -> Taught:
    return Taught(database)


def test_figures_tell_of_each_specialist_and_topic(taught: Taught) -> None:
    learned = taught.world.learned
    for number in range(4):
        taught.submit(f"slow-{number}", QUERIES[number])
    taught.give("slow-0", "backend-engineer")
    taught.done("slow-1")
    taught.failed("slow-2", "refused")
    taught.submit("odd", "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.")
    taught.learner.run_once()

    found = learned.stats(days=7)

    by_name = {one.specialist: one for one in found.specialists}
    administrator = by_name["database-administrator"]
    assert (administrator.decisions, administrator.overridden, administrator.failed) == (4, 0.25, 0.5)
    assert administrator.answer_chars == len(ANSWER)
    assert administrator.performance == pytest.approx(0.5 * 0.9 + 0.1 * 0.9 * 0.5, abs=0.1)
    assert 0.1 < (administrator.confidence or 0) < 1
    assert found.total.decisions == 6
    assert found.topics[0].topic == "queries"
    assert [(one.decisions, one.tasks) for one in found.gaps] == [(1, ("odd",))]
    assert found.sampled == 5
    semantic = next(one for one in found.signals if one.signal == "semantic")
    assert semantic.decisions == 4
    assert learned.stats(days=1).total.decisions == 6
    taught.world.now_ms += 2 * DAY_MS
    assert learned.stats(days=1).total.decisions == 0


def test_figures_say_whether_a_signal_was_right(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
        taught.world.service.cancel(f"slow-{number}")
    taught.learner.run_once()
    taught.submit("right", LATER_QUERIES[0])
    taught.done("right")
    taught.submit("wrong", LATER_QUERIES[1])
    taught.give("wrong", "database-administrator")
    taught.learner.run_once()

    (signal,) = (one for one in taught.world.learned.stats().signals if one.signal == "learned")

    assert (signal.decisions, signal.decided, signal.right, signal.wrong) == (2, 2, 1, 1)


def test_figures_are_those_of_ones_own_organisation(taught: Taught) -> None:
    taught.world.access.as_(ANN)[Specialists].register(
        card("llama-keeper", visibility="private", skills=[{"id": "feeding", "name": "Feeding", "examples": LLAMAS}])
    )
    assert taught.submit("slow", "Feed the llamas of the southern meadow, please.", by=ANN) == "llama-keeper"
    taught.done("slow")
    taught.learner.run_once()

    anns, bobs = (taught.world.access.as_(one)[Routing] for one in (ANN, BOB))
    carls = taught.world.access.as_(Principal("carl", Role.OPERATE, "acme"))[Routing]

    assert [one.specialist for one in anns.stats().specialists] == ["llama-keeper"]
    assert {one.specialist for one in anns.all().standings} == {"llama-keeper"}
    assert bobs.stats().total.decisions == 0
    assert bobs.all().standings == ()
    # Of the same organisation, but the card is not for him.
    assert [(one.specialist, one.decisions) for one in carls.stats().specialists] == [(None, 1)]
    assert carls.stats().topics == ()
    assert carls.all().standings == ()
    assert "llama-keeper" not in carls.stats().model_dump_json() + carls.all().model_dump_json()


def test_what_was_learned_is_shown_forgotten_and_frozen(taught: Taught) -> None:
    learned = taught.world.learned
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    assert learned.all().waiting == len(QUERIES)
    taught.learner.run_once()

    (correction,) = learned.all().corrections
    assert (correction.specialist, correction.wanted) == ("database-administrator", "backend-engineer")
    assert (correction.topic, correction.tasks) == ("queries", len(QUERIES))
    assert learned.freeze().frozen_at is not None
    assert learned.freeze().frozen_at == learned.all().frozen_at
    assert learned.unfreeze().frozen_at is None
    with pytest.raises(NotFound, match="There is no specialist 'backend-enginer'"):
        learned.forget(ForgetRequest(specialist="backend-enginer"))
    after = learned.forget(ForgetRequest(specialist="backend-engineer"))
    assert after.corrections == ()
    assert [one.specialist for one in after.standings] == ["database-administrator"] * 2
    assert learned.forget(ForgetRequest()).standings == ()


def test_tasks_with_who_is_right_are_a_labelled_set(taught: Taught) -> None:
    taught.submit("wrong", QUERIES[0], tags=["sql"])
    taught.give("wrong", "backend-engineer")
    taught.submit("right", QUERIES[1])
    taught.done("right")
    taught.submit("short", QUERIES[2])
    taught.done("short", "Done.")
    taught.submit("anns", QUERIES[3], by=ANN)
    taught.done("anns")
    assert taught.submit("lunch", "Order lunch for twelve people on Thursday.") == "generalist"
    taught.done("lunch")
    taught.learner.run_once()

    found = taught.world.learned.labelled().items

    assert {one.name: (one.expected.route, one.expected.specialist, one.by) for one in found} == {
        "wrong": (None, "backend-engineer", "overridden"),
        "right": (None, "database-administrator", "succeeded"),
        "anns": (None, "database-administrator", "succeeded"),
        "lunch": ("default", None, "succeeded"),
    }
    case = case_of(json.loads(next(one for one in found if one.name == "wrong").model_dump_json()))
    assert case.expected == frozenset({"backend-engineer"})
    assert case.request == Request(QUERIES[0], "wrong", ("sql",))
    cards = shipped_cards(shipped_files())
    cases = [case_of(json.loads(one.model_dump_json()), {card.id for card in cards}) for one in found]
    figures, _ = evaluate(cards, cases, Hashed(), calibration_for(Preset.CALIBRATED, Hashed().id), lambda: 0)
    assert [one.id for one in figures.wrong] == [taught.world.task("wrong").id], "a task that went right is right"
    assert [one.name for one in taught.world.access.as_(ANN)[Routing].labelled().items] == ["anns"]
    assert len(taught.world.learned.labelled(limit=1).items) == 1
