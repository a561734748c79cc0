"""What a run that starts goes on with: a conversation, the work of another run or task, its tree, its folders."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import DayBudget
from claudomator_py.domain.inputs import MARKER
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import LaunchRequest, RunSpec, Stream
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.domain.worktree import Tree, TreeFault, WorktreeRequest
from claudomator_py.environment.worktrees import TREE_USED
from claudomator_py.ports import Transcript
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import AnswerRequest
from claudomator_py.store.database import Database
from claudomator_py.tasks.runs import NOTE_OF
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.trees import FakeTrees
from tests.fakes.world import World

ON_CLAUDE = {"type": "claude", "strict": True}


class AtOnce(Executor):
    """Does what it is given on the thread that gives it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def trees(tmp_path: Path) -> FakeTrees:
    (tmp_path / "trees").mkdir()
    return FakeTrees(tmp_path / "trees")


@pytest.fixture
def repository(tmp_path: Path) -> str:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "api").mkdir()
    return str(tmp_path / "shop")


@pytest.fixture
def wooded(database: Database, trees: FakeTrees) -> Iterator[World]:
    """A world whose trees are made while it is asked for them, and are there at the next look."""
    world = World(database, trees=trees)
    world.worktrees._pool = world.worktrees._lookers = AtOnce()
    yield world
    world.worktrees.close()


def last(world: World, name: str = "t") -> RunView:
    return world.service.runs(name)[-1]


def asked(world: World, kind: str = "claude") -> LaunchRequest:
    """How the last run of that kind was started."""
    return world.kinds[kind].requests[-1]


def order(world: World, name: str = "t") -> RunSpec:
    return world.host.directories[last(world, name).id, 0].order


def done(world: World, name: str = "first", **fields: Any) -> RunView:
    """A task that has completed on claude."""
    world.submit(name, **({"agent": ON_CLAUDE} | fields))
    world.tick()
    world.end(name, text="I made the hole.")
    world.tick()
    return last(world, name)


def limited_holder(world: World) -> RunView:
    """A task that has completed on claude, which is limited since."""
    first = done(world)
    world.submit("x", agent=ON_CLAUDE)
    world.tick()
    world.limit("x", reset_at=world.now_ms + HOUR_MS)
    return first


# --- a conversation of its own --------------------------------------------------------------------------------------


def test_a_resumed_task_goes_on_where_it_left_off(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE, retry={"max_attempts": 1})
    world.tick()
    before = asked(world)
    world.answer("t")
    world.fail("t")
    first = last(world)
    world.restart("t", resume=True, reason="Use the red spade.")
    world.tick()
    assert (asked(world).resume, asked(world).conversation_id) == (True, before.conversation_id)
    assert last(world).resumes == first.id
    assert asked(world).prompt.startswith("Continue the task where you left off.")
    assert "The operator adds:\n\nUse the red spade." in asked(world).prompt
    assert "do t" not in asked(world).prompt, "it knows that"
    assert order(world).note is None
    assert order(world).scratch_of == first.id
    assert not any(NOTE_OF in event.data for event in world.service.why("t").events), "it needs no note"


def test_an_answer_is_told_alone_to_the_conversation_that_asked(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE)
    world.tick()
    assert MARKER in asked(world).prompt
    world.end("t", text=f"I looked.\n\n{MARKER} Red or blue?\n")
    world.tick()
    world.service.answer("t", AnswerRequest(text="Blue."))
    world.tick()
    assert asked(world).prompt == "The operator answers your question:\n\nBlue.\n"


def test_an_answer_whose_conversation_is_gone_is_told_afresh_with_the_question(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE)
    world.tick()
    world.end("t", text=f"I looked.\n\n{MARKER} Red or blue?\n")
    world.tick()
    world.host.directories[last(world).id, 0].scratch = False
    world.service.answer("t", AnswerRequest(text="Blue."))
    world.tick()
    assert asked(world).prompt.startswith("do t\n")
    assert "> Red or blue?\n\nThe operator said: Blue." in asked(world).prompt


