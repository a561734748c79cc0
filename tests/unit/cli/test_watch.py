"""``status --watch``: the status as it changes."""

import json
import os
import pty
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from claudomator_py.domain.lifecycle import Completed, Running
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService
from tests.patience import wait_until


@contextmanager
def watching(command: Command, *arguments: str) -> Iterator[IO[str]]:
    """What the command writes, until the block ends."""
    running = command.start("status", "--watch", *arguments)
    with running:
        try:
            assert running.stdout is not None
            yield running.stdout
        finally:
            running.terminate()


def says_something(output: IO[str]) -> bool:
    return bool(select.select([output], [], [], 0.2)[0])


def test_in_a_pipe_what_there_is_and_then_a_line_for_each_change(forked: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    task_id = prepared.add("it", tags=("shop",))
    prepared.add("over", Completed())
    with watching(forked) as output:
        assert output.readline().split()[1:] == ["it", "QUEUED", "ready"]
        prepared.move(task_id, Running())
        assert output.readline().split()[1:] == ["it", "RUNNING", "starting"]
        prepared.add("another")
        assert output.readline().split()[1:] == ["another", "QUEUED", "ready"]


def test_filters_hold_for_changes_as_well(forked: Command, prepared: PreparedService) -> None:
    shop, other = prepared.add("in-shop", tags=("shop",)), prepared.add("other")
    running = prepared.add("runs", Running())
    with watching(forked, "--tag", "shop") as by_tag, watching(forked, "--state", "RUNNING") as by_state:
        assert by_tag.readline().split()[1] == "in-shop"
        assert by_state.readline().split()[1] == "runs"
        prepared.move(running, Completed())
        prepared.move(other, Running())
        prepared.move(shop, Running())
        assert by_tag.readline().split()[1:] == ["in-shop", "RUNNING", "starting"]
        assert by_state.readline().split()[1:] == ["other", "RUNNING", "starting"]
        assert by_state.readline().split()[1:] == ["in-shop", "RUNNING", "starting"]


def test_filters_by_who_does_it_and_who_made_it_hold_for_changes_as_well(
    forked: Command, prepared: PreparedService
) -> None:
    leak, other = prepared.add("leak", done_by="plumber"), prepared.add("other")
    with watching(forked, "--specialist", "plumber") as by_specialist, watching(forked, "--creator", "mara") as hers:
        assert by_specialist.readline().split()[1] == "leak"
        prepared.move(other, Running())
        prepared.move(leak, Running())
        assert by_specialist.readline().split()[1:] == ["leak", "RUNNING", "starting"]
        assert not says_something(hers)


def test_as_json_each_event_is_a_line(forked: Command, prepared: PreparedService) -> None:
    def told() -> bool:
        prepared.happen("hold", agent="claude")
        return says_something(output)

    with watching(forked, "-o", "json") as output:
        wait_until(told, "the command to listen")
        event = json.loads(output.readline())
        assert (event["kind"], event["data"]) == ("hold", {"agent": "claude"})


def test_on_a_terminal_it_is_drawn_anew_when_something_changes(forked: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("first-task")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(forked.home)
        argv = forked.argv(("status", "--watch"))
        os.execve(argv[0], argv, {**forked.variables({}), "TERM": "xterm", "COLUMNS": "100", "LINES": "30"})
    seen = b""

    def reads(text: bytes) -> bool:
        nonlocal seen
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65_536)
        return text in seen

    wait_until(lambda: reads(b"first-task"), "the first drawing")
    assert b"QUEUED" in seen
    seen = b""
    prepared.move(task_id, Running())
    wait_until(lambda: reads(b"RUNNING"), "the second drawing")
    os.write(terminal, b"\x03")
    wait_until(lambda: reads(b"\x1b[?1049l"), "the screen to be as before")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
