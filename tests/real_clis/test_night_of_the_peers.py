"""Twelve tasks with the real Claude Code, whose account runs out in the middle of the fifth, and the real Codex beside.

The account says when it resets as the real service does. What a night has to keep is asserted, and its figures printed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.harness import Daemon, wait_until
from tests.e2e.scenarios_support import ended, in_state, why
from tests.real_clis.account import STEPS, command, now_ms
from tests.real_clis.clis import CLAUDE, CODEX
from tests.real_clis.night import Night, epoch_ms, expected_effects, night_marks, open_night, runs_of, timeline

TASKS = [f"task-{number:02}" for number in range(1, 13)]
LIMITED = TASKS[4]
# These insist on Claude Code, so that something is left for it after the limit.
LOYAL = TASKS[9:]
END_S = 60.0

pytestmark = night_marks(CLAUDE, CODEX)


def hand_in(night: Night, daemon: Daemon) -> None:
    """All twelve. Those that meet the limit in their midst are to go on there."""
    for name in TASKS:
        agent = {"type": CLAUDE.kind, "strict": name in LOYAL}
        night.hand_in(daemon, name, agent=agent, on_limit="wait", retry={"max_attempts": 1})


def done(daemon: Daemon, deadline_s: float) -> None:
    """Wait until all have ended."""
    for name in TASKS:
        task = ended(daemon, name, deadline_s)
        assert task.state == "COMPLETED", why(daemon, name)


def nothing_twice_and_nothing_left(night: Night, daemon: Daemon) -> None:
    """Each task was begun once and its steps were done once; no process of a run is alive, nor of anything later."""
    assert night.conversations() == dict.fromkeys(TASKS, 1)
    assert night.effects() == expected_effects(*TASKS)
    assert {task.attempts for task in daemon.client.all_tasks()} == {1}
    wait_until(lambda: not night.alive(), "the end of all processes of runs")
    assert daemon.stop() == 0
    night.site.no_processes()


@pytest.mark.parametrize("seconds", [45, 155])
def test_a_limit_in_the_fifth_task(tmp_path: Path, seconds: int, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        night.configure(slots={CLAUDE: 1, CODEX: 1}, total=1)
        claude, codex = night.accounts[CLAUDE], night.accounts[CODEX]
        claude.when(5, 1, lambda: claude.run_out(seconds))
        daemon = night.start()
        hand_in(night, daemon)

        flown = [name for name in TASKS[5:] if name not in LOYAL]
        for name in flown:
            assert ended(daemon, name, END_S).agent == CODEX.kind, why(daemon, name)
        (window,) = claude.windows
        assert window.end_ms is not None
        assert {in_state(daemon, name, "QUEUED").reason for name in (LIMITED, *LOYAL)} == {"limited"}
        done(daemon, seconds + END_S)

        runs = runs_of(daemon)
        first, second = (run for name, run in runs if name == LIMITED)
        assert first.outcome is not None
        assert (first.outcome.status, first.outcome.provenance) == ("limited", "reported")
        assert second.outcome is not None
        assert second.resumes == first.id
        assert second.outcome.conversation_id == first.outcome.conversation_id
        after = [heard for heard in claude.journal if heard.at_ms >= window.end_ms and heard.task is not None]
        assert (after[0].task, after[0].done) == (LIMITED, 1), "its history is in the request"
        assert [name for name, run in runs if run.agent == CODEX.kind] == flown
        assert codex.conversations == dict.fromkeys(flown, 1)

        meanwhile = claude.between(window.start_ms, window.end_ms)
        start_ms = epoch_ms(second.started_at) - window.end_ms
        request_ms = claude.between(window.end_ms - 1, now_ms())[0] - window.end_ms
        tell(
            f"{len(TASKS)} of {len(TASKS)} done; {len(meanwhile)} requests while limited, after the first; after the "
            f"reset its run began within {start_ms} ms and asked within {request_ms} ms; task 5 resumed; "
            f"{len(flown)} tasks done by Codex meanwhile\n{timeline(night, daemon)}"
        )
        assert not meanwhile
        assert 0 <= start_ms <= 1000
        nothing_twice_and_nothing_left(night, daemon)


@pytest.mark.parametrize("dead", ["while it goes on", "while it ends"])
def test_a_kill_in_the_fourth_task(tmp_path: Path, dead: str, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        night.configure(slots={CLAUDE: 1, CODEX: 1}, total=1)
        claude, killed = night.accounts[CLAUDE], TASKS[3]
        begun, go = night.site.root / "begun", night.site.root / "go"
        claude.commands[killed, 1] = f"{command(killed, 1)}; touch {begun}; until [ -e {go} ]; do sleep 0.1; done"
        daemon = night.start()
        hand_in(night, daemon)
        wait_until(begun.exists, "the middle of the fourth task", END_S)

        daemon.kill()
        orphans = commands_alive(night)
        assert orphans, "its run outlives the daemon"
        if dead == "while it ends":
            go.touch()
            wait_until(lambda: not night.alive(), "the end of the run", END_S)
        daemon = night.start()
        if dead == "while it goes on":
            assert in_state(daemon, killed, "RUNNING").runs == 1
            assert commands_alive(night) == orphans, "it is the same run"
            go.touch()
        done(daemon, END_S)

        lost = [name for name, run in runs_of(daemon) if run.outcome and run.outcome.status != "succeeded"]
        twice = [name for name, count in night.conversations().items() if count > 1]
        wait_until(lambda: not night.alive(), "the end of all processes of runs")
        tell(
            f"{len(TASKS)} of {len(TASKS)} done; lost {len(lost)}, run twice {len(twice)}, "
            f"commands left alive {len(night.alive())}\n{timeline(night, daemon)}"
        )
        assert not lost
        assert len(runs_of(daemon)) == len(TASKS)
        assert len(claude.refused(200)) == (STEPS + 1) * len(TASKS)
        nothing_twice_and_nothing_left(night, daemon)


def commands_alive(night: Night) -> set[int]:
    """The processes of runs that are Claude Code's own."""
    return {pid for pid, line in night.alive().items() if line.startswith(str(CLAUDE.program))}
