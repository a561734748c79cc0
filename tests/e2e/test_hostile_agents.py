"""Programs that misbehave, run by a daemon: whatever they do, they end, they are told apart, and nothing is left."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.hosts.shim import procfs
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run, waits_for, why
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

CAP_BYTES = 2**20
SPAWN_NAPPER = """
import os, sys, time
if not os.fork():
    {become}
    if not os.fork():
        open("napper", "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists("napper") or not open("napper").read():
    time.sleep(0.01)
"""
SILENT = "import time\nwhile True: time.sleep(1)"


@pytest.fixture
def place(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site whose agent ``python`` runs the instructions as a program."""
    command = [sys.executable, "-I", "-c", "import sys; exec(sys.stdin.read())"]
    agents = {"python": {"kind": "command", "command": command, "max_concurrent": 4}}
    limits = {"grace": "300ms", "min_free": "1MiB", "output_cap": "1MiB"}
    with open_site(tmp_path / "site", warm=warm, agents=agents, limits=limits, workdir_roots=["work"]) as site:
        yield site


def run(site: Site, program: str, **fields: object) -> tuple[Daemon, TaskView]:
    """What became of a task with this program."""
    daemon = site.start().ready()
    retry = {"max_attempts": 1}
    site.drop("task.yaml", document(None, program, agent="python", **{"retry": retry, **fields}))
    return daemon, ended(daemon, "task", 40)


def output(site: Site, daemon: Daemon) -> Path:
    return site.state / "runs" / last_run(daemon, "task").id / "stdout.jsonl"


def test_one_that_ignores_term_is_killed_by_a_cancel(place: Site) -> None:
    daemon = place.start().ready()
    program = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n{SILENT}"
    place.drop("task.yaml", document(None, program, agent="python"))
    in_state(daemon, "task", "RUNNING")
    run_id = last_run(daemon, "task").id
    wait_until(lambda: b"deaf" in daemon.client.log(run_id).data, "the program to be deaf")

    daemon.client.cancel("task")

    assert ended(daemon, "task").state == "CANCELLED"
    assert last_run(daemon, "task").exit_code == -9
    assert daemon.stop() == 0
    place.no_processes()


@pytest.mark.parametrize("become", ["pass", "os.setsid()"], ids=["background", "own session"])
def test_what_it_leaves_in_the_background_is_ended(place: Site, become: str) -> None:
    folder = place.work / "here"
    folder.mkdir()

    _, task = run(place, SPAWN_NAPPER.format(become=become), working_dir=str(folder))

    assert task.state == "COMPLETED"
    napper = procfs.read(int((folder / "napper").read_text()))
    assert napper is None or not napper.alive


def flood(megabytes: int) -> str:
    return f"import os\nblock = b'noise ' * 10923 + b'\\n'\nfor _ in range({megabytes} * 16): os.write(1, block)"


@pytest.mark.parametrize("megabytes", [300, pytest.param(2_000, marks=[pytest.mark.slow])], ids=lambda m: f"{m}MB")
def test_a_flood_takes_no_more_room_than_its_cap(place: Site, megabytes: int) -> None:
    daemon, task = run(place, flood(megabytes) + "\nprint('the end')")

    assert task.state == "COMPLETED"
    assert (task.result_text or "").endswith("the end")
    written = output(place, daemon).stat()
    assert written.st_size > megabytes * 2**20
    assert written.st_blocks * 512 <= 2 * CAP_BYTES
    chunk = daemon.client.log(last_run(daemon, "task").id, offset=written.st_size - 8)
    assert chunk.data == b"the end\n"


def test_a_line_without_an_end_is_an_answer_within_bounds(place: Site) -> None:
    _, task = run(place, "import sys\nsys.stdout.write('x' * 5_000_000)")

    assert task.state == "COMPLETED"
    assert set(task.result_text or "") == {"x"}
    assert len(task.result_text or "") < 100_000


NASTY = "os.write(1, b'\\x1b[31mred\\x1b[0m \\xff\\xfe\\x00 \\x1b]0;title\\x07bell\\x07 \\x9b2J caf\\xc3\\xa9\\n')"


def test_bytes_that_are_no_text_reach_nobodys_terminal(place: Site) -> None:
    daemon, task = run(place, f"import os\n{NASTY}")

    assert task.result_text is not None
    assert task.result_text.startswith("red")
    assert task.result_text.endswith("café")
    run_id = last_run(daemon, "task").id
    assert b"\x1b[31mred" in daemon.client.log(run_id).data, "the log itself is kept as it was written"
    for command in (("show", "task"), ("result", "task"), ("why", "task"), ("logs", "task")):
        shown = place.command(*command)
        assert shown.returncode == 0, (command, shown.stderr)
        assert not set(shown.stdout) & set("\x00\x07\x1b"), command
        shown.stdout.encode()  # in vain if a byte was no text


def test_one_that_closes_its_output_is_waited_for(place: Site) -> None:
    daemon = place.start().ready()
    folder = place.work / "here"
    folder.mkdir()
    waits = "while not os.path.exists('go'): time.sleep(.02)"
    program = f"import os, time\nos.close(1); os.close(2)\nopen('closed', 'w')\n{waits}"
    place.drop("task.yaml", document(None, program, agent="python", working_dir=str(folder)))
    wait_until((folder / "closed").exists, "the program to close its output")
    in_state(daemon, "task", "RUNNING")

    (folder / "go").touch()

    assert ended(daemon, "task").state == "COMPLETED"


@pytest.mark.parametrize(
    ("program", "fields", "reason", "text", "exit_code"),
    [
        (SILENT, {"timeout": "1s"}, "timeout", "", -15),
        (SILENT, {"stall_timeout": "1s"}, "stalled", "", -15),
        ("import os\nos.kill(os.getpid(), 9)", {}, "interrupted", "", -9),
        ("import os\nos.kill(os.getpid(), 11)", {}, "agent_error", "it crashed with SIGSEGV", -11),
        ("import sys\nsys.exit('no, said the program')", {}, "agent_error", "no, said the program", 1),
    ],
    ids=["timeout", "stall", "KILL", "SEGV", "exit 1"],
)
def test_how_it_failed_is_told_apart(
    place: Site, program: str, fields: dict[str, object], reason: str, text: str, exit_code: int
) -> None:
    daemon, task = run(place, program, **fields)

    assert (task.state, task.reason) == ("FAILED", reason)
    assert last_run(daemon, "task").exit_code == exit_code
    assert text in (task.reason_text or "")
    assert daemon.stop() == 0
    place.no_processes()


def test_a_busy_silence_is_no_stall(place: Site) -> None:
    # A fifth of a processor, which leaves the rest of it to the other tests.
    work = "sum(range(1_000_000)); time.sleep(.1)"
    busy = f"import time\nend = time.monotonic() + 2.5\nwhile time.monotonic() < end: {work}"

    _, task = run(place, busy, stall_timeout="1s")

    assert task.state == "COMPLETED"


def test_a_program_that_is_not_there_keeps_its_tasks_waiting_with_the_reason(place: Site) -> None:
    plain = place.root / "plain"
    plain.write_text("not a program")
    place.configure(
        agents={
            "gone": {"kind": "command", "command": [str(place.root / "gone")]},
            "plain": {"kind": "command", "command": [str(plain)]},
        }
    )
    daemon = place.start().ready()
    for agent in ("gone", "plain"):
        place.drop(f"{agent}.yaml", document(None, "x", agent=agent))
        task = waits_for(daemon, agent, "agent")
        assert str(place.root / agent) in (task.reason_text or "")
        assert f"agents.{agent}.command" in (task.reason_text or "")


@pytest.mark.parametrize("spoil", ["remove", "forbid"])
def test_a_program_lost_after_the_start_fails_the_run_as_set_up(place: Site, spoil: str) -> None:
    program = place.root / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    place.configure(agents={"python": {"kind": "command", "command": [str(program)]}})
    daemon = place.start().ready()
    if spoil == "remove":
        program.unlink()
    else:
        program.chmod(0o644)
    place.drop("task.yaml", document(None, "x", agent="python"))

    task = ended(daemon, "task")

    assert (task.state, task.reason) == ("FAILED", "setup_failed")
    assert "cannot be started" in (task.reason_text or "")
    assert last_run(daemon, "task").exit_code is None


def test_a_missing_working_directory_fails_the_run_as_set_up(place: Site) -> None:
    _, task = run(place, "print('never')", working_dir=str(place.work / "missing"))

    assert (task.state, task.reason) == ("FAILED", "setup_failed")
    assert "missing" in (task.reason_text or "")


def test_a_working_directory_below_the_home_is_found(place: Site) -> None:
    folder = place.root / "home" / "project"
    folder.mkdir()
    place.configure(agents={"python": {"kind": "command", "command": ["sh", "-c", "pwd"]}})

    _, task = run(place, "x", working_dir="~/project")

    assert (task.state, task.result_text) == ("COMPLETED", str(folder))


def test_a_working_directory_outside_the_roots_is_refused_in_the_inbox(place: Site) -> None:
    daemon = place.start().ready()
    outside = place.root / "elsewhere"
    outside.mkdir()
    (place.work / "link").symlink_to(outside)
    for name, folder in (("plain", outside), ("link", place.work / "link"), ("dots", place.work / ".." / "elsewhere")):
        file = place.drop(f"{name}.yaml", document(None, "x", agent="python", working_dir=str(folder)))
        error = file.with_name(f"{file.name}.error.txt")
        wait_until(error.exists, "the refusal")
        assert "working_dir" in error.read_text()
        assert "is not under a root" in error.read_text()
    assert list(daemon.client.all_tasks()) == []


def test_a_directory_exchanged_for_a_link_out_of_the_roots_is_noticed_at_the_start(place: Site) -> None:
    daemon = place.start().ready()
    outside = place.root / "elsewhere"
    outside.mkdir()
    folder = place.work / "here"
    folder.mkdir()
    place.drop(
        "task.yaml", document(None, "open('trace', 'w')", agent="python", working_dir=str(folder), depends_on="first")
    )
    in_state(daemon, "task", "WAITING")
    folder.rmdir()
    folder.symlink_to(outside)
    place.drop("first.yaml", document(None, "pass", agent="python"))

    task = ended(daemon, "task")

    assert (task.state, task.reason) == ("FAILED", "setup_failed")
    assert f"is {outside}, which lies in none of" in (task.reason_text or "")
    assert list(outside.iterdir()) == []
    assert "setup_failed" in why(daemon, "task")
