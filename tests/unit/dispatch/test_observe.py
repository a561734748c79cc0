"""Observing: lanes leave nothing out that could start, and fetch little."""

import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from claudomator_py.dispatch import lanes
from claudomator_py.dispatch.lanes import LOOK
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import AgentBudget, DayBudget, day_of
from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.policy.rule import Rule
from claudomator_py.scheduler.plan import Action, Planner, StartRun, plan
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import hold_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.queue import position
from claudomator_py.store.tables import TASK, Task
from tests.databases import open_migrated
from tests.fakes.agents import CLAUDE, CODEX, LINT
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World
from tests.unit.dispatch.looks import SECOND, Looks, queue

AGENTS = (CLAUDE, CODEX, LINT, SECOND)
HELD = (
    *(Bucket(agent=agent.name) for agent in AGENTS),
    *(Bucket(kind="claude", account="default", family=family) for family in ("opus", "haiku", "sonnet")),
)
ENDINGS: tuple[dict[str, Any], ...] = (
    {},
    {"exit_code": 1, "status": "failed", "reason": "overloaded"},
    {"exit_code": 1, "status": "limited", "reason": "rate_limited", "provenance": "estimated"},
    {"status": "needs_input", "question": "which?"},
)
FIELDS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(["low", "normal", "urgent"]),
        "working_dir": st.sampled_from([None, None, "/srv/a", "/srv/b", "/srv/c"]),
        "agent": st.sampled_from(
            [
                *({}, {"type": "claude"}, {"type": "codex", "strict": True}, {"type": "lint"}, {"tier": "fast"}),
                *({"type": "claude", "model": "opus"}, {"type": "gemini"}, {"type": "second", "strict": True}),
                *({"tier": "powerful"}, {"type": "claude", "strict": True, "tier": "powerful"}),
            ]
        ),
        "max_turns": st.sampled_from([None, None, 3, 4]),
        "on_limit": st.sampled_from(["failover", "wait"]),
    }
)

COLUMNS = st.fixed_dictionaries(
    {
        "organisation": st.sampled_from([None, None, "acme", "globex"]),
        "constraints": st.sampled_from(
            [
                *(None, None, Constraints(), Constraints(agents=("lint", "second"))),
                *(
                    Constraints(excluded_agents=("claude",)),
                    Constraints(one_of=(("codex",),)),
                    Constraints(isolated=True),
                ),
            ]
        ),
    }
)
"""What routing and whoever created it left in a task's row."""
FOR_NOBODY = "Zwölf Boxkämpfer jagen Viktor."
"""Nobody's card says anything of it."""


