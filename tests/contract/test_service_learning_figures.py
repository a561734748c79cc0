"""What was learned: as figures, as a labelled set, and forgotten."""

import json

import pytest

from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.units import DAY_MS
from claudomator_py.embed import Hashed
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

    routing_stats = learned.stats(days=7)

    by_name = {specialist.specialist: specialist for specialist in routing_stats.specialists}
    administrator = by_name["database-administrator"]
    assert (administrator.decisions, administrator.overridden, administrator.failed) == (4, 0.25, 0.5)
    assert administrator.answer_chars == len(ANSWER)
    assert administrator.performance == pytest.approx(0.5 * 0.9 + 0.1 * 0.9 * 0.5, abs=0.1)
    assert 0.1 < (administrator.confidence or 0) < 1
    assert routing_stats.total.decisions == 6
    assert routing_stats.topics[0].topic == "queries"
    assert [(gap.decisions, gap.tasks) for gap in routing_stats.gaps] == [(1, ("odd",))]
    assert routing_stats.sampled == 5
    semantic = next(signal for signal in routing_stats.signals if signal.signal == "semantic")
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

    (signal,) = (signal for signal in taught.world.learned.stats().signals if signal.signal == "learned")

    assert (signal.decisions, signal.decided, signal.right, signal.wrong) == (2, 2, 1, 1)


def test_figures_are_those_of_ones_own_organisation(taught: Taught) -> None:
    taught.world.access.as_(ANN)[Specialists].register(
        card("llama-keeper", visibility="private", skills=[{"id": "feeding", "name": "Feeding", "examples": LLAMAS}])
    )
    assert taught.submit("slow", "Feed the llamas of the southern meadow, please.", by=ANN) == "llama-keeper"
    taught.done("slow")
    taught.learner.run_once()

    anns, bobs = (taught.world.access.as_(principal)[Routing] for principal in (ANN, BOB))
    carls = taught.world.access.as_(Principal("carl", Role.OPERATE, "acme"))[Routing]

    assert [specialist.specialist for specialist in anns.stats().specialists] == ["llama-keeper"]
    assert {entry.specialist for entry in anns.all().standings} == {"llama-keeper"}
    assert bobs.stats().total.decisions == 0
    assert bobs.all().standings == ()
    # Of the same organisation, but the card is not for him.
    assert [(specialist.specialist, specialist.decisions) for specialist in carls.stats().specialists] == [(None, 1)]
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
    assert [entry.specialist for entry in after.standings] == ["database-administrator"] * 2
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

    labelled_tasks = taught.world.learned.labelled().items

    assert {
        labelled_task.name: (labelled_task.expected.route, labelled_task.expected.specialist, labelled_task.by)
        for labelled_task in labelled_tasks
    } == {
        "wrong": (None, "backend-engineer", "overridden"),
        "right": (None, "database-administrator", "succeeded"),
        "anns": (None, "database-administrator", "succeeded"),
        "lunch": ("default", None, "succeeded"),
    }
    case = case_of(
        json.loads(
            next(labelled_task for labelled_task in labelled_tasks if labelled_task.name == "wrong").model_dump_json()
        )
    )
    assert case.expected == frozenset({"backend-engineer"})
    assert case.request == Request(QUERIES[0], "wrong", ("sql",))
    cards = shipped_cards(shipped_files())
    cases = [case_of(json.loads(entry.model_dump_json()), {card.id for card in cards}) for entry in labelled_tasks]
    figures, _ = evaluate(cards, cases, Hashed(), calibration_for(Preset.CALIBRATED, Hashed().id), lambda: 0)
    assert [entry.id for entry in figures.wrong] == [taught.world.task("wrong").id], "a task that went right is right"
    assert [item.name for item in taught.world.access.as_(ANN)[Routing].labelled().items] == ["anns"]
    assert len(taught.world.learned.labelled(limit=1).items) == 1
