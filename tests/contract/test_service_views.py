"""What the service answers: every field of a task, lists, explanations, logs, status."""

import re
from typing import Any, cast

import pytest

from claudomator_py.domain.errors import BadCursor, NotFound, Problem
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.domain.views import HoldRequest, TaskFilter
from claudomator_py.queries import cursors, holds, queries
from claudomator_py.schema.taskfile import from_document
from claudomator_py.store.database import Database
from claudomator_py.store.reads import Position
from tests.fakes.world import CLAUDE, CODEX, LINT, START_MS, World, spec

UUID = "6b7eace9-02d4-468d-9160-2b1d22b72df6"


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


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
    first, second = world.queries.runs("t")
    assert (first.id, first.attempt, first.state, first.exit_code) == (run_id, 1, "ended", -9)
    assert (first.started_at, first.ended_at) == (format_instant(START_MS), format_instant(START_MS + 3_000))
    assert first.outcome is not None
    assert (first.outcome.reason, first.outcome.detail) == ("agent_error", "no route to host")
    assert (second.attempt, second.state, second.ended_at, second.outcome) == (2, "starting", None, None)
    assert world.queries.run(run_id) == first
    with pytest.raises(NotFound, match="no run 'nope'"):
        world.queries.run("nope")


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_pages_are_complete_and_stable_over_equal_times(world: World) -> None:
    specs = [spec(f"t{number:02}") for number in range(23)]
    world.take("/in/many.yaml", *specs)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = world.queries.tasks(TaskFilter(), cursor, 5)
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
    return cursors.write(cast(Position, position), TaskFilter())


FORGED = [[1], {"a": 1}, ["x", 1], [1, "a\0b"], [1e999, "a"], [10**30, UUID], [-1, UUID], [True, 1], None]


@pytest.mark.parametrize("cursor", ["", "nonsense", "!!", "\u00e9", *(as_cursor(position) for position in FORGED)])
def test_a_cursor_that_was_not_given_out_is_refused(world: World, cursor: str) -> None:
    with pytest.raises(BadCursor, match="begin again"):
        world.queries.tasks(TaskFilter(), cursor, 5)


def test_a_cursor_that_was_changed_or_taken_to_another_list_is_refused(world: World) -> None:
    for number in range(3):
        world.submit(f"t{number}", tags=["shop"])
    cursor = world.queries.tasks(TaskFilter(tag="shop"), None, 1).next_cursor
    assert cursor is not None
    assert len(world.queries.tasks(TaskFilter(tag="shop"), cursor, 5).items) == 2
    changed = [
        cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :] for place in range(len(cursor))
    ]
    for wrong in (*changed, cursor[:-4], cursor + "AAAA", cursor + "=", cursor + "\n", cursor.lower()):
        with pytest.raises(BadCursor):
            world.queries.tasks(TaskFilter(tag="shop"), wrong, 5)
    for other in (
        TaskFilter(),
        TaskFilter(tag="shops"),
        TaskFilter(name="shop"),
        TaskFilter(tag="shop", state="QUEUED"),
    ):
        with pytest.raises(BadCursor):
            world.queries.tasks(other, cursor, 5)


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
    status = world.queries.status()
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


def test_a_list_that_is_cut_tells_its_whole_length(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "SHOWN", 3)
    for number in range(5):
        world.submit(f"ready{number}", priority="high")
        world.submit(f"waits{number}", depends_on=["nobody"])
    status = world.queries.status()
    assert {view.state for view in status.queued} == {"QUEUED"}
    assert (len(status.queued), status.totals["queued"], status.totals["running"]) == (3, 10, 0)


