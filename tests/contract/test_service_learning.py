"""What outcomes and corrections teach about who does what."""

from datetime import UTC, datetime, timedelta

import pytest
from freezegun import freeze_time
from sqlalchemy import select

from claudomator_py.domain.learning import LabelRule, LabelVerdict
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.units import DAY_MS, SECOND_MS
from claudomator_py.resources.routing import ForgetRequest, RouteRequest
from claudomator_py.resources.routing.service import Routing
from claudomator_py.routing.lessons import recency
from claudomator_py.store import hold_rows, learning_rows, pruning
from claudomator_py.store.database import Database
from claudomator_py.store.tables import LABEL
from claudomator_py.tasks.learning import FROZEN, reset
from tests.contract.handing_on import hand_on
from tests.contract.taught import ANSWER, LATER_QUERIES, QUERIES, Taught
from tests.fakes.cards import card
from tests.fakes.steps import spec

ANN, BOB = Principal("ann", Role.OPERATE, "acme"), Principal("bob", Role.OPERATE, "bolt")
OTHERS = (
    "Set up nightly pg_dump backups with a retention of thirty days",
    "Write a tutorial for the command line, with an example for each option.",
    "Restore yesterday's dump into a scratch database and compare the row counts",
    "Add tests for the parser of dates: leap years, time zones, empty input.",
)


def present() -> int:
    return int(datetime.now(UTC).timestamp() * SECOND_MS)


@pytest.fixture
def taught(database: Database) -> Taught:
    return Taught(database)


@pytest.mark.both_databases
def test_a_success_moves_the_specialist_on_its_topic_and_altogether(taught: Taught) -> None:
    assert taught.submit("slow", QUERIES[0]) == "database-administrator"
    taught.done("slow")

    taught.learner.run_once()

    (label,) = taught.labels("slow")
    assert (label.verdict, label.rule, label.topic) == ("positive", "succeeded", "queries")
    assert label.answer_chars == len(ANSWER)
    standings = taught.standings()
    assert {key: entry.performance for key, entry in standings.items()} == {
        ("database-administrator", ""): pytest.approx(0.55),
        ("database-administrator", "queries"): pytest.approx(0.55),
    }
    assert standings["database-administrator", ""].last_success_ms == label.at_ms


