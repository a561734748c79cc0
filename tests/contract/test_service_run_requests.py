"""What a run asks for while it lives: questions, a word on its progress, tasks beside its own; for itself alone."""

from dataclasses import replace
from typing import Any

import pytest

from claudomator_py.domain.errors import Conflict, Invalid, KeyReused, NotFound
from claudomator_py.domain.handoff import HANDOFF_MARKER
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import Principal, RequestKey, Role
from claudomator_py.domain.requests import (
    MAX_PROGRESS_EVENTS,
    MAX_QUESTIONS,
    MAX_SUBTASK_DEPTH,
    PROGRESS_EVERY_MS,
    ProgressRequest,
    QuestionRequest,
    SubtaskRequest,
)
from claudomator_py.domain.units import HOUR_MS, format_instant
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.runs.service import ASKED, PROGRESS, SUBTASK, Runs
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import events
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run
from claudomator_py.tasks.handing_on import HANDED_ON
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
EVE = Principal("eve", Role.OPERATE, "acme")


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.launch_rules = replace(world.launch_rules, max_subtasks=2)
    return world


def begin(world: World, name: str = "t", **fields: Any) -> Run:
    world.submit(name, **fields)
    world.tick()
    return world.live(name)


def requests(world: World, run: Run) -> Runs:
    """As that run's own token may ask."""
    return world.access.as_(Principal(f"run:{run.id}", Role.RUN, None, run.id))[Runs]


def ask(world: World, run: Run, question: str = "Which database?", *choices: str) -> tuple[str, ...]:
    return requests(world, run).ask(run.id, QuestionRequest(question=question, choices=choices)).questions


def create(world: World, run: Run, name: str = "docs", key: RequestKey | None = None, **fields: Any) -> str:
    wanted = SubtaskRequest(name=name, **{"instructions": "Write it up.", **fields})
    return requests(world, run).create_subtask(run.id, wanted, key=key).task_id


def told(world: World, kind: str) -> list[Any]:
    result = world.database.read(lambda connection: events.following(connection, 0, 10_000))
    return [event.data for event in result if event.kind == kind]


@pytest.mark.both_databases
def test_a_person_is_asked_once_the_run_has_ended_and_the_answer_goes_on(world: World) -> None:
    run = begin(world)
    assert ask(world, run, "Which database?", "old", "new") == ("Which database?\n- old\n- new",)
    assert world.state("t") == "RUNNING"
    world.succeed("t")
    world.tick()

    task = world.task("t")

    assert (task.state, task.reason, task.reason_text) == ("NEEDS_INPUT", "question", "Which database?\n- old\n- new")
    world.service.answer("t", AnswerRequest(text="The new one."))
    world.tick()
    assert world.live("t").resumes == run.id
    assert "The new one." in world.host.directories[world.live("t").id, 0].order.stdin
    world.succeed("t")
    world.tick()
    assert world.state("t") == "COMPLETED"
    assert told(world, ASKED) == [{"question": "Which database?\n- old\n- new"}]


def test_it_asks_all_that_it_has_asked_at_once_and_nothing_twice(world: World) -> None:
    run = begin(world)
    ask(world, run, "First?")
    ask(world, run, "Second?")
    assert ask(world, run, "First?") == ("First?", "Second?")
    world.succeed("t")
    world.tick()
    assert world.task("t").reason_text == "First?\n\nSecond?"
    assert world.run_requests.get(run.id).asked == ("First?", "Second?")


@pytest.mark.parametrize("asks", [True, False])
def test_who_asks_and_says_nothing_else_has_said_enough(world: World, asks: bool) -> None:
    run = begin(world)
    if asks:
        ask(world, run)
    world.end("t", status="failed", reason="no_answer", detail="it printed no text")
    world.tick()
    assert (world.state("t") == "NEEDS_INPUT question") == asks


def test_a_run_that_does_not_end_well_has_asked_nothing(world: World) -> None:
    run = begin(world)
    ask(world, run)
    world.end("t", status="failed", reason="agent_error")
    world.tick()
    assert world.state("t") != "NEEDS_INPUT question"


def test_it_asks_so_often_and_no_more(world: World) -> None:
    run = begin(world)
    for number in range(MAX_QUESTIONS):
        ask(world, run, f"Question {number}?")
    with pytest.raises(Conflict, match=f"asked {MAX_QUESTIONS} questions"):
        ask(world, run, "And this?")


def test_nobody_is_asked_where_the_task_says_so(world: World) -> None:
    run = begin(world, on_input="deny")
    with pytest.raises(Conflict, match="may ask no questions"):
        ask(world, run)
    world.succeed("t")
    world.tick()
    assert world.state("t") == "COMPLETED"