def test_who_cannot_be_answered_is_not_told_how_to_ask(world: World) -> None:
    world.submit("lint", agent={"type": "lint"})
    world.submit("denied", agent=ON_CLAUDE, on_input="deny")
    world.tick()
    assert MARKER not in asked(world, "command").prompt
    assert MARKER not in asked(world).prompt


def test_a_conversation_whose_scratch_folder_is_gone_is_begun_afresh(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE, retry={"max_attempts": 1})
    world.tick()
    world.fail("t")
    run_id = last(world).id
    world.restart("t", resume=True)
    world.host.directories[run_id, 0].scratch = False
    world.tick()
    assert last(world).resumes is None
    assert asked(world).prompt.startswith("do t\n")
    assert "its scratch folder is gone" in " ".join(world.service.why("t").sentences)


def test_another_agent_that_takes_over_after_a_limit_is_told_what_was_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams: list[str] = []
    transcript = world.kinds["claude"].transcript

    def watched(stream: Stream, offset: int = 0) -> Transcript:
        streams.append(stream)
        return transcript(stream, offset)

    monkeypatch.setattr(world.kinds["claude"], "transcript", watched)
    world.submit("t", agent={"type": "claude"})
    world.tick()
    run_id = last(world).id
    world.answer("t")
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    world.tick()
    assert (last(world).agent, last(world).resumes) == ("codex", None)
    assert "Another agent, claude, had this task before you" in asked(world, "codex").prompt
    assert "Another agent, claude" in str(order(world).note)
    assert streams == ["stdout"], "what it said and did is read"
    assert order(world).scratch_of == run_id


