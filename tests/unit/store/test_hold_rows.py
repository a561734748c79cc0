"""Hold rows: what is in force, what is over and tried, and that runs which meet one limit together make one hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, update

from claudomator_py.domain.limits import NEWS_MS, Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows, tick_rows
from claudomator_py.store.database import Database
from claudomator_py.store.hold_rows import LimitHit
from claudomator_py.store.tables import HOLD
from tests.databases import open_migrated

NOW = 1_790_000_000_000
END_MS = 253_402_300_800_000
CLAUDE = Bucket(kind="claude", account="default")
OPUS = Bucket(kind="claude", account="default", family="opus")
WORK = Bucket(kind="claude", account="work")
CODEX = Bucket(kind="codex", account="default")
HOME = Bucket(agent="home")

Found = TypeVar("Found")


class Table:
    """The holds of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, question: Callable[[Connection], Found]) -> Found:
        return self._database.write(question)

    def add(self, until_ms: int | None, **changes: Any) -> Hold:
        hold = held(until_ms, **changes)
        self.ask(lambda connection: hold_rows.add(connection, hold, None))
        return hold

    def meet(self, until_ms: int | None, met_ms: int, run_id: str = "run", **changes: Any) -> LimitHit:
        hold = held(until_ms, **changes)
        return self.ask(lambda connection: hold_rows.record_limit_hit(connection, hold, run_id, met_ms))

    def in_force(self, now_ms: int = NOW) -> list[tuple[str, int | None]]:
        """Label and end of each."""
        result = self.ask(lambda connection: hold_rows.in_force(connection, now_ms))
        return [(hold.bucket.label, hold.until_ms) for hold in result]

    def over(self, now_ms: int = NOW) -> list[tuple[str, int | None]]:
        """Label and end of each."""
        result = self.ask(lambda connection: hold_rows.expired(connection, now_ms))
        return [(hold.bucket.label, hold.until_ms) for hold in result]

    def close(self, hold: Hold, now_ms: int = NOW) -> None:
        self.ask(lambda connection: hold_rows.close(connection, hold, now_ms))

    def release(self, agent: str, family: str | None = None) -> int:
        """How many holds were ended of a claude agent on the default account."""
        return self.ask(
            lambda connection: hold_rows.release(connection, agent, "claude", "default", NOW, family=family)
        )


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with open_migrated(tmp_path) as database:
        yield Table(database)


def held(
    until_ms: int | None,
    *,
    bucket: Bucket = CLAUDE,
    reason: Reason | None = Reason.RATE_LIMITED,
    created_ms: int = NOW - 1_000,
) -> Hold:
    return Hold(bucket, reason, until_ms, Provenance.REPORTED, "five_hour", created_ms)


def test_the_longest_hold_of_each_bucket_is_in_force_the_longest_first(table: Table) -> None:
    for bucket, untils in ((CLAUDE, (NOW + 1, NOW + 9, NOW + 5)), (OPUS, (NOW + 20,)), (HOME, (NOW + 7, None))):
        for until_ms in untils:
            table.add(until_ms, bucket=bucket)
    table.add(NOW, bucket=WORK)
    both = [("home", None), ("claude/default:opus", NOW + 20), ("claude/default", NOW + 9)]
    assert table.in_force() == both
    assert table.in_force(NOW + 9) == both[:2]
    assert table.ask(lambda c: tick_rows.next_times(c, NOW).hold) == NOW + 1
    assert table.ask(lambda c: tick_rows.next_times(c, NOW + 1).hold) == NOW + 5
    assert table.ask(lambda c: tick_rows.next_times(c, NOW + 20).hold) is None


def test_a_limit_is_over_and_tried_once_its_time_has_come_and_nothing_else_holds_the_bucket(table: Table) -> None:
    limit = table.add(NOW)
    assert table.over(NOW - 1) == []
    assert table.over() == [("claude/default", NOW)]
    table.add(NOW + 5)
    assert table.over() == [], "another one holds it still"
    assert table.over(NOW + 5) == [("claude/default", NOW + 5)], "and then it is the later one"
    table.close(limit)
    assert table.over(NOW + 5) == [("claude/default", NOW + 5)], "which the earlier one does not close"
    table.close(held(NOW + 5), NOW + 5)
    assert table.over(NOW + 5) == []


def test_what_is_in_force_and_what_is_over_are_told_apart(table: Table) -> None:
    over, in_force = table.add(NOW), table.add(NOW + 5, bucket=OPUS)
    result = table.ask(lambda connection: hold_rows.in_force_and_expired(connection, NOW))
    assert [[hold.bucket for hold in holds] for holds in result] == [[in_force.bucket], [over.bucket]]


