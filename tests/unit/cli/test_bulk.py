"""``cancel``, ``restart``, ``answer`` of several tasks: which ones, after which question, and what became of each."""

import json
import os
import pty
import subprocess

from claudomator_py.domain.lifecycle import Completed, Failed, InputKind, NeedsInput, Running
from claudomator_py.domain.outcome import Reason
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S


def a_shop(prepared: PreparedService) -> None:
    prepared.add("fix-login", Failed(Reason.TIMEOUT), tags=("shop",))
    prepared.add("fix-logout", Failed(Reason.LOST), tags=("shop",))
    prepared.add("write-notes", Failed(Reason.LOST))
    prepared.add_run(prepared.add("works", Running(), tags=("shop",)))
    prepared.add("next", tags=("shop",))
    prepared.add("done", Completed(), tags=("shop",))


def states(prepared: PreparedService) -> dict[str, str]:
    return {task.name: task.state for task in map(prepared.task, prepared.task_ids())}


def test_all_that_match_are_restarted_and_each_is_told(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    done = command("restart", "--tag", "shop", "--state", "failed")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["NAME", "ID", "STATE", "DONE"]
    assert [(line[0], line[2], line[3]) for line in lines[1:]] == [
        ("fix-login", "QUEUED", "yes"),
        ("fix-logout", "QUEUED", "yes"),
    ]
    assert states(prepared)["write-notes"] == "FAILED"


def test_what_is_revived_by_another_is_not_restarted_itself(command: Command, prepared: PreparedService) -> None:
    prepared.add("build", Failed(Reason.TIMEOUT))
    prepared.add("test", Failed(Reason.DEPENDENCY_FAILED), depends_on=["build"])
    prepared.add("ship", Failed(Reason.DEPENDENCY_FAILED), depends_on=["test"])
    tried = command("restart", "--state", "failed", "--dry-run")
    assert "Would restart 1 task (1 FAILED)" in tried.stderr
    done = command("restart", "build", "test", "ship")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[3] for line in done.stdout.splitlines()[1:]] == ["yes", "yes", "yes"]
    assert states(prepared) == {"build": "QUEUED", "test": "WAITING", "ship": "WAITING"}


