"""An account at a fake model service: it does what tasks ask for, runs out, fails and comes back, and keeps a journal.

Like a model it knows nothing but the conversation: a task by the name in its instructions, and what was done of it by
the commands that stand there. A conversation that begins again would show as a second beginning, and its work as a
second line in the task's folder.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.http_api import Refusal, Request, ScriptedApi, Step, Text
from tests.real_clis.clis import Cli

EFFECTS = "effects"
UNREACHABLE = "nobody listens"
STEPS = 2
_TASK = re.compile(r"\btask-\d\d\b")
_OK = 200


def now_ms() -> int:
    """By the clock of the service."""
    return time.time_ns() // 1_000_000


def command(task: str, number: int) -> str:
    """What the model has it do as that step of the task."""
    return f"echo {task} step-{number} >> {EFFECTS}"


@dataclass(frozen=True)
class Heard:
    """A request. done: how many steps of its task the conversation knows; both None beside the loop. status: its
    answer's.
    """

    at_ms: int
    status: int
    task: str | None = None
    done: int | None = None


@dataclass(frozen=True)
class Window:
    """A time in which it refused. end_ms: the reset that it told, or when it was over; None: not yet."""

    what: str
    start_ms: int
    end_ms: int | None


@dataclass
class _Trigger:
    ordinal: int
    done: int
    act: Callable[[], None]


class Account:
    """One of them. windows: the times in which it refused. commands: other commands for a step, by task and step."""

    def __init__(self, cli: Cli, api: ScriptedApi, used_up: Callable[[int], Refusal] | None = None) -> None:
        self.cli = cli
        self.api = api
        self.windows: list[Window] = []
        self.commands: dict[tuple[str, int], str] = {}
        self._used_up = used_up
        self._lock = threading.RLock()
        self._heard: list[Heard] = []
        self._begun: list[str] = []
        self._triggers: list[_Trigger] = []
        self._refusal: Refusal | None = None
        self._until_ms: int | None = None
        api.mind = self

    def when(self, ordinal: int, done: int, act: Callable[[], None]) -> None:
        """Act as the ordinal-th conversation (from 1) asks on with so many steps done, before the answer."""
        self._triggers.append(_Trigger(ordinal, done, act))

    def run_out(self, seconds: int) -> None:
        """From now on it is used up, for so many seconds and the rest of the second in which they end."""
        assert self._used_up is not None
        reset_s = int(time.time()) + seconds + 1
        with self._lock:
            self._refusal, self._until_ms = self._used_up(reset_s), reset_s * 1000
            self.windows.append(Window("limit", now_ms(), self._until_ms))

    def refuse(self, what: str, refusal: Refusal) -> None:
        """From now on every request gets that, until ``recover``."""
        with self._lock:
            self._refusal, self._until_ms = refusal, None
            self.windows.append(Window(what, now_ms(), None))

    def vanish(self) -> None:
        """From now on nobody listens, until ``recover``."""
        self.api.unplug()
        self.windows.append(Window(UNREACHABLE, now_ms(), None))

    def recover(self) -> None:
        """It serves again."""
        if self.windows[-1].what == UNREACHABLE:
            self.api.plug_in()
        with self._lock:
            self._refusal = None
            self.windows[-1] = Window(self.windows[-1].what, self.windows[-1].start_ms, now_ms())

    def step(self, request: Request) -> Step:
        task, done = self._progress(request)
        with self._lock:
            if done == 0 and task not in self._begun:
                self._begun.append(task)
            for trigger in [each for each in self._triggers if self._meets(each, task, done)]:
                self._triggers.remove(trigger)
                trigger.act()
            refusal = self._refused(request.at_ms)
            self._heard.append(Heard(request.at_ms, refusal.status if refusal else _OK, task, done))
        if refusal is not None:
            return refusal
        if done == STEPS:
            return Text(f"{task} is done.")
        return self.cli.shell(self.commands.get((task, done + 1), command(task, done + 1)))

    def beside(self, request: Request) -> Step:
        with self._lock:
            refusal = self._refused(request.at_ms)
            self._heard.append(Heard(request.at_ms, refusal.status if refusal else _OK))
        return refusal or Text("ok")

    @property
    def journal(self) -> tuple[Heard, ...]:
        """What it has heard so far, in order."""
        with self._lock:
            return tuple(self._heard)

    @property
    def conversations(self) -> Counter[str]:
        """How many conversations were begun, by task."""
        return Counter(heard.task for heard in self.journal if heard.task and not heard.done and heard.status == _OK)

    def refused(self, status: int) -> list[Heard]:
        """The requests with that answer."""
        return [heard for heard in self.journal if heard.status == status]

    def between(self, start_ms: int, end_ms: int) -> list[int]:
        """When requests of any kind came after the one, and before the other."""
        return [at_ms for at_ms in self.api.heard_at_ms if start_ms < at_ms < end_ms]

    def _meets(self, trigger: _Trigger, task: str, done: int) -> bool:
        ordinal = self._begun.index(task) + 1 if task in self._begun else 0
        return (trigger.ordinal, trigger.done) == (ordinal, done)

    def _refused(self, at_ms: int) -> Refusal | None:
        if self._until_ms is not None and at_ms >= self._until_ms:
            self._refusal = self._until_ms = None
        return self._refusal

    def _progress(self, request: Request) -> tuple[str, int]:
        text = json.dumps(request.body)
        match = _TASK.search(text)
        assert match is not None, f"a request for no task: {text[:400]}"
        done = 0
        while done < STEPS and f"{match[0]} step-{done + 1}" in text:
            done += 1
        return match[0], done