def test_a_run_after_one_that_did_nothing_is_told_nothing_of_it(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE, retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    assert len(world.service.runs("t")) == 2
    assert order(world).note is None
    assert order(world).scratch_of is None


def test_the_runs_of_an_earlier_generation_leave_nothing(world: World) -> None:
    world.submit("t", agent=ON_CLAUDE, retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    world.answer("t")
    world.fail("t", "refused")
    world.restart("t")
    world.tick()
    assert order(world).note is None
    first = last(world)
    world.fail("t", "agent_error")
    world.tick(HOUR_MS)
    assert last(world).id != first.id
    assert order(world).note is None, "nor to a later run of the next generation"
    assert json.loads(str(order(world).handoff))["evidence"]["runs"] == [first.id]


def test_a_conversation_that_another_agent_might_take_over_goes_on_where_it_is_if_nobody_did(world: World) -> None:
    world.submit("t", agent={"type": "claude"})
    world.tick()
    world.answer("t")
    first = last(world)
    world.submit("x", agent={"type": "codex", "strict": True})
    world.tick()
    world.limit("x", reset_at=world.now_ms + 2 * HOUR_MS)
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    assert world.state("t") == "QUEUED limited"
    world.tick(HOUR_MS)
    assert (last(world).agent, last(world).resumes) == ("claude", first.id)


# --- the conversation of another task -------------------------------------------------------------------------------


def test_a_task_that_continues_another_one_speaks_in_its_conversation(world: World) -> None:
    first = done(world)
    before = asked(world)
    world.submit("t", continues="first", on_limit="wait")
    world.tick()
    assert last(world).resumes == first.id
    assert (asked(world).resume, asked(world).conversation_id) == (True, before.conversation_id)
    assert asked(world).prompt == "do t\n"
    assert order(world).note is None
    assert order(world).scratch_of == first.id
    world.answer("t")
    world.limit("t", reset_at=world.now_ms + HOUR_MS)
    world.tick(HOUR_MS + 1)
    assert not any(NOTE_OF in event.data for event in world.service.why("t").events)
    assert asked(world).prompt.startswith("Continue the task where you left off.")
    assert "This is the task:\n\ndo t\n" in asked(world).prompt, "whether it was heard is not known"


def test_one_that_cannot_go_on_there_is_told_of_the_other_task(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = limited_holder(world)
    redacted_for: list[str | None] = []
    redactor = world.starter._secrets.redactor

    def watched(env: Mapping[str, str], run_id: str | None) -> Redactor:
        redacted_for.append(run_id)
        return redactor(env, run_id)

    monkeypatch.setattr(world.starter._secrets, "redactor", watched)
    world.submit("t", continues="first")
    world.tick()
    assert (last(world).agent, last(world).resumes) == ("codex", None)
    prompt = asked(world, "codex").prompt
    assert prompt.startswith("do t\n")
    assert "This task continues another one, first, which claude has done." in prompt
    assert "I made the hole." in prompt
    assert "had this task before" not in prompt
    assert first.id in redacted_for, "what that run alone was given is a secret, too"
    assert order(world).scratch_of == first.id


def test_one_that_continues_a_run_of_which_nothing_is_left_begins_all_the_same(world: World) -> None:
    first = limited_holder(world)
    world.submit("t", continues="first")
    forgotten = f"UPDATE task SET resume = replace(resume, '{first.id}', 'forgotten') WHERE name = 't'"
    world.database.write(lambda connection: connection.exec_driver_sql(forgotten))
    world.tick()
    assert (last(world).agent, order(world).note, world.faults.all()) == ("codex", None, [])


def test_one_that_works_elsewhere_takes_over_no_scratch_folder(world: World, tmp_path: Path) -> None:
    done(world)
    world.submit("t", continues="first", working_dir=str(tmp_path), agent=ON_CLAUDE)
    world.tick()
    assert last(world).resumes is None
    assert "This task continues another one, first" in str(order(world).note)
    assert order(world).scratch_of is None


def test_a_scratch_folder_that_is_gone_is_not_taken_over(world: World) -> None:
    first = limited_holder(world)
    world.host.directories[first.id, 0].scratch = False
    world.submit("t", continues="first")
    world.tick()
    assert last(world).agent == "codex"
    assert order(world).scratch_of is None


def test_of_a_run_of_a_kind_that_is_gone_its_result_is_told(world: World) -> None:
    done(world)
    world.agents = (CODEX,)
    del world.kinds["claude"]
    world.restarted_daemon()
    world.submit("t", continues="first")
    world.tick()
    assert last(world).agent == "codex"
    assert "I made the hole." in asked(world, "codex").prompt


# --- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "usd"), [({"usd": 2.0}, 2.0), ({}, None)], ids=["capped", "free"])
def test_an_agent_is_told_how_many_dollars_are_left(world: World, budget: dict[str, Any], usd: float | None) -> None:
    world.submit("t", agent=ON_CLAUDE, budget=budget)
    world.tick()
    assert asked(world).usd_left == usd


def test_where_no_budget_is_watched_nothing_is_added_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def usd_left(*_: object) -> float:
        raise AssertionError("each start would cost a look at all runs of the day")

    monkeypatch.setattr(world.budgets, "usd_left", usd_left)
    world.submit("t", agent=ON_CLAUDE)
    assert world.tick().started == 1


def test_the_budget_of_the_day_counts_too(world: World) -> None:
    world.day_budget = DayBudget(usd=4.0, timezone="UTC")
    world.submit("t", agent=ON_CLAUDE)
    world.tick()
    assert asked(world).usd_left == 4.0


@pytest.mark.parametrize("enabled", [True, False])
def test_only_an_agent_that_may_is_given_the_tools_of_the_daemon(database: Database, enabled: bool) -> None:
    mcp = CLAUDE.mcp.model_copy(update={"enabled": enabled})
    agent: AgentSpec = CLAUDE.model_copy(update={"mcp": mcp})
    world = World(database, agents=(agent,))
    world.launch_rules = replace(world.launch_rules, mcp_command=("mcp",))
    world.submit("t")
    world.tick()
    assert asked(world).mcp_command == (("mcp",) if enabled else ())


# --- a tree ---------------------------------------------------------------------------------------------------------


def test_a_run_begins_once_its_tree_is_there_and_works_in_it(wooded: World, repository: str, trees: FakeTrees) -> None:
    wooded.submit("t", working_dir=f"{repository}/api", isolation="worktree")
    assert wooded.tick().started == 0
    assert (wooded.state("t"), wooded.faults.all()) == ("QUEUED ready", []), "it is being made"
    assert wooded.tick().started == 1
    (name,) = trees.orders
    tree = trees.root / name
    assert wooded.live("t").dir_key == str(tree)
    assert order(wooded).cwd == str(tree / "api")
    assert (tree / "api").is_dir()
    assert wooded.task("t").branch == trees.orders[name].branch
    assert trees.orders[name].branch in str(order(wooded).handoff)
    assert [event.data["path"] for event in wooded.service.why("t").events if event.kind == TREE_USED] == [str(tree)]


def first_in_a_tree(wooded: World, repository: str) -> str | None:
    """Let the task ``first`` be done in a tree; where that is."""
    wooded.submit("first", working_dir=repository, isolation="worktree", agent=ON_CLAUDE)
    wooded.tick()
    wooded.tick()
    tree = wooded.live("first").dir_key
    wooded.succeed("first")
    wooded.tick()
    return tree


def test_a_task_that_continues_one_in_a_tree_works_on_there(wooded: World, repository: str) -> None:
    tree = first_in_a_tree(wooded, repository)
    wooded.submit("t", continues="first")
    wooded.tick()
    wooded.tick()
    assert wooded.live("t").dir_key == tree


def test_one_that_cannot_speak_on_there_works_on_there(wooded: World, repository: str) -> None:
    tree = first_in_a_tree(wooded, repository)
    wooded.submit("x", agent=ON_CLAUDE)
    wooded.tick()
    wooded.limit("x", reset_at=wooded.now_ms + HOUR_MS)
    wooded.submit("t", continues="first")
    wooded.tick()
    wooded.tick()
    assert (last(wooded).agent, last(wooded).resumes) == ("codex", None)
    assert wooded.live("t").dir_key == tree


def test_a_folder_that_the_repository_has_in_no_commit_is_made_in_the_tree(wooded: World, repository: str) -> None:
    (Path(repository) / "new" / "deep").mkdir(parents=True)
    wooded.submit("t", working_dir=f"{repository}/new/deep", isolation="worktree")
    wooded.tick()
    wooded.tick()
    assert (Path(wooded.live("t").dir_key) / "new" / "deep").is_dir()


def test_a_tree_that_cannot_be_made_fails_its_task(wooded: World, repository: str, trees: FakeTrees) -> None:
    trees.fault = TreeFault("no work tree of shop: No space left; make room")
    wooded.submit("t", working_dir=repository, isolation="worktree", retry={"max_attempts": 1})
    wooded.tick()
    wooded.tick()
    assert wooded.state("t") == "FAILED setup_failed"
    assert "No space left; make room" in str(wooded.task("t").reason_text)


@pytest.mark.parametrize("in_place", ["link", "file"])
def test_a_folder_that_cannot_be_had_in_the_tree_fails_its_task_there(
    wooded: World, repository: str, trees: FakeTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: str
) -> None:
    (tmp_path / "outside").mkdir()

    def ensure(order: WorktreeRequest) -> Tree:
        tree = FakeTrees.ensure(trees, order)
        if in_place == "link":
            (Path(tree.path) / "api").symlink_to(tmp_path / "outside")
        else:
            (Path(tree.path) / "api").write_text("")
        return tree

    monkeypatch.setattr(trees, "ensure", ensure)
    wooded.submit("t", working_dir=f"{repository}/api", isolation="worktree", retry={"max_attempts": 1})
    wooded.tick()
    wooded.tick()
    assert wooded.state("t") == "FAILED setup_failed"
    why = {"link": "leads out of its work tree", "file": "cannot be created (File exists)"}[in_place]
    assert why in str(wooded.task("t").reason_text)
    (name,) = trees.orders
    row = wooded.database.read(lambda c: c.exec_driver_sql("SELECT dir_key FROM run").scalar_one())
    assert row == str(trees.root / name), "so that a retry gets the same one"