def test_nothing_is_learned_twice(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")

    for _ in range(3):
        taught.learner.run_once()
    taught.world.restarted_daemon()
    taught.learner.run_once()

    assert {entry.positive for entry in taught.standings().values()} == {1}


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
            taught.learner.run_once()
    assert taught.standings() == {}
    taught.learner.run_once()

    assert {entry.positive for entry in taught.standings().values()} == {3}


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

    taught.learner.run_once()

    assert taught.rules("slow") == [rule]
    standings = taught.standings()
    if rule is LabelRule.FAILED:
        assert standings["database-administrator", "queries"].performance == pytest.approx(0.45)
        assert standings["database-administrator", "queries"].last_success_ms is None
    else:
        assert standings == {}


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

    taught.learner.run_once()

    assert taught.rules("slow") == [rule]


def test_a_task_that_is_cancelled_says_nothing(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.world.service.cancel("slow")

    taught.learner.run_once()

    assert taught.rules("slow") == [LabelRule.CANCELLED]
    assert taught.standings() == {}


def test_a_short_answer_was_of_use_if_somebody_goes_on_with_it(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow", "Done.")
    taught.learner.run_once()
    assert taught.standings() == {}

    taught.submit("more", "Now do the same for the table of returns.", continues="slow")
    taught.done("more")
    taught.learner.run_once()

    assert taught.rules("slow") == [LabelRule.FOLLOWED]
    assert taught.standings()["database-administrator", ""].positive == 2


def test_a_restart_with_another_specialist_corrects_the_decision(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.run_once()

    taught.give("slow", "backend-engineer")
    taught.learner.run_once()

    (label,) = taught.labels("slow")
    assert (label.specialist, label.wanted) == ("database-administrator", "backend-engineer")
    assert (label.verdict, label.rule) == (LabelVerdict.NEGATIVE, LabelRule.OVERRIDDEN)
    assert label.answer_chars == len(ANSWER)
    standings = taught.standings()["database-administrator", "queries"]
    assert (standings.positive, standings.negative, standings.last_success_ms) == (0, 1, None)
    assert standings.performance == pytest.approx(0.5 * 0.9)


@pytest.mark.both_databases
@pytest.mark.parametrize("learned_first", [False, True])
def test_a_correction_counts_once_whether_the_success_was_learned_before_it_or_not(
    taught: Taught, learned_first: bool
) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.done(f"slow-{number}")
        if learned_first:
            taught.learner.run_once()
    for number in range(len(QUERIES)):
        taught.give(f"slow-{number}", "backend-engineer")
        taught.learner.run_once()

    for topic in ("", "queries"):
        standings = taught.standings()["database-administrator", topic]
        assert (standings.positive, standings.negative, standings.last_success_ms) == (0, 6, None)
        assert standings.performance == pytest.approx(0.5 * 0.9**6)


def test_a_correction_of_what_was_forgotten_counts_as_any_other(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.run_once()
    taught.world.learned.forget(ForgetRequest())

    taught.give("slow", "backend-engineer")
    taught.learner.run_once()

    standings = taught.standings()["database-administrator", "queries"]
    assert (standings.positive, standings.negative) == (0, 1)
    assert standings.performance == pytest.approx(0.45)


def test_what_the_other_one_makes_of_it_has_a_label_of_its_own(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.give("slow", "backend-engineer")
    taught.done("slow")
    taught.learner.run_once()

    assert taught.rules("slow") == [LabelRule.OVERRIDDEN, LabelRule.SUCCEEDED]
    # It was given to them by name: nobody knows what it would have been likest.
    assert taught.standings()["backend-engineer", ""].positive == 1


def test_a_restart_with_the_same_specialist_corrects_nothing(taught: Taught) -> None:
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.learner.run_once()

    taught.give("slow", "database-administrator")
    taught.learner.run_once()

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
    taught.learner.run_once()

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
    taught.learner.run_once()

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
    taught.learner.run_once()

    later = [taught.submit(f"later-{number}", text) for number, text in enumerate(LATER_QUERIES)]

    assert set(later) == {"database-administrator"}


def test_a_correction_fades(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.run_once()
    assert taught.submit("soon", LATER_QUERIES[0]) == "backend-engineer"

    taught.world.now_ms += 900 * DAY_MS

    assert taught.submit("years-later", LATER_QUERIES[0]) == "database-administrator"


def test_what_one_organisation_corrects_is_nothing_to_another(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text, by=ANN)
        taught.give(f"slow-{number}", "backend-engineer", by=ANN)
    taught.learner.run_once()

    assert taught.submit("anns", LATER_QUERIES[0], by=ANN) == "backend-engineer"
    assert taught.submit("bobs", LATER_QUERIES[0], by=BOB) == "database-administrator"
    assert taught.submit("anybodys", LATER_QUERIES[0]) == "database-administrator"
    asked = RouteRequest(instructions=LATER_QUERIES[1])
    assert taught.world.access.as_(ANN)[Routing].route(asked).specialist == "backend-engineer"
    assert taught.world.access.as_(BOB)[Routing].route(asked).specialist == "database-administrator"


def test_where_nobody_was_found_a_correction_finds_somebody(database: Database) -> None:
    taught = Taught(database, card("plumber"), card("generalist"))
    texts = [f"The tap in room {number} drips all night; have it stop." for number in range(5)]
    for number, text in enumerate(texts[:3]):
        assert taught.submit(f"tap-{number}", text) == "generalist"
        taught.give(f"tap-{number}", "plumber")
    taught.learner.run_once()

    assert taught.submit("later", texts[4]) == "plumber"


def test_what_happens_while_learning_is_frozen_is_never_learned(taught: Taught) -> None:
    world = taught.world
    world.database.write(lambda connection: hold_rows.turn_on(connection, FROZEN, None, world.now_ms))
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.run_once()
    world.database.write(lambda connection: hold_rows.turn_off(connection, FROZEN))
    taught.learner.run_once()

    assert taught.standings() == {}
    assert taught.submit("later", LATER_QUERIES[0]) == "database-administrator"
    assert taught.rules("slow-0") == [LabelRule.OVERRIDDEN]


def test_what_was_learned_can_be_forgotten(taught: Taught) -> None:
    for number, text in enumerate(QUERIES):
        taught.submit(f"slow-{number}", text)
        taught.give(f"slow-{number}", "backend-engineer")
    taught.learner.run_once()
    assert taught.submit("soon", LATER_QUERIES[0]) == "backend-engineer"

    world = taught.world
    forgotten = world.database.write(lambda connection: reset(connection, None, "backend-engineer", world.now_ms))

    assert forgotten == len(QUERIES)
    assert taught.submit("later", LATER_QUERIES[0]) == "database-administrator"
    taught.learner.run_once()
    assert taught.submit("latest", LATER_QUERIES[1]) == "database-administrator"


def test_days_without_a_success_count_less_and_less(taught: Taught) -> None:
    with freeze_time("2026-11-20T00:00:00Z") as frozen:
        taught.world.now_ms = present()
        taught.submit("slow", QUERIES[0])
        taught.done("slow")
        taught.learner.run_once()
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
    taught.learner.run_once()
    task_id = taught.world.task("slow").id
    later = taught.world.now_ms + DAY_MS

    assert taught.world.database.write(lambda connection: pruning.tasks(connection, [task_id], later)) == 1

    query = select(LABEL).where(LABEL.c.task_id == task_id)
    assert taught.world.database.read(lambda connection: connection.execute(query).all()) == []
    assert taught.standings()["database-administrator", ""].positive == 1


def test_what_ended_while_frozen_is_not_learned_after(taught: Taught) -> None:
    taught.world.learned.freeze()
    taught.submit("slow", QUERIES[0])
    taught.done("slow")
    taught.world.learned.unfreeze()
    taught.submit("again", QUERIES[1])
    taught.done("again")

    taught.learner.run_once()

    assert taught.standings()["database-administrator", ""].positive == 1


def test_an_organisation_forgets_only_what_it_has_taught(taught: Taught) -> None:
    for number, (by, text) in enumerate(zip((ANN, BOB), QUERIES, strict=False)):
        taught.submit(f"slow-{number}", text, by=by)
        taught.done(f"slow-{number}")
    taught.learner.run_once()

    taught.world.access.as_(ANN)[Routing].forget(ForgetRequest())

    assert taught.world.access.as_(ANN)[Routing].all().standings == ()
    assert len(taught.world.access.as_(BOB)[Routing].all().standings) == 2
    assert {entry.organisation for entry in taught.world.learned.all().standings} == {"bolt"}


@pytest.mark.both_databases
def test_what_a_run_handed_on_is_no_example_of_its_text(database: Database) -> None:
    """Its text is about what was done before: it says nothing for whom such a task is."""
    taught = Taught(database, card("ann"), card("ben"), routing=True)
    for number in range(3):
        name = f"t{number}"
        taught.submit(name, f"Look at export {number} and say what is missing", specialist="ann")
        taught.world.tick(SECOND_MS)
        hand_on(taught.world, "ben", name, left="Document the export button.")
        taught.world.router.route()
        taught.done(name)
    taught.learner.run_once()
    assert [(label.specialist, label.rule) for label in taught.labels("t1")] == [("ben", LabelRule.HANDED_ON)]
    (standing,) = taught.world.learned.all().standings
    assert (standing.specialist, standing.positive) == ("ben", 3)
    assert not database.read(lambda connection: learning_rows.confirmations(connection, "", 9))
    assert not taught.world.learned.labelled().items
