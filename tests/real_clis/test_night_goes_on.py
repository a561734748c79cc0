"""A limit in the middle of a conversation: at its end the same conversation goes on, or another agent takes over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, why
from tests.fakes import chat_api, gemini_api
from tests.fakes.http_api import Refusal
from tests.patience import wait_until
from tests.real_clis.account import EFFECTS, Account
from tests.real_clis.clis import CLAUDE, CLIS, CODEX, GEMINI, OPENCODE, Cli
from tests.real_clis.night import Night, epoch_ms, expected_effects, night_marks, open_night

TASK = "task-01"
LIMIT_S = 12
END_S = 90.0
# These say nothing of a reset that would be near: a day's quota, and a limit that is over when it is said to be.
REFUSALS: dict[Cli, Refusal] = {GEMINI: gemini_api.daily_quota_used_up(), OPENCODE: chat_api.throttled(1)}
SECOND = {CLAUDE: CODEX, CODEX: GEMINI, GEMINI: OPENCODE, OPENCODE: CLAUDE}


def run_out(account: Account) -> None:
    """As the service of that CLI does."""
    if account.cli in REFUSALS:
        account.refuse("limit", REFUSALS[account.cli])
    else:
        account.run_out(LIMIT_S)


def pair(cli: Cli) -> list[pytest.MarkDecorator]:
    return night_marks(cli, SECOND[cli])


each_pair = pytest.mark.parametrize("cli", [pytest.param(cli, id=cli.kind, marks=pair(cli)) for cli in CLIS])


def begun(night: Night, cli: Cli, on_limit: str, **fields: object) -> Daemon:
    """The task, which is better done by that CLI, and a limit in its middle; the other CLI is free."""
    night.configure(slots=dict.fromkeys(night.accounts, 1), total=1)
    account = night.accounts[cli]
    account.when(1, 1, lambda: run_out(account))
    daemon = night.start()
    night.hand_in(daemon, TASK, agent={"type": cli.kind}, on_limit=on_limit, retry={"max_attempts": 1}, **fields)
    return daemon


def limited_run(daemon: Daemon) -> RunView:
    """The task's first run, once it has met the limit."""

    def look() -> RunView | None:
        runs = daemon.client.runs(TASK)
        return runs[0] if runs and runs[0].outcome is not None else None

    run = wait_until(look, "the end of the first run", END_S)
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == ("limited", "rate_limited"), run
    return run


@each_pair
def test_the_same_conversation_goes_on(tmp_path: Path, cli: Cli, tell: Callable[[str], None]) -> None:
    with open_night(tmp_path / "site", cli, SECOND[cli]) as night:
        account, other = night.accounts[cli], night.accounts[SECOND[cli]]
        daemon = begun(night, cli, "wait")
        first = limited_run(daemon)
        if cli in REFUSALS:
            account.recover()
            daemon.client.release(cli.kind)

        task = ended(daemon, TASK, END_S)
        assert (task.state, task.agent, task.attempts) == ("COMPLETED", cli.kind, 1), why(daemon, TASK)
        runs = daemon.client.runs(TASK)
        assert [run.resumes for run in runs[1:]] == [run.id for run in runs[:-1]]
        assert first.outcome is not None
        assert {run.outcome.conversation_id for run in runs if run.outcome} == {first.outcome.conversation_id}
        assert account.conversations == {TASK: 1}, "its history is in the request"
        assert not other.journal
        assert night.effects() == expected_effects(TASK)
        (window,) = account.windows
        assert window.end_ms is not None
        if cli not in REFUSALS:
            assert not account.between(window.start_ms, window.end_ms)
        tell(f"resumed; its run began {epoch_ms(runs[-1].started_at) - window.end_ms} ms after the limit's end")


@each_pair
def test_another_takes_over_with_a_note_and_in_the_same_folder(tmp_path: Path, cli: Cli) -> None:
    with open_night(tmp_path / "site", cli, SECOND[cli]) as night:
        other = night.accounts[SECOND[cli]]
        daemon = begun(night, cli, "failover", working_dir=None)
        limited_run(daemon)

        task = ended(daemon, TASK, END_S)
        assert (task.state, task.agent, task.attempts) == ("COMPLETED", other.cli.kind, 1), why(daemon, TASK)
        text = str(other.api.requests[0].body)
        assert f"Another agent, {cli.kind}, had this task before you" in text
        assert [heard.done for heard in other.journal if heard.task] == [1, 2], "it knows what was done"
        (effects,) = night.site.root.rglob(EFFECTS)
        assert effects.read_text().split("\n") == [*sorted(expected_effects(TASK)), ""]
        assert [run.resumes for run in daemon.client.runs(TASK)] == [None, None]