def test_a_list_says_why_in_a_clause(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.submit("u", retry={"max_attempts": 1})
    world.tick()
    said = 'API Error: 400 {"type":"error","error":{"message":"messages.0: too long"}}'
    world.end("t", exit_code=1, status="failed", reason="agent_error", detail=said)
    world.end("u", exit_code=1, status="failed", reason="timeout")
    world.tick()
    assert world.task("t").reason_short == "API Error: 400"
    assert (world.task("t").reason_text or "").endswith(said)
    assert world.task("u").reason_short == "The run took longer than its timeout."
    world.submit("v")
    for agent in ("claude", "codex"):
        until = {"until": format_instant(START_MS + HOUR_MS)}
        world.service.hold(agent, HoldRequest.model_validate(until))
    assert (world.task("v").reason, world.task("v").reason_short) == ("limited", None)


def test_what_waits_for_a_larger_budget_needs_a_person(world: World) -> None:
    world.submit("t", budget={"runs": 1})
    world.tick()
    world.fail("t")
    world.restart("t")
    status = world.queries.status()
    assert [(view.name, view.state, view.reason) for view in status.needs_you] == [("t", "WAITING", "budget")]
    assert (status.queued, status.totals["queued"]) == ((), 0)


# --- why --------------------------------------------------------------------------------------------------------------


def test_why_a_task_runs_where_it_does_reads_as_an_explanation(world: World) -> None:
    world.submit("first", agent={"type": "claude"})
    world.tick()
    world.limit("first", reset_at=START_MS + 3 * HOUR_MS)
    assert world.running() == {"first": "codex"}
    sentences, first = world.queries.why("first").sentences, world.queries.runs("first")[0].id
    assert sentences == (
        "first is RUNNING on codex.",
        "Run 2 (14:13 UTC) went to codex: least active (0 of 2 slots).",
        "The task prefers claude, which could not take it.",
        "claude was limited (5h window, reported) until 17:13 UTC.",
        "Tier balanced (sol): as before (an automatic retry keeps its tier).",
        f"Run 2 on codex, in a fresh conversation with a note from run {first[:8]}, is starting, 0s so far.",
        "Run 1 (14:13 UTC) went to claude: the task prefers claude (0 of 2 slots).",
        "codex was not what the task asks for.",
        "Tier balanced (sonnet): the agent's default (no classifier is configured).",
        "Run 1 on claude met a limit after 0s. It resets at 17:13 UTC (5h window, reported).",
    )


def test_why_tells_each_restart_and_folds_runs_that_ended_alike(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t", retry={"max_attempts": 1})
    for number in range(1, 6):
        world.tick()
        world.limit("t", reset_at=world.now_ms + MINUTE_MS)
        assert world.task("t").runs == number
        world.tick(2 * MINUTE_MS)
    world.fail("t")
    world.restart("t", agent="claude", tier="fast", reason="try the  small one.")
    _, begun, went, *rest = world.queries.why("t").sentences
    restarted = "an operator restarted it with agent claude, tier fast: try the small one."
    assert begun == f"Generation 2 began at 14:23 UTC: {restarted}"
    assert went.startswith("Run 6 (14:23 UTC) went to claude: ")
    assert rest[-1] == "Runs 1 to 5 on claude met the limit, 14:13 UTC to 14:21 UTC."
    assert not any("Run 5" in sentence for sentence in rest)
    world.service.release("claude")
    world.take("/in/u.yaml", spec("u"))
    world.tick()
    world.succeed("u")
    world.take("/in/u.yaml", spec("u", tags=["new"]), mtime_ns=2)
    assert world.queries.why("u").sentences[1] == "Generation 2 began at 14:23 UTC: its content had changed."


def test_a_task_that_waits_for_nothing_is_not_told_to_wait(world: World) -> None:
    world.submit("t")
    world.tick()
    world.succeed("t")
    world.restart("t")
    states = [event.data["state"] for event in world.queries.why("t").events if event.kind == "state"]
    assert states == ["QUEUED", "RUNNING", "COMPLETED", "QUEUED"]
    world.submit("u", depends_on=["nobody"])
    assert [event.data.get("reason") for event in world.queries.why("u").events if event.kind == "state"] == [
        "dependency"
    ]


def test_why_a_task_does_not_run_yet(world: World) -> None:
    world = World(world.database, total=1, agents=(CLAUDE,))
    world.submit("running", working_dir="/srv/x")
    world.tick()
    world.submit("next")
    assert world.queries.why("next").sentences == ("next is QUEUED: all slots are in use (1 of 1).",)
    run = world.live("running").id
    world.limit("running", reset_at=START_MS + MINUTE_MS)
    headline = "next is QUEUED: claude is limited (5h window, reported) until 14:14 UTC (in 1m)."
    hold = f"The hold on claude/default (rate_limited) was read at 2026-09-21 14:13 UTC from run {run[:8]}: five_hour."
    assert world.queries.why("next").sentences == (headline, hold)
    view = world.task("next")
    assert (view.reason, view.waiting_until) == ("limited", format_instant(START_MS + MINUTE_MS))
    assert view.model_dump(mode="json")["blocked"] == {
        "code": "agents_limited",
        "params": {
            "agents": [
                {
                    "code": "limited",
                    "params": {
                        "agent": "claude",
                        "bucket": "claude/default",
                        "reason": "rate_limited",
                        "window": "five_hour",
                        "source": "five_hour",
                        "provenance": "reported",
                        "until": format_instant(START_MS + MINUTE_MS),
                    },
                }
            ]
        },
    }
    world.submit("later", not_before=format_instant(START_MS + 2 * DAY_MS))
    headline = "later is WAITING: not before 2026-09-23 14:13 UTC (in 2d)."
    assert world.queries.why("later").sentences == (headline,)
    world.kinds["claude"].problems["claude"] = "`claude` is not on the PATH"
    world.registry.refresh()
    assert world.queries.why("next").sentences == (
        "next is QUEUED: claude is unable to run: `claude` is not on the PATH.",
    )


def test_why_a_task_waits_for_its_directory_or_its_agent(world: World) -> None:
    world.submit("one", working_dir="/srv/x", agent={"type": "lint"})
    world.tick()
    world.submit("two", working_dir="/srv/x")
    assert world.task("two").reason_text == "/srv/x is in use by one (RUNNING)"
    world.submit("three", agent={"type": "lint"})
    world.tick()
    world.submit("four", agent={"type": "lint"})
    assert world.task("four").reason_text == "lint is full (2 of 2 slots)"
    assert world.running() == {"one": "lint", "three": "lint"}


def test_why_a_task_failed_with_the_agents_own_words(world: World) -> None:
    world.submit("t", retry={"backoff": "1m", "max_attempts": 2})
    world.tick()
    world.fail("t", "agent_error", detail="no\nroute  to host")
    waiting = world.queries.why("t").sentences
    assert re.fullmatch(r"t is WAITING: tries again at 14:14 UTC \(in 1m\d?s?\)\.", waiting[0])
    assert waiting[-1] == "Run 1 on claude failed (agent_error) after 0s. no route to host"
    world.tick(2 * MINUTE_MS)
    world.fail("t", "timeout", detail="it was stopped at its timeout")
    meaning = "The run took longer than its timeout."
    assert world.queries.why("t").sentences[0] == f"t is FAILED: {meaning} it was stopped at its timeout."
    assert world.task("t").reason_text == f"{meaning} it was stopped at its timeout"


@pytest.mark.both_databases
def test_why_carries_the_decisions_newest_first_and_the_events_in_order(world: World) -> None:
    world.submit("t", retry={"backoff": "1s"})
    world.tick()
    world.fail("t", "agent_error")
    world.tick(MINUTE_MS)
    why = world.queries.why("t")
    assert [decision.run_id for decision in why.decisions] == [run.id for run in reversed(world.queries.runs("t"))]
    newest = why.decisions[0]
    assert (newest.agent, newest.tier, newest.classification.source) == ("claude", "balanced", "kept")
    assert all((candidate.rejected is None) is (candidate.rejected_because is None) for candidate in newest.candidates)
    assert {candidate.agent: candidate.rejected_because is None for candidate in newest.candidates} == {
        "claude": True,
        "codex": False,
        "lint": False,
    }
    assert [event.id for event in why.events] == sorted(event.id for event in why.events)
    told = [event.data.get("event", event.kind) for event in why.events]
    assert told == ["accepted", "BecameReady", "Started", "Retrying", "BecameReady", "Started"]


# --- agents and logs --------------------------------------------------------------------------------------------------


def test_an_agent_that_is_installed_meanwhile_spoils_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.registry.replace([CLAUDE], {})
    of_all = holds.hold_views

    def installing(*args: Any) -> Any:
        found = of_all(*args)
        world.registry.replace([CLAUDE, CODEX], {})
        return found

    monkeypatch.setattr(holds, "hold_views", installing)
    assert [agent.name for agent in world.queries.status().agents] == ["claude"]
    assert [agent.name for agent in world.queries.status().agents] == ["claude", "codex"]


def test_agents_are_told_in_the_order_of_the_configuration(world: World) -> None:
    world = World(world.database, agents=(LINT, CODEX, CLAUDE))
    world.submit("a", agent={"type": "claude"})
    world.tick()
    world.limit("a", reset_at=START_MS + HOUR_MS)
    lint, codex, claude = world.queries.agents()
    assert (lint.name, lint.auto_select, lint.limited) == ("lint", False, False)
    assert (codex.active, codex.max_concurrent, codex.installed) == (1, 2, True)
    assert (claude.limited, claude.limited_until, claude.provenance) == (
        True,
        format_instant(START_MS + HOUR_MS),
        "reported",
    )
    assert claude.hold_reason == "rate_limited: 5h window"
    assert claude.models == CLAUDE.models
    released = world.service.release("claude")
    assert (released.limited, released.hold_reason) == (False, None)
    with pytest.raises(NotFound, match="Did you mean `claude`"):
        world.service.release("cluade")


def test_a_log_is_read_by_offset_and_says_when_it_has_ended(world: World) -> None:
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.host.write(run_id, b"0123456789", "stderr")
    first = world.queries.log(run_id, "stderr", 0, 4)
    assert (first.data, first.offset, first.next_offset, first.ended) == (b"0123", 0, 4, False)
    rest = world.queries.log(run_id, "stderr", 4, 100)
    assert (rest.data, rest.next_offset) == (b"456789", 10)
    nothing_yet = world.queries.log(run_id, "stderr", 10, 100)
    assert (nothing_yet.data, nothing_yet.next_offset, nothing_yet.ended) == (b"", 10, False)
    world.succeed("t")
    assert world.queries.log(run_id, "stderr", 0, 4).ended is False
    assert world.queries.log(run_id, "stderr", 10, 100).ended is True
    with pytest.raises(NotFound):
        world.queries.log("nope", "stdout", 0, 10)


def test_readiness_names_what_is_wrong(world: World) -> None:
    assert world.queries.readiness().ready
    assert [check.name for check in world.queries.readiness().checks] == ["store", "drain"]


def test_refused_files_are_listed_in_parts_the_last_one_first(world: World) -> None:
    for number in range(120):
        world.refusals.put(f"/in/{number}.yaml", [Problem(message="is empty")])
    world.refusals.put("/in/caf\udce9.yaml", [Problem(message="is empty")])
    status = world.queries.status()
    assert (len(status.inbox), status.totals["inbox"]) == (50, 121)
    assert status.inbox[0].path == "/in/caf\\xe9.yaml"
    paths: list[str] = []
    cursor = None
    while cursor is not None or not paths:
        page = world.queries.inbox_problems(cursor, 50)
        paths += [file.path for file in page.items]
        assert page.total == len(world.refusals)
        world.refusals.drop(page.items[-1].path)  # what is good or gone meanwhile moves nothing
        world.refusals.put("/in/new.yaml", [Problem(message="is empty")])
        cursor = page.next_cursor
    assert paths == ["/in/caf\\xe9.yaml", *(f"/in/{number}.yaml" for number in reversed(range(120)))]
    with pytest.raises(BadCursor):
        world.queries.inbox_problems("no", 50)
