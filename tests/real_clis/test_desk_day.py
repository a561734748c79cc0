"""A day of the real Claude Code and Codex as the desk shows it: what each task did to two repositories, a question, an
approval, a limit that work flows around, a check that fails, and two branches of which only the first can be merged."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.inputs import MARKER
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.daemon import Daemon
from tests.e2e.repositories import git
from tests.e2e.repositories import repository as new_repository
from tests.e2e.scenarios_support import document, ended, in_state, why
from tests.fakes.http_api import Request, Step, Text
from tests.real_clis.account import STEPS, Account
from tests.real_clis.clis import CLAUDE, CODEX
from tests.real_clis.night import Night, open_night

END_S = 120.0
LIMIT_S = 20
HEADER, FOOTER, COLOURS, RELEASE, SEARCH, TESTS, NOTES, LEAK = (
    "task-01-header", "task-02-header-again", "task-03-colours", "task-04-release", "task-05-search", "task-06-tests",
    "task-07-notes", "task-08-leak",
)  # fmt: skip
QUESTION = "Which blue is meant: the old #2f4fc4, or the new one of the style guide?"
SAYS = {
    LEAK: "I fixed the leak in the cache and added a test for it.",
    TESTS: "The tests pass now.",
}
"""The last words of tasks that say more than that they are done."""

pytestmark = [pytest.mark.timeout(600), *CLAUDE.marks, *CODEX.marks]


@dataclass
class Day:
    """The night's machinery with two repositories, and tasks whose work is a commit."""

    night: Night
    daemon: Daemon
    shop: Path
    blog: Path
    names: list[str] = field(default_factory=list)

    def hand_in(self, name: str, repository: Path, **fields: object) -> None:
        """Drop a task for a work tree of its own."""
        given: dict[str, object] = {
            "agent": None,
            "permissions": {"mode": "bypassPermissions"},
            "working_dir": str(repository),
            "isolation": "worktree",
            "on_limit": "failover",
            "retry": {"max_attempts": 1},
            **fields,
        }
        self.night.site.drop(f"{name}.yaml", document(name, f"Do what {name} asks for.", **given))
        self.names.append(name)

    def settled(self, name: str, state: str = "COMPLETED") -> None:
        """Wait for its end, and see that it is that one."""
        task = ended(self.daemon, name, END_S)
        assert task.state == state, why(self.daemon, name)


class Talking(Account):
    """An account whose answers are those of ``SAYS``, and that asks about the colours until it has been told."""

    def step(self, request: Request) -> Step:
        step, (task, _) = super().step(request), self._progress(request)
        if task == COLOURS[:7] and "the new one" not in str(request.body).replace(QUESTION, ""):
            return Text(f"I found two.\n\n{MARKER} {QUESTION}")
        says = next((text for name, text in SAYS.items() if name.startswith(task)), None)
        return Text(says) if says and isinstance(step, Text) else step


def _commit(file: str, line: str, subject: str) -> str:
    who = "-c user.name=Agent -c user.email=agent@example.org"
    return f"echo '{line}' > {file} && git add {file} && git {who} commit -q -m '{subject}'"


def live(night: Night) -> Day:
    """Live the day, to its evening."""
    site = night.site
    for account in night.accounts.values():
        account.__class__ = Talking
        acts = {
            HEADER: _commit("header.html", "<h1>Shop</h1>", "Give the shop a header"),
            FOOTER: _commit("header.html", "<h1>The shop</h1>", "Say which shop it is"),
            COLOURS: _commit("style.css", "a { color: blue }", "Use the blue of the style guide"),
            RELEASE: _commit("CHANGES", "1.1", "Note the release"),
            SEARCH: _commit("search.py", "def search(): ...", "Find posts by words"),
            TESTS: _commit("tests.py", "assert False", "Test what is there"),
            NOTES: "echo 'to do: everything' > notes.txt",
            LEAK: "ls",
        }
        for name, act in acts.items():
            for step in range(1, STEPS + 1):
                short = name[:7]
                account.commands[short, step] = (
                    f"{act if step == 1 else 'git status --short'}; echo {short} step-{step}"
                )
    night.configure(slots={CLAUDE: 2, CODEX: 2}, total=4)
    day = Day(night, night.start(), new_repository(site.work / "shop"), new_repository(site.work / "blog"))
    client, claude, codex = day.daemon.client, {"type": CLAUDE.kind}, {"type": CODEX.kind}
    day.hand_in(HEADER, day.shop, agent=claude)
    day.hand_in(FOOTER, day.shop, agent=codex)
    day.hand_in(COLOURS, day.shop, agent=claude)
    day.hand_in(RELEASE, day.blog, approval=True)
    in_state(day.daemon, RELEASE, "NEEDS_INPUT", deadline_s=END_S)
    in_state(day.daemon, COLOURS, "NEEDS_INPUT", deadline_s=END_S)
    client.answer(COLOURS, AnswerRequest(text="Take the new one."))
    client.approve(RELEASE)
    for name in (HEADER, FOOTER, COLOURS, RELEASE):
        day.settled(name)
    night.accounts[CLAUDE].run_out(LIMIT_S)
    day.hand_in(SEARCH, day.blog, agent=claude)
    day.hand_in(TESTS, day.blog, agent=codex, check=["test -e nowhere"])
    day.hand_in(NOTES, day.shop, agent=codex)
    day.hand_in(LEAK, day.blog, agent=codex)
    for name in (SEARCH, NOTES, LEAK):
        day.settled(name)
    day.settled(TESTS, "FAILED")
    return day


def test_a_day_at_the_desk(tmp_path: Path) -> None:
    with open_night(tmp_path / "site", CLAUDE, CODEX) as night:
        day = live(night)
        client = day.daemon.client
        before = git(day.shop, "rev-parse", "main")
        assert client.merge(HEADER).commits == 1
        after = git(day.shop, "rev-parse", "main")
        assert before != after
        with pytest.raises(ServiceProblem, match=r"header\.html"):
            client.merge(FOOTER)
        assert git(day.shop, "rev-parse", "main") == after, "a merge that conflicts moves nothing"
        assert git(day.shop, "status", "--porcelain") == ""
        assert client.merge(COLOURS).commits == 1
        assert {branch.task_name for branch in client.branches()} >= {FOOTER, RELEASE, SEARCH}
        assert client.task(SEARCH).agent == CODEX.kind, "it flowed around the limit of the other"
        assert client.task(LEAK).changes == "no changes (its result says otherwise)"
        report = client.report()
        assert (report.failed, report.doubtful, report.limits) == (1, 1, 1)
        assert [ref.name for ref in report.doubtful_tasks] == [LEAK]
        completed = subprocess.run(
            ["git", "-C", str(day.shop), "log", "--format=%s", "main"], capture_output=True, text=True
        )
        assert "Use the blue of the style guide" in completed.stdout
        assert day.daemon.stop() == 0