def test_only_what_has_not_ended_is_cancelled(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    done = command("cancel", "--tag", "shop", "-o", "json")
    assert [(load["task"]["name"], load["done"]) for load in json.loads(done.stdout)] == [
        ("works", True),
        ("next", True),
    ]
    prepared.settle()
    assert [name for name, state in states(prepared).items() if state == "CANCELLED"] == ["works", "next"]
    assert "There is nothing to cancel." in command("cancel", "--on", "claude").stderr


def test_several_questions_get_the_same_answer(command: Command, prepared: PreparedService) -> None:
    for name in ("one", "two", "three"):
        question = NeedsInput(InputKind.QUESTION)
        prepared.add_run(prepared.add(name, question, tags=() if name == "two" else ("shop",)))
    prepared.add("calm", tags=("shop",))
    assert command("answer", "--tag", "shop").returncode == 2, "the answer is missing"
    tried = command("answer", "--tag", "shop", "Blue.", "--dry-run")
    assert "Would answer 2 tasks (2 NEEDS_INPUT)" in tried.stderr
    done = command("answer", "--tag", "shop", "Blue.", "-o", "json")
    assert [(load["task"]["name"], load["done"]) for load in json.loads(done.stdout)] == [
        ("one", True),
        ("three", True),
    ]
    assert states(prepared) == {"one": "QUEUED", "two": "NEEDS_INPUT", "three": "QUEUED", "calm": "QUEUED"}
    refused = command("answer", "two", "calm", "Red.")
    assert refused.returncode == 1
    assert [(line.split()[0], line.split()[3]) for line in refused.stdout.splitlines()[1:3]] == [
        ("two", "yes"),
        ("calm", "no"),
    ]
    assert prepared.heard()[-1] == ("two", "answered", {"answer": "Red."})
    assert command("answer", "two", "--tag", "shop", "Red.").returncode == 2


def test_a_list_that_is_cut_says_so(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    cut = command("list", "--limit", "2", "--tag", "shop")
    assert len(cut.stdout.splitlines()) == 3
    assert "There are more than 2" in cut.stderr
    assert command("list", "--limit", "5", "--tag", "shop").stderr == ""
    assert command("list").stderr == ""


def test_the_log_of_one_task_is_asked_for_as_everything_else_of_a_task_is(
    command: Command, prepared: PreparedService
) -> None:
    prepared.add("one")
    prepared.add("two")
    shown = command("log", "one")
    assert shown.stdout == command("log", "--task", "one").stdout
    assert "one" in shown.stdout
    assert "two" not in shown.stdout


def test_a_dry_run_lists_and_does_nothing(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    before = states(prepared)
    done = command("cancel", "--tag", "shop", "--dry-run")
    assert done.returncode == 0
    assert "works" in done.stdout
    assert "Would cancel 2 tasks (1 QUEUED, 1 RUNNING); nothing was done." in done.stderr
    assert command("restart", "fix-login", "--dry-run").returncode == 0
    assert states(prepared) == before


def test_a_dry_run_says_which_tasks_would_be_refused(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    tried = command("approve", "done", "works", "--dry-run")
    assert (tried.returncode, tried.stdout) == (1, "")
    assert "Could not approve done (COMPLETED), works (RUNNING)." in tried.stderr
    tried = command("restart", "works", "fix-login", "--dry-run")
    assert "fix-login" in tried.stdout
    assert "Would restart 1 task (1 FAILED); nothing was done." in tried.stderr
    assert "works (RUNNING)" in tried.stderr
    assert command("restart", "works", "--force", "--dry-run").returncode == 0
    record = json.loads(command("cancel", "done", "next", "--dry-run", "-o", "json").stdout)
    assert [(entry["done"], entry["problem"] is None) for entry in record] == [(False, False), (False, True)]


def test_one_that_is_refused_hinders_no_other(command: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    done = command("restart", "fix-login", "works", "fix-logout", "fix-login")
    assert done.returncode == 1
    lines = done.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["fix-login", "works", "fix-logout"]
    assert [line.split()[3] for line in lines] == ["yes", "no", "yes"]
    assert "with `force`" in lines[1]
    assert states(prepared)["fix-logout"] == "QUEUED"


def test_which_tasks_has_to_be_said(command: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    for arguments in ((), ("it", "--tag", "shop")):
        done = command("cancel", *arguments)
        assert done.returncode == 2
        assert "name tasks, or select them" in done.stderr
    assert states(prepared) == {"it": "QUEUED"}


def test_a_terminal_is_asked_whether_that_many_are_meant(forked: Command, prepared: PreparedService) -> None:
    a_shop(prepared)
    for answer, code, expected in (("n", 1, "RUNNING"), ("y", 0, "CANCELLED")):
        master, terminal = pty.openpty()
        with subprocess.Popen(
            forked.argv(["cancel", "--tag", "shop"]),
            cwd=forked.home,
            env=forked.variables({}),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
        ) as running:
            try:
                os.close(terminal)
                asked = b""
                while b"[y/N]" not in asked:
                    asked += os.read(master, 1_000)
                assert b"Cancel 2 tasks (1 QUEUED, 1 RUNNING)?" in asked
                os.write(master, f"{answer}\n".encode())
                assert running.wait(PATIENCE_S) == code
            finally:
                running.kill()
                os.close(master)
        prepared.settle()
        assert states(prepared)["works"] == expected


def test_several_agents_are_released(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude")
    prepared.add_agent("codex")
    prepared.limit("codex")
    assert command("release", "claude", "codex").returncode == 0
    assert not any(agent.limited for agent in prepared.agents())
