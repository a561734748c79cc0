"""Runs of the real Claude Code that go on by themselves after a result: each is over when it is, and not before.

A command in the background, a wake-up, a server that never ends, a watch on lines, and what is left over on resume:
each of them to its end, into its timeout, and over its budget.
"""

import os
import signal
from typing import Any

import pytest

from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, why
from tests.fakes.http_api import INPUT_TOKENS, Step, Text, ToolCall
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, Cli
from tests.real_clis.place import END_S, SLEEP, Place

ONLY_CLAUDE = pytest.mark.parametrize("cli", [pytest.param(CLAUDE, id="claude", marks=CLAUDE.marks)])
ALLOWED = {"mode": "acceptEdits", "allowed_tools": ["Bash", "Monitor", "ScheduleWakeup", "CronCreate", "CronDelete"]}
WAKE_UP_S = 180.0
"""One that is asked for in a minute comes at the next full minute after that."""
BUSY = CLAUDE.shell("timeout 60 sh -c 'while :; do :; done'")
SLEEPS = CLAUDE.shell(f"true; {SLEEP}")
"""A bare sleep is refused, and the model told to leave it in the background."""
WAKE_UP = ToolCall("ScheduleWakeup", {"delaySeconds": 60, "reason": "wait", "prompt": "go on"})
EACH_LINE = ToolCall("Monitor", {"command": "while sleep 2; do echo tick; done", "description": "watch"})
JOB = ToolCall("CronCreate", {"cron": "*/5 * * * *", "prompt": "look again", "recurring": True})
NOT_ASKED_FOR = Text("never said")


def in_background(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "as asked", "run_in_background": True})


SERVER = in_background(SLEEP)


def begun(place: Place, *steps: Step, limits: dict[str, str] | None = None, **fields: object) -> Daemon:
    """A daemon that runs the task, with a model that takes these steps."""
    place.api.script(*steps)
    place.configure(background=True, limits=limits)
    daemon = place.start()
    place.drop("greet", permissions=ALLOWED, **fields)
    return daemon


def over(place: Place, daemon: Daemon, deadline_s: float = END_S) -> TaskView:
    """The task, once it has ended; nothing of it is left."""
    task = ended(daemon, "greet", deadline_s)
    wait_until(lambda: not place.running(SLEEP), "what it left to end")
    assert not place.running(place.cli.program.name)
    return task


@ONLY_CLAUDE
def test_a_command_in_the_background_is_waited_for(place: Place, cli: Cli) -> None:
    made = in_background(f"sleep 6; touch {place.greeting}")
    daemon = begun(place, made, Text("Started."), Text("It is built."), check=[f"test -f {place.greeting}"])
    task = over(place, daemon)
    assert (task.state, task.result_text) == ("COMPLETED", "It is built.")
    assert task.tokens.input == 3 * INPUT_TOKENS


@ONLY_CLAUDE
def test_a_wake_up_is_waited_for(place: Place, cli: Cli) -> None:
    daemon = begun(place, WAKE_UP, Text("Later."), Text("I have looked."))
    task = over(place, daemon, WAKE_UP_S)
    assert (task.state, task.result_text, task.tokens.input) == ("COMPLETED", "I have looked.", 3 * INPUT_TOKENS)


@ONLY_CLAUDE
def test_a_job_of_its_scheduler_is_not_waited_for_and_said_to_be_dropped(place: Place, cli: Cli) -> None:
    daemon = begun(place, JOB, Text("I will look again."), NOT_ASKED_FOR)
    task = over(place, daemon)
    assert (task.state, task.result_text) == ("COMPLETED", "I will look again.")
    assert task.reason_text == "done, but what it had set up for later was dropped"
    assert "what it had set up for later: 1 scheduled job. Have it done in the foreground" in why(daemon, "greet")