@pytest.mark.parametrize("reason", [Reason.AUTH, Reason.NO_CREDIT, None])
def test_what_a_person_has_to_end_is_not_tried_when_its_time_is_over(table: Table, reason: Reason | None) -> None:
    table.add(NOW, reason=reason)
    assert (table.over(), table.in_force()) == ([], [])


def test_closing_ends_the_limits_of_that_bucket_alone(table: Table) -> None:
    for bucket in (CLAUDE, OPUS, WORK, HOME):
        table.add(NOW, bucket=bucket)
    table.close(held(NOW))
    assert {label for label, _ in table.over()} == {"claude/default:opus", "claude/work", "home"}


def test_runs_that_meet_one_limit_together_make_one_hold_that_is_never_shortened(table: Table) -> None:
    def times() -> tuple[int, int]:
        return table.ask(lambda connection: hold_rows.hits(connection, CLAUDE, NOW))

    first = table.meet(NOW + 100, NOW - 3)
    assert (first.known, first.is_news, times()) == (False, True, (1, NOW - 3))
    shorter = table.meet(NOW + 50, NOW - 2)
    assert (shorter.known, shorter.is_news, shorter.hold.until_ms) == (True, False, NOW + 100)
    assert table.in_force() == [("claude/default", NOW + 100)]
    longer = table.meet(NOW + 101, NOW - 1, "longer")
    assert (longer.known, longer.is_news, longer.hold.until_ms) == (True, False, NOW + 101)
    news = table.meet(NOW + 102 + NEWS_MS, NOW, "news")
    assert (news.known, news.is_news) == (True, True)
    assert table.in_force() == [("claude/default", NOW + 102 + NEWS_MS)]
    (hold,) = table.ask(lambda connection: hold_rows.in_force(connection, NOW))
    assert hold.run_id == "news"
    assert times() == (4, NOW)


def test_of_two_that_end_together_the_one_that_was_known_stays(table: Table) -> None:
    table.meet(NOW + 100, NOW - 3, "first")
    met = table.meet(NOW + 100, NOW - 2, "second", created_ms=NOW - 500)
    assert (met.known, met.is_news, met.hold.created_ms) == (True, False, NOW - 1_000)
    table.add(NOW + 100, reason=Reason.OVERLOADED)
    (hold,) = table.ask(lambda connection: hold_rows.in_force(connection, NOW))
    assert (hold.run_id, hold.created_ms, hold.reason) == ("first", NOW - 1_000, Reason.RATE_LIMITED)


def test_of_several_holds_for_one_reason_the_longest_is_the_one_that_is_met(table: Table) -> None:
    for until_ms in (NOW + 100, NOW + 300, NOW + 200):
        table.add(until_ms)
    met = table.meet(NOW + 250, NOW)
    assert (met.is_news, met.hold.until_ms) == (False, NOW + 300)


def test_a_limit_that_is_met_again_after_its_time_is_a_new_hold_that_goes_on_counting(table: Table) -> None:
    table.meet(NOW - 500, NOW - 900)
    again = table.meet(NOW + 100, NOW, created_ms=NOW)
    assert (again.known, again.is_news, again.hold.until_ms) == (True, True, NOW + 100)
    assert table.ask(lambda connection: hold_rows.hits(connection, CLAUDE, NOW)) == (2, NOW)
    third = table.meet(NOW + 300, NOW + 150, created_ms=NOW + 150)
    assert (third.known, third.hold.until_ms) == (True, NOW + 300)
    assert table.ask(lambda connection: hold_rows.hits(connection, CLAUDE, NOW + 150)) == (3, NOW + 150)
    table.release("claude")
    anew = table.meet(NOW + 200, NOW + 1, created_ms=NOW + 1)
    assert (anew.known, anew.is_news) == (False, True), "it was released, so nobody knew"


@pytest.mark.parametrize(
    "other", [{"bucket": OPUS}, {"bucket": WORK}, {"bucket": HOME}, {"reason": Reason.NO_CREDIT}, {"reason": None}]
)
def test_holds_of_another_bucket_or_for_another_reason_stand_beside_it(table: Table, other: dict[str, Any]) -> None:
    table.add(NOW + 500, **other)
    met = table.meet(NOW + 100, NOW)
    assert (met.known, met.is_news, met.hold.until_ms) == (False, True, NOW + 100)
    counted = 2 if other == {"reason": Reason.NO_CREDIT} else 1
    assert table.ask(lambda connection: hold_rows.hits(connection, CLAUDE, NOW))[0] == counted


