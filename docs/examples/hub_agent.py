"""An agent of your own for Claudomator's hub. Copy it, write `work`, and describe yourself in CARD.

    pip install websockets
    CLAUDOMATOR_TOKEN=... python hub_agent.py ws://127.0.0.1:8484/v1/hub

It registers, takes tasks as they come, says how far it is, and hands back results. A result is repeated until the hub
has recorded it, also over a connection that was lost: until then the work is not done.
"""

import asyncio
import itertools
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

AGENT_ID = "word-counter"
CARD = {
    "description": "Counts words and lines of texts. Not for anything that needs judgement.",
    "skills": [
        {
            "id": "count",
            "name": "Counting words",
            "examples": ["Count the words of this text", "How many words does the abstract have?"],
        }
    ],
}
MAX_CONCURRENT = 2


Progress = Callable[[str, float | None], Awaitable[None]]
Message = dict[str, Any]


async def work(instructions: str, progress: Progress) -> str:
    """Do the task: what it hands back. Raise any exception to fail."""
    await progress("counting", 50)
    text = instructions.partition("# Your task")[2] or instructions
    return f"{len(text.split())} words"


class Agent:
    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self.instance = str(uuid.uuid4())  # a restarted agent is another instance, and has nothing to resume
        self.working: dict[str, asyncio.Task[None]] = {}
        self.results: dict[str, Message] = {}  # not recorded yet
        self.ids = itertools.count(1)
        self.asked: dict[int, asyncio.Future[Message]] = {}
        self.hub: ClientConnection | None = None

    async def run(self) -> None:
        """Stay connected for ever."""
        pause_s = 1.0
        while True:
            try:
                headers = {"Authorization": f"Bearer {self.token}"}
                async with connect(self.url, additional_headers=headers, proxy=None) as self.hub:
                    pause_s = 1.0
                    await self.serve()
            except InvalidStatus as error:
                if error.response.status_code in (401, 403):
                    sys.exit("the hub does not take this token")
            except (ConnectionClosed, OSError) as error:
                print(f"not connected ({error}); again in {pause_s:.0f} s", file=sys.stderr)
            self.hub = None
            for answer in self.asked.values():
                answer.cancel()
            await asyncio.sleep(pause_s)
            pause_s = min(30.0, pause_s * 2)

    async def serve(self) -> None:
        reading = asyncio.create_task(self.read())
        try:
            mine = [*self.working, *self.results]
            said: Message = {"agent_id": AGENT_ID, "instance_id": self.instance, "card": CARD, "resume": mine}
            answer = await self.ask("agent.register", said | {"max_concurrent": MAX_CONCURRENT})
            print(f"registered as {AGENT_ID}", file=sys.stderr)
            for assignment in set(self.working) - set(answer["resumed"]):
                self.working.pop(assignment).cancel()  # nobody waits for it any more
            for assignment in list(self.results):
                await self.hand_back(assignment)
            await reading
        finally:
            reading.cancel()

    async def read(self) -> None:
        assert self.hub is not None
        async for frame in self.hub:
            message = json.loads(frame)
            if "method" in message:
                await self.called(message)
            elif (answer := self.asked.pop(message["id"], None)) and not answer.done():
                answer.set_result(message)

    async def called(self, message: Message) -> None:
        params: Message = message.get("params", {})
        answer: Message = {"result": {}}
        if message["method"] == "task.assign":
            assignment = params["assignment_id"]
            if assignment not in self.working and assignment not in self.results:
                if len(self.working) >= MAX_CONCURRENT:
                    answer = {"error": {"code": -32010, "message": "busy"}}
                else:
                    self.working[assignment] = asyncio.create_task(self.do(assignment, params["instructions"]))
            if "error" not in answer:
                answer = {"result": {"accepted": True}}
        elif message["method"] == "task.cancel":
            if task := self.working.pop(params["assignment_id"], None):
                task.cancel()
        elif message["method"] != "ping":
            answer = {"error": {"code": -32601, "message": "no such method"}}
        await self.send(id=message.get("id"), **answer)

    async def do(self, assignment: str, instructions: str) -> None:
        counted = itertools.count(1)

        async def progress(text: str, percent: float | None = None) -> None:
            said: Message = {"assignment_id": assignment, "seq": next(counted), "text": text, "percent": percent}
            if self.hub is not None:
                await self.send(method="task.progress", params=said)

        said: Message
        try:
            said = {"status": "succeeded", "text": await work(instructions, progress)}
        except Exception as error:
            said = {"status": "failed", "text": str(error), "reason": "agent_error"}
        self.working.pop(assignment, None)
        self.results[assignment] = said
        if self.hub is not None:
            await self.hand_back(assignment)

    async def hand_back(self, assignment: str) -> None:
        """Repeat the result until the hub has recorded it, or says that it never will."""
        try:
            await self.ask("task.result", {"assignment_id": assignment, **self.results[assignment]})
        except (ConnectionClosed, ConnectionError, asyncio.CancelledError):
            return  # it is kept, and repeated on the next connection
        except RuntimeError as error:
            print(f"result of {assignment} not taken: {error}", file=sys.stderr)
        self.results.pop(assignment, None)

    async def ask(self, method: str, params: Message) -> Message:
        number = next(self.ids)
        self.asked[number] = asyncio.get_running_loop().create_future()
        await self.send(id=number, method=method, params=params)
        answer = await self.asked[number]
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        result: Message = answer["result"]
        return result

    async def send(self, **message: Any) -> None:
        if self.hub is None:
            raise ConnectionError("not connected")
        await self.hub.send(json.dumps({"jsonrpc": "2.0", **message}))


if __name__ == "__main__":
    try:
        asyncio.run(Agent(sys.argv[1], os.environ["CLAUDOMATOR_TOKEN"]).run())
    except KeyboardInterrupt:
        pass
