"""A day of a hundred tasks on the four real CLIs, with the troubles of a year in it.

Whatever happens to accounts, daemons and supervisors, each task comes to the end that it should, and each step of its
work is done once.
"""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, why
from tests.e2e.site import SETTLED
from tests.fakes import gemini_api, messages_api
from tests.patience import wait_until
from tests.real_clis.account import EFFECTS, STEPS, Account, command, now_ms
from tests.real_clis.bench import repository
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, Cli
from tests.real_clis.night import Night, costs, expected_effects, night_marks, open_night, runs_of, timeline

TASKS = [f"task-{number:02}" for number in range(100)]
LIMIT_S = 25
OUTAGE_S = 20.0
REFUSED_S = 5.0
DAY_S = 1_200.0
LOYAL: dict[int, Cli] = {0: CLAUDE, 1: CODEX, 2: GEMINI, 3: OPENCODE}
"""By the last digit: tasks for one CLI alone."""
LIES = (
    'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}',
    "You've hit your session limit · resets 11:59pm (UTC)",
    "Attempt 1 failed with status 429. Retrying after 9999999999999ms... _ApiError: quota exhausted",
    "You've hit your usage limit. Upgrade to Pro or try again at Nov 24th, 2030 3:38 PM.",
)
EARLY = 70
"""Tasks that come at the beginning; the others come once the key is refused, so that some are left for it however fast
the first ones are done."""
CANCELLED, RESTARTED, EDITED, RENAMED = "task-44", "task-54", "task-64", "task-74"

# The first timeout counts, and each CLI brings one of its own.
pytestmark = [pytest.mark.timeout(DAY_S + 300), *night_marks(CLAUDE, CODEX, GEMINI, OPENCODE)]


def lying(name: str, number: int) -> str:
    """The step, by a tool that says on both streams what CLIs say of limits."""
    lies = "; ".join(f"echo {json.dumps(lie)} >&2; echo {json.dumps(lie)}" for lie in LIES)
    return f"{command(name, number)}; {lies}"


def flooding(name: str, number: int) -> str:
    """The step, by a tool that writes twenty million bytes."""
    return f"{command(name, number)}; yes | head -c 20000000"


def fields_of(number: int, repository: Path) -> dict[str, object]:
    """What is particular about the task of that number."""
    digit = number % 10
    fields: dict[str, object] = {
        "on_limit": "wait" if number % 3 else "failover",
        "on_lost": "retry",
        "retry": {"max_attempts": 3, "backoff": "1s"},
        "timeout": "5m",
        "check": [f"grep -q step-{STEPS} effects"] if number % 4 == 0 else None,
    }
    if digit in LOYAL and number < EARLY:  # the slowest of them would be all that is left at the end
        fields["agent"] = {"type": LOYAL[digit].kind, "strict": True}
    if digit == 5:
        fields |= {"isolation": "worktree", "working_dir": str(repository)}
    if digit == 6:
        fields["depends_on"] = [TASKS[number - 1]]
    if digit == 7:
        fields["priority"] = "urgent"
    return fields


class Day:
    """The night's machinery, with what is done to it."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.daemon = night.start()
        self.marks: dict[str, int] = {}

    def settled(self) -> int:
        return sum(task.state in SETTLED for task in self.daemon.client.all_tasks())

    def reach(self, count: int) -> None:
        """Wait until so many tasks are through."""
        wait_until(lambda: self.settled() >= count, f"{count} tasks to be through", DAY_S)

    def mark(self, what: str) -> None:
        self.marks[what] = now_ms()

    def kill(self, nth: int) -> None:
        self.mark(f"kill {nth} of the daemon")
        self.daemon.kill()
        self.daemon = self.night.start()

    def kill_a_shim(self) -> str | None:
        """End the supervisor of a run, and nothing else; the run's id."""
        for task in self.daemon.client.all_tasks():
            if task.state != "RUNNING":
                continue
            run = self.daemon.client.runs(task.id)[-1]
            try:
                pid = json.loads((self.night.site.state / "runs" / run.id / "shim.json").read_text())["pid"]
                os.kill(pid, signal.SIGKILL)
            except (OSError, ValueError, KeyError):
                continue
            self.mark(f"the supervisor of {task.name} is killed")
            return run.id
        return None


def outage(day: Day, account: Account, begin: Callable[[], None], least: int) -> None:
    """It lasts so long, and until somebody has noticed."""
    begin()
    time.sleep(OUTAGE_S)
    account.recover()
    day.reach(least)


def drop_all(day: Day, shared: Path, first: int, end: int) -> None:
    """Put the tasks from the first to the one before the end into the inbox, and wait until all are accepted."""
    night = day.night
    for number, name in enumerate(TASKS[first:end], first):
        if number % 10 != 5:
            night.folder(name).mkdir()
        given = {
            "agent": None,
            "permissions": {"mode": "bypassPermissions"},
            "working_dir": str(night.folder(name)),
            **fields_of(number, shared),
        }
        night.site.drop(f"{name}.yaml", document(name, f"Do what {name} asks for.", **given))
    wait_until(lambda: len(list(day.daemon.client.all_tasks())) == end, "all to be accepted", 60)


