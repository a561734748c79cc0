"""An agent that connects to the hub of a daemon."""

import itertools
import json
from contextlib import ExitStack
from typing import Any, ClassVar

from websockets.sync.client import ClientConnection, connect

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, in_state
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

CARD = {"description": "Counts sheep.", "skills": [{"id": "count", "name": "Counting", "examples": ["Count sheep"]}]}


def address(site: Site) -> str:
    return str(site.endpoint).replace("http://", "ws://") + "/v1/hub"


def token(site: Site) -> str:
    return (site.state / "token").read_text().strip()


class Agent:
    """A connection, frame by frame. open: all that there are."""

    open: ClassVar[ExitStack]

    def __init__(self, site: Site, agent_id: str = "shepherd", *, secret: str | None = None, **more: Any) -> None:
        headers = {"Authorization": f"Bearer {secret or token(site)}", **more.pop("headers", {})}
        opening = connect(address(site), additional_headers=headers, proxy=None, **more)
        self.connection: ClientConnection = Agent.open.enter_context(opening)
        self.agent_id = agent_id
        self._ids = itertools.count(1)
        self.waiting: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.connection.send(json.dumps({"jsonrpc": "2.0", **message}))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        number = next(self._ids)
        self.send(id=number, method=method, params=params)
        while True:
            message = self.next_frame()
            if "method" not in message and message.get("id") == number:
                return message
            self.waiting.append(message)

    def register(self, *, instance: str = "one", resume: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
        fields = {"agent_id": self.agent_id, "instance_id": instance, "card": CARD, "resume": list(resume)}
        return self.ask("agent.register", **fields | more)

    def next_frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=PATIENCE_S))
        return frame

    def called(self, method: str) -> dict[str, Any]:
        """The next request of that method."""
        while True:
            message = self.waiting.pop(0) if self.waiting else self.next_frame()
            if message.get("method") == method:
                return message

    def accept(self) -> str:
        """Take the next assignment: its id."""
        asked = self.called("task.assign")
        self.send(id=asked["id"], result={"accepted": True})
        return str(asked["params"]["assignment_id"])

    def finish(self, assignment: str, **fields: Any) -> dict[str, Any]:
        return self.ask("task.result", assignment_id=assignment, **{"status": "succeeded", "text": "42 sheep"} | fields)

    def close(self) -> None:
        self.connection.close()

    def cut(self) -> None:
        """Without a word."""
        self.connection.socket.close()


def submit(site: Site, name: str, text: str = "Count the sheep.", specialist: str = "shepherd", **fields: Any) -> None:
    site.drop(f"{name}.yaml", document(None, text, agent=None, specialist=specialist, **fields))


def accepted(daemon: Daemon, name: str) -> None:
    def known() -> bool:
        return any(b'"accepted"' in daemon.client.log(run.id).data for run in daemon.client.runs(name))

    in_state(daemon, name, "RUNNING")
    wait_until(known, "the agent to have accepted")