def test_a_check_waits_for_the_answer(world: World) -> None:
    run = begin(world, check=["true"])
    ask(world, run)
    world.succeed("t")
    world.tick()
    assert world.state("t") == "NEEDS_INPUT question"


def test_whoever_asks_does_not_hand_the_task_on_and_the_reverse(database: Database) -> None:
    world = World(database, routing=True)
    for name in ("ann", "ben"):
        world.specialists.register(card(name, description=f"Does what {name} does."))
    for name in ("t", "u"):
        world.submit(name, specialist="ann")
    world.router.route()
    world.tick()
    first, second = world.live("t"), world.live("u")
    ask(world, first)
    with pytest.raises(Conflict, match="has asked a question"):
        requests(world, first).hand_on(first.id, HandoffRequest(to="ben"))
    requests(world, second).hand_on(second.id, HandoffRequest(to="ben"))
    with pytest.raises(Conflict, match="goes to ben already"):
        ask(world, second)


@pytest.fixture
def staffed(database: Database) -> World:
    """Ann has a task that runs; ben is there as well."""
    world = World(database, routing=True)
    world.specialists.register(card("ann", fallback="default"))
    world.specialists.register(card("ben"))
    world.submit("t", specialist="ann")
    world.router.route()
    world.tick()
    return world


def test_a_task_is_handed_on_once_however_often_that_is_said(staffed: World) -> None:
    run = staffed.live("t")
    asked = requests(staffed, run)
    for nobody in ("nobody", "ann"):
        with pytest.raises(Conflict, match=f"t cannot be handed on to {nobody}: "):
            asked.hand_on(run.id, HandoffRequest(to=nobody))
    view = asked.hand_on(run.id, HandoffRequest(to="ben", left="all"))
    assert (view.specialist, view.handed_on_by, view.hop) == ("ben", "ann", 1)
    assert asked.hand_on(run.id, HandoffRequest(to="ben", left="all")) == view
    with pytest.raises(Conflict, match="t goes to ben already"):
        asked.hand_on(run.id, HandoffRequest(to="ben", left="some of it"))
    staffed.succeed("t")
    assert staffed.run_requests.hand_on(run.id, HandoffRequest(to="ben", left="all")) == view


def test_only_those_are_told_to_whom_it_goes_who_may_know(database: Database) -> None:
    world = World(database, routing=True)
    of_ann = world.access.as_(ANN)
    of_ann[Specialists].register(card("shepherd", visibility="private"))
    world.specialists.register(card("ben"))
    of_ann[Tasks].submit(spec("t", specialist="ben"))
    world.router.route()
    world.tick()
    run = world.live("t")
    itself = Principal(f"run:{run.id}", Role.RUN, "acme", run.id)
    world.access.as_(itself)[Runs].hand_on(run.id, HandoffRequest(to="shepherd"))
    for by, to in ((itself, "shepherd"), (ANN, "shepherd"), (EVE, "somebody else")):
        asked = world.access.as_(by)[Runs]
        with pytest.raises(Conflict, match=f"t goes to {to} already"):
            asked.hand_on(run.id, HandoffRequest(to="ben"))
        with pytest.raises(Conflict, match=f"t goes to {to} already"):
            asked.ask(run.id, QuestionRequest(question="Which?"))


@pytest.mark.parametrize("to", ["nobody", "ann"])
def test_what_was_refused_at_a_run_s_end_is_not_handed_on_afterwards(staffed: World, to: str) -> None:
    run = staffed.live("t")
    staffed.end("t", text=f'{HANDOFF_MARKER} {{"to": "{to}"}}')
    staffed.tick()
    assert staffed.state("t") == "NEEDS_INPUT approval"
    for again in (to, "ben"):
        with pytest.raises(Conflict, match="has ended, or is being stopped"):
            staffed.run_requests.hand_on(run.id, HandoffRequest(to=again))


def test_nor_is_what_has_fallen_back_to_whoever_does_what_fits_nobody(staffed: World) -> None:
    staffed.fail("t", "agent_error")
    staffed.tick(HOUR_MS)
    second = staffed.live("t")
    staffed.fail("t", "agent_error")
    assert [entry["to"] for entry in told(staffed, HANDED_ON)] == ["default"]
    with pytest.raises(Conflict, match="has ended, or is being stopped"):
        staffed.run_requests.hand_on(second.id, HandoffRequest(to="ben"))