def everything(world: World) -> Snapshot:
    """A snapshot with every queued task, in order: no lanes, no pages."""

    def read(connection: Connection) -> Snapshot:
        present = world.observer.present(connection)
        query = select(TASK).where(TASK.c.state == "QUEUED").order_by(TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
        tasks = Task.rows(connection, query)
        specs = [task_rows.spec_of(connection, task.id, task.revision) for task in tasks]
        heads = [world.observer.reader.head(task, content) for task, content in zip(tasks, specs, strict=True)]
        return present.model_copy(update={"heads": tuple(heads)})

    return world.database.read(read)


def put(database: Database, name: str, columns: dict[str, Any], **values: Any) -> None:
    """Write these columns of the task."""
    constraints = columns["constraints"]
    values |= columns | {"constraints": None if constraints is None else constraints.text}
    change = TASK.update().where(TASK.c.name == name).values(**values)
    database.write(partial(Connection.execute, statement=change))


def started(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(action.head.task_id, action.decision.agent) for action in actions if isinstance(action, StartRun)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(FIELDS, COLUMNS), min_size=1, max_size=24),
    st.sets(st.sampled_from(range(len(HELD)))),
    st.lists(st.sampled_from(range(len(ENDINGS))), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(1, 2),
    st.sampled_from(["wait", "try"]),
    st.integers(0, 3),
    st.sampled_from([0, 60_000]),
    st.booleans(),
    st.sampled_from([1, 2, LOOK]),
    st.sampled_from([None, 1, 2]),
)
def test_lanes_start_what_a_look_at_the_whole_queue_would(
    contents: list[tuple[dict[str, object], dict[str, Any]]],
    held: set[int],
    endings: list[int],
    total: int,
    per_workdir: int,
    when: str,
    ticks: int,
    prefer_wait: int,
    classifier: bool,
    look: int,
    share: int | None,
) -> None:
    """Nor would a look at what was stored of the tick start, or ask, anything else."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_migrated(Path(folder)) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(lanes, "LOOK", look)
        rules: dict[str, Any] = {
            "total": total,
            "per_workdir": per_workdir,
            "when_all_limited": when,
            "prefer_wait": prefer_wait,
            "classifier": classifier,
            "per_organisation": share,
        }
        world = World(database, agents=AGENTS, **rules)
        tasks = [
            spec(f"t{number}", **{key: value for key, value in fields.items() if value is not None})
            for number, (fields, _) in enumerate(contents)
        ]
        queue(world, *tasks[::2])
        world.now_ms += 60_000
        if tasks[1::2]:
            assert world.take("/in/later.yaml", *tasks[1::2]) == []
        for number, (_, columns) in enumerate(contents):
            put(database, f"t{number}", columns)
        for _ in range(ticks):
            world.tick()
            for name, ending in zip(list(world.running())[::2], cycle(endings)):
                world.end(name, **ENDINGS[ending])
        for bucket in held:
            hold = Hold(HELD[bucket], Reason.RATE_LIMITED, world.now_ms + 1, Provenance.REPORTED, "words", START_MS)
            database.write(partial(hold_rows.add, hold=hold, run_id=None))
        observed, of_all = database.read(world.observer.observe), plan(everything(world))
        if observed is None:
            assert of_all == ()
            return
        assert started(observed.starts) == started(of_all)
        stored = Snapshot.model_validate(observed.snapshot.model_dump(mode="json"))
        assert plan(stored) == observed.actions
        assert [action.head for action in observed.actions] == list(observed.snapshot.heads)
        assert classifier or not observed.questions


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(FIELDS, COLUMNS), min_size=10, max_size=16),
    st.sets(st.sampled_from(range(len(HELD))), max_size=2),
    st.integers(2, 6),
    st.sampled_from([1, 1, 2]),
    st.randoms(use_true_random=False),
)
def test_so_do_lanes_that_are_read_a_few_tasks_at_a_time(
    contents: list[tuple[dict[str, object], dict[str, Any]]], held: set[int], total: int, look: int, random: Random
) -> None:
    """Most of them in lanes of their own, in an order that is not that of the lanes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_migrated(Path(folder)) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(lanes, "LOOK", look)
        roomy = [agent.model_copy(update={"max_concurrent": 3}) for agent in AGENTS]
        world = World(database, agents=roomy, total=total)
        named = [{name: value for name, value in fields.items() if value is not None} for fields, _ in contents]
        queue(world, *(spec(f"t{number}", **fields) for number, fields in enumerate(named)))
        for number, (_, columns) in enumerate(contents):
            put(database, f"t{number}", columns, rank_ms=random.randrange(100))
        for bucket in held:
            hold = Hold(HELD[bucket], Reason.RATE_LIMITED, world.now_ms + 1, Provenance.REPORTED, "words", START_MS)
            database.write(partial(hold_rows.add, hold=hold, run_id=None))
        observed = world.observed()
        assert started(observed.starts) == started(plan(everything(world)))


def test_a_tick_decides_on_each_task_once_and_reads_its_content_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(world, spec("a"), spec("b"), spec("elsewhere", working_dir="/srv/a"))
    looks = Looks(monkeypatch)
    world.tick()
    assert len(world.running()) == 3
    assert sorted(looks.decided) == sorted(looks.read) == ["a", "b", "elsewhere"]


def test_after_a_start_only_those_are_left_out_whose_place_or_turn_it_took(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a lane of its own. One for whom a directory is kept, or whose turn it is in a thread, loses neither."""
    roomy = CLAUDE.model_copy(update={"max_concurrent": 9})
    world = World(database, agents=(roomy,), total=9)
    there: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "first": ({"priority": "urgent", "working_dir": "/srv/a"}, {"thread": "new"}),
        "in-its-directory": ({"working_dir": "/srv/a", "agent": {"type": "claude"}}, {}),
        "in-its-thread": ({"max_turns": 9}, {"thread": "new"}),
        "elsewhere": ({"working_dir": "/srv/b", "agent": {"tier": "fast"}}, {}),
        "keeper": ({"working_dir": "/srv/kept", "agent": {"tier": "balanced"}}, {"kept_until_ms": START_MS + 1}),
        "in-turn": ({"agent": {"tier": "powerful"}}, {"thread": "begun", "seq": 1}),
    }
    queue(world, *(spec(name, **fields) for name, (fields, _) in there.items()))
    for name, (_, columns) in there.items():
        change = TASK.update().where(TASK.c.name == name).values(name=name, **columns)
        database.write(partial(Connection.execute, statement=change))
    looks = Looks(monkeypatch)
    observed = world.observed()
    assert {start.head.name for start in observed.starts} == {"first", "elsewhere", "keeper", "in-turn"}
    assert sorted(looks.decided) == sorted(start.head.name for start in observed.starts)
    assert sorted(looks.read) == sorted(there)


def test_a_lane_that_no_agent_can_take_is_looked_at_again_after_one_start_and_not_after_each(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database, agents=(CLAUDE.model_copy(update={"max_concurrent": 9}),), total=9)
    opus = Bucket(kind="claude", account="default", family="opus")
    limited = Hold(opus, Reason.RATE_LIMITED, START_MS + HOUR_MS, Provenance.REPORTED, "", START_MS)
    database.write(partial(hold_rows.add, hold=limited, run_id=None))
    on_opus, on_haiku = {"agent": {"tier": "powerful"}}, {"agent": {"tier": "fast"}}
    queue(world, spec("waits", **on_opus), spec("a", **on_haiku), spec("b", **on_haiku), spec("behind", **on_opus))
    looks = Looks(monkeypatch)
    observed = world.observed()
    assert [start.head.name for start in observed.starts] == ["a", "b"]
    assert looks.decided == ["waits", "a", "b", "behind"]
    assert sorted(looks.read) == sorted(looks.decided)


@pytest.mark.parametrize("whose", ["an agent's", "all agents'"])
def test_a_days_budget_leaves_the_rest_for_its_end(database: Database, whose: str) -> None:
    of_agent, of_day = (AgentBudget(runs=1), None) if whose == "an agent's" else (AgentBudget(), 1)
    world = World(database, agents=(CLAUDE.model_copy(update={"budget": of_agent}), LINT))
    world.day_budget = DayBudget(runs=of_day, timezone="UTC")
    queue(world, spec("first"), spec("second"))
    world.tick()
    assert list(world.running()) == ["first"]
    assert world.tick().wake_ms == day_of(START_MS, ZoneInfo("UTC")).end_ms


# --- who does it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("routing", "specialists", "policed"),
    [(False, False, False), (True, False, False), (True, True, False), (True, False, True)],
)
def test_a_task_waits_to_be_routed_where_specialists_or_rules_built_in_or_not_have_a_say(
    database: Database, routing: bool, specialists: bool, policed: bool
) -> None:
    world = World(database, routing=routing, policed=policed)
    if specialists:
        world.specialists.register(card("plumber"))
    if policed:
        world.policy_rules = (Rule.model_validate({"name": "odd", "when": '"odd" in task.tags', "deny": "no"}),)
        world.restarted_daemon()
    world.submit("tea", instructions=FOR_NOBODY)
    world.tick()
    assert ("tea" in world.running()) is not routing
    world.router.route()
    database.write(lambda _: None)  # after what was queued before
    world.tick()
    assert "tea" in world.running()


def test_a_specialists_task_is_done_as_the_card_says_beside_one_that_nobody_in_particular_does(
    database: Database,
) -> None:
    world = World(database, routing=True)
    world.specialists.register(card("plumber", expected_output="A dry floor."))
    world.submit("sink", specialist="plumber")
    world.submit("tea", instructions=FOR_NOBODY, max_turns=9)
    assert world.row("sink").lane != world.row("tea").lane, "both are looked at together"
    world.router.route()
    world.tick()
    prompts = {name: world.host.prompt(world.live(name).id) for name in ("sink", "tea")}
    assert {name: "A dry floor." in prompt for name, prompt in prompts.items()} == {"sink": True, "tea": False}


def test_what_is_for_a_program_waits_to_be_routed_only_if_it_names_a_specialist(database: Database) -> None:
    world = World(database, agents=(CLAUDE, LINT.model_copy(update={"max_concurrent": 9})), routing=True)
    world.specialists.register(card("plumber"))
    queue(world, spec("plain", agent={"type": "lint"}), spec("named", agent={"type": "lint"}, specialist="plumber"))
    assert [start.head.name for start in world.observed().starts] == ["plain"]


@pytest.mark.parametrize(("policed", "runs"), [(True, {"first"}), (False, {"first", "second"})])
def test_as_many_tasks_of_a_rule_run_as_it_says_while_there_are_rules(
    database: Database, policed: bool, runs: set[str]
) -> None:
    world = World(database, routing=True, policed=policed)
    world.policy_rules = (Rule.model_validate({"name": "one", "concurrency": 1}),)
    world.restarted_daemon()
    queue(world, spec("first", priority="urgent"))
    world.router.route()
    world.tick()
    queue(world, spec("second"), path="/in/second.yaml")
    world.router.route()
    world.tick()
    assert set(world.running()) == runs


def test_a_task_whose_model_was_overloaded_is_given_the_one_that_stands_in(database: Database) -> None:
    world = World(database, agents=(SECOND,))
    queue(world, spec("t"))
    (start,) = world.observed().starts
    assert start.decision.model == "opus"
    failed = TASK.update().values(failed_on="second", failed_for="overloaded")
    database.write(partial(Connection.execute, statement=failed))
    (start,) = world.observed().starts
    assert start.decision.model == "haiku"


def test_one_who_has_waited_for_the_agent_it_prefers_is_not_held_up_by_a_more_urgent_one(database: Database) -> None:
    world = World(database, agents=(CLAUDE.model_copy(update={"max_concurrent": 1}), CODEX), prefer_wait=60_000)
    on_claude: dict[str, Any] = {"agent": {"type": "claude"}}
    queue(world, spec("runs", **on_claude))
    world.tick()
    world.take("/in/waited.yaml", spec("waited", **on_claude))
    world.now_ms += 60_000
    world.take("/in/urgent.yaml", spec("urgent", priority="urgent", **on_claude))
    assert world.row("waited").lane == world.row("urgent").lane
    (start,) = world.observed().starts
    assert (start.head.name, start.decision.agent) == ("waited", "codex")
    assert start.head.lane == world.row("waited").lane


def test_the_next_tick_is_due_when_the_first_task_need_not_wait_for_its_agent_any_more(database: Database) -> None:
    world = World(database, agents=(CLAUDE.model_copy(update={"max_concurrent": 1}), CODEX), prefer_wait=60_000)
    on_claude: dict[str, Any] = {"agent": {"type": "claude"}}
    queue(world, spec("runs", **on_claude))
    world.tick()
    for name, further in (("first", {}), ("second", {"max_turns": 9})):
        world.take(f"/in/{name}.yaml", spec(name, **on_claude, **further))
        world.now_ms += 10_000
    assert world.row("first").lane != world.row("second").lane
    assert world.tick().wake_ms == START_MS + 60_000
    assert list(world.running()) == ["runs"]


def test_a_task_that_waits_for_a_limit_is_not_said_to_go_elsewhere_at_its_end(database: Database) -> None:
    world = World(database, agents=(CODEX,), prefer_wait=60_000)
    limited = Hold(Bucket(agent="codex"), Reason.RATE_LIMITED, START_MS + HOUR_MS, Provenance.REPORTED, "", START_MS)
    database.write(partial(hold_rows.add, hold=limited, run_id=None))
    queue(world, spec("waits"))
    assert world.observed().again_ms is None


def test_a_task_behind_a_more_urgent_one_that_came_later_need_not_wait_as_long_as_that(database: Database) -> None:
    world = World(database, agents=(CLAUDE.model_copy(update={"max_concurrent": 1}), CODEX), prefer_wait=60_000)
    on_claude: dict[str, Any] = {"agent": {"type": "claude"}}
    queue(world, spec("runs", **on_claude))
    world.tick()
    for name, priority in (("usual", "normal"), ("later", "normal"), ("urgent", "urgent")):
        world.take(f"/in/{name}.yaml", spec(name, priority=priority, **on_claude))
        world.now_ms += 10_000
    assert world.row("usual").lane == world.row("urgent").lane
    assert world.tick().wake_ms == START_MS + 60_000
    world.tick(after_ms=30_000)
    assert world.running() == {"runs": "claude", "usual": "codex"}
    assert world.observed().again_ms == START_MS + 70_000


def test_a_start_that_limits_an_agent_lets_others_of_the_lane_that_waits_for_it_go_elsewhere(
    database: Database,
) -> None:
    """Both agents are on one account, whose limit is over and is tried by one run first."""
    work = AgentSpec(name="work", kind="claude", models=CLAUDE.models, auto_select=False)
    agents = CLAUDE.model_copy(update={"max_concurrent": 1}), work, CODEX
    world = World(database, agents=agents, prefer_wait=HOUR_MS)
    on_claude: dict[str, Any] = {"agent": {"type": "claude"}}
    queue(world, spec("runs", **on_claude))
    world.tick()
    world.answer("runs")
    over = Hold(
        Bucket(kind="claude", account="default"), Reason.RATE_LIMITED, START_MS + 1, Provenance.REPORTED, "", START_MS
    )
    database.write(partial(hold_rows.add, hold=over, run_id=None))
    world.now_ms += 2
    tries = spec("tries", agent={"type": "work", "strict": True})
    world.take("/in/more.yaml", spec("before", **on_claude), tries, spec("behind", **on_claude))
    starts = world.observed().starts
    assert [(start.head.name, start.decision.agent) for start in starts] == [("tries", "work"), ("behind", "codex")]
    assert started(starts) == started(plan(everything(world)))


def test_a_limit_that_is_tried_is_tried_by_one(database: Database) -> None:
    world = World(database, agents=(CLAUDE,), when_all_limited="try")
    limited = Hold(Bucket(agent="claude"), Reason.RATE_LIMITED, START_MS + HOUR_MS, Provenance.REPORTED, "", START_MS)
    database.write(partial(hold_rows.add, hold=limited, run_id=None))
    world.now_ms += HOUR_MS // 2
    queue(world, spec("tries"), spec("waits"))
    assert [start.head.name for start in world.observed().starts] == ["tries"]


def test_a_lane_ends_only_where_it_was_read_to_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LOOK", 2)
    for name in ("first", "second", "third"):
        world.submit(name, agent={"type": "codex"})
    rows = sorted((world.row(name) for name in ("first", "second", "third")), key=position)
    lane = str(rows[0].lane)

    def front(connection: Connection) -> lanes._Front:
        return lanes._Front(connection, Planner(world.observer.present(connection)), set(), is_short=False)

    def behind(reading: lanes._Front) -> list[bool]:
        return [reading.goes_on(lane, position(row)) for row in rows]

    def read(connection: Connection) -> None:
        in_order, by_lane = front(connection), front(connection)
        assert behind(in_order) == [True, True, True], "nothing was read"
        in_order.next_tasks()
        assert behind(in_order) == [True, True, True], "there may be more behind the two that were read"
        in_order.next_tasks()
        assert behind(in_order) == [True, True, False]
        by_lane.next_tasks()
        by_lane.other_lanes()
        assert behind(by_lane) == [True, True, True], "the rest was left unread"

    world.database.read(read)
