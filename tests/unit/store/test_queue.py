"""The queue: which task of a lane comes first, where it may begin, what is due, and when something is next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, insert, select

from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.routing import Constraints, RuleCap
from claudomator_py.scheduler.lanes import Demand
from claudomator_py.scheduler.load import Shut, Taken
from claudomator_py.store import queue, reads, tick_rows
from claudomator_py.store.database import Database
from claudomator_py.store.stored_json import read_json
from claudomator_py.store.tables import TASK, TASK_DEPENDENCY, TASK_REVISION
from claudomator_py.store.tables.tasks import MAX_DEMAND
from tests.databases import open_migrated

NOW = 1_790_000_000_000
ANN = Principal("ann", Role.OPERATE, "acme")
CAPPED = Constraints(caps=(RuleCap(rule="few", most=2),)).text

Found = TypeVar("Found")


class Queue:
    """The tasks of one database. Their ids are their names, and their lane is named by their eligibility."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, question: Callable[[Connection], Found]) -> Found:
        return self._database.write(question)

    def put(self, name: str, lane: str = "a", **columns: Any) -> None:
        usual = {
            "id": name,
            "name": name,
            "state": "QUEUED",
            "priority": 0,
            "rank_ms": 1,
            "eligibility": lane,
            "dir_key": f"/{name}",
            "tags": [],
            "source": "api",
            "created_ms": 1,
            "updated_ms": 1,
        }
        content = {"task_id": name, "content_hash": "", "dir_key": "", "created_ms": 1}

        def write(connection: Connection) -> None:
            connection.execute(insert(TASK).values(usual | columns))
            for revision in (1, 2):
                values = content | {"revision": revision, "spec": {"name": f"{name} {revision}"}}
                connection.execute(insert(TASK_REVISION).values(values))

        self.ask(write)

    def depend(self, name: str, **on: str | None) -> None:
        """on: by name, the task to which it is bound."""
        rows = [{"task_id": name, "name": entry, "depends_on_id": bound} for entry, bound in on.items()]
        self.ask(lambda connection: connection.execute(insert(TASK_DEPENDENCY), rows) and None)

    def demands(self, *without_hints: str) -> list[Demand]:
        return self.ask(lambda connection: queue.demands(connection, without_hints))

    def lanes(self, taken: Taken = Taken(), *without_hints: str, **shut: Any) -> set[str]:  # noqa: B008 - it cannot be changed
        results: list[str] = []
        for demand in self.demands(*without_hints):
            results += self.ask(partial(queue.lanes, demand=demand, taken=taken, shut=Shut(**shut)))
        assert len(results) == len(set(results))
        return {lane.partition("|")[0] for lane in results}

    def first(self, demand: Demand, limit: int, after: queue.Position = queue.FRONT) -> list[str]:
        places = self.ask(lambda connection: queue.next_places(connection, demand, limit, after))
        return [place.position[-1] for place in places]

    def heads(self, *lanes: str, taken: Taken = Taken(), **changes: Any) -> list[str]:  # noqa: B008 - see above
        wanted = [f"{lane}|||||" for lane in lanes or ("a",)]
        if "queued_by" in changes:
            changes["queued_by"] = {f"{lane}|||||": by for lane, by in changes["queued_by"].items()}
        results = self.ask(lambda connection: queue.heads(connection, wanted, taken, **changes))
        assert {lane: task.lane for lane, (task, _) in results.items()} == {lane: lane for lane in results}
        return [task.id for task, _ in results.values()]

    def column(self, name: str) -> Mapping[str, Any]:
        rows = self.ask(lambda connection: connection.execute(select(TASK.c.id, TASK.c[name])).all())
        return {row.id: row[1] for row in rows}


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[Queue]:
    with open_migrated(tmp_path) as database:
        yield Queue(database)