def test_no_secret_is_asked_or_told(world: World) -> None:
    run = begin(world, env={"API_KEY": "hunter2-hunter2"})
    ask(world, run, "Is hunter2-hunter2 right?")
    requests(world, run).report_progress(run.id, ProgressRequest(text="I use hunter2-hunter2."))
    create(world, run, instructions="Use hunter2-hunter2.")
    view = world.run_requests.get(run.id)
    assert "hunter2" not in view.model_dump_json()
    assert "hunter2" not in str(told(world, ASKED) + told(world, PROGRESS))
    assert "hunter2" not in str(world.service.get("docs").spec)


@pytest.mark.both_databases
def test_progress_is_shown_and_what_comes_too_soon_is_dropped(world: World) -> None:
    run = begin(world)
    report = requests(world, run).report_progress
    next_at = format_instant(world.now_ms + PROGRESS_EVERY_MS)
    first = report(run.id, ProgressRequest(text="Begun.", percent=5))
    world.now_ms += PROGRESS_EVERY_MS - 1
    early = report(run.id, ProgressRequest(text="Too soon."))
    assert (first.recorded, first.next_at) == (True, next_at)
    assert (early.recorded, early.next_at) == (False, next_at)
    world.now_ms += 1
    assert report(run.id, ProgressRequest(text="Half.", percent=50)).recorded
    shown = world.run_requests.get(run.id).progress
    assert shown is not None
    assert (shown.text, shown.percent) == ("Half.", 50)
    assert world.task("t").progress == shown
    assert shown.line == "50%: Half."
    assert told(world, PROGRESS) == [{"text": "Begun.", "percent": 5}, {"text": "Half.", "percent": 50}]


def test_nothing_is_said_of_the_progress_of_a_run_that_is_over(world: World) -> None:
    run = begin(world)
    requests(world, run).report_progress(run.id, ProgressRequest(text="Half."))
    world.succeed("t")
    world.tick()
    assert world.task("t").progress is None
    assert told(world, PROGRESS) == [{"text": "Half."}]


def test_a_run_that_talks_all_night_fills_no_disk(world: World) -> None:
    run = begin(world, timeout="30d")
    for number in range(MAX_PROGRESS_EVENTS + 3):
        world.now_ms += PROGRESS_EVERY_MS
        requests(world, run).report_progress(run.id, ProgressRequest(text=f"Step {number}."))
    assert len(told(world, PROGRESS)) == MAX_PROGRESS_EVENTS
    shown = world.run_requests.get(run.id).progress
    assert shown is not None
    assert shown.text == f"Step {MAX_PROGRESS_EVENTS + 2}."


@pytest.mark.both_databases
def test_a_subtask_is_of_the_same_creator_with_the_same_permissions(world: World) -> None:
    fields: dict[str, Any] = {
        "permissions": {"mode": "plan", "disallowed_tools": ["Bash"]},
        "tags": ["prod"],
        "priority": "high",
        "env": {"A": "b"},
        "approval": False,
        "check": ["make test"],
        "timeout": "7m",
    }
    run = begin(world, **fields)
    task_id = create(world, run, expected_output="A page.")
    made, own = world.service.get(task_id), world.task("t")
    assert (made.parent_run, made.source, made.creator, made.organisation) == (run.id, "run", own.creator, None)
    assert made.spec is not None
    assert own.spec is not None
    same = ("permissions", "tags", "priority", "env", "timeout")
    assert {key: made.spec.get(key) for key in same} == {key: own.spec.get(key) for key in same}
    assert (made.spec["instructions"], made.spec["expected_output"]) == ("Write it up.", "A page.")
    assert not made.spec.get("check"), "it says whether the run's own task is done"
    assert told(world, SUBTASK) == [{"name": "docs", "to": task_id}]


def test_a_subtask_waits_for_nothing_that_its_parent_waited_for(world: World) -> None:
    first = begin(world, "first")
    world.succeed("first")
    world.tick()
    run = begin(world, "t", depends_on=["first"])
    assert run.task_id != first.task_id
    made = world.service.get(create(world, run))
    assert made.depends_on == ()


def test_it_creates_so_many_and_no_more(world: World) -> None:
    run = begin(world)
    for name in ("one", "two"):
        create(world, run, name)
    with pytest.raises(Conflict, match="may create at most 2 tasks"):
        create(world, run, "three")
    world.launch_rules = replace(world.launch_rules, max_subtasks=0)
    with pytest.raises(Conflict, match="may not create tasks here"):
        create(world, run, "four")


def test_tasks_do_not_create_tasks_without_end(world: World) -> None:
    run = begin(world, "task0")
    for depth in range(MAX_SUBTASK_DEPTH):
        create(world, run, f"task{depth + 1}")
        world.succeed(f"task{depth}")
        world.tick()
        world.tick()
        run = world.live(f"task{depth + 1}")
    with pytest.raises(Conflict, match="is already nested"):
        create(world, run, "one-too-deep")


