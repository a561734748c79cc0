"""Reading what a run writes, as it is or as it grows."""

import json
from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from claudomator_py.client import Client
from claudomator_py.domain.lifecycle import Completed, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.run import CheckResult
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.runs import cli as logs
from claudomator_py.resources.tasks import TaskView
from claudomator_py.texts import plain
from tests.fakes.command import Command
from tests.fakes.prepared import START_MS, PreparedService
from tests.patience import PATIENCE_S

SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED)


def test_the_last_run_of_a_task_or_any_run_by_its_id(command: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("it", Completed())
    first = prepared.add_run(task_id, outcome=SUCCESS, stdout=b"first\n")
    last = prepared.add_run(task_id, outcome=SUCCESS, stdout=b"last\n")
    prepared.write(last, b"grumble\n", "stderr")
    assert command("logs", "it").stdout == "last\n"
    assert command("logs", first).stdout == "first\n"
    assert command("logs", "it", "--stderr").stdout == "grumble\n"


def test_an_empty_log_says_so_and_where_there_is_more(command: Command, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS)
    shown = command("logs", "it")
    assert (shown.returncode, shown.stdout) == (0, "")
    assert shown.stderr == f"Run {run_id[:8]} has written nothing to stdout.\n"
    assert "nothing to stderr" in command("logs", "it", "--stderr").stderr
    assert command("logs", "it", "-o", "json").stderr == command("logs", "it", "--raw").stderr == ""
    prepared.write(run_id, b"grumble\n", "stderr")
    assert f"`claudomator logs {run_id[:8]} --stderr`" in command("logs", "it").stderr
    prepared.add_run(prepared.add("live", Running()))
    assert "has written nothing to stdout yet." in command("logs", "live").stderr


def test_what_a_cleanup_removed_is_told_and_is_no_empty_log(command: Command, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=b"first\n")
    assert command("logs", run_id[:8]).stdout == "first\n"
    prepared.world.host.remove(run_id)
    for arguments in ((), ("--raw",), ("--text",), ("-o", "json"), ("-f",)):
        done = command("logs", "it", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"output of run {run_id[:8]} was removed" in done.stderr
        assert "cleanup" in done.stderr
    assert "which was removed" in command("show", "it").stdout


def test_terminal_codes_are_taken_out_unless_asked_for(command: Command, prepared: PreparedService) -> None:
    written = b"\x1b[31mred\x1b[0m \xff\x1b]0;title\x07end\r\nno newline"
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=written)
    assert command("logs", "it").stdout == "red \ufffdend\nno newline"
    assert command("logs", "it", "--raw").stdout == written.decode(errors="surrogateescape")


def test_a_large_log_comes_whole(command: Command, prepared: PreparedService) -> None:
    written = b"".join(b"line %d\n" % number for number in range(100_000))
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=written)
    assert command("logs", "it").stdout == written.decode()


def test_following_ends_with_the_run(forked: Command, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"one\n")
    process = forked.start("logs", "it", "-f")
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        prepared.write(run_id, b"two\n")
        assert process.stdout.readline() == "two\n"
        prepared.end_run(run_id, SUCCESS)
        rest, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_following_waits_for_the_first_run(forked: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("it")
    process = forked.start("logs", "it", "-f")
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "it has not run yet; waiting for it to start.\n"
        prepared.add_run(task_id, outcome=SUCCESS, stdout=b"ran\n")
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "ran\n")


class _StartsAndEndsBetween(Client):
    """A task that has neither begun nor ended when its runs are first asked for, and has both at the next request."""

    def __init__(self, task: TaskView, run: RunView) -> None:
        self._task = task
        self._run = run
        self._requests: list[str] = []

    def task(self, ref: str) -> TaskView:
        self._requests.append("task")
        return self._task if self._requests.count("task") > 1 else self._task.model_copy(update=WAITING)

    def runs(self, ref: str) -> list[RunView]:
        self._requests.append("runs")
        return [self._run] if self._requests[:-1].count("task") > 1 else []


WAITING = {"available_actions": ("cancel",)}


def test_a_first_run_that_ends_before_its_task_is_looked_at_again_is_shown(
    monkeypatch: pytest.MonkeyPatch, prepared: PreparedService
) -> None:
    task_id = prepared.add("it", Completed())
    run_id = prepared.add_run(task_id, outcome=SUCCESS, stdout=b"ran\n")
    client = _StartsAndEndsBetween(prepared.world.service.get(task_id), prepared.world.run_requests.get(run_id))
    monkeypatch.setattr(logs, "EventWatch", lambda *_: nullcontext(Mock()))
    assert logs.run_of(client, "it", follow=True, check=False).id == run_id


def test_without_following_a_running_log_ends_where_it_is(command: Command, prepared: PreparedService) -> None:
    prepared.add_run(prepared.add("it", Running()), stdout=b"so far\n")
    assert command("logs", "it").stdout == "so far\n"


