"""A night with six real CLIs, three by kinds of their own and three over ACP: limits, an outage, and kills by `kill -9`
of the daemon and of the supervisor of a run over ACP."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import in_state, why
from tests.e2e.site import SETTLED
from tests.fakes import chat_api
from tests.patience import wait_until
from tests.real_clis.account import STEPS, command, now_ms
from tests.real_clis.acp_clis import ACP_CLIS
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, Cli
from tests.real_clis.night import Night, costs, expected_effects, night_marks, open_night, runs_of, timeline

VIBE, COPILOT, CODEX_ACP = (
    next(cli for cli in ACP_CLIS if cli.kind == kind) for kind in ("vibe-acp", "copilot", "codex-acp")
)
SIX: tuple[Cli, ...] = (CLAUDE, CODEX, GEMINI, VIBE, COPILOT, CODEX_ACP)
TASKS = [f"task-{number:02}" for number in range(1, 25)]
LIMIT_S = 30
OUTAGE_S = 30.0
STEP_S = 1.5
NIGHT_S = 540.0

pytestmark = [pytest.mark.timeout(900), *night_marks(*SIX)]


def hand_in(night: Night, daemon: Daemon) -> None:
    """Half of the tasks for one CLI alone, two for each; the others for anybody. Every second one waits at a limit."""
    for number, name in enumerate(TASKS):
        agent = {"type": SIX[number % 6].kind, "strict": True} if number < 12 else None
        on_limit = "wait" if number % 2 else "failover"
        retry = {"max_attempts": 4, "backoff": "2s"}
        night.hand_in(daemon, name, agent=agent, on_limit=on_limit, retry=retry, timeout="180s", stall_timeout="60s")


def kill_supervisor(night: Night, daemon: Daemon, cli: Cli) -> str:
    """Kill that of a run of the CLI in the midst of its second step, with no warning; the run's id."""

    def in_step() -> tuple[str, str] | None:
        asked = {heard.task for heard in night.accounts[cli].journal if heard.done == 1}
        over = {heard.task for heard in night.accounts[cli].journal if heard.done == STEPS}
        live = ((name, run) for name, run in runs_of(daemon) if run.agent == cli.kind and run.ended_at is None)
        return next(((name, run.id) for name, run in live if name in asked - over), None)

    wait_until(lambda: in_step() is not None, f"a step of a run of {cli.kind}", NIGHT_S)
    results = in_step()
    assert results is not None
    record = json.loads((night.site.state / "runs" / results[1] / "shim.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    return results[1]


def reasons(daemon: Daemon) -> Counter[str]:
    """Of the runs that did not succeed."""
    outcomes = (run.outcome for _, run in runs_of(daemon))
    return Counter(outcome.reason for outcome in outcomes if outcome is not None and outcome.reason is not None)


def test_nothing_is_lost_or_done_twice_or_left(tmp_path: Path, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", *SIX) as night:
        night.configure(slots=dict.fromkeys(SIX, 1), total=4)
        for account in night.accounts.values():
            for name in TASKS:
                for number in range(1, STEPS + 1):
                    account.commands[name, number] = f"sleep {STEP_S}; {command(name, number)}"
        claude, vibe, copilot, codex = (night.accounts[cli] for cli in (CLAUDE, VIBE, COPILOT, CODEX_ACP))
        for name in TASKS:
            codex.commands[name, STEPS] = f"sleep {4 * STEP_S}; {command(name, STEPS)}"
        claude.when(1, 1, lambda: claude.run_out(LIMIT_S))
        vibe.when(1, 1, lambda: vibe.refuse("limit", chat_api.throttled(3600)))
        copilot.when(2, 0, lambda: copilot.refuse("outage", chat_api.overloaded()))
        began_ms = now_ms()
        daemon = night.start()
        hand_in(night, daemon)

        wait_until(lambda: bool(vibe.windows and claude.windows), "the limits", NIGHT_S)
        killed_ms = now_ms()
        daemon.kill()
        daemon = night.start()
        taken_over = kill_supervisor(night, daemon, CODEX_ACP)
        supervisor_ms = now_ms()
        wait_until(lambda: bool(copilot.windows), "the outage", NIGHT_S)
        time.sleep(OUTAGE_S)
        copilot.recover()
        vibe.recover()
        for cli in (VIBE, COPILOT):
            daemon.client.release(cli.kind)
        wait_until(lambda: all(task.state in SETTLED for task in daemon.client.all_tasks()), "the end", NIGHT_S)

        story = timeline(night, daemon, daemon_killed=killed_ms, supervisor_killed=supervisor_ms)
        took_s = (now_ms() - began_ms) / 1000
        by = Counter(run.agent for _, run in runs_of(daemon) if run.outcome and run.outcome.status == "succeeded")
        tell(f"{len(TASKS)} tasks in {took_s:.0f} s by {dict(by)}\n{costs(night, daemon)}\n{story}")
        for name in TASKS:
            assert in_state(daemon, name, *SETTLED).state == "COMPLETED", why(daemon, name)
        assert night.effects() == expected_effects(*TASKS)
        assert night.conversations() == dict.fromkeys(TASKS, 1)
        assert set(by) == {cli.kind for cli in SIX}
        entry = next(run for _, run in runs_of(daemon) if run.id == taken_over)
        assert entry.outcome is not None
        assert entry.outcome.status == "succeeded", "another supervisor took it over"
        assert reasons(daemon)["rate_limited"] >= 2
        assert set(reasons(daemon)) <= {"rate_limited", "overloaded"}
        limit = claude.windows[0]
        assert limit.end_ms is not None
        assert not claude.between(limit.start_ms, limit.end_ms), "nobody asks before the reset"
        wait_until(lambda: not night.alive(), "the end of all processes of runs")
        assert daemon.stop() == 0
        night.site.no_processes()
