"""A remote agent on the SDK's own server, and one that answers as a test says; both on loopback."""

import asyncio
import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


@dataclass
class Seen:
    """What the remote agent was asked."""

    messages: list[tuple[str, str, str]] = field(default_factory=list)
    """(message id, text, task id) of each message."""
    metadata: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    """(of the message, of the request) of each message."""
    cancelled: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """Set to let a task that was told to ``wait`` go on."""


class Scripted(AgentExecutor):
    """It does what the last word of the prompt's first line says; what it does not know, it repeats."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one message."""
        assert context.message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        user_input = context.get_user_input()
        self.seen.messages.append((context.message.message_id, user_input, context.task_id))
        self.seen.metadata.append((dict(context.message.metadata), dict(context.metadata)))
        going_on = context.current_task is not None
        if not going_on:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        first_line = user_input.partition("\n")[0].split()
        word = first_line[-1] if first_line else ""
        message = updater.new_agent_message
        if word == "ask" and not going_on:
            await updater.requires_input(message([new_text_part("Which colour?")]))
        elif word == "login" and not going_on:
            await updater.requires_auth(message([new_text_part("Log in at the door.")]))
        elif word == "fail":
            await updater.failed(message([new_text_part("it broke")]))
        elif word == "reject":
            await updater.reject(message([new_text_part("not for me")]))
        elif word == "large":
            for _ in range(3):
                await updater.add_artifact([new_text_part("x" * 3_900_000)])
            await updater.complete()
        else:
            if word == "wait":
                await asyncio.to_thread(self.seen.released.wait)
            await updater.add_artifact([new_text_part("you said: ")], artifact_id="r", name="reply")
            await updater.add_artifact(
                [new_text_part(user_input.strip())], artifact_id="r", append=True, last_chunk=True
            )
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task."""
        assert context.task_id is not None
        assert context.context_id is not None
        self.seen.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card_at(url: str, versions: tuple[str, ...], *, streaming: bool) -> AgentCard:
    """A card with an interface for each version."""
    return AgentCard(
        name="Scripted",
        description="Does what it is told.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version) for version in versions
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="say", name="Say", description="Says it.", tags=["say"])],
    )


@contextlib.contextmanager
def sdk_server(
    versions: tuple[str, ...] = ("1.0",), *, streaming: bool = True, wrap: Callable[[Any], Any] = lambda app: app
) -> Iterator[tuple[str, Seen]]:
    """The SDK's server; its address, and what it saw. wrap: puts something in front of it."""
    seen = Seen()
    config = uvicorn.Config("unset", host="127.0.0.1", port=0, log_level="error", lifespan="off", ws="none")
    sock = config.bind_socket()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    card = card_at(f"{url}/rpc", versions, streaming=streaming)
    handler = DefaultRequestHandler(agent_executor=Scripted(seen), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)]
    config.app = wrap(Starlette(routes=routes))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield url, seen
    finally:
        seen.released.set()
        server.should_exit = server.force_exit = True
        thread.join()
        sock.close()


@dataclass
class Request:
    """What came to a ``plain_server``."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@contextlib.contextmanager
def plain_server(
    answer: Callable[[Request, BaseHTTPRequestHandler], None], tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Request]]]:
    """A server that answers as it is told; its address, and what came. tls: for https."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as the library calls it
            length = int(self.headers.get("Content-Length", "0"))
            request = Request(self.command, self.path, dict(self.headers), self.rfile.read(length))
            requests.append(request)
            answer(request, self)

        do_GET = do_POST  # noqa: N815  # likewise

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Answer with that. headers: with ``_`` for ``-``."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