def test_no_run_and_no_such_task(command: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    never = command("logs", "it")
    assert (never.returncode, never.stdout) == (1, "")
    assert "claudomator why it" in never.stderr
    prepared.add("over", Completed())
    assert command("logs", "over", "-f").returncode == 1
    assert "no task 'missing'" in command("logs", "missing").stderr


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain \t text\n", "plain \t text\n"),
        ("\x1b[1;31mbold\x1b[0m", "bold"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07copied", "copied"),
        ("\x1bP1$qm\x1b\\x", "x"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x9b31mC1\x9d0;t\x9c", "C1"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("a\x00b\x07c\x08d\x7fe", "abcde"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("a\u200bb\u2060c\ufeffd\u00ade\U000e0041f\u061cg\u2067h", "abcdefgh"),
        ("one\u2028two\u2029three", "one\ntwo\nthree"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("\x1b", ""),
        ("\x1b[", "["),
        ("ä 🎉 漢", "ä 🎉 漢"),
    ],
)
def test_control_codes(text: str, clean: str) -> None:
    assert plain(text) == clean


SAID = [
    {"type": "system", "subtype": "init", "model": "sonnet"},
    {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "what\nnow"}]}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}},
    {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"c": "ls"}}]},
    },
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "a\nb\n"}]}},
    {"type": "assistant", "error": "x", "message": {"content": [{"type": "text", "text": "No\x1b[31m quota"}]}},
    {"type": "result", "usage": {"input_tokens": 12, "output_tokens": 3}, "result": "No\x1b[31m quota"},
]
STREAM = b"".join(json.dumps(line).encode() + b"\n" for line in SAID)
SHOWN = """\
- begins: sonnet
  what
  now
I look.
> Bash: ls
  a
  b
! No quota
- 12 tokens in, 3 out
"""


def test_what_an_agent_said_and_did_is_told(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=STREAM)
    for arguments in (("logs", "it"), ("logs", "it", "-f")):
        assert command(*arguments).stdout == SHOWN
    assert command("logs", "it", "--text").stdout == STREAM.decode()
    assert command("logs", "it", "--raw").stdout == STREAM.decode()
    entries = [json.loads(line) for line in command("logs", "it", "-o", "json").stdout.splitlines()]
    assert [entry["kind"] for entry in entries][:3] == ["notice", "thinking", "message"]


def test_pieces_of_a_message_are_put_together(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("gemini")
    pieces = [
        {"type": "message", "role": "assistant", "content": text, "delta": True} for text in ("All ", "done", ".")
    ]
    written = b"".join(json.dumps(piece).encode() + b"\n" for piece in pieces) + b"words\n"
    prepared.add_run(prepared.add("it", Completed()), "gemini", outcome=SUCCESS, stdout=written)
    assert command("logs", "it").stdout == "All done.\nwords\n"


def test_secrets_are_shown_only_when_the_bytes_are_asked_for(command: Command, prepared: PreparedService) -> None:
    prepared.world.secrets.add(("hunter22",))
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS, stdout=b"it is hunter22\n")
    assert command("logs", "it").stdout == command("logs", "it", "-f").stdout == "it is [redacted]\n"
    assert command("logs", "it", "--raw").stdout == "it is hunter22\n"


FAILED_CHECK = CheckResult(
    status="failed",
    commands=(("make", "test"), ("make", "lint"), ("make", "e2e")),
    step=1,
    exit_code=2,
    started_ms=START_MS,
    ended_ms=START_MS + 3_000,
)


def test_the_last_check_with_both_outputs_and_how_it_ended(command: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("it", Completed())
    run_id = prepared.add_run(task_id, outcome=SUCCESS, check=FAILED_CHECK)
    prepared.add_run(task_id, outcome=SUCCESS)
    prepared.write(run_id, b"3 passed", check=True)
    prepared.write(run_id, b"make: *** [lint] Error 2\n", "stderr", check=True)
    assert command("logs", "it", "--check").stdout.splitlines() == [
        "3 passed",
        "make: *** [lint] Error 2",
        "CHECK FAILED after 3s",
        "  COMMAND    RESULT",
        "  make test  passed",
        "  make lint  exited with 2",
        "  make e2e   not run",
    ]
    assert command("logs", run_id, "--check", "--stderr").stdout == "make: *** [lint] Error 2\n"
    assert command("logs", run_id, "--check", "--raw").stdout == "3 passed"
    entry = json.loads(command("logs", "it", "--check", "-o", "json").stdout)
    assert (entry["kind"], entry["text"]) == ("text", "3 passed")
    shown = command("show", "it").stdout
    assert "CHECK FAILED after 3s\n  COMMAND    RESULT\n" in shown


def test_a_task_that_was_not_checked_says_so(command: Command, prepared: PreparedService) -> None:
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS)
    refused = command("logs", "it", "--check")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: it has not been checked.\n")