# --- lanes ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def places(tasks: Queue) -> Queue:
    """Lanes a, b and c: of two hints, in three directories, of which /x is in two lanes."""
    tasks.put("a1", "a", dir_key="/x")
    tasks.put("a2", "a", dir_key="/x", rank_ms=0)
    tasks.put("a3", "a", dir_key="/y")
    tasks.put("b1", "b", dir_key="/x")
    tasks.put("c1", "c", dir_key="/z", hint="claude")
    tasks.put("d1", "d", dir_key="/z", state="WAITING")
    return tasks


@pytest.mark.parametrize(
    ("taken", "shut", "lanes"),
    [
        (set(), (), {"a", "b", "c"}),
        ({"/x"}, (), {"a", "c"}),
        ({"/y"}, (), {"a", "b", "c"}),
        ({"/x", "/y"}, (), {"c"}),
        ({"/z"}, (), {"a", "b"}),
        ({"/x", "/y", "/z"}, (), set()),
        (set(), ("claude",), {"a", "b"}),
        (set(), ("",), {"c"}),
        ({"/x"}, ("claude",), {"a"}),
        (set(), ("", "claude"), set()),
    ],
)
def test_a_lane_is_open_as_long_as_one_of_its_directories_is_free_and_its_hint_is_not_shut(
    places: Queue, taken: set[str], shut: tuple[str, ...], lanes: set[str]
) -> None:
    assert places.lanes(Taken(dir_keys=frozenset(taken)), *shut) == lanes


def test_so_is_the_lane_of_the_task_for_which_a_directory_is_kept(places: Queue) -> None:
    for keeper, opened in (("b1", {"b"}), ("d1", set())):
        taken = Taken(dir_keys=frozenset({"/x"}), keepers=frozenset({keeper}))
        assert places.lanes(taken) == {"a", "c"} | opened


def test_without_tasks_there_are_no_lanes(tasks: Queue) -> None:
    assert tasks.lanes() == set()
    assert tasks.ask(queue.all_lanes) == []


def test_those_of_tenants_that_are_left_out_are_not_read(tasks: Queue) -> None:
    for name, columns in {"own": {}, "ann": {"creator": "ann"}, "acme": {"organisation": "acme"}}.items():
        for hint in ("a", "b"):
            tasks.put(f"{name}-{hint}", f"{name}-{hint}", hint=hint, **columns)
    assert tasks.lanes(tenants=frozenset({"org:acme"})) == {"own-a", "own-b", "ann-a", "ann-b"}
    assert tasks.lanes(tenants=frozenset({"", "by:ann"})) == {"acme-a", "acme-b"}
    assert tasks.lanes(newcomers=True) == {"own-a", "own-b"}
    assert tasks.lanes(Taken(), "a", newcomers=True) == {"own-b"}
    assert len(tasks.ask(queue.all_lanes)) == 6


# --- demands --------------------------------------------------------------------------------------------------------


def test_what_is_demanded_is_known_once_each(tasks: Queue) -> None:
    few, long = Constraints(agents=("a",)).text, Constraints(agents=("a" * MAX_DEMAND,)).text
    for number, (hint, constraints) in enumerate(
        [("x", None), ("x", None), ("x", few), ("y", few), ("y", long), ("z", None)]
    ):
        tasks.put(f"t{number}", f"lane-{number}", hint=hint, constraints=constraints)
    tasks.put("waiting", state="WAITING", hint="elsewhere")
    assert set(tasks.demands()) == {
        *(Demand("x", ""), Demand("x", few), Demand("y", few), Demand("y", "-"), Demand("z", ""))
    }
    assert len(tasks.demands()) == 5
    assert set(tasks.demands("x", "z")) == {Demand("y", few), Demand("y", "-")}
    assert tasks.demands("x", "y", "z") == []


