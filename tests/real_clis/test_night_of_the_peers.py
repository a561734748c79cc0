"""Twelve tasks with the real Claude Code, whose account runs out in the middle of the fifth, and the real Codex beside.

The account says when it resets as the real service does. What a night has to keep is asserted, and its figures printed.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, in_state, why
from tests.patience import wait_until
from tests.real_clis.account import STEPS, UNREACHABLE, Window, command, now_ms
from tests.real_clis.clis import CLAUDE, CODEX
from tests.real_clis.night import (
    Night,
    epoch_ms,
    expected_effects,
    night_marks,
    open_night,
    runs_of,
    timeline,
    unlike_success,
)

TASKS = [f"task-{number:02}" for number in range(1, 13)]
KILLED = TASKS[3]
LIMITED = TASKS[4]
# These insist on Claude Code, so that something is left for it after the limit.
LOYAL = TASKS[9:]
FLOWN = [name for name in TASKS[5:] if name not in LOYAL]
END_S = 60.0
COLUMNS = """\
| night | done | requests while limited, after the first | reset until its run began | until its first request \
| task 5 | done by Codex meanwhile | after kill -9: lost / run twice / CLI left alive |"""

pytestmark = night_marks(CLAUDE, CODEX)

Dead = Literal["while it goes on", "while it ends"]
Tell = Callable[[str], None]


@pytest.mark.parametrize(
    ("seconds", "killed"),
    [
        pytest.param(45, False, id="45 s"),
        pytest.param(155, False, id="155 s"),
        pytest.param(45, True, id="45 s, and killed in task 4 and in the limit"),
    ],
)
def test_a_limit_in_the_fifth_task(tmp_path: Path, seconds: int, killed: bool, tell: Tell) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        claude = night.accounts[CLAUDE]
        claude.when(5, 1, lambda: claude.run_out(seconds))
        daemon = evening(night, pauses_in=KILLED if killed else None)
        if killed:
            daemon = killed_in_the_fourth(night, daemon, "while it goes on")

        for name in FLOWN:
            assert ended(daemon, name, END_S).agent == CODEX.kind, why(daemon, name)
        if killed:
            daemon.kill()
            daemon = night.start()
        (window,) = claude.windows
        assert {in_state(daemon, name, "QUEUED").reason for name in (LIMITED, *LOYAL)} == {"limited"}
        morning(night, daemon, seconds + END_S)

        goes_on_where_it_was(night, daemon, window)
        figures = told_of_the_limit(night, daemon, window)
        kill = told_of_the_kill(night, daemon) if killed else ""
        tell(row(f"{seconds} s{', killed twice' * killed}", *figures, kill) + timeline(night, daemon))
        assert figures[0] == "0", "nobody asked before the reset"
        nothing_twice_and_nothing_left(night, daemon)


@pytest.mark.parametrize("dead", ["while it goes on", "while it ends"])
def test_a_kill_in_the_fourth_task(tmp_path: Path, dead: Dead, tell: Tell) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        daemon = killed_in_the_fourth(night, evening(night, pauses_in=KILLED), dead)
        morning(night, daemon, END_S)

        kill = told_of_the_kill(night, daemon)
        tell(row(f"killed in task 4, dead {dead}", "", "", "", "", "", kill) + timeline(night, daemon))
        assert kill == "0 / 0 / 0"
        assert len(runs_of(daemon)) == len(TASKS)
        assert len(night.accounts[CLAUDE].refused(200)) == (STEPS + 1) * len(TASKS)
        nothing_twice_and_nothing_left(night, daemon)


@pytest.mark.parametrize(("what", "seconds"), [pytest.param("529", 20, id="529"), (UNREACHABLE, 30)])
def test_an_outage_in_the_fifth_task(tmp_path: Path, what: str, seconds: int, tell: Tell) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        claude = night.accounts[CLAUDE]
        daemon = evening(night, pauses_in=LIMITED)
        begun, go = signs(night)
        wait_until(begun.exists, "the middle of the fifth task", END_S)
        if what == UNREACHABLE:
            claude.vanish()
        else:
            claude.refuse(what, CLAUDE.overloaded())
        over = threading.Timer(seconds, claude.recover)
        over.start()
        go.touch()
        morning(night, daemon, seconds + 2 * END_S)
        over.join()

        first, second = (run for name, run in runs_of(daemon) if name == LIMITED)
        assert first.outcome is not None
        assert first.outcome.reason == ("network" if what == UNREACHABLE else "overloaded")
        assert second.resumes == first.id, "the conversation goes on"
        flown = [name for name, run in runs_of(daemon) if run.agent == CODEX.kind]
        tell(row(f"{what} for {seconds} s", "", "", "", "resumed", str(len(flown)), "") + timeline(night, daemon))
        nothing_twice_and_nothing_left(night, daemon)


def evening(night: Night, *, pauses_in: str | None = None) -> Daemon:
    """A daemon that has all twelve. The one that meets the limit in its midst is to go on there.

    pauses_in: the task that says when it is in its middle, and waits there.
    """
    night.configure(slots={CLAUDE: 1, CODEX: 1}, total=1)
    if pauses_in is not None:
        begun, go = signs(night)
        waits = f"touch {begun}; until [ -e {go} ]; do sleep 0.1; done"
        night.accounts[CLAUDE].commands[pauses_in, 1] = f"{command(pauses_in, 1)}; {waits}"
    daemon = night.start()
    for name in TASKS:
        agent = {"type": CLAUDE.kind, "strict": name in LOYAL}
        retry = {"max_attempts": 1, "backoff": "5s"}
        night.hand_in(daemon, name, agent=agent, on_limit="wait", retry=retry)
    return daemon


def killed_in_the_fourth(night: Night, daemon: Daemon, dead: Dead) -> Daemon:
    """Kill the daemon in the middle of the fourth task; the next one."""
    begun, go = signs(night)
    wait_until(begun.exists, "the middle of the fourth task", END_S)
    daemon.kill()
    orphans = commands_alive(night)
    assert orphans, "its run outlives the daemon"
    if dead == "while it ends":
        go.touch()
        wait_until(lambda: not night.alive(), "the end of the run", END_S)
        return night.start()
    daemon = night.start()
    assert in_state(daemon, KILLED, "RUNNING").runs == 1
    assert commands_alive(night) == orphans, "it is the same run"
    go.touch()
    return daemon


def signs(night: Night) -> tuple[Path, Path]:
    """The files by which a task says that it is in its middle, and is told to go on."""
    return night.site.root / "begun", night.site.root / "go"


def commands_alive(night: Night) -> set[int]:
    """The processes of runs that are Claude Code's own."""
    return {pid for pid, line in night.alive().items() if line.startswith(str(CLAUDE.program))}


