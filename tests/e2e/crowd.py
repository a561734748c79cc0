"""What strangers with tokens do beside an operator's day: idle WebSockets, noisy agents of the hub, floods of progress.

``python -m tests.e2e.crowd`` is a process of its own: it reads what it is to do as JSON, prints a line once all of it
is there, and goes when its standard input ends, with a line of what it has done.
"""

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

FRAMES_A_SECOND = 45
"""Of each noisy agent: just less than ends its connection."""
SEARCH_EVERY = 10
PROGRESS = "x" * 99_000
_CONCURRENCY = 50
_ASSIGNED_IN_S = 120


@dataclass(frozen=True)
class Orders:
    """What a crowd is to do. tokens: of strangers who may operate; they take turns."""

    address: str
    tokens: Sequence[str]
    idle: int
    noisy: int
    """Agents that say something all the time."""
    floods: int
    """As many of them have a task of their own, and say 100 kB about it each time."""

    def as_line(self) -> bytes:
        """As a crowd reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Crowd:
    """One crowd, and what became of what it did."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._gate = asyncio.Semaphore(_CONCURRENCY)
        self._open: list[ClientConnection] = []
        self._agents: list[NoisyAgent] = []
        self.done: Counter[str] = Counter()

    async def come(self) -> None:
        """Return once all are connected, registered and at work."""
        orders = self._orders
        tokens = orders.tokens
        await asyncio.gather(*(self._connected(tokens[number % len(tokens)]) for number in range(orders.idle)))
        for number in range(orders.noisy):
            # Of the same token in each crowd: the id of an agent is that of who registered it first.
            connection = await self._connected(tokens[number % len(tokens)])
            agent = NoisyAgent(f"noisy-{number}", connection, self.done, floods=number < orders.floods)
            self._agents.append(agent)
        await asyncio.gather(*(agent.begin() for agent in self._agents))

    async def go(self) -> None:
        """Close every connection."""
        for agent in self._agents:
            agent.stop()
        await asyncio.gather(*(connection.close() for connection in self._open), return_exceptions=True)

    async def _connected(self, token: str) -> ClientConnection:
        async with self._gate:
            headers = {"Authorization": f"Bearer {token}"}
            connection = await connect(
                self._orders.address,
                additional_headers=headers,
                proxy=None,
                compression=None,
                ping_interval=None,
                open_timeout=60,
            )
        self._open.append(connection)
        self.done["connected"] += 1
        return connection


class NoisyAgent:
    """An agent of the hub that sends frames as fast as it may, whatever is answered."""

    def __init__(self, agent_id: str, connection: ClientConnection, done: Counter[str], *, floods: bool) -> None:
        self._agent_id = agent_id
        self._connection = connection
        self._done = done
        self._floods = floods
        self._assignment: str | None = None
        self._refusal: object = None
        self._assigned = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Register; where it floods, have a task and accept it."""
        card = {"description": f"Makes noise, {self._agent_id}.", "visibility": "private"}
        await self._send("agent.register", agent_id=self._agent_id, instance_id="one", card=card, max_concurrent=9)
        self._tasks.append(asyncio.create_task(self._read()))
        if self._floods:
            await self._send("task.submit", name=self._agent_id, instructions="Make noise", specialist=self._agent_id)
            async with asyncio.timeout(_ASSIGNED_IN_S):
                await self._assigned.wait()
            assert self._refusal is None, self._refusal
        self._tasks.append(asyncio.create_task(self._talk()))

    def stop(self) -> None:
        """Say nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _talk(self) -> None:
        with suppress(ConnectionClosed):
            for number in itertools.count():
                if self._assignment is not None:
                    fields = {"assignment_id": self._assignment, "seq": number, "text": PROGRESS}
                    await self._send("task.progress", **fields)
                elif number % SEARCH_EVERY == 0:
                    await self._send("agent.search", query="makes noise of any kind")
                else:
                    await self._send("ping")
                self._done["frames"] += 1
                await asyncio.sleep(1 / FRAMES_A_SECOND)

    async def _read(self) -> None:
        with suppress(ConnectionClosed):
            async for frame in self._connection:
                message = json.loads(frame)
                if message.get("method") == "task.assign":
                    self._assignment = message["params"]["assignment_id"]
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"accepted": True}}
                    await self._connection.send(json.dumps(answer))
                    self._assigned.set()
                elif "error" in message:
                    self._done["errors"] += 1
                    if not self._assigned.is_set():
                        self._refusal = message["error"]
                        self._assigned.set()
                else:
                    self._done["answers"] += 1
        self._done["ended"] += 1

    async def _send(self, method: str, **params: Any) -> None:
        await self._connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))


async def _main() -> None:
    orders = Orders(**json.loads(sys.stdin.readline()))
    crowd = Crowd(orders)
    await crowd.come()
    sys.stdout.write("here\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await crowd.go()
    sys.stdout.write(json.dumps(crowd.done) + "\n")


if __name__ == "__main__":
    asyncio.run(_main())
