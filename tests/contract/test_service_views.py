"""What the service answers: every field of a task and its runs, lists, status."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast, get_args

import pytest

from claudomator_py.domain.errors import BadCursor, NotFound, Problem
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Tokens
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.requests import HoldRequest, LatestFilter, StateSelection, TaskFilter
from claudomator_py.domain.shape import Page
from claudomator_py.domain.units import DAY_MS, HOUR_MS, format_instant, parse_instant
from claudomator_py.resources import cursors
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.tasks import RejectRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from claudomator_py.store.reads import Position
from claudomator_py.store.tables import RUN, TASK
from tests.fakes.cards import card
from tests.fakes.steps import from_document, spec
from tests.fakes.world import START_MS, World

UUID = "6b7eace9-02d4-468d-9160-2b1d22b72df6"


@pytest.fixture
def world(database: Database) -> World:
    return World(database, routes=True)


def test_every_field_of_a_task(world: World) -> None:
    asked = {"working_dir": "/srv/shop", "priority": "high", "tags": ["shop", "login"], "depends_on": ["first"]}
    world.submit("first")
    content = spec("t", agent={"type": "codex", "tier": "fast"}, **asked)
    world.take("/in/t.yaml", content)
    view = world.task("t")
    assert (view.name, view.version, view.state, view.phase, view.reason) == ("t", 1, "WAITING", None, "dependency")
    assert (view.priority, view.tags, view.working_dir) == ("high", ("shop", "login"), "/srv/shop")
    assert (view.agent, view.tier, view.model, view.specialist, view.branch) == ("codex", "fast", None, None, None)
    assert (view.attempts, view.runs, view.result_text) == (0, 0, None)
    assert (view.tokens, view.cost_usd) == (Tokens(), None)
    assert (view.created_at, view.updated_at) == (format_instant(START_MS), format_instant(START_MS))
    assert view.available_actions == ("cancel", "restart")
    assert (view.generation, view.revision, view.source, view.file_path) == (1, 1, "file", "/in/t.yaml")
    assert view.spec is not None
    assert from_document(view.spec) == content
    world.tick()
    world.succeed("first")
    running = world.task("t")
    assert (running.state, running.phase, running.available_actions) == (
        "RUNNING",
        "starting",
        ("cancel", "restart_force"),
    )
    assert (running.agent, running.tier, running.model, running.runs) == ("codex", "fast", "luna", 1)
    world.tick()
    assert world.task("t").phase == "running"
    used: dict[str, Any] = {"tokens": {"input": 1000, "output": 20}, "cost_usd": 0.25}
    world.end("t", status="failed", reason="agent_error", **used)
    world.tick(5_000)
    assert (world.task("t").attempts, world.task("t").result_text) == (1, None)
    world.tick(HOUR_MS)
    world.end("t", text="done", **used)
    world.tick()
    ended = world.task("t")
    assert (ended.state, ended.phase, ended.reason, ended.waiting_until) == ("COMPLETED", None, None, None)
    assert (ended.result_text, ended.runs, ended.attempts) == ("done", 2, 2)
    assert (ended.tokens, ended.cost_usd) == (Tokens(input=2000, output=40), 0.5)
    assert ended.updated_at == format_instant(world.now_ms)
    assert ended.version > running.version
    assert ended.available_actions == ("restart",)


def test_the_runs_of_a_task(world: World) -> None:
    world.submit("t", retry={"backoff": "1s"})
    world.tick()
    run_id = world.live("t").id
    world.host.now_ms = world.now_ms = START_MS + 3_000
    world.end("t", exit_code=-9, status="failed", reason="agent_error", detail="no route to host")
    world.tick()
    world.tick(60_000)
    first, second = world.service.runs("t")
    assert (first.id, first.attempt, first.state, first.exit_code) == (run_id, 1, "ended", -9)
    assert (first.started_at, first.ended_at) == (format_instant(START_MS), format_instant(START_MS + 3_000))
    assert first.outcome is not None
    assert (first.outcome.reason, first.outcome.detail) == ("agent_error", "no route to host")
    assert (second.attempt, second.state, second.ended_at, second.outcome) == (2, "starting", None, None)
    assert world.run_requests.get(run_id) == first
    with pytest.raises(NotFound, match="no run 'nope'"):
        world.run_requests.get("nope")


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_pages_are_complete_and_stable_over_equal_times(world: World) -> None:
    specs = [spec(f"t{number:02}") for number in range(23)]
    world.take("/in/many.yaml", *specs)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = world.service.page(TaskFilter(), cursor, 5)
        assert 1 <= len(page.items) <= 5
        seen += [view.name for view in page.items]
        if page.next_cursor is None:
            break
        if cursor is None:
            world.now_ms += 1
            world.submit("newer")
        cursor = page.next_cursor
    assert sorted(seen) == [known.name for known in specs]
    assert world.names()[0] == "newer"


def as_cursor(position: object) -> str:
    """A cursor with a checksum that is right, whatever it names."""
    return cursors.write(cast(Position, position), {"list": "tasks"})


FORGED = [[1], {"a": 1}, ["x", 1], [1, "a\0b"], [1e999, "a"], [10**30, UUID], [-1, UUID], [True, 1], None]


@pytest.mark.parametrize("cursor", ["", "nonsense", "!!", "\u00e9", *(as_cursor(position) for position in FORGED)])
def test_a_cursor_that_was_not_given_out_is_refused(world: World, cursor: str) -> None:
    with pytest.raises(BadCursor, match="start again"):
        world.service.page(TaskFilter(), cursor, 5)


def test_a_cursor_that_was_changed_or_taken_to_another_list_is_refused(world: World) -> None:
    for number in range(3):
        world.submit(f"t{number}", tags=["shop"])
    cursor = world.service.page(TaskFilter(tag="shop"), None, 1).next_cursor
    assert cursor is not None
    assert len(world.service.page(TaskFilter(tag="shop"), cursor, 5).items) == 2
    changed = [
        cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :] for place in range(len(cursor))
    ]
    for wrong in (*changed, cursor[:-4], cursor + "AAAA", cursor + "=", cursor + "\n", cursor.lower()):
        with pytest.raises(BadCursor):
            world.service.page(TaskFilter(tag="shop"), wrong, 5)
    for other in (
        TaskFilter(),
        TaskFilter(tag="shops"),
        TaskFilter(name="shop"),
        TaskFilter(tag="shop", state="QUEUED"),
    ):
        with pytest.raises(BadCursor):
            world.service.page(other, cursor, 5)


@pytest.mark.both_databases
def test_filters_hold_all_together_and_tags_are_exact(world: World) -> None:
    world.take("/in/a.yaml", spec("a", tags=["Shop", "gr\u00fcn"]))
    world.submit("b", tags=["shop", "a%b", 'quo"te'], agent={"type": "codex"})
    world.submit("b", tags=["shopping"])
    world.submit("w", depends_on=["nobody"])
    world.tick()
    assert world.names(tag="shop") == ["b"]
    assert world.names(tag="Shop") == ["a"]
    assert world.names(tag="gr\u00fcn") == ["a"]
    assert world.names(tag="a%b") == ["b"]
    assert world.names(tag='quo"te') == ["b"]
    assert world.names(tag="a_b") == world.names(tag="") == world.names(tag="sho") == []
    assert world.names(source="file") == ["a"]
    assert world.names(name="b", tag="shop", state="RUNNING", agent="codex", source="api") == ["b"]
    assert world.names(name="b", agent="gemini") == []
    assert world.names(state="WAITING") == ["w"]
    assert world.names(name="a\0b") == world.names(tag="\0") == []


@pytest.mark.both_databases
def test_the_latest_change_comes_first_and_standings_part_all_tasks(world: World) -> None:
    for name in ("done", "refused", "stopped", "runs", "again"):
        world.submit(name, retry={"backoff": "1h"}, approval=name in ("refused", "stopped"))
        world.tick()
    world.submit("waits", depends_on=["nobody"])
    world.succeed("done")
    world.service.reject("refused", RejectRequest())
    world.service.cancel("stopped")
    world.end("again", status="failed", reason="agent_error")
    world.tick()
    standings = [
        StateSelection(state=state, begun=begun, rejected=rejected)
        for state in get_args(StateName)
        for begun in (None, True, False)
        for rejected in (None, True, False)
    ]
    everything, total = world.service.latest(LatestFilter(), None, 50)
    assert total == len(everything.items) == 6
    assert {(item.name, item.state, item.runs > 0) for item in everything.items} >= {
        ("again", "WAITING", True),
        ("waits", "WAITING", False),
        ("refused", "FAILED", False),
    }
    times = [(item.updated_at, item.id) for item in everything.items]
    assert times == sorted(times, reverse=True)
    for standing in standings:
        result, counted = world.service.latest(LatestFilter(standings=(standing,)), None, 50)
        assert [item.name for item in result.items] == [
            item.name for item in everything.items if standing.includes(item.state, runs=item.runs, reason=item.reason)
        ]
        assert counted == len(result.items)
    assert world.service.latest(LatestFilter(standings=()), None, 50) == (Page(items=()), 0)
    last = parse_instant(times[0][0])
    newest, _ = world.service.latest(LatestFilter(since_ms=last), None, 50)
    assert {item.updated_at for item in newest.items} == {times[0][0]}


def test_the_latest_tasks_come_in_parts(world: World) -> None:
    world.take("/in/many.yaml", *(spec(f"t{number}") for number in range(7)))
    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page, total = world.service.latest(LatestFilter(), cursor, 3)
        seen += [view.name for view in page.items]
        cursor = page.next_cursor
        assert total == 7
    assert sorted(seen) == [f"t{number}" for number in range(7)]
    assert len(seen) == 7
    given = world.service.latest(LatestFilter(), None, 3)[0].next_cursor
    with pytest.raises(BadCursor):
        world.service.latest(LatestFilter(context="c"), given, 3)


@pytest.mark.both_databases
def test_a_context_is_its_creators_and_goes_on_where_the_last_task_came_to_something(world: World) -> None:
    ann, bob = (world.access.as_(Principal(name, Role.OPERATE, "acme")) for name in ("ann", "bob"))
    first = ann[Tasks].submit(spec("first"), context="chat")
    assert (first.context, first.continues) == ("chat", None)
    second = ann[Tasks].submit(spec("second"), context="chat")
    assert second.continues is not None
    assert (second.context, second.continues.task_id) == ("chat", first.id)
    ann[Tasks].cancel(second.id)
    # One of the same name as the first that has nothing to do with it.
    ann[Tasks].submit(spec("first"))
    third = ann[Tasks].submit(spec("third"), context="chat")
    assert third.continues is not None
    assert third.continues.task_id == first.id
    others = bob[Tasks].submit(spec("other"), context="chat")
    assert others.continues is None
    # What was begun without a name is called by its id, by whoever sees it.
    by_id = bob[Tasks].submit(spec("by-id"), context=first.id)
    assert by_id.continues is not None
    assert by_id.continues.task_id == first.id
    strangers = world.access.as_(Principal("eve", Role.OPERATE, "other"))
    assert strangers[Tasks].submit(spec("eves"), context=first.id).continues is None
    listed, total = ann[Tasks].latest(LatestFilter(context="chat"), None, 10)
    assert {item.name for item in listed.items} == {"first", "second", "third"}
    assert total == 3


def test_status_puts_what_needs_a_person_first_and_queues_in_order(world: World) -> None:
    world = World(world.database, total=2)
    world.refusals.put("/in/x.yaml", [Problem(message="is empty")])
    world.submit("old-failure")
    world.tick()
    world.fail("old-failure")
    world.now_ms += 2 * DAY_MS
    world.submit("failure")
    world.submit("asks")
    world.tick()
    world.fail("failure")
    world.end("asks", status="needs_input", question="which branch?")
    world.submit("done")
    world.tick()
    world.succeed("done")
    world.submit("one")
    world.submit("two")
    world.tick()
    world.submit("low", priority="low")
    world.submit("urgent", priority="urgent")
    world.submit("waits", depends_on=["nobody"])
    status = world.overview.status()
    assert [view.name for view in status.needs_you] == ["asks"]
    assert status.needs_you[0].reason_text == "which branch?"
    assert [view.name for view in status.problems] == ["failure"]
    assert [problem.path for problem in status.inbox] == ["/in/x.yaml"]
    assert sorted(view.name for view in status.running) == ["one", "two"]
    assert [view.name for view in status.queued] == ["urgent", "low", "waits"]
    assert [view.name for view in status.recent] == ["done"]
    assert [agent.name for agent in status.agents] == ["claude", "codex", "lint"]
    assert status.counts["FAILED"] == 2
    assert sum(status.counts.values()) == 9
    assert status.running[0].spec is None
    assert status.totals == {"needs_you": 1, "problems": 1, "inbox": 1, "running": 2, "queued": 3, "recent": 1}


def test_what_waits_alike_is_listed_as_it_was_submitted(world: World) -> None:
    names = [f"waits{number}" for number in range(8)]
    for name in names:
        world.submit(name, depends_on=["nobody"])
        world.now_ms += 1
    assert [view.name for view in world.overview.status().queued] == names


def test_a_list_that_is_cut_tells_its_whole_length(world: World) -> None:
    for number in range(5):
        world.submit(f"ready{number}", priority="high")
        world.submit(f"waits{number}", depends_on=["nobody"])
    status = world.overview.status(shown_of_each=3)
    assert {view.state for view in status.queued} == {"QUEUED"}
    assert (len(status.queued), status.totals["queued"], status.totals["running"]) == (3, 10, 0)


@pytest.mark.both_databases
def test_the_question_that_has_waited_longest_is_never_cut(world: World) -> None:
    for name in ("first", "second", "third"):
        world.submit(name)
        world.tick()
        world.end(name, status="needs_input", question=f"{name}?")
        world.tick()
        world.now_ms += 1
    status = world.overview.status(shown_of_each=2)
    assert ([view.name for view in status.needs_you], status.totals["needs_you"]) == (["first", "second"], 3)


@pytest.mark.both_databases
def test_many_failures_for_one_reason_hide_no_other(world: World) -> None:
    def fails(name: str, reason: str) -> None:
        world.submit(name, retry={"max_attempts": 1})
        world.tick()
        world.end(name, exit_code=1, status="failed", reason=reason)
        world.now_ms += 1
        world.tick()

    for name in ("early", "earlier"):
        fails(name, "timeout")
    fails("rare", "turn_limit")
    for number in range(5):
        fails(f"alike{number}", "agent_error")
    status = world.overview.status(shown_of_each=4)
    assert [view.name for view in status.problems] == ["alike4", "rare", "earlier", "early"]
    assert (status.totals["problems"], status.unlisted) == (8, {status.problems[0].id: 4})


def test_a_list_says_why_in_a_clause(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.submit("u", retry={"max_attempts": 1})
    world.tick()
    text = 'API Error: 400 {"type":"error","error":{"message":"messages.0: too long"}}'
    world.end("t", exit_code=1, status="failed", reason="agent_error", detail=text)
    world.end("u", exit_code=1, status="failed", reason="timeout")
    world.tick()
    assert world.task("t").reason_short == "API Error: 400"
    assert (world.task("t").reason_text or "").endswith(f": {text}.")
    assert world.task("u").reason_short == "The run took longer than its timeout."
    world.submit("v")
    for agent in ("claude", "codex"):
        until = {"until": format_instant(START_MS + HOUR_MS)}
        world.roster.hold(agent, HoldRequest.model_validate(until))
    assert (world.task("v").reason, world.task("v").reason_short) == ("limited", None)


def test_what_waits_for_a_larger_budget_needs_a_person(world: World) -> None:
    world.submit("t", budget={"runs": 1})
    world.tick()
    world.fail("t")
    world.restart("t")
    status = world.overview.status()
    assert [(view.name, view.state, view.reason) for view in status.needs_you] == [("t", "WAITING", "budget")]
    assert (status.queued, status.totals["queued"]) == ((), 0)


def test_what_is_kept_of_tasks_that_are_over_is_never_older_than_their_rows(database: Database) -> None:
    """Each list is read before and after each change, and says what a daemon says that has kept nothing."""
    world = World(database, routing=True)
    world.specialists.register(card("plumber"))
    ann = Principal("ann", Role.OPERATE, "acme")
    world.access.as_(ann)[Tasks].submit(spec("hers", instructions="@plumber, have a look at the sink."))
    for name, fields in (("t", {"specialist": "plumber"}), ("cancelled", {}), ("after", {"continues": "t"})):
        world.submit(name, **fields)
    world.service.cancel("cancelled")
    for name in ("hers", "t"):
        world.router.route()
        world.tick()
        world.succeed(name)

    def listed(of: World) -> list[Any]:
        return [
            (of.access.as_(by)[Overview].status().recent, of.access.as_(by)[Tasks].page(TaskFilter(), None, 50).items)
            for by in (OPERATOR, ann)
        ]

    def change(table: Any, **columns: Any) -> Callable[[], object]:
        return lambda: database.write(lambda connection: connection.execute(table.update().values(**columns)))

    payload = Outcome(status=OutcomeStatus.SUCCEEDED, text="said later", denials=2).model_dump(mode="json")
    changes: list[Callable[[], object]] = [
        lambda: None,
        change(RUN, outcome=payload),
        change(RUN, model="another", dir_key="/elsewhere"),
        change(TASK, updated_ms=START_MS + 5, tags=["late"]),
        lambda: world.specialists.register(card("plumber", visibility="private")),
        change(RUN, outcome=None),
        lambda: world.restart("t", force=True),
    ]
    seen = []
    for made in changes:
        made()
        kept = listed(world)
        assert listed(world) == kept
        fresh = World(database, routing=True)
        fresh.now_ms, fresh.host = world.now_ms, world.host
        assert listed(fresh) == kept
        seen.append(kept)
    assert [entry != following for entry, following in pairwise(seen)] == [True] * (len(changes) - 1)


def test_runs_whose_cost_is_not_known_are_counted_beside_the_cost(world: World) -> None:
    world.submit("t", retry={"max_attempts": 2, "backoff": "1m"})
    world.tick()
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    assert (world.task("t").cost_usd, world.task("t").unpriced) == (None, 1)
    world.end("t", cost_usd=0.5)
    world.tick()
    assert (world.task("t").cost_usd, world.task("t").unpriced) == (0.5, 1)
    world.submit("known")
    world.tick()
    world.end("known", cost_usd=0.5)
    world.tick()
    assert world.task("known").unpriced == 0
