"""``why``: what the service says of where a task is, and how it got there."""

import re
from typing import Any

import pytest

from claudomator_py.domain.errors import BadCursor, NotFound, Problem
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.resources.agents import service as holds
from claudomator_py.store import StoreUnavailable
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX, LINT
from tests.fakes.decisions import classification_of
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


# --- why --------------------------------------------------------------------------------------------------------------


def test_why_a_task_runs_where_it_does_reads_as_an_explanation(world: World) -> None:
    world.submit("first", agent={"type": "claude"})
    world.tick()
    world.limit("first", reset_at=START_MS + 3 * HOUR_MS)
    assert world.running() == {"first": "codex"}
    sentences, first = world.service.why("first").sentences, world.service.runs("first")[0].id
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
        "Run 1 on claude met a limit after 0s. It resets at 2026-09-21 17:13 UTC (5h window, reported).",
    )


def test_why_names_agents_that_lost_for_one_reason_in_one_sentence(world: World) -> None:
    other, busy = (CODEX.model_copy(update={"name": name}) for name in ("other", "busy"))
    world = World(world.database, agents=(CLAUDE, CODEX, other, busy))
    world.submit("first", agent={"type": "busy"})
    world.tick()
    world.submit("next")
    world.tick()
    sentences = world.service.why("next").sentences
    assert "codex and other were as busy as claude, which comes first alphabetically." in sentences
    assert "busy was busier (1 of 2 slots)." in sentences


@pytest.mark.parametrize("command", [("sh",), ("python3", "-"), ("wc", "-w")])
def test_a_task_that_a_shell_runs_gets_no_note_that_the_shell_would_run(world: World, command: tuple[str, ...]) -> None:
    world = World(world.database, agents=(CLAUDE, LINT.model_copy(update={"command": command})))
    world.submit("t", instructions="echo hello", agent={"type": "lint"}, on_lost="retry")
    world.tick()
    first = world.live("t").id
    world.end("t", status="lost", reason="lost", text="$(touch pwned)")
    world.tick()
    world.tick(5 * MINUTE_MS)
    is_program = command[0] != "wc"
    assert (world.host.prompt(world.live("t").id) == "echo hello\n") == is_program
    noted = any("with a note" in sentence for sentence in world.service.why("t").sentences)
    assert (noted, first != world.live("t").id) == (not is_program, True)


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
    _, begun, went, *rest = world.service.why("t").sentences
    restarted = "an operator restarted it with agent claude, tier fast: try the small one."
    assert begun == f"It began again at 14:23 UTC (restart 1): {restarted}"
    assert went.startswith("Run 6 (14:23 UTC) went to claude: ")
    assert rest[-1] == "Runs 1 to 5 on claude met the limit, 14:13 UTC to 14:21 UTC."
    assert not any("Run 5" in sentence for sentence in rest)
    world.roster.release("claude")
    world.take("/in/u.yaml", spec("u"))
    world.tick()
    world.succeed("u")
    world.take("/in/u.yaml", spec("u", tags=["new"]), mtime_ns=2)
    assert world.service.why("u").sentences[1] == "It began again at 14:23 UTC (restart 1): its content had changed."


def test_a_task_that_waits_for_nothing_is_not_told_to_wait(world: World) -> None:
    world.submit("t")
    world.tick()
    world.succeed("t")
    world.restart("t")
    states = [event.data["state"] for event in world.service.why("t").events if event.kind == "state"]
    assert states == ["QUEUED", "RUNNING", "COMPLETED", "QUEUED"]
    world.submit("u", depends_on=["nobody"])
    assert [event.data.get("reason") for event in world.service.why("u").events if event.kind == "state"] == [
        "dependency"
    ]


