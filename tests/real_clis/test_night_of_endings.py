"""A night of the real Claude Code in which runs end in every way that could be taken for another.

Work in the background, a wake-up, a server left behind, an answer of nothing or one that is cut off, a limit and a
timeout after a first result, a budget that only later turns use up: beside ordinary tasks, and with a daemon killed.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, in_state, why
from tests.e2e.site import SETTLED
from tests.fakes import messages_api
from tests.fakes.http_api import INPUT_TOKENS, Request, Step, Text, ToolCall
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE
from tests.real_clis.night import night_marks
from tests.real_clis.place import SLEEP, Place, open_place

pytestmark = [pytest.mark.timeout(600), *night_marks(CLAUDE)]

NIGHT_S = 400.0
LIMIT_S = 20
ORDINARY = tuple(f"task-plain-{number}" for number in range(1, 7))
BUSY = "timeout 60 sh -c 'while :; do :; done'"
ALLOWED = {"mode": "acceptEdits", "allowed_tools": ["Bash", "ScheduleWakeup"]}
_TASK = re.compile(r"\btask-[a-z]+(?:-\d)?\b")


def shell(command: str, *, background: bool = False) -> ToolCall:
    given = {"command": command, "description": "as asked"}
    return ToolCall("Bash", given | ({"run_in_background": True} if background else {}))


def leaves(name: str) -> str:
    """A command that leaves one line for each time that it runs."""
    return f"echo {name} >> effects"


class Limit:
    """One that the service has for some seconds once it is asked the first time. refused_ms: when it refused."""

    def __init__(self, then: Step) -> None:
        self._then = then
        self.until_s: int | None = None
        self.refused_s: list[float] = []

    def __call__(self) -> Step:
        now_s = time.time()
        if self.until_s is None:
            self.until_s = int(now_s) + LIMIT_S
        if now_s >= self.until_s:
            return self._then
        self.refused_s.append(now_s)
        return messages_api.used_up(self.until_s)


class Script:
    """What the model does for each task, by how often it has answered in the conversation. other: what every task gets
    while the limit lasts."""

    def __init__(self, scripts: Mapping[str, Sequence["Step | Limit"]], limit: Limit) -> None:
        self._scripts = scripts
        self._limit = limit

    def step(self, request: Request) -> Step:
        messages = request.body["messages"]
        match = _TASK.search(json.dumps(messages))
        assert match is not None, str(messages)[:400]
        answered = sum(message["role"] == "assistant" for message in messages)
        steps = self._scripts[match[0]]
        step = steps[min(answered, len(steps) - 1)]
        if self._limit.until_s is not None and step is not self._limit and time.time() < self._limit.until_s:
            return self._limit()
        return self._limit() if isinstance(step, Limit) else step

    def beside(self, request: Request) -> Step:
        return Text("ok")


LIMIT = Limit(Text("I went on after the limit."))
WAKE_UP = ToolCall("ScheduleWakeup", {"delaySeconds": 60, "reason": "wait", "prompt": "go on"})
SCRIPTS: dict[str, Sequence["Step | Limit"]] = {
    **{name: (shell(leaves(name)), Text(f"{name} is done.")) for name in ORDINARY},
    "task-build": (
        shell(f"sleep 6; {leaves('task-build')}", background=True),
        Text("It builds."),
        Text("It is built."),
    ),
    "task-wake": (WAKE_UP, Text("I look again later."), shell(leaves("task-wake")), Text("I have looked.")),
    "task-serve": (shell(leaves("task-serve")), shell(SLEEP, background=True), Text("It serves."), Text("never said")),
    "task-late": (shell(BUSY, background=True), Text("It is on its way."), Text("never said")),
    "task-costly": (
        shell("sleep 2", background=True),
        Text("It is on its way."),
        *(shell("sleep 1") for _ in range(20)),
        Text("never said"),
    ),
    "task-limited": (
        shell("sleep 3", background=True),
        Text("It is on its way."),
        LIMIT,
        Text("I went on after the limit."),
    ),
    "task-nothing": (Text(""),),
    "task-cut": (Text("The answer is", stop="max_tokens"),),
}
FIELDS: dict[str, dict[str, object]] = {
    "task-late": {"timeout": "20s"},
    "task-costly": {"budget": {"tokens": 4 * INPUT_TOKENS}},
    "task-limited": {"on_limit": "wait", "priority": "low"},
}
WANTED: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys((*ORDINARY, "task-build", "task-wake", "task-serve", "task-limited"), ("COMPLETED", None)),
    "task-late": ("FAILED", "timeout"),
    "task-costly": ("FAILED", "budget"),
    "task-nothing": ("FAILED", "no_answer"),
    "task-cut": ("FAILED", "unfinished"),
}


def hand_in(place: Place, daemon: Daemon) -> None:
    for name in SCRIPTS:
        folder = place.site.root / "folders" / name
        folder.mkdir(parents=True)
        given = {"agent": None, "permissions": ALLOWED, "working_dir": str(folder), **FIELDS.get(name, {})}
        place.site.drop(f"{name}.yaml", document(name, f"Do what {name} asks for.", **given))
    wait_until(lambda: len(list(daemon.client.all_tasks())) == len(SCRIPTS), "all tasks to be accepted")


def effects(place: Place) -> dict[str, int]:
    files = (place.site.root / "folders").glob("*/effects")
    return {file.parent.name: len(file.read_text().splitlines()) for file in files}


def ended_all(daemon: Daemon) -> bool:
    return all(task.state in SETTLED for task in daemon.client.all_tasks())


def story(tasks: Sequence[TaskView]) -> str:
    rows = (f"  {task.name:16} {task.state:10} {task.reason or '':14} runs {task.runs}" for task in tasks)
    return "\n".join(sorted(rows))


def test_every_run_ends_as_what_it_was(tmp_path: Path, tell: Callable[[str], None]) -> None:
    with open_place(CLAUDE, tmp_path / "site") as place:
        place.api.mind = Script(SCRIPTS, LIMIT)
        place.configure(background=True, max_concurrent=3, limits={"background_idle": "6s", "linger": "5s"})
        began_s = time.time()
        daemon = place.start()
        hand_in(place, daemon)
        in_state(daemon, "task-build", "RUNNING", *SETTLED, deadline_s=NIGHT_S)
        daemon.kill()
        daemon = place.start()
        wait_until(lambda: ended_all(daemon), "the end of the night", NIGHT_S)

        tasks = {task.name: task for task in daemon.client.all_tasks()}
        tell(f"{len(tasks)} tasks in {time.time() - began_s:.0f} s\n{story(list(tasks.values()))}")
        for name, wanted in WANTED.items():
            assert (tasks[name].state, tasks[name].reason) == wanted, why(daemon, name)
        assert effects(place) == dict.fromkeys((*ORDINARY, "task-build", "task-wake", "task-serve"), 1)
        assert tasks["task-limited"].result_text == "I went on after the limit."
        assert LIMIT.until_s is not None
        wait_until(lambda: not place.running(SLEEP), "what was left behind to end")
        assert not place.running(CLAUDE.program.name)
        assert daemon.stop() == 0
        place.site.no_processes()
