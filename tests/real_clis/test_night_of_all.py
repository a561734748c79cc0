"""A short night with three real CLIs in which everything happens: limits, outages, a refused key and killed daemons."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.resources.agents import AgentView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import in_state, why
from tests.e2e.site import SETTLED
from tests.fakes import gemini_api, messages_api
from tests.patience import wait_until
from tests.real_clis.account import STEPS, Account, Window, command, now_ms
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, Cli
from tests.real_clis.night import (
    Night,
    costs,
    expected_effects,
    night_marks,
    open_night,
    runs_of,
    timeline,
)

TASKS = [f"task-{number:02}" for number in range(1, 31)]
LIMIT_S = 25
OUTAGE_S = 15.0
STEP_S = 1.5
NIGHT_S = 280.0

pytestmark = [pytest.mark.timeout(420), *night_marks(CLAUDE, CODEX, GEMINI)]


def hand_in(night: Night, daemon: Daemon) -> None:
    """Thirty tasks: two thirds for anybody, the others for one CLI alone; every second one waits at a limit."""
    loyal = {0: CLAUDE, 3: CODEX}
    for number, name in enumerate(TASKS, 1):
        cli = loyal.get(number % 6)
        agent = None if cli is None else {"type": cli.kind, "strict": True}
        on_limit = "wait" if number % 2 else "failover"
        night.hand_in(
            daemon, name, agent=agent, on_limit=on_limit, retry={"max_attempts": 3, "backoff": "1s"}, timeout="60s"
        )


def agent_of(daemon: Daemon, cli: Cli) -> AgentView:
    return next(agent for agent in daemon.client.agents() if agent.name == cli.kind)


def open_window(account: Account, count: int) -> Window:
    """Wait until so many windows were opened; the last."""
    wait_until(lambda: len(account.windows) >= count, f"window {count} of {account.cli.kind}", NIGHT_S)
    return account.windows[-1]


def reasons(daemon: Daemon) -> Counter[str]:
    """Of the runs that did not succeed."""
    outcomes = (run.outcome for _, run in runs_of(daemon))
    return Counter(outcome.reason for outcome in outcomes if outcome is not None and outcome.reason is not None)


def ended_count(daemon: Daemon) -> int:
    return sum(task.state in SETTLED for task in daemon.client.all_tasks())


def test_everything_that_could_be_done_was_done(tmp_path: Path, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX, GEMINI) as night:
        night.configure(slots={CLAUDE: 1, CODEX: 1, GEMINI: 1}, total=3)
        claude, codex, gemini = (night.accounts[cli] for cli in (CLAUDE, CODEX, GEMINI))
        for account in night.accounts.values():
            for name in TASKS:
                for number in range(1, STEPS + 1):
                    account.commands[name, number] = f"sleep {STEP_S}; {command(name, number)}"
        gemini.when(2, 0, lambda: gemini.refuse("overloaded", gemini_api.overloaded()))
        claude.when(3, 1, lambda: claude.run_out(LIMIT_S))
        codex.when(5, 1, lambda: codex.run_out(LIMIT_S))
        claude.when(5, 0, lambda: claude.refuse("key refused", messages_api.unauthorized()))
        began_ms = now_ms()
        daemon = night.start()
        hand_in(night, daemon)

        open_window(gemini, 1)
        open_window(claude, 1)
        kills = [now_ms()]
        daemon.kill()
        daemon = night.start()
        time.sleep(max(0.0, OUTAGE_S - (now_ms() - gemini.windows[0].start_ms) / 1000))
        gemini.recover()
        open_window(codex, 1)
        kills.append(now_ms())
        daemon.kill()
        daemon = night.start()
        open_window(claude, 2)
        wait_until(lambda: agent_of(daemon, CLAUDE).hold_reason is not None, "the hold", NIGHT_S)
        # Between two conversations, so that none is broken off.
        wait_until(lambda: gemini.journal[-1].done == STEPS, "the end of a conversation with Gemini", NIGHT_S)
        gemini.vanish()
        wait_until(lambda: "network" in reasons(daemon), "somebody to find that nobody listens", NIGHT_S)
        time.sleep(OUTAGE_S)
        gemini.recover()
        claude.recover()
        daemon.client.release(CLAUDE.kind)
        wait_until(lambda: ended_count(daemon) == len(TASKS), "the end of the night", NIGHT_S)

        story = timeline(night, daemon, kill=kills[0], another_kill=kills[1])
        took_s = (now_ms() - began_ms) / 1000
        tell(f"{len(TASKS)} tasks in {took_s:.0f} s\n{costs(night, daemon)}\n{story}")
        for name in TASKS:
            assert in_state(daemon, name, *SETTLED).state == "COMPLETED", why(daemon, name)
        assert night.conversations() == dict.fromkeys(TASKS, 1)
        assert night.effects() == expected_effects(*TASKS)
        assert reasons(daemon)["rate_limited"] == 2, "nobody asked before the reset"
        for account in (claude, codex):
            limit = account.windows[0]
            assert limit.end_ms is not None
            assert not account.between(limit.start_ms, limit.end_ms)
        assert reasons(daemon)["auth"] == 1, "one run found that the key is refused"
        assert reasons(daemon)["overloaded"] == 1
        assert reasons(daemon)["network"] == 1
        assert set(reasons(daemon)) == {"rate_limited", "auth", "overloaded", "network"}
        wait_until(lambda: not night.alive(), "the end of all processes of runs")
        assert daemon.stop() == 0
        night.site.no_processes()