def test_a_hundred_tasks_through_every_trouble(tmp_path: Path, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX, GEMINI, OPENCODE) as night:
        site = night.site
        claude, codex, gemini, opencode = (night.accounts[cli] for cli in (CLAUDE, CODEX, GEMINI, OPENCODE))
        shared = site.root / "repository"
        repository(shared, site.root / "home")
        git = ["git", "-C", str(shared), "-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
        for account in night.accounts.values():
            for number, name in enumerate(TASKS):
                for step in range(1, STEPS + 1):
                    act = lying if number % 10 in (2, 4) else flooding if number % 25 == 8 else command
                    account.commands[name, step] = act(name, step)
                    if name in (CANCELLED, RESTARTED):
                        account.commands[name, step] = f"{command(name, step)}; sleep 20"
        night.configure(slots={CLAUDE: 2, CODEX: 2, GEMINI: 1, OPENCODE: 1}, total=3)
        day = Day(night)
        claude.when(4, 1, lambda: claude.run_out(LIMIT_S))
        codex.when(9, 1, lambda: codex.run_out(LIMIT_S))
        began_ms = now_ms()

        # Every trouble of the inbox, while a hundred files come in.
        (site.inbox / "broken.yaml").write_text("instructions: [\n")
        (site.inbox / "typo.yaml").write_text("instructons: x\n")
        Path(os.fsdecode(os.fsencode(str(site.inbox)) + b"/\xff\xfe.yaml")).write_text("instructions: x\n")
        drop_all(day, shared, 0, EARLY)
        original = (site.inbox / f"{EDITED}.yaml").read_text()

        day.reach(8)
        day.kill(1)
        day.reach(14)
        lost = day.kill_a_shim()
        day.reach(20)
        outage(day, claude, lambda: claude.refuse("overloaded", messages_api.overloaded()), 26)
        outage(day, gemini, lambda: gemini.refuse("overloaded", gemini_api.overloaded()), 32)
        day.kill(2)
        outage(day, codex, codex.vanish, 40)
        outage(day, opencode, opencode.vanish, 46)
        claude.refuse("key refused", messages_api.unauthorized())
        drop_all(day, shared, EARLY, len(TASKS))
        (site.inbox / f"{RENAMED}.yaml").rename(site.inbox / "renamed.yaml")
        wait_until(
            lambda: any(agent.hold_reason for agent in day.daemon.client.agents() if agent.name == CLAUDE.kind),
            "the key to be found refused",
            DAY_S,
        )
        time.sleep(REFUSED_S)
        claude.recover()
        day.daemon.client.release(CLAUDE.kind)

        def running(name: str) -> bool:
            return any(task.name == name and task.state == "RUNNING" for task in day.daemon.client.all_tasks())

        def through(name: str) -> bool:
            return any(task.name == name and task.state in SETTLED for task in day.daemon.client.all_tasks())

        wait_until(lambda: running(CANCELLED) or through(CANCELLED), f"{CANCELLED} to run", DAY_S)
        if running(CANCELLED):
            day.daemon.client.cancel(CANCELLED)
        site.drop(f"{EDITED}.yaml", original.replace("asks for.", "asks for, please."))
        site.drop(f"{EDITED}.yaml", original)
        day.kill(3)
        wait_until(lambda: day.settled() == len(TASKS), "the end of the day", DAY_S)

        daemon: Daemon = day.daemon
        took_s = (now_ms() - began_ms) / 1000
        ends = Counter(run.outcome.reason or run.outcome.status for _, run in runs_of(daemon) if run.outcome)
        tell(f"{len(TASKS)} tasks in {took_s:.0f} s; a supervisor killed: {lost is not None}; ends of runs: {ends}")
        tell(f"{costs(night, daemon)}\n{timeline(night, daemon, **day.marks)}")
        states = {task.name: task.state for task in daemon.client.all_tasks()}
        amiss = [name for name, state in states.items() if state != "COMPLETED" and name != CANCELLED]
        assert not {name: why(daemon, name) for name in amiss}
        expected = expected_effects(*(name for name in TASKS if name != CANCELLED))
        counter = night.effects() + trees_effects(daemon)
        counter = Counter({line: count for line, count in counter.items() if CANCELLED not in line})
        assert counter - expected == Counter(), "work was done twice"
        assert expected - counter == Counter(), "work was not done"
        assert not [hold for agent in daemon.client.agents() for hold in agent.holds], "nobody believed a tool"
        wait_until(lambda: not night.alive(), "the end of all processes of runs")
        assert daemon.stop() == 0
        site.no_processes()


def trees_effects(daemon: Daemon) -> Counter[str]:
    """What tasks with a work tree have left in theirs."""
    counter: Counter[str] = Counter()
    for task in daemon.client.all_tasks():
        tree = daemon.client.task(task.id).worktree if task.name.endswith("5") else None
        if tree is not None:
            file = Path(tree.path) / EFFECTS
            if file.exists():
                counter.update(file.read_text().splitlines())
    return counter