def test_what_runs_have_met_is_not_counted_for_an_operators_hold_nor_past_its_time(table: Table) -> None:
    table.add(None, reason=None)
    table.add(NOW)
    assert table.ask(lambda connection: hold_rows.hits(connection, CLAUDE, NOW)) == (0, 0)


def test_the_newest_hold_that_no_operator_has_put_there_is_the_latest_whatever_became_of_it(table: Table) -> None:
    def latest(bucket: Bucket) -> int | None:
        hold = table.ask(lambda connection: hold_rows.latest(connection, bucket))
        return None if hold is None else hold.until_ms

    assert table.ask(lambda connection: hold_rows.latest(connection, CLAUDE)) is None
    table.add(NOW + 100)
    table.add(NOW - 100, reason=Reason.OVERLOADED)
    table.add(NOW + 300, reason=None)
    table.add(NOW + 400, bucket=OPUS)
    assert (latest(CLAUDE), latest(OPUS)) == (NOW - 100, NOW + 400)
    table.release("claude")
    assert latest(CLAUDE) == NOW - 100


def test_releasing_ends_what_the_agent_draws_on_in_force_or_being_tried(table: Table) -> None:
    for bucket, until_ms in ((CLAUDE, NOW + 1), (OPUS, None), (HOME, NOW), (WORK, None), (CODEX, None)):
        table.add(until_ms, bucket=bucket)
    table.add(NOW, reason=Reason.AUTH)
    assert table.release("home", family="sonnet") == 0
    assert table.release("home", family="opus") == 1
    assert {label for label, _ in table.in_force()} == {"claude/default", "claude/work", "codex/default"}
    assert table.release("home") == 2, "and what was over by itself is not counted"
    assert {label for label, _ in table.in_force()} == {"claude/work", "codex/default"}
    assert table.over() == []
    assert table.release("home") == 0
    table.add(None, bucket=OPUS)
    assert table.release("home") == 1, "of every family, if none is named"


def test_a_hold_of_an_operator_comes_back_without_a_reason(table: Table) -> None:
    table.add(None, reason=None)
    (hold,) = table.ask(lambda connection: hold_rows.in_force(connection, NOW))
    assert hold == held(None, reason=None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"until_ms": END_MS - 1, "created_ms": 0}, {"until_ms": END_MS - 1, "created_ms": 0}),
        ({"until_ms": END_MS}, {"until_ms": None}),
        ({"created_ms": -1}, {"created_ms": 0}),
        ({"reason": "boredom"}, {"reason": None}),
        ({"provenance": "rumour"}, {"provenance": Provenance.OPERATOR}),
    ],
)
def test_a_hold_of_which_something_cannot_be_read_lasts(
    table: Table, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    hold = table.add(NOW + 500)
    table.ask(lambda connection: connection.execute(update(HOLD).values(changes)))
    assert table.ask(lambda connection: hold_rows.in_force(connection, NOW)) == [replace(hold, **expected)]


def test_a_hold_comes_back_as_it_was_with_long_words_cut(table: Table) -> None:
    whole = Hold(OPUS, Reason.AUTH, None, Provenance.ESTIMATED, "s" * 600, NOW, "w" * 200, None, NOW + 5)
    table.ask(lambda connection: hold_rows.add(connection, whole, "run"))
    (hold,) = table.ask(lambda connection: hold_rows.in_force(connection, NOW))
    assert hold == Hold(OPUS, Reason.AUTH, None, Provenance.ESTIMATED, "s" * 500, NOW, "w" * 100, "run", NOW + 5)


def test_a_switch_is_turned_on_once_and_keeps_its_time_and_reason(table: Table) -> None:
    def turn_on(reason: str, now_ms: int) -> bool:
        return table.ask(lambda connection: hold_rows.turn_on(connection, hold_rows.DRAIN, reason, now_ms))

    assert turn_on("a new disk", NOW)
    assert not turn_on("a new roof", NOW + 1)
    switch = table.ask(lambda connection: hold_rows.find_switch(connection, hold_rows.DRAIN))
    assert switch is not None
    assert (switch.since_ms, switch.reason) == (NOW, "a new disk")
    assert table.ask(lambda connection: hold_rows.turn_off(connection, hold_rows.DRAIN))
    assert not table.ask(lambda connection: hold_rows.turn_off(connection, hold_rows.DRAIN))