def morning(night: Night, daemon: Daemon, deadline_s: float) -> None:
    """Wait until all have ended, and done what they were to do."""
    for name in TASKS:
        task = ended(daemon, name, deadline_s)
        assert task.state == "COMPLETED", why(daemon, name)
    wait_until(lambda: not night.alive(), "the end of all processes of runs")


def goes_on_where_it_was(night: Night, daemon: Daemon, window: Window) -> None:
    """The conversation that met the limit was resumed first of all, and the tasks that need not wait flew to Codex."""
    runs = runs_of(daemon)
    first, second = (run for name, run in runs if name == LIMITED)
    assert first.outcome is not None
    assert (first.outcome.status, first.outcome.provenance) == ("limited", "reported")
    assert second.outcome is not None
    assert second.resumes == first.id
    assert second.outcome.conversation_id == first.outcome.conversation_id
    after = [heard for heard in night.accounts[CLAUDE].journal if heard.at_ms >= (window.end_ms or 0) and heard.task]
    assert (after[0].task, after[0].done) == (LIMITED, 1), "its history is in the request"
    assert [name for name, run in runs if run.agent == CODEX.kind] == FLOWN
    assert night.accounts[CODEX].conversations == dict.fromkeys(FLOWN, 1)


def told_of_the_limit(night: Night, daemon: Daemon, window: Window) -> list[str]:
    """The figures from the limit on. The run at the reset has begun within a second."""
    assert window.end_ms is not None
    claude = night.accounts[CLAUDE]
    meanwhile = claude.between(window.start_ms, window.end_ms)
    second = [run for name, run in runs_of(daemon) if name == LIMITED][1]
    began_ms = epoch_ms(second.started_at) - window.end_ms
    asked_ms = claude.between(window.end_ms - 1, now_ms())[0] - window.end_ms
    assert 0 <= began_ms <= 1000
    return [str(len(meanwhile)), f"{began_ms} ms", f"{asked_ms / 1000:.1f} s", "resumed", str(len(FLOWN))]


def told_of_the_kill(night: Night, daemon: Daemon) -> str:
    """What the kill cost: tasks lost, tasks run twice, commands left alive."""
    lost = [name for name, run in runs_of(daemon) if unlike_success(run) and name != LIMITED]
    twice = [name for name, count in night.conversations().items() if count > 1]
    return f"{len(lost)} / {len(twice)} / {len(night.alive())}"


def row(night: str, *cells: str) -> str:
    """A line of the table, below its columns."""
    return f"\n{COLUMNS}\n| {' | '.join([night, str(len(TASKS)), *cells])} |\n"


def nothing_twice_and_nothing_left(night: Night, daemon: Daemon) -> None:
    """Each task was begun once and its steps were done once; no process of a run is alive, nor of anything later."""
    assert night.conversations() == dict.fromkeys(TASKS, 1)
    assert night.effects() == expected_effects(*TASKS)
    assert {task.attempts for task in daemon.client.all_tasks()} == {1}
    assert not night.alive()
    assert daemon.stop() == 0
    night.site.no_processes()
