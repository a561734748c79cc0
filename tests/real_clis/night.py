"""A night: a site whose daemon runs several real agent CLIs, each with an account of its own at a fake service."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claudomator_py.hosts.shim import procfs
from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document
from tests.e2e.site import Site, open_site
from tests.fakes import messages_api, responses_api
from tests.fakes.http_api import Refusal
from tests.patience import wait_until
from tests.real_clis.account import EFFECTS, STEPS, Account
from tests.real_clis.clis import CLAUDE, CODEX, Cli, private

LIMITS: Mapping[Cli, Callable[[int], Refusal]] = {
    CLAUDE: messages_api.used_up,
    CODEX: responses_api.used_up,
}
# Claude Code lets root bypass permissions where that says that nothing is at stake.
SANDBOX = {"IS_SANDBOX": "1"}
KEYS: Mapping[Cli, Mapping[str, str]] = {CLAUDE: CLAUDE.login}


def epoch_ms(moment: str) -> int:
    """Of a time as the API gives it."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def clock(at_ms: int) -> str:
    """For people."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f}"[:-3]


@dataclass
class Night:
    """accounts: by CLI, whose agent has the name of its kind."""

    site: Site
    accounts: Mapping[Cli, Account]

    def configure(self, *, slots: Mapping[Cli, int], total: int) -> None:
        """slots: how many runs at once, by CLI; total: in all."""
        agents = {
            cli.kind: {
                "kind": cli.agent_kind,
                "command": [str(cli.program), *cli.words],
                "extra_args": list(cli.extra_args(account.api.origin)),
                "env": {**private(self.site.root / "home"), **cli.env(account.api.origin), **SANDBOX},
                "pass_env": list(self._key(cli)),
                "max_concurrent": slots[cli],
                **({} if cli.models is None else {"models": dict(cli.models)}),
            }
            for cli, account in self.accounts.items()
        }
        self.site.configure(agents=agents, concurrency={"total": total}, limits={"grace": "5s", "min_free": "1MiB"})

    def start(self) -> Daemon:
        """A daemon with all keys that is ready."""
        keys = {name: value for cli in self.accounts for name, value in self._key(cli).items()}
        return self.site.start(**keys).ready()

    def hand_in(self, daemon: Daemon, name: str, **fields: object) -> None:
        """Drop a task with a folder of its own, and wait until it is accepted."""
        folder = self.folder(name)
        folder.mkdir()
        given = {"agent": None, "permissions": {"mode": "bypassPermissions"}, "working_dir": str(folder), **fields}
        self.site.drop(f"{name}.yaml", document(name, f"Do what {name} asks for.", **given))
        wait_until(lambda: name in {task.name for task in daemon.client.all_tasks()}, f"{name} to be accepted")

    def folder(self, name: str) -> Path:
        """Where the task works."""
        return self.site.work / name

    def effects(self) -> Counter[str]:
        """What the tasks' steps have left in their folders, by line."""
        files = self.site.work.glob(f"*/{EFFECTS}")
        return Counter(line for file in files for line in file.read_text().splitlines())

    def conversations(self) -> Counter[str]:
        """How many conversations were begun, by task, with whomever."""
        return sum((account.conversations for account in self.accounts.values()), Counter())

    def alive(self) -> dict[int, str]:
        """The processes of runs."""
        mark = procfs.RUN_VARIABLE.encode() + b"="
        return {pid: line for pid, line in self.site.processes().items() if mark in _environ(pid)}

    def _key(self, cli: Cli) -> Mapping[str, str]:
        return KEYS.get(cli, cli.key)


def expected_effects(*names: str) -> Counter[str]:
    """Each step of these tasks, once."""
    return Counter(f"{name} step-{number}" for name in names for number in range(1, STEPS + 1))


def runs_of(daemon: Daemon) -> list[tuple[str, RunView]]:
    """All runs, in the order in which they began, each with its task's name."""
    runs = [(task.name, run) for task in daemon.client.all_tasks() for run in daemon.client.runs(task.id)]
    return sorted(runs, key=lambda pair: pair[1].started_at or "")


def timeline(night: Night, daemon: Daemon, **more: int) -> str:
    """What happened when, for people: runs, the windows in which accounts refused, and more that is to be told."""
    happened = [(run.started_at, f"{name} begins on {run.agent}") for name, run in runs_of(daemon)]
    for name, run in runs_of(daemon):
        if run.ended_at is not None and run.outcome is not None and run.outcome.status != "succeeded":
            happened.append((run.ended_at, f"{name} ends on {run.agent}: {run.outcome.status} ({run.outcome.reason})"))
    messages = [(at_ms, what) for what, at_ms in more.items()] + [(epoch_ms(at), what) for at, what in happened]
    for cli, account in night.accounts.items():
        for window in account.windows:
            messages.append((window.start_ms, f"[{cli.kind}] {window.what}"))
            messages += [(window.end_ms, f"[{cli.kind}] {window.what} is over")] if window.end_ms is not None else []
    return "\n".join(f"  {clock(at_ms)} {what}" for at_ms, what in sorted(messages))


def costs(night: Night, daemon: Daemon) -> str:
    """What each window cost, as a table: refused requests and runs, and the time until work went on."""
    rows = ["| agent | what | lasted | requests after the first | runs ended by it | its end until the next run |"]
    for cli, account in night.accounts.items():
        runs = [run for _, run in runs_of(daemon) if run.agent == cli.kind]
        for window in account.windows:
            assert window.end_ms is not None
            begun = [run for run in runs if epoch_ms(run.started_at) < window.end_ms]
            met = [run for run in begun if unlike_success(run) and epoch_ms(run.ended_at or "") >= window.start_ms]
            after = [ms for run in runs if (ms := epoch_ms(run.started_at) - window.end_ms) >= 0]
            cells = [
                cli.kind,
                window.what,
                f"{(window.end_ms - window.start_ms) / 1000:.1f} s",
                str(len(account.between(window.start_ms, window.end_ms))),
                str(len(met)),
                f"{min(after)} ms" if after else "there was none",
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def unlike_success(run: RunView) -> bool:
    """Whether it ended otherwise."""
    return run.outcome is not None and run.outcome.status != "succeeded"


def night_marks(*clis: Cli) -> list[pytest.MarkDecorator]:
    """What tests of a night with these are marked with."""
    return [pytest.mark.nights, *(mark for cli in clis for mark in cli.marks)]


@contextmanager
def open_night(root: Path, *clis: Cli) -> Iterator[Night]:
    """A night under that folder, with these CLIs. No process is left at its end."""
    with ExitStack() as stack:
        accounts = {cli: Account(cli, stack.enter_context(cli.api()), LIMITS.get(cli)) for cli in clis}
        site = stack.enter_context(open_site(root))
        for cli in clis:
            cli.settle_in(site.root / "home", accounts[cli].api.origin)
        yield Night(site, accounts)


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