def test_the_first_of_a_demand_are_read_in_the_order_of_the_queue(tasks: Queue) -> None:
    tasks.put("second", "a", hint="x", rank_ms=2, created_ms=5, thread="begun", dir_key="/s", creator="ann")
    tasks.put("first", "b", hint="x", rank_ms=1, created_ms=9)
    tasks.put("third", "a", hint="x", rank_ms=2, created_ms=6)
    tasks.put("elsewhere", "c", hint="y", rank_ms=0)
    tasks.put("routed", "d", hint="x", rank_ms=0, constraints="{}")
    demand = Demand("x", "")
    assert tasks.first(demand, 9) == ["first", "second", "third"]
    assert tasks.first(demand, 2) == ["first", "second"]
    assert tasks.first(demand, 2, (2, 5, "second")) == ["third"]
    (place,) = tasks.ask(lambda connection: queue.next_places(connection, demand, 1, (1, 9, "first")))
    assert place == queue.QueuePlace((2, 5, "second"), "a||||||by:ann", "by:ann", "/s", "begun")


def test_the_first_places_are_those_of_all_that_are_queued(tasks: Queue) -> None:
    assert tasks.ask(partial(queue.number, most=9)) == 0
    for name, lane, columns in [("b", "x", {"rank_ms": 2}), ("a", "y", {"rank_ms": 1}), ("c", "x", {"rank_ms": 3})]:
        tasks.put(name, lane, **columns)
    tasks.put("waits", "x", rank_ms=0, state="WAITING")
    tasks.put("runs", "x", rank_ms=0, state="RUNNING")
    for limit, names in [(9, ["a", "b", "c"]), (2, ["a", "b"])]:
        assert tasks.ask(partial(queue.number, most=limit)) == len(names)
        places = tasks.ask(partial(queue.first_places, limit=limit))
        assert [place.position[-1] for place in places] == names


# --- heads ----------------------------------------------------------------------------------------------------------


def test_the_head_of_a_lane_is_first_by_rank_then_age_then_id(tasks: Queue) -> None:
    tasks.put("later", rank_ms=2, created_ms=0)
    tasks.put("younger", created_ms=2)
    tasks.put("second")
    tasks.put("first")
    tasks.put("other", "b", rank_ms=0)
    tasks.put("running", state="RUNNING", rank_ms=0)
    order = ["first", "second", "younger", "later"]
    positions = tasks.ask(lambda connection: queue.first(connection, "a|||||", 9))
    assert [name for _, _, name in positions] == order
    assert positions[3] == (2, 0, "later")
    assert tasks.ask(lambda connection: queue.first(connection, "a|||||", 2)) == positions[:2]
    for place, name in enumerate(order):
        assert tasks.heads(without=order[:place]) == [name]
        assert tasks.heads(after=positions[place]) == order[place + 1 :][:1]
    assert tasks.heads("a", "b", "c") == ["other", "first"]
    result = tasks.ask(lambda connection: queue.contents(connection, ["later", "first"]))
    assert [queue.position(task) for task, _ in result] == [positions[0], positions[3]]


@pytest.mark.parametrize(
    ("taken", "head"),
    [
        (Taken(), "a"),
        (Taken(dir_keys=frozenset({"/a"})), "b"),
        (Taken(dir_keys=frozenset({"/a"}), keepers=frozenset({"a"})), "a"),
        (Taken(threads=frozenset({"a"})), "b"),
        (Taken(threads=frozenset({"a"}), in_turn=frozenset({"a"})), "a"),
        (Taken(dir_keys=frozenset({"/a"}), threads=frozenset({"talk"})), "c"),
        (Taken(dir_keys=frozenset({"/a"}), threads=frozenset({"talk"}), in_turn=frozenset({"b"})), "b"),
    ],
)
def test_where_a_place_is_taken_the_next_is_the_head(tasks: Queue, taken: Taken, head: str) -> None:
    for name, thread in (("a", None), ("b", "talk"), ("c", None)):
        tasks.put(name, thread=thread)
    assert tasks.heads(taken=taken) == [head]