def test_why_a_task_does_not_run_yet(world: World) -> None:
    world = World(world.database, total=1, agents=(CLAUDE,))
    world.submit("running", working_dir="/srv/x")
    world.tick()
    world.submit("next")
    assert world.service.why("next").sentences == ("next is QUEUED: all slots are in use (1 of 1).",)
    run = world.live("running").id
    world.limit("running", reset_at=START_MS + MINUTE_MS)
    headline = "next is QUEUED: claude is limited (5h window, reported) until 14:14 UTC (in 1m)."
    hold = f"The hold on claude/default (rate_limited) was read at 2026-09-21 14:13 UTC from run {run[:8]}: five_hour."
    assert world.service.why("next").sentences == (headline, hold)
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
    assert world.service.why("later").sentences == (headline,)
    world.kinds["claude"].problems["claude"] = "`claude` is not on the PATH"
    world.registry.refresh()
    assert world.service.why("next").sentences == (
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
    waiting = world.service.why("t").sentences
    assert re.fullmatch(r"t is WAITING: tries again at 14:14 UTC \(in 1m\d?s?\)\.", waiting[0])
    assert waiting[-1] == "Run 1 on claude failed (agent_error) after 0s: no route to host."
    world.tick(2 * MINUTE_MS)
    world.fail("t", "timeout", detail="it was stopped at its timeout")
    text = (
        "The run took longer than its timeout: it was stopped at its timeout. Its timeout is 1h; raise it on its page."
    )
    assert world.service.why("t").sentences[0] == f"t is FAILED: {text}"
    assert world.task("t").reason_text == text


@pytest.mark.both_databases
def test_why_carries_the_decisions_newest_first_and_the_events_in_order(world: World) -> None:
    world.submit("t", retry={"backoff": "1s"})
    world.tick()
    world.fail("t", "agent_error")
    world.tick(MINUTE_MS)
    why = world.service.why("t")
    assert [decision.run_id for decision in why.decisions] == [run.id for run in reversed(world.service.runs("t"))]
    newest = why.decisions[0]
    assert (newest.agent, newest.tier, classification_of(newest).source) == ("claude", "balanced", "kept")
    assert all((candidate.rejected is None) is (candidate.rejected_because is None) for candidate in newest.agents)
    assert {candidate.agent: candidate.rejected_because is None for candidate in newest.agents} == {
        "claude": True,
        "codex": False,
        "lint": False,
    }
    assert [event.id for event in why.events] == sorted(event.id for event in why.events)
    messages = [event.data.get("event", event.kind) for event in why.events]
    assert messages == ["accepted", "BecameReady", "Started", "Retrying", "BecameReady", "Started"]


# --- agents and logs --------------------------------------------------------------------------------------------------


def test_an_agent_that_is_installed_meanwhile_spoils_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.registry.replace([CLAUDE], {})
    of_all = holds.hold_views

    def installing(*args: Any) -> Any:
        results = of_all(*args)
        world.registry.replace([CLAUDE, CODEX], {})
        return results

    monkeypatch.setattr(holds, "hold_views", installing)
    assert [agent.name for agent in world.overview.status().agents] == ["claude"]
    assert [agent.name for agent in world.overview.status().agents] == ["claude", "codex"]


def test_agents_are_told_in_the_order_of_the_configuration(world: World) -> None:
    world = World(world.database, agents=(LINT, CODEX, CLAUDE))
    world.submit("a", agent={"type": "claude"})
    world.tick()
    world.limit("a", reset_at=START_MS + HOUR_MS)
    lint, codex, claude = world.roster.all()
    assert (lint.name, lint.auto_select, lint.limited) == ("lint", False, False)
    assert (codex.active, codex.max_concurrent, codex.installed) == (1, 2, True)
    assert (claude.limited, claude.limited_until, claude.provenance) == (
        True,
        format_instant(START_MS + HOUR_MS),
        "reported",
    )
    assert claude.hold_reason == "rate_limited: 5h window"
    assert claude.models == CLAUDE.models
    released = world.roster.release("claude")
    assert (released.limited, released.hold_reason) == (False, None)
    with pytest.raises(NotFound, match="Did you mean `claude`"):
        world.roster.release("cluade")


def test_a_log_is_read_by_offset_and_says_when_it_has_ended(world: World) -> None:
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.host.write(run_id, b"0123456789", "stderr")
    first = world.run_requests.log(run_id, "stderr", 0, 4)
    assert (first.data, first.offset, first.next_offset, first.ended) == (b"0123", 0, 4, False)
    rest = world.run_requests.log(run_id, "stderr", 4, 100)
    assert (rest.data, rest.next_offset) == (b"456789", 10)
    nothing_yet = world.run_requests.log(run_id, "stderr", 10, 100)
    assert (nothing_yet.data, nothing_yet.next_offset, nothing_yet.ended) == (b"", 10, False)
    world.succeed("t")
    assert world.run_requests.log(run_id, "stderr", 0, 4).ended is False
    assert world.run_requests.log(run_id, "stderr", 10, 100).ended is True
    with pytest.raises(NotFound):
        world.run_requests.log("nope", "stdout", 0, 10)


def test_readiness_names_what_is_wrong(world: World) -> None:
    assert world.overview.readiness().ready
    assert [check.name for check in world.overview.readiness().checks] == ["store", "drain"]


def test_while_nothing_can_be_stored_an_unfinished_task_is_not_told_as_if_it_were_up_to_date(world: World) -> None:
    world.submit("done")
    world.tick()
    world.succeed("done")
    world.submit("t")
    world.tick()
    world.database.trouble = StoreUnavailable("the disk is full", "make room on it")
    missing = "Nothing can be stored at present, so what has happened since is missing here"
    assert world.service.why("t").sentences[1] == f"{missing}: the disk is full; make room on it."
    assert not [line for line in world.service.why("done").sentences if "stored" in line]
    world.database.trouble = None
    assert not [line for line in world.service.why("t").sentences if "stored" in line]


def test_who_asks_for_a_task_whose_file_was_refused_is_told_why(world: World) -> None:
    wrong = Problem(line=2, field="timeout", message="is no duration", remedy="write 45s")
    world.refusals.put("/in/Fix Login.yaml", [wrong, wrong])
    world.refusals.put("/in/other.yaml", [Problem(message="is empty")])
    for ask in (world.task, world.service.why, world.service.runs, world.service.cancel):
        with pytest.raises(NotFound) as refused:
            ask("fix-login")
        assert refused.value.detail == "There is no task 'fix-login': /in/Fix Login.yaml was refused."
        remedy = "Fix Login.yaml:2: timeout: is no duration; write 45s. `claudomator inbox` lists 1 more problem."
        assert refused.value.remedy == remedy
    with pytest.raises(NotFound, match=r"/in/other\.yaml was refused\. other\.yaml: is empty\.$"):
        world.service.why("other")
    with pytest.raises(NotFound, match=r"^There is no task 'unknown'"):
        world.service.why("unknown")
    world.submit("fix-login")
    assert world.service.why("fix-login").task.name == "fix-login"
    world.refusals.drop("/in/other.yaml")
    with pytest.raises(NotFound, match=r"^There is no task 'other'"):
        world.service.why("other")


def test_refused_files_are_listed_in_parts_the_last_one_first(world: World) -> None:
    for number in range(120):
        world.refusals.put(f"/in/{number}.yaml", [Problem(message="is empty")])
    world.refusals.put("/in/caf\udce9.yaml", [Problem(message="is empty")])
    status = world.overview.status()
    assert (len(status.inbox), status.totals["inbox"]) == (50, 121)
    assert status.inbox[0].path == "/in/caf\\xe9.yaml"
    paths: list[str] = []
    cursor = None
    while cursor is not None or not paths:
        page = world.overview.inbox_page(cursor, 50)
        paths += [file.path for file in page.items]
        assert page.total == len(world.refusals)
        world.refusals.drop(page.items[-1].path)  # what is good or gone meanwhile moves nothing
        world.refusals.put("/in/new.yaml", [Problem(message="is empty")])
        cursor = page.next_cursor
    assert paths == ["/in/caf\\xe9.yaml", *(f"/in/{number}.yaml" for number in reversed(range(120)))]
    with pytest.raises(BadCursor):
        world.overview.inbox_page("no", 50)
