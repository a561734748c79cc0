"""A hub in a world, and agents that connect to it; its time passes at once."""

import asyncio
import json
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claudomator_py.domain.principal import Principal, Role
from claudomator_py.protocols.hub import LEASE_S, Hub
from claudomator_py.protocols.hub.assignment import AgentConnection
from claudomator_py.protocols.hub.waking import NotWoken
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.quick_time import run_quickly
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
DONE = {"type": "end", "outcome": "completed", "text": "42 sheep"}


class Peer:
    """A connection whose agent says what it is told to. asked: every request; at_s: when each of them came; tasks: who
    asked; waiting: of how many the answer is awaited; closed: why it was closed."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.at_s: list[float] = []
        self.tasks: list[weakref.ref[Any]] = []
        self.waiting = 0
        self.closed: list[tuple[int, str]] = []

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        self.asked.append((method, params))
        self.at_s.append(asyncio.get_running_loop().time())
        self.tasks.append(weakref.ref(asyncio.current_task()))
        answer = self.answers.pop(0) if self.answers else {"accepted": True}
        self.waiting += 1
        try:
            answer = await answer if isinstance(answer, asyncio.Future) else await asyncio.sleep(0, answer)
        finally:
            self.waiting -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def offered(self) -> list[str]:
        """The assignments that it was asked to take."""
        return [str(params["assignment_id"]) for method, params in self.asked if method == "task.assign"]

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))


class Met:
    """A world with an agent of the hub, its hub, and what that knocked at."""

    def __init__(self, database: Database, **fields: Any) -> None:
        self.world = World(database)
        by = fields.pop("by", None)
        specialists = self.world.specialists if by is None else self.world.access.as_(by)[Specialists]
        specialists.register_itself(card("shepherd", url="ws-agent://shepherd", **fields))
        self.world.specialists.admit("shepherd")
        self.knocked: list[str] = []
        self.deaf: Exception | None = None

    def hub(self) -> Hub:
        return Hub(self.world.database, self.world.host, self.world.registry, self._knock)

    def _knock(self, url: str, _: Mapping[str, Any], anywhere: bool) -> None:
        if not anywhere and "127.0.0.1" in url:
            raise NotWoken("it is on this machine")
        self.knocked.append(url)
        if self.deaf is not None:
            raise self.deaf

    def run(self, name: str) -> str:
        """A run of the agent whose process has started."""
        self.world.submit(name, specialist="shepherd", instructions="Count the sheep.")
        self.world.router.route()
        self.world.tick()
        self.world.tick()
        return self.world.live(name).id

    def sent_by_hub(self, run_id: str) -> list[Any]:
        return [json.loads(line) for line in self.world.host.messages(run_id)]

    def end(self, run_id: str) -> Any:
        return next((entry for entry in self.sent_by_hub(run_id) if entry["type"] == "end"), None)


def link(peer: Peer, instance: str = "one", agent_id: str = "shepherd", most: int = 1) -> AgentConnection:
    return AgentConnection(agent_id, instance, most, peer)


class Held:
    """A call that returns what it found only once it is let go, the first time."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._first = True
        self.found = threading.Event()
        self._free = threading.Event()

    def __call__(self, *args: Any) -> Any:
        first, self._first = self._first, False
        result = self._call(*args)
        if first:
            self.found.set()
            self._free.wait()
        return result

    async def has_found(self) -> None:
        """Return while it is held: by this task, at the longest."""
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self.let_go())
        await asyncio.to_thread(self.found.wait)

    def let_go(self) -> None:
        self._free.set()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(2 * LEASE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is told to nobody
            await asyncio.sleep(0.05)


def hubbed(met: Met, scenario: Callable[[Hub], Awaitable[None]]) -> None:
    async def play() -> None:
        hub = met.hub()
        hub.start()
        try:
            await scenario(hub)
        finally:
            await hub.close()

    run_quickly(play())