def test_of_a_lane_that_waits_only_those_count_who_have_waited_long_enough(tasks: Queue) -> None:
    tasks.put("new", updated_ms=11)
    tasks.put("old", updated_ms=10, rank_ms=2)
    tasks.put("other", "b", updated_ms=11)
    assert tasks.heads(queued_by={"a": 11}) == ["new"]
    assert tasks.heads("a", "b", queued_by={"a": 10}) == ["other", "old"]
    assert tasks.heads(queued_by={"a": 9}) == []
    assert tasks.heads(queued_by={"a": 10}, after=(2, 1, "old")) == []


def test_of_those_of_a_lane_that_wait_the_first_to_have_waited_is_known(tasks: Queue) -> None:
    for name, rank, queued in (("first", 0, 15), ("a", 1, 14), ("b", 2, 11), ("c", 2, 13), ("old", 3, 10)):
        tasks.put(name, rank_ms=rank, updated_ms=queued)
    tasks.put("other", "b", updated_ms=11)

    def since(after: str, taken: Taken = Taken(), *without: str) -> int | None:  # noqa: B008 - it cannot be changed
        position = tasks.column("rank_ms")[after], 1, after
        asked = partial(queue.waiting_since, lane="a|||||", taken=taken, after=position, without=without)
        return tasks.ask(partial(asked, queued_after=10))

    assert (since("first"), since("b"), since("c")) == (11, 13, None)
    assert since("first", Taken(), "b") == 13
    assert since("first", Taken(dir_keys=frozenset({"/b", "/c"}))) == 14


def test_a_task_comes_with_the_content_of_its_revision(tasks: Queue) -> None:
    tasks.put("t", revision=2)
    tasks.put("u")
    result = tasks.ask(lambda connection: queue.contents(connection, ["t", "u", "gone"]))
    assert [(task.id, read_json(spec)) for task, spec in result] == [("t", {"name": "t 2"}), ("u", {"name": "u 1"})]


