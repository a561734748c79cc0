"""What outcomes and corrections teach about who does what."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from sqlalchemy import select

from claudomator_py.daemon.learning import Learner
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.learning import LabelRule, Verdict
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import DAY_MS, SECOND_MS
from claudomator_py.domain.views import RestartRequest
from claudomator_py.domain.views.routing import ForgetRequest, RouteRequest
from claudomator_py.routing.evaluation import case_of
from claudomator_py.routing.profile import Request
from claudomator_py.routing.signals import recency
from claudomator_py.schema.routing_settings import LearningSettings
from claudomator_py.schema.shipped_cards import shipped_cards, shipped_files
from claudomator_py.store import learning_rows, pruning, switch_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import LABEL, Label, Standing
from claudomator_py.tasks.learning import FROZEN, reset
from claudomator_py.tasks.specialists import ship
from tests.fakes.cards import card
from tests.fakes.world import World, spec

ANN, BOB = Principal("ann", Role.OPERATE, "acme"), Principal("bob", Role.OPERATE, "bolt")

ANSWER = "The index was missing; the query takes 12 ms now instead of 14 seconds."
QUERIES = (
    "The query over orders and order_lines takes 14 seconds in PostgreSQL; find the missing index.",
    "Find out which index the slow query on the invoices table needs.",
    "The query for the monthly report takes a minute; look at its plan, and add the index that it needs.",
    "Our slow query log shows the query of the stock page; find the index that it lacks.",
    "The query behind the customers list is slow since Monday: is an index missing?",
    "Read the plan of the slow query of the shipments page and find the missing index.",
)
LATER_QUERIES = (
    "The query of the returns page takes nine seconds; find the missing index.",
    "Find the index that the slow query on the payments table needs.",
    "The slow query log names the query of the search page; add the missing index.",
)
OTHERS = (
    "Set up nightly pg_dump backups with a retention of thirty days",
    "Write a tutorial for the command line, with an example for each option.",
    "Restore yesterday's dump into a scratch database and compare the row counts",
    "Add tests for the parser of dates: leap years, time zones, empty input.",
)


def present() -> int:
    return int(datetime.now(UTC).timestamp() * SECOND_MS)


class Taught:
    """A world with the shipped specialists, or these, and what learns from it."""

    def __init__(self, database: Database, *cards: Card) -> None:
        self.world = World(database, total=50, per_workdir=50)
        if cards:
            for one in cards:
                self.world.specialists.register(one)
        else:
            shipped = shipped_cards(shipped_files())
            database.write(lambda connection: ship(connection, shipped, self.world.now_ms))
        self.learner = Learner(database, lambda: LearningSettings(), self.world.clock)
        self.learner.round()

    def submit(self, name: str, text: str, *, by: Principal = OPERATOR, **fields: Any) -> str | None:
        """Who does it."""
        self.world.access.as_(by).service.submit(spec(name, instructions=text, **fields))
        self.world.router.route()
        return self.world.task(name).specialist

    def done(self, name: str, answer: str = ANSWER) -> None:
        self.world.tick(SECOND_MS)
        self.world.end(name, text=answer)
        self.world.tick()

    def failed(self, name: str, reason: str) -> None:
        self.world.tick(SECOND_MS)
        self.world.fail(name, reason)

    def give(self, name: str, specialist: str, *, by: Principal = OPERATOR) -> None:
        """An operator gives it to somebody else, before it has begun or after it has ended."""
        self.world.access.as_(by).service.restart(name, RestartRequest(specialist=specialist))
        self.world.router.route()

    def labels(self, name: str) -> list[Label]:
        task_id = self.world.task(name).id
        query = select(LABEL).where(LABEL.c.task_id == task_id).order_by(LABEL.c.at_ms, LABEL.c.rule)
        rows = self.world.database.read(lambda connection: connection.execute(query).all())
        return [Label(**row._mapping) for row in rows]

    def rules(self, name: str) -> list[str]:
        return [one.rule for one in self.labels(name)]

    def standings(self) -> dict[tuple[str, str], Standing]:
        rows: Sequence[Standing] = self.world.database.read(lambda connection: learning_rows.standings(connection, ""))
        return {(one.specialist, one.topic): one for one in rows}


LLAMAS = ["Feed the llamas of the northern meadow", "Give the llamas their hay"]


@pytest.fixture
def taught(database: Database) -> Taught:
    return Taught(database)


@pytest.mark.both_databases
def test_a_success_moves_the_specialist_on_its_topic_and_altogether(taught: Taught) -> None:
    assert taught.submit("slow", QUERIES[0]) == "database-administrator"
    taught.done("slow")

    taught.learner.round()

    (label,) = taught.labels("slow")
    assert (label.verdict, label.rule, label.topic) == ("positive", "succeeded", "queries")
    assert label.answer_chars == len(ANSWER)
    found = taught.standings()
    assert {key: one.performance for key, one in found.items()} == {
        ("database-administrator", ""): pytest.approx(0.55),
        ("database-administrator", "queries"): pytest.approx(0.55),
    }
    assert found["database-administrator", ""].last_success_ms == label.at_ms


def test_nothing_is_learned_twice(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")

    for _ in range(3):
        taught.learner.round()
    taught.world.restarted_daemon()
    taught.learner.round()

    assert {one.positive for one in taught.standings().values()} == {1}


def test_a_crash_in_the_midst_of_it_leaves_nothing_half_learned(
    taught: Taught, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        taught.submit(f"slow-{number}", QUERIES[number])
        taught.done(f"slow-{number}")

    def crash(*_: object) -> None:
        raise RuntimeError("the daemon ends here")

    with monkeypatch.context() as patched:
        patched.setattr(learning_rows, "keep_progress", crash)
        with pytest.raises(RuntimeError):
            taught.learner.round()
    assert taught.standings() == {}
    taught.learner.round()

    assert {one.positive for one in taught.standings().values()} == {3}


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("refused", LabelRule.FAILED),
        ("turn_limit", LabelRule.FAILED),
        ("timeout", LabelRule.FAILED),
        ("interrupted", LabelRule.ELSEWHERE),
        ("budget", LabelRule.ELSEWHERE),
        ("lost", LabelRule.ELSEWHERE),
    ],
)
def test_only_a_failure_of_the_work_speaks_against_the_specialist(taught: Taught, reason: str, rule: LabelRule) -> None:
    taught.submit("slow", QUERIES[0])
    taught.failed("slow", reason)

    taught.learner.round()

    assert taught.rules("slow") == [rule]
    found = taught.standings()
    if rule is LabelRule.FAILED:
        assert found["database-administrator", "queries"].performance == pytest.approx(0.45)
        assert found["database-administrator", "queries"].last_success_ms is None
    else:
        assert found == {}


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("", LabelRule.NO_ANSWER),
        (" \n ", LabelRule.NO_ANSWER),
        ("Done.", LabelRule.SHORT_ANSWER),
        ("x" * 39, LabelRule.SHORT_ANSWER),
        ("x" * 40, LabelRule.SUCCEEDED),
    ],
)
def test_an_answer_says_something_from_some_length_on(taught: Taught, answer: str, rule: LabelRule) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow", answer)

    taught.learner.round()

    assert taught.rules("slow") == [rule]


def test_a_task_that_is_cancelled_says_nothing(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.world.service.cancel("slow")

    taught.learner.round()

    assert taught.rules("slow") == [LabelRule.CANCELLED]
    assert taught.standings() == {}


def test_a_short_answer_was_of_use_if_somebody_goes_on_with_it(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow", "Done.")
    taught.learner.round()
    assert taught.standings() == {}

    taught.submit("more", "Now do the same for the table of returns.", continues="slow")
    taught.done("more")
    taught.learner.round()

    assert taught.rules("slow") == [LabelRule.FOLLOWED]
    assert taught.standings()["database-administrator", ""].positive == 2


def test_a_restart_with_another_specialist_corrects_the_decision(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.round()

    taught.give("slow", "backend-engineer")
    taught.learner.round()

    (label,) = taught.labels("slow")
    assert (label.specialist, label.wanted) == ("database-administrator", "backend-engineer")
    assert (label.verdict, label.rule) == (Verdict.NEGATIVE, LabelRule.OVERRIDDEN)
    assert label.answer_chars == len(ANSWER)
    found = taught.standings()["database-administrator", "queries"]
    assert (found.positive, found.negative) == (1, 1)
    assert found.performance == pytest.approx(0.55 * 0.9)


def test_what_the_other_one_makes_of_it_has_a_label_of_its_own(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.give("slow", "backend-engineer")
    taught.done("slow")
    taught.learner.round()

    assert taught.rules("slow") == [LabelRule.OVERRIDDEN, LabelRule.SUCCEEDED]
    # It was given to them by name: nobody knows what it would have been likest.
    assert taught.standings()["backend-engineer", ""].positive == 1


def test_a_restart_with_the_same_specialist_corrects_nothing(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.round()

    taught.give("slow", "database-administrator")
    taught.learner.round()

    assert taught.rules("slow") == [LabelRule.SUCCEEDED]


def test_other_instructions_for_somebody_else_correct_nothing(taught: Taught) -> None:
    world = taught.world
    world.take("slow.yaml", spec("slow", instructions=QUERIES[0]))
    world.router.route()
    assert world.task("slow").specialist == "database-administrator"

    world.take("slow.yaml", spec("slow", instructions="Write a tutorial.", specialist="technical-writer"), mtime_ns=2)
    world.router.route()
    assert world.task("slow").specialist == "technical-writer"
    assert taught.rules("slow") == []


def test_a_file_that_names_somebody_else_for_the_same_corrects_the_decision(taught: Taught) -> None:
    world = taught.world
    world.take("slow.yaml", spec("slow", instructions=QUERIES[0]))
    world.router.route()

    world.take("slow.yaml", spec("slow", instructions=QUERIES[0], specialist="backend-engineer"), mtime_ns=2)
    world.router.route()

    (label,) = taught.labels("slow")
    assert (label.specialist, label.wanted) == ("database-administrator", "backend-engineer")


def test_a_thread_that_goes_on_with_somebody_else_corrects_its_beginning(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.submit("more", "Go on.", continues="slow", specialist="backend-engineer")
    taught.learner.round()

    (label,) = taught.labels("slow")
    assert (label.specialist, label.wanted) == ("database-administrator", "backend-engineer")
    taught.done("more")
    assert taught.submit("yet-more", "And on.", continues="more") == "backend-engineer"


@pytest.mark.both_databases
def test_consistent_corrections_turn_a_topic_and_no_other(taught: Taught) -> None:
    before = [taught.submit(f"other-{number}", text) for number, text in enumerate(OTHERS)]
    for number, text in enumerate(QUERIES):
        assert taught.submit(f"slow-{number}", text) == "database-administrator"
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.round()

    later = [taught.submit(f"later-{number}", text) for number, text in enumerate(LATER_QUERIES)]
    after = [taught.submit(f"other-again-{number}", text) for number, text in enumerate(OTHERS)]

    assert set(later) == {"backend-engineer"}
    assert after == before
    assert "database-administrator" in before


def test_one_correction_does_not_turn_what_is_right_again_and_again(taught: Taught) -> None:
    for number, text in enumerate(QUERIES[:5]):
        taught.submit(f"slow-{number}", text)
        taught.done(f"slow-{number}")
    taught.submit("odd", QUERIES[5])
    taught.give("odd", "backend-engineer")
    taught.learner.round()

    later = [taught.submit(f"later-{number}", text) for number, text in enumerate(LATER_QUERIES)]

    assert set(later) == {"database-administrator"}


def test_a_correction_fades(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.round()
    assert taught.submit("soon", LATER_QUERIES[0]) == "backend-engineer"

    taught.world.now_ms += 900 * DAY_MS

    assert taught.submit("years-later", LATER_QUERIES[0]) == "database-administrator"


def test_what_one_organisation_corrects_is_nothing_to_another(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text, by=ANN)
        taught.give(f"slow-{number}", "backend-engineer", by=ANN)
    taught.learner.round()

    assert taught.submit("anns", LATER_QUERIES[0], by=ANN) == "backend-engineer"
    assert taught.submit("bobs", LATER_QUERIES[0], by=BOB) == "database-administrator"
    assert taught.submit("anybodys", LATER_QUERIES[0]) == "database-administrator"
    asked = RouteRequest(instructions=LATER_QUERIES[1])
    assert taught.world.access.as_(ANN).specialists.route(asked).specialist == "backend-engineer"
    assert taught.world.access.as_(BOB).specialists.route(asked).specialist == "database-administrator"


def test_where_nobody_was_found_a_correction_finds_somebody(database: Database) -> None:
    taught = Taught(database, card("plumber"), card("generalist"))
    texts = [f"The tap in room {number} drips all night; have it stop." for number in range(5)]
    for number, text in enumerate(texts[:3]):
        assert taught.submit(f"tap-{number}", text) == "generalist"
        taught.give(f"tap-{number}", "plumber")
    taught.learner.round()

    assert taught.submit("later", texts[4]) == "plumber"


def test_what_happens_while_learning_is_frozen_is_never_learned(taught: Taught) -> None:
    world = taught.world
    world.database.write(lambda connection: switch_rows.turn_on(connection, FROZEN, None, world.now_ms))
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.round()
    world.database.write(lambda connection: switch_rows.turn_off(connection, FROZEN))
    taught.learner.round()

    assert taught.standings() == {}
    assert taught.submit("later", LATER_QUERIES[0]) == "database-administrator"
    assert taught.rules("slow-0") == [LabelRule.OVERRIDDEN]


def test_what_was_learned_can_be_forgotten(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.round()
    assert taught.submit("soon", LATER_QUERIES[0]) == "backend-engineer"

    world = taught.world
    forgotten = world.database.write(lambda connection: reset(connection, None, "backend-engineer", world.now_ms))

    assert forgotten == len(QUERIES)
    assert taught.submit("later", LATER_QUERIES[0]) == "database-administrator"
    taught.learner.round()
    assert taught.submit("latest", LATER_QUERIES[1]) == "database-administrator"


def test_days_without_a_success_count_less_and_less(taught: Taught) -> None:
    with freeze_time("2026-11-20T00:00:00Z") as frozen:
        taught.world.now_ms = present()
        taught.submit("slow", QUERIES[0])
        taught.done("slow")
        taught.learner.round()
        last = taught.standings()["database-administrator", ""].last_success_ms
        frozen.move_to("2026-11-20T00:00:01Z")
        counted = []
        for _ in range(4):
            counted.append(round(recency(last, present()), 3))
            frozen.tick(timedelta(hours=24))

    assert counted == [1.0, 0.707, 0.5, 0.354]


def test_a_task_that_goes_takes_its_label_along(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.round()
    task_id = taught.world.task("slow").id
    later = taught.world.now_ms + DAY_MS

    assert taught.world.database.write(lambda connection: pruning.tasks(connection, [task_id], later)) == 1

    query = select(LABEL).where(LABEL.c.task_id == task_id)
    assert taught.world.database.read(lambda connection: connection.execute(query).all()) == []
    assert taught.standings()["database-administrator", ""].positive == 1


def test_figures_tell_of_each_specialist_and_topic(taught: Taught) -> None:
    learned = taught.world.learned
    for number in range(4):
        taught.submit(f"slow-{number}", QUERIES[number])
    taught.give("slow-0", "backend-engineer")
    taught.done("slow-1")
    taught.failed("slow-2", "refused")
    taught.submit("odd", "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.")
    taught.learner.round()

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
    taught.learner.round()
    taught.submit("right", LATER_QUERIES[0])
    taught.done("right")
    taught.submit("wrong", LATER_QUERIES[1])
    taught.give("wrong", "database-administrator")
    taught.learner.round()

    (signal,) = (one for one in taught.world.learned.stats().signals if one.signal == "learned")

    assert (signal.decisions, signal.decided, signal.right, signal.wrong) == (2, 2, 1, 1)


def test_figures_are_those_of_ones_own_organisation(taught: Taught) -> None:
    taught.world.access.as_(ANN).specialists.register(
        card("llama-keeper", visibility="private", skills=[{"id": "feeding", "name": "Feeding", "examples": LLAMAS}])
    )
    assert taught.submit("slow", "Feed the llamas of the southern meadow, please.", by=ANN) == "llama-keeper"
    taught.done("slow")
    taught.learner.round()

    anns, bobs = (taught.world.access.as_(one).learned for one in (ANN, BOB))
    carls = taught.world.access.as_(Principal("carl", Role.OPERATE, "acme")).learned

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
    taught.learner.round()

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
    taught.learner.round()

    found = taught.world.learned.labelled().items

    assert {one.name: (one.expected.specialist, one.by) for one in found} == {
        "wrong": ("backend-engineer", "overridden"),
        "right": ("database-administrator", "succeeded"),
        "anns": ("database-administrator", "succeeded"),
    }
    case = case_of(json.loads(next(one for one in found if one.name == "wrong").model_dump_json()))
    assert case.expected == frozenset({"backend-engineer"})
    assert case.request == Request(QUERIES[0], "wrong", ("sql",))
    assert [one.name for one in taught.world.access.as_(ANN).learned.labelled().items] == ["anns"]
    assert len(taught.world.learned.labelled(limit=1).items) == 1


def test_what_ended_while_frozen_is_not_learned_after(taught: Taught) -> None:
    taught.world.learned.freeze()
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.world.learned.unfreeze()
    taught.submit("again", QUERIES[1])
    taught.done("again")

    taught.learner.round()

    assert taught.standings()["database-administrator", ""].positive == 1


def test_an_organisation_forgets_only_what_it_has_taught(taught: Taught) -> None:
    for number, (by, text) in enumerate(zip((ANN, BOB), QUERIES, strict=False)):
        taught.submit(f"slow-{number}", text, by=by)
        taught.done(f"slow-{number}")
    taught.learner.round()

    taught.world.access.as_(ANN).learned.forget(ForgetRequest())

    assert taught.world.access.as_(ANN).learned.all().standings == ()
    assert len(taught.world.access.as_(BOB).learned.all().standings) == 2
    assert {one.organisation for one in taught.world.learned.all().standings} == {"bolt"}
