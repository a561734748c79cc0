"""How many runs may begin on a bucket whose limit is over, or is tried before that: read from rows alone."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from claudomator_py.dispatch.agent_states import begun_since, begun_under, close_ramped, note_answer, probed, tries
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.limits import MAX_TRY_MS, Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from tests.fakes.agents import CLAUDE
from tests.fakes.world import START_MS, World

ACCOUNT = Bucket(kind="claude", account="default")
OPUS = Bucket(kind="claude", account="default", family="opus")
RESET_MS = START_MS + 60_000
"""When the limit of most of these tests is over."""


class Bench:
    """A database, and runs and holds in it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._numbers = itertools.count(1)
        self._world = World(database)

    def run(self, started_ms: int, *, live: bool = True, answered: bool = False, **fields: Any) -> Run:
        """A run of a task of its own, on claude unless its fields say otherwise."""
        number = next(self._numbers)
        task_id = self._world.submit(f"t{number}").id
        usual: dict[str, Any] = {"agent": "claude", "kind": "claude", "account": "default", "model": "sonnet"}
        run = Run(
            id=f"run-{number}",
            task_id=task_id,
            generation=1,
            attempt=1,
            seq=1,
            revision=1,
            dir_key="",
            state="started",
            live=live,
            started_ms=started_ms,
            answered_ms=started_ms if answered else None,
            **(usual | fields),
        )
        self.database.write(lambda connection: run_rows.add(connection, run))
        return run

    def hold(self, until_ms: int | None = RESET_MS, bucket: Bucket = ACCOUNT, created_ms: int = START_MS) -> Hold:
        hold = Hold(bucket, Reason.RATE_LIMITED, until_ms, Provenance.REPORTED, "five_hour", created_ms)
        self.database.write(lambda connection: hold_rows.add(connection, hold, None))
        return hold

    def room(self, live: Sequence[Run], now_ms: int = RESET_MS) -> dict[str, tuple[int, int]]:
        """By bucket, how many may live at once, and how many more may begin."""
        probeds = self.database.read(lambda connection: probed(connection, live, now_ms))
        return {probed.hold.bucket.label: (probed.allowed, probed.room) for probed in probeds}

    def close(self, *agents: AgentSpec, now_ms: int = RESET_MS) -> bool:
        """Whether the care is over after a look at it."""
        self.database.write(lambda connection: close_ramped(connection, agents, now_ms))
        return not self.room((), now_ms)


@pytest.fixture
def bench(database: Database) -> Bench:
    return Bench(database)


def test_after_the_reset_there_is_room_for_one_and_for_twice_as_many_with_each_answer(bench: Bench) -> None:
    assert bench.room(()) == {}, "nothing was limited"
    bench.hold()
    assert bench.room((), RESET_MS - 1) == {}, "it is in force"
    assert bench.room(()) == {"claude/default": (1, 1)}
    live = [bench.run(RESET_MS)]
    assert bench.room(live) == {"claude/default": (1, 0)}
    for answered in (1, 2, 3):
        bench.run(RESET_MS, live=False, answered=True)
        assert bench.room(live) == {"claude/default": (2**answered, 2**answered - 1)}
    assert bench.room((), RESET_MS + 60_000) == {"claude/default": (8, 8)}, "what has answered since, not just now"
    many = [*live, *(bench.run(RESET_MS) for _ in range(9))]
    assert bench.room(many) == {"claude/default": (8, 0)}, "never less than none"


@pytest.mark.parametrize(
    ("started_ms", "fields", "counts"),
    [
        (RESET_MS, {}, True),
        (RESET_MS + 1, {"agent": "work"}, True),
        (RESET_MS - 1, {}, False),
        (RESET_MS, {"account": "other"}, False),
        (RESET_MS, {"kind": "codex", "agent": "codex"}, False),
    ],
)
def test_only_what_began_on_the_bucket_since_its_reset_takes_room_or_makes_it(
    bench: Bench, started_ms: int, fields: dict[str, Any], counts: bool
) -> None:
    bench.hold()
    assert bench.room([bench.run(started_ms, **fields)]) == {"claude/default": (1, 0 if counts else 1)}
    bench.run(started_ms, live=False, answered=True, **fields)
    assert bench.room(()) == {"claude/default": (2, 2) if counts else (1, 1)}


@pytest.mark.parametrize(("began_ms", "room"), [(RESET_MS, 1), (RESET_MS - 1, 2)])
def test_a_run_that_has_answered_takes_room_if_it_began_with_the_reset_or_later(
    bench: Bench, began_ms: int, room: int
) -> None:
    bench.hold()
    bench.run(RESET_MS, live=False, answered=True)
    live = bench.run(began_ms)
    live.answered_ms = RESET_MS
    assert bench.room([live]) == {"claude/default": (2, room)}


def test_a_run_began_under_a_hold_if_that_was_there_before_it_and_since_it_once_its_time_was_over(bench: Bench) -> None:
    hold = bench.hold()
    began = [START_MS, START_MS + 1, RESET_MS - 1, RESET_MS]
    runs = [bench.run(started_ms) for started_ms in began]
    assert [begun_under(hold, run) for run in runs] == [False, True, True, True]
    assert [begun_since(hold, run) for run in runs] == [False, False, False, True]
    other = bench.run(RESET_MS, account="other")
    assert not begun_under(hold, other)
    assert not begun_since(hold, other)
    forever = bench.hold(None)
    assert not begun_since(forever, runs[-1])