@ONLY_CLAUDE
def test_a_server_that_is_left_behind_keeps_nothing(place: Place, cli: Cli) -> None:
    daemon = begun(place, SERVER, Text("It serves."), NOT_ASKED_FOR, limits={"background_idle": "6s"})
    task = over(place, daemon)
    assert (task.state, task.result_text) == ("COMPLETED", "It serves.")
    assert "in the background neither wrote nor computed anything more, and was stopped." in why(daemon, "greet")


@ONLY_CLAUDE
def test_what_a_killed_run_left_over_is_told_before_the_next_one_begins(place: Place, cli: Cli) -> None:
    daemon = begun(place, SERVER, Text("It serves."), Text("I went on."), **LEFT_OVER)
    kill_between_turns(place)
    task = over(place, daemon)
    assert (task.state, task.result_text, task.runs) == ("COMPLETED", "I went on.", 2), task
    first, second = daemon.client.runs("greet")
    assert first.outcome is not None
    assert first.outcome.reason == "interrupted", "its first result was no end"
    assert second.resumes == first.id


LEFT_OVER: dict[str, Any] = {"on_lost": "retry", "retry": {"max_attempts": 2, "backoff": "1s"}}
"""Of a server in a run that is killed; the next one resumes its conversation."""


def kill_between_turns(place: Place) -> None:
    """Kill the program once it has printed its first result."""
    runs = place.site.state / "runs"
    wait_until(
        lambda: any(b'"result_index":0' in file.read_bytes() for file in runs.glob("*/stdout.jsonl")), "a result"
    )
    pids = [pid for pid, line in place.site.processes().items() if str(place.cli.program) in line]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


TIMEOUTS: dict[str, tuple[list[Step], dict[str, Any]]] = {
    "a command in the background": ([in_background("sleep 60"), Text("Started."), NOT_ASKED_FOR], {}),
    "the turn after it": ([in_background("sleep 2"), Text("Started."), SLEEPS], {}),
    "a wake-up": ([WAKE_UP, Text("Later."), NOT_ASKED_FOR], {}),
    "a server": ([SERVER, Text("It serves."), NOT_ASKED_FOR], {}),
    "lines that come": ([EACH_LINE, Text("I watch."), Text("Seen.")], {}),
    "what was left over": ([SERVER, Text("It serves."), BUSY], LEFT_OVER),
}


@ONLY_CLAUDE
@pytest.mark.parametrize("case", TIMEOUTS)
def test_a_timeout_before_its_end_is_a_timeout(place: Place, cli: Cli, case: str) -> None:
    steps, fields = TIMEOUTS[case]
    daemon = begun(place, *steps, timeout="20s", **fields)
    if fields is LEFT_OVER:
        kill_between_turns(place)
    task = over(place, daemon)
    assert (task.state, task.reason) == ("FAILED", "timeout"), task


BUDGETS: dict[str, tuple[int, list[Step], dict[str, Any]]] = {
    "the turn after a command": (2, [in_background("sleep 2"), Text("Started."), SLEEPS], {}),
    "the turn after a wake-up": (2, [WAKE_UP, Text("Later."), SLEEPS], {}),
    "beside a server": (2, [SERVER, CLAUDE.shell("true"), SLEEPS], {}),
    "lines that come": (4, [EACH_LINE, Text("I watch."), Text("Seen.")], {}),
    "what was left over": (3, [SERVER, Text("It serves."), CLAUDE.shell("true"), BUSY], LEFT_OVER),
}


@ONLY_CLAUDE
@pytest.mark.parametrize("case", BUDGETS)
def test_tokens_are_counted_beyond_the_first_result(place: Place, cli: Cli, case: str) -> None:
    messages, steps, fields = BUDGETS[case]
    daemon = begun(place, *steps, budget={"tokens": messages * INPUT_TOKENS + 500}, **fields)
    if fields is LEFT_OVER:
        kill_between_turns(place)
    task = over(place, daemon, WAKE_UP_S)
    assert (task.state, task.reason) == ("FAILED", "budget"), task
    assert task.budget is not None
    assert (messages + 1) * INPUT_TOKENS <= task.budget.spent.tokens < (messages + 3) * INPUT_TOKENS