def test_many_tasks_are_found_by_one_statement_after_another(tasks: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_BATCH_SIZE", 2)
    names = [f"t{number}" for number in range(5)]
    for name in names:
        tasks.put(name)
    assert [task.id for task, _ in tasks.ask(lambda connection: queue.contents(connection, names[::-1]))] == names


# --- routing --------------------------------------------------------------------------------------------------------


def test_who_does_a_task_is_decided_once_and_again_when_it_is_asked_for(tasks: Queue) -> None:
    tasks.put("a")
    tasks.put("b", rank_ms=0)
    tasks.put("c", rank_ms=2)
    tasks.put("held", state="NEEDS_INPUT")
    tasks.put("runs", state="RUNNING", constraints="{}")

    def unrouted(limit: int = 9, without: Sequence[str] = ()) -> list[str]:
        return [task.id for task, _ in tasks.ask(lambda connection: queue.unrouted(connection, limit, without))]

    assert (unrouted(), unrouted(2)) == (["b", "a", "c"], ["b", "a"])
    assert (unrouted(1, ["b"]), unrouted(2, ["b", "held"])) == (["a"], ["a", "c"])
    tasks.ask(lambda connection: queue.pass_routing(connection, {"a": 1, "b": 1, "c": 2, "held": 1}))
    assert unrouted() == ["c"]
    assert tasks.column("constraints") == {"a": "{}", "b": "{}", "c": None, "held": None, "runs": "{}"}
    assert set(tasks.column("version").values()) == {1}, "what was planned of them stays planned"

    assert tasks.ask(lambda connection: queue.route_again(connection, ["a", "c", "runs"])) == 1
    assert unrouted() == ["a", "c"]
    assert tasks.ask(queue.route_again) == 1
    assert unrouted() == ["b", "a", "c"]
    assert tasks.column("version") == {"a": 2, "b": 2, "c": 1, "held": 1, "runs": 1}


def test_what_runs_is_counted_by_the_rules_that_limit_it(tasks: Queue) -> None:
    for name, state, constraints in (
        ("a", "RUNNING", CAPPED),
        ("b", "RUNNING", CAPPED),
        ("c", "RUNNING", "{}"),
        ("d", "RUNNING", None),
        ("e", "QUEUED", CAPPED),
    ):
        tasks.put(name, state=state, constraints=constraints)
    assert tasks.ask(queue.caps_in_use) == {"few": 2}


# --- time -----------------------------------------------------------------------------------------------------------


def test_a_task_is_due_when_its_time_has_come(tasks: Queue) -> None:
    for name, state, until_ms in (
        ("past", "WAITING", NOW - 1),
        ("now", "WAITING", NOW),
        ("future", "WAITING", NOW + 1),
        ("never", "WAITING", None),
        ("asks", "NEEDS_INPUT", NOW),
        ("asks on", "NEEDS_INPUT", NOW + 2),
        ("queued", "QUEUED", NOW),
    ):
        tasks.put(name, state=state, until_ms=until_ms)
    due = tasks.ask(lambda connection: tick_rows.due(connection, NOW, 9))
    assert [task.id for task in due] == ["past", "now", "asks"]
    assert [task.id for task in tasks.ask(lambda connection: tick_rows.due(connection, NOW, 1))] == ["past", "asks"]
    next_times = tasks.ask(lambda connection: tick_rows.next_times(connection, NOW))
    assert next_times == (NOW - 1, NOW, None, None, None)


def test_a_directory_is_kept_until_its_time_is_over_for_a_task_that_has_not_ended(tasks: Queue) -> None:
    for name, state, until_ms, dir_key in (
        ("b", "NEEDS_INPUT", NOW + 2, "/x"),
        ("a", "WAITING", NOW + 3, "/x"),
        ("c", "QUEUED", NOW + 1, "/w"),
        ("over", "NEEDS_INPUT", NOW, "/y"),
        ("running", "RUNNING", NOW + 1, "/y"),
        ("ended", "COMPLETED", NOW + 1, "/y"),
        ("scratch", "NEEDS_INPUT", NOW + 4, ""),
    ):
        tasks.put(name, state=state, kept_until_ms=until_ms, dir_key=dir_key)
    assert tasks.ask(lambda connection: tick_rows.kept(connection, NOW)) == [
        {"dir_key": "/w", "task_id": "c", "name": "c", "until": NOW + 1},
        {"dir_key": "/x", "task_id": "a", "name": "a", "until": NOW + 3},
        {"dir_key": "/x", "task_id": "b", "name": "b", "until": NOW + 2},
    ]
    assert tasks.ask(lambda connection: tick_rows.next_times(connection, NOW)).kept == NOW + 1


# --- threads, dependencies, counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks_", "turns"),
    [
        # The first that has begun goes on, whichever of the thread it is.
        ({"a": {"seq": 1}, "b": {"seq": 1, "thread": "a"}}, {"a": "a"}),
        ({"a": {"seq": 1, "rank_ms": 2}, "b": {"seq": 1, "thread": "a"}}, {"a": "b"}),
        ({"a": {}, "b": {"seq": 1, "thread": "a"}}, {"a": "b"}),
        ({"a": {"state": "COMPLETED", "seq": 1}, "b": {"seq": 1, "thread": "a"}}, {"a": "b"}),
        # Nobody has a turn who has not begun, runs, or is in no thread with another.
        ({"a": {"state": "COMPLETED", "seq": 1}, "b": {"thread": "a"}}, {}),
        ({"a": {"state": "RUNNING", "seq": 1}, "b": {"thread": "a"}}, {}),
        ({"a": {"seq": 1}, "b": {"seq": 1}}, {}),
        ({"a": {"seq": 1}, "b": {"thread": "a", "state": "FAILED"}}, {}),
        ({"a": {"seq": 1}, "b": {"thread": "a"}}, {"a": "a"}),
        # Who waits for a person or a time has it all the same, but not who waits for another task.
        ({"a": {"seq": 1, "state": "NEEDS_INPUT"}, "b": {"thread": "a"}}, {"a": "a"}),
        ({"a": {"seq": 1, "state": "WAITING", "reason": "backoff"}, "b": {"thread": "a"}}, {"a": "a"}),
        ({"a": {"seq": 1, "state": "WAITING", "reason": "dependency"}, "b": {"thread": "a"}}, {}),
        ({"a": {"seq": 1, "reason": "dependency"}, "b": {"thread": "a"}}, {"a": "a"}),
    ],
)
def test_of_a_thread_the_task_that_has_begun_has_the_turn(
    tasks: Queue, tasks_: dict[str, dict[str, Any]], turns: dict[str, str]
) -> None:
    for name, columns in tasks_.items():
        tasks.put(name, **columns)
    assert tasks.ask(tick_rows.in_turn) == turns


