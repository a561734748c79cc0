"""An outage, or the supervisor killed, in the middle of a conversation: it goes on, and nothing is done twice."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, is_over, shim_file, why
from tests.patience import wait_until
from tests.real_clis.account import UNREACHABLE, Account, command
from tests.real_clis.clis import CLIS, CODEX, OPENCODE, Cli
from tests.real_clis.night import Night, expected_effects, night_marks, open_night

TASK = "task-01"
OVERLOADED = "overloaded"
REASONS = {OVERLOADED: "overloaded", UNREACHABLE: "network"}
END_S = 120.0
# These ask on for as long as they may.
PATIENT = {OVERLOADED: (OPENCODE,), UNREACHABLE: (CODEX, OPENCODE)}

each_outage = pytest.mark.parametrize(
    ("cli", "what"),
    [
        pytest.param(cli, what, id=f"{cli.kind}, {what}", marks=night_marks(cli))
        for cli in CLIS
        for what in (OVERLOADED, UNREACHABLE)
    ],
)


def fails(account: Account, what: str) -> None:
    if what == UNREACHABLE:
        account.vanish()
    else:
        account.refuse(what, account.cli.overloaded())


def stops_after_the_first_step(night: Night, account: Account) -> tuple[Path, Path]:
    """Let the task do so; the files by which it says that it has, and is told to go on."""
    begun, go = night.site.root / "begun", night.site.root / "go"
    account.commands[TASK, 1] = f"{command(TASK, 1)}; touch {begun}; until [ -e {go} ]; do sleep 0.1; done"
    return begun, go


def first_run(daemon: Daemon) -> RunView:
    """The task's first run, once it has ended."""

    def look() -> RunView | None:
        runs = daemon.client.runs(TASK)
        return runs[0] if runs and runs[0].outcome is not None else None

    return wait_until(look, "the end of the first run", END_S)


@each_outage
def test_it_costs_time_and_nothing_else(tmp_path: Path, cli: Cli, what: str, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", cli) as night:
        account = night.accounts[cli]
        begun, go = stops_after_the_first_step(night, account)
        night.configure(slots={cli: 1}, total=1)
        daemon = night.start()
        patience = {"timeout": f"{cli.start_s + 10}s"} if cli in PATIENT[what] else {}
        night.hand_in(daemon, TASK, retry={"max_attempts": 1, "backoff": "1s"}, **patience)
        wait_until(begun.exists, "the first step", END_S)
        fails(account, what)
        go.touch()

        first = first_run(daemon)
        account.recover()
        daemon.client.release(cli.kind)
        assert first.outcome is not None
        assert first.outcome.reason == REASONS[what], first

        task = ended(daemon, TASK, END_S)
        assert (task.state, task.attempts) == ("COMPLETED", 1), why(daemon, TASK)
        runs = daemon.client.runs(TASK)
        assert [run.resumes for run in runs] == [None, *(run.id for run in runs[:-1])]
        assert {run.outcome.conversation_id for run in runs if run.outcome} == {first.outcome.conversation_id}
        assert account.conversations == {TASK: 1}, "its history is in the request"
        assert night.effects() == expected_effects(TASK), "each tool call was made once"
        tell(f"{what}: {len(runs)} runs in one conversation; {len(account.journal)} requests")


@pytest.mark.parametrize("cli", [pytest.param(cli, id=cli.kind, marks=night_marks(cli)) for cli in CLIS])
def test_a_killed_supervisor_costs_nothing(tmp_path: Path, cli: Cli) -> None:
    with open_night(tmp_path / "site", cli) as night:
        account = night.accounts[cli]
        begun, go = stops_after_the_first_step(night, account)
        night.configure(slots={cli: 1}, total=1)
        daemon = night.start()
        night.hand_in(daemon, TASK, retry={"max_attempts": 1})
        wait_until(begun.exists, "the first step", END_S)
        (run,) = daemon.client.runs(TASK)
        shim = json.loads(shim_file(night.site, run.id).read_text())["pid"]
        os.kill(shim, signal.SIGKILL)
        wait_until(lambda: is_over(shim), "its supervisor's end")
        go.touch()

        task = ended(daemon, TASK, END_S)
        assert (task.state, task.attempts, task.result_text) == ("COMPLETED", 1, f"{TASK} is done."), why(daemon, TASK)
        (run,) = daemon.client.runs(TASK)
        assert run.exit_code is None, "only its parent would have learnt it"
        assert account.conversations == {TASK: 1}
        assert night.effects() == expected_effects(TASK)
        wait_until(lambda: not night.alive(), "the end of all processes of runs")