def test_who_went_first_after_an_earlier_limit_still_takes_the_room_after_the_next(bench: Bench) -> None:
    """The bucket was limited, tried by one, and limited once more before that one has answered."""
    bench.hold()
    first = bench.run(RESET_MS)
    again_ms = RESET_MS + 60_000
    bench.hold(until_ms=again_ms, created_ms=RESET_MS + 1)

    assert bench.room([first], again_ms) == {"claude/default": (1, 0)}
    assert bench.room([], again_ms) == {"claude/default": (1, 1)}, "it has ended"
    first.answered_ms = again_ms
    assert bench.room([first], again_ms) == {"claude/default": (1, 1)}, "it has answered"
    second = bench.run(again_ms)
    assert bench.room([first, second], again_ms) == {"claude/default": (1, 0)}


def test_room_on_a_family_is_that_of_its_models(bench: Bench) -> None:
    bench.hold(bucket=OPUS)
    live = [bench.run(RESET_MS, model="sonnet"), bench.run(RESET_MS, model="claude-opus-5")]
    bench.run(RESET_MS, live=False, answered=True, model="sonnet")
    assert bench.room(live[:1]) == {"claude/default:opus": (1, 1)}
    assert bench.room(live) == {"claude/default:opus": (1, 0)}


def test_care_ends_once_as_many_may_live_as_the_agents_of_the_bucket_have_slots(bench: Bench) -> None:
    three, agent_spec, other = (
        CLAUDE.model_copy(update={"name": name, "max_concurrent": slots, "account": account})
        for name, slots, account in (("a", 3, "default"), ("b", 1, "default"), ("c", 90, "other"))
    )
    bench.hold()
    bench.run(RESET_MS, live=False, answered=True)
    assert not bench.close(three, agent_spec, other), "two may live, of four slots"
    bench.run(RESET_MS, live=False, answered=True)
    assert not bench.close(three, agent_spec, agent_spec, other)
    assert bench.close(three, agent_spec, other), "four may, and the slots of another account do not matter"


def test_an_answer_makes_room_and_ends_the_care_only_for_a_run_that_lives(bench: Bench) -> None:
    bench.hold()
    ended, living = bench.run(RESET_MS, live=False), bench.run(RESET_MS)
    two = CLAUDE.model_copy(update={"max_concurrent": 2})
    for run, open_ in ((ended, True), (living, False)):
        bench.database.write(partial(note_answer, run=run, agents=[two], now_ms=RESET_MS))
        assert bool(bench.room(())) == open_


def test_a_limited_bucket_is_tried_by_one_at_a_time_ever_less_often_and_by_more_after_an_answer(bench: Bench) -> None:
    def left(now_ms: int, *live: Run) -> dict[str, int]:
        def read(connection: Connection) -> dict[str, int]:
            results = tries(connection, live, hold_rows.in_force(connection, now_ms), now_ms)
            return {bucket.label: number for bucket, number in results.items()}

        return bench.database.read(read)

    def meet(met_ms: int) -> None:
        hold = Hold(ACCOUNT, Reason.RATE_LIMITED, START_MS + 10**9, Provenance.REPORTED, "five_hour", met_ms)
        bench.database.write(lambda connection: hold_rows.record_limit_hit(connection, hold, "run", met_ms))

    assert left(START_MS) == {}
    meet(START_MS)
    assert left(START_MS) == {"claude/default": 1}, "after the first time at once"
    before, since = bench.run(START_MS - 1), bench.run(START_MS)
    elsewhere = bench.run(START_MS, kind="codex", agent="codex")
    assert left(START_MS, before, elsewhere) == {"claude/default": 1}
    assert left(START_MS, since) == {"claude/default": 0}
    pauses_ms = [1_000, 2_000, 4_000]
    met_ms = START_MS
    for pause_ms in pauses_ms:
        met_ms += 1
        meet(met_ms)
        assert left(met_ms + pause_ms - 1) == {"claude/default": 0}
        assert left(met_ms + pause_ms) == {"claude/default": 1}
    bench.run(met_ms, live=False, answered=True, kind="codex", agent="codex")
    assert left(met_ms) == {"claude/default": 0}
    bench.run(met_ms, live=False, answered=True)
    assert left(met_ms) == {"claude/default": 2}, "an answer ends the pause, too"
    for _ in range(30):
        met_ms += 1
        meet(met_ms)
    assert left(met_ms + MAX_TRY_MS) == {"claude/default": 1}


def test_what_an_operator_holds_is_not_tried(bench: Bench) -> None:
    hold = Hold(ACCOUNT, None, None, Provenance.OPERATOR, "by hand", START_MS)
    bench.database.write(lambda connection: hold_rows.add(connection, hold, None))
    assert bench.database.read(lambda c: tries(c, (), hold_rows.in_force(c, START_MS), START_MS)) == {}