def test_who_waits_for_what_has_ended_is_found(tasks: Queue) -> None:
    for name, state in (("done", "COMPLETED"), ("failed", "FAILED"), ("gone", "CANCELLED"), ("open", "QUEUED")):
        tasks.put(name, state=state)
    waiting: dict[str, dict[str, str | None]] = {
        "all done": {"done": "done"},
        "one failed": {"failed": "failed", "open": "open"},
        "one cancelled": {"gone": "gone", "unbound": None},
        "one open": {"done": "done", "open": "open"},
        "one unbound": {"done": "done", "unbound": None},
        "queued": {"done": "done"},
        "backs off": {"done": "done"},
    }
    for name, on in waiting.items():
        state, reason = ("QUEUED", None) if name == "queued" else ("WAITING", "dependency")
        tasks.put(name, state=state, reason="backoff" if name == "backs off" else reason)
        tasks.depend(name, **on)
    result = tasks.ask(lambda connection: tick_rows.waiting_on_ended(connection, 9))
    assert {task.id for task in result} == {"all done", "one failed", "one cancelled"}
    assert len(tasks.ask(lambda connection: tick_rows.waiting_on_ended(connection, 2))) == 2


def test_what_runs_and_of_what_something_was_asked(tasks: Queue) -> None:
    tasks.put("queued")
    tasks.put("runs", state="RUNNING")
    tasks.put("to end", state="RUNNING", cancel_requested_ms=NOW)
    tasks.put("to begin again", restart_requested={})
    assert {task.id for task in tasks.ask(tick_rows.running)} == {"runs", "to end"}
    assert {task.id for task in tasks.ask(tick_rows.with_intent)} == {"to end", "to begin again"}


def test_tasks_are_counted_by_state_for_those_who_see_them(tasks: Queue) -> None:
    states = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "FAILED", "CANCELLED", "COMPLETED", "COMPLETED")
    for number, state in enumerate(states):
        tasks.put(f"t{number}", state=state)
    assert tasks.ask(lambda connection: reads.counts(connection, ANN)) == {}
    tasks.put("of ann", state="QUEUED", organisation="acme")
    unended = {"WAITING": 1, "QUEUED": 2, "RUNNING": 1, "NEEDS_INPUT": 1}
    assert tasks.ask(tick_rows.unended) == unended
    counts = unended | {"FAILED": 1, "CANCELLED": 1, "COMPLETED": 2}
    assert tasks.ask(lambda connection: reads.counts(connection, OPERATOR)) == counts
    assert tasks.ask(lambda connection: reads.counts(connection, ANN)) == {"QUEUED": 1}
    tasks.put("done by ann", state="COMPLETED", organisation="acme")
    assert tasks.ask(lambda connection: reads.counts(connection, ANN)) == {"QUEUED": 1, "COMPLETED": 1}
