"""Reading what a run writes, as it is or as it grows."""

import pytest

from claudomator_py.core.plaintext import plain
from claudomator_py.core.lifecycle import Completed, Running
from claudomator_py.core.outcome import OutcomeStatus
from claudomator_py.core.views import OutcomeView
from tests.fakes.command import Command
from tests.fakes.desk import FakeDesk

SUCCESS = OutcomeView(status=OutcomeStatus.SUCCEEDED)


def test_the_last_run_of_a_task_or_any_run_by_its_id(command: Command, desk: FakeDesk) -> None:
    task_id = desk.add("it", Completed())
    first = desk.add_run(task_id, outcome=SUCCESS, stdout=b"first\n")
    last = desk.add_run(task_id, outcome=SUCCESS, stdout=b"last\n")
    desk.write(last, b"grumble\n", "stderr")
    assert command("logs", "it").stdout == "last\n"
    assert command("logs", first).stdout == "first\n"
    assert command("logs", "it", "--stderr").stdout == "grumble\n"


def test_terminal_codes_are_taken_out_unless_asked_for(command: Command, desk: FakeDesk) -> None:
    written = b"\x1b[31mred\x1b[0m \xff\x1b]0;title\x07end\r\nno newline"
    desk.add_run(desk.add("it", Completed()), outcome=SUCCESS, stdout=written)
    assert command("logs", "it").stdout == "red \ufffdend\nno newline"
    assert command("logs", "it", "--raw").stdout == written.decode(errors="surrogateescape")


def test_a_large_log_comes_whole(command: Command, desk: FakeDesk) -> None:
    written = b"".join(b"line %d\n" % number for number in range(100_000))
    desk.add_run(desk.add("it", Completed()), outcome=SUCCESS, stdout=written)
    assert command("logs", "it").stdout == written.decode()


def test_following_ends_with_the_run(command: Command, desk: FakeDesk) -> None:
    run_id = desk.add_run(desk.add("it", Running()), stdout=b"one\n")
    process = command.start("logs", "it", "-f")
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        desk.write(run_id, b"two\n")
        assert process.stdout.readline() == "two\n"
        desk.end_run(run_id, SUCCESS)
        rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_following_waits_for_the_first_run(command: Command, desk: FakeDesk) -> None:
    task_id = desk.add("it")
    process = command.start("logs", "it", "-f")
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "it has not run yet; waiting for its start.\n"
        desk.add_run(task_id, outcome=SUCCESS, stdout=b"ran\n")
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "ran\n")


def test_without_following_a_running_log_ends_where_it_is(command: Command, desk: FakeDesk) -> None:
    desk.add_run(desk.add("it", Running()), stdout=b"so far\n")
    assert command("logs", "it").stdout == "so far\n"


def test_no_run_and_no_such_task(command: Command, desk: FakeDesk) -> None:
    desk.add("it")
    never = command("logs", "it")
    assert (never.returncode, never.stdout) == (1, "")
    assert "claudomator why it" in never.stderr
    desk.add("over", Completed())
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
        ("\x1b", ""),
        ("\x1b[", "["),
        ("ä 🎉 漢", "ä 🎉 漢"),
    ],
)
def test_control_codes(text: str, clean: str) -> None:
    assert plain(text) == clean