def test_a_subtask_may_spend_what_is_left(world: World) -> None:
    run = begin(world, budget={"runs": 3, "tokens": 1_000})
    made = world.service.get(create(world, run))
    assert made.spec is not None
    assert made.spec["budget"] == {"runs": 2, "tokens": 1_000}
    dear = begin(world, "dear", budget={"usd": 1})
    assert (world.service.get(create(world, dear, "cheap")).spec or {})["budget"] == {"usd": 1}
    last = begin(world, "last", budget={"runs": 1})
    with pytest.raises(Conflict, match="has nothing left for another task"):
        create(world, last, "more")


@pytest.mark.parametrize("strict", [True, False])
def test_only_a_strict_choice_of_the_agent_stays(world: World, strict: bool) -> None:
    chosen = {"type": "codex", "strict": strict}
    made = world.service.get(create(world, begin(world, agent=chosen)))
    assert made.spec is not None
    assert made.spec["agent"] == (chosen if strict else {"strict": False})


def test_a_repeated_request_creates_one_task(world: World) -> None:
    run, key = begin(world), RequestKey("k", "docs")
    assert create(world, run, key=key) == create(world, run, key=key)
    with pytest.raises(KeyReused):
        create(world, run, "other", key=RequestKey("k", "other"))
    assert len(told(world, SUBTASK)) == 1


def test_a_subtask_for_nobody_is_refused(world: World) -> None:
    run = begin(world)
    with pytest.raises(Invalid, match="specialist"):
        create(world, run, specialist="nobody")
    assert told(world, SUBTASK) == []


def test_the_policy_sees_that_a_run_made_it(database: Database) -> None:
    world = World(database, routing=True)
    world.launch_rules = replace(world.launch_rules, max_subtasks=2)
    world.policy_rules = (
        Rule.model_validate({"name": "no-offspring", "when": 'task.source == "run"', "deny": "Runs make no tasks."}),
    )
    world.restarted_daemon()
    world.specialists.register(card("ann", description="Does it."))
    world.submit("t", specialist="ann")
    world.router.route()
    world.tick()
    create(world, world.live("t"))
    world.router.route()
    assert world.state("docs") == "FAILED rejected"


@pytest.mark.both_databases
def test_a_run_asks_for_itself_alone(world: World) -> None:
    mine, other = begin(world, "t"), begin(world, "u")
    asked = requests(world, mine)
    for refused in (
        lambda: asked.ask(other.id, QuestionRequest(question="Which?")),
        lambda: asked.report_progress(other.id, ProgressRequest(text="Half.")),
        lambda: asked.create_subtask(other.id, SubtaskRequest(name="x", instructions="X.")),
        lambda: asked.hand_on(other.id, HandoffRequest(to="ben")),
        lambda: asked.handoff(other.id),
    ):
        with pytest.raises(NotFound):
            refused()


def test_a_run_that_is_over_or_to_end_asks_nothing(world: World) -> None:
    over, stopping, leaving = begin(world, "t"), begin(world, "u"), begin(world, "v")
    world.succeed("t")
    world.tick()
    world.service.cancel("u")
    world.restart("v", force=True)
    for run in (over, stopping, leaving):
        with pytest.raises(Conflict, match="has ended, or is being stopped"):
            world.run_requests.ask(run.id, QuestionRequest(question="Which?"))
        with pytest.raises(Conflict, match="has ended, or is being stopped"):
            world.run_requests.report_progress(run.id, ProgressRequest(text="Half."))
        with pytest.raises(Conflict, match="has ended, or is being stopped"):
            world.run_requests.create_subtask(run.id, SubtaskRequest(name="x", instructions="X."))


def test_it_reads_its_handoff(world: World) -> None:
    run = begin(world, expected_output="A page.")
    told_it = requests(world, run).handoff(run.id)
    assert (told_it.run, told_it.task, told_it.expected_output) == (run.id, run.task_id, "A page.")
    del world.host.directories[run.id, 0]
    with pytest.raises(NotFound, match="no handoff document"):
        world.run_requests.handoff(run.id)


@pytest.mark.both_databases
def test_a_run_that_its_host_has_not_placed_says_why(world: World) -> None:
    run = begin(world)
    assert world.task(run.task_id).reason is None
    world.host.obstacles[run.id] = "waits for lab: no node has room (Resources)"
    task = world.task(run.task_id)
    assert (task.reason, task.reason_text) == ("host", "waits for lab: no node has room (Resources)")
