"""A run over A2A: send one message, then follow its task until the task ends or asks.

An unsent message can be sent later, and a task with a known id can be polled. A message whose fate is unknown allows
neither: "Agents may utilize the messageId to detect duplicate messages" (specification 1.0, 3.1.1), and most do not. It
is not sent again, unless the agent is configured with ``deduplicates``.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any, Final

from claudomator_py.agents.a2a_client import wire
from claudomator_py.agents.a2a_client.connection import READ_S, Cut, HttpAnswer, RemoteServer, Unsent, excerpt, refusal
from claudomator_py.agents.a2a_client.discovery import AgentInterface
from claudomator_py.agents.a2a_client.task import RemoteTask
from claudomator_py.agents.client_output import End, Output
from claudomator_py.values import dataclass

FIRST_PAUSE_S: Final = 0.2
MAX_PAUSE_S: Final = 10.0
PATIENCE_S: Final = 120.0
"""How long a running task is polled although the server cannot be reached."""
UNATTENDED_S: Final = 60.0
"""How long a task may be running although the server refuses to stream it: another server behind the same address may
have it."""
MIN_REFUSALS: Final = 10
"""How often the server must refuse at least within that time."""
MAX_WAIT_S: Final = 60.0
"""The longest ``Retry-After`` that the client waits out itself."""
STREAM_SILENCE_S: Final = 60.0
CANCEL_S: Final = 3.0
SETTLING_S: Final = 2.0
"""From a lost answer until the task is polled."""
LASTING_S: Final = 5.0
"""After a stream of at least this length, the next one is opened without a long pause."""
REPEATS: Final = 5
"""How often a message is sent again to an agent that deduplicates."""


@dataclass(frozen=True)
class RemoteTaskOrder:
    """What the remote agent is asked to do."""

    prompt: str
    message_id: str
    conversation: str
    """The conversation to continue, as TASK/CONTEXT; empty: a new one."""
    deduplicates: bool
    skill: str
    """The id of the agent's skill; empty: none."""


class ServerError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Conversation:
    """One run: its message and the task that it led to."""

    def __init__(self, server: RemoteServer, interface: AgentInterface, order: RemoteTaskOrder, output: Output) -> None:
        self._server = server
        self._interface = interface
        self._order = order
        self._output = output
        self.task = RemoteTask(output, order.conversation)
        self._no_subscription = not interface.streams
        self._is_from_stream = False
        """Whether a stream said that the task is settled."""
        self._is_left = False
        """Whether the server itself closed the message's stream before the task ended."""

    def run(self) -> End:
        """Send the message unless the task has it already, follow the task, and return its end. Raises End as well."""
        task = self.task
        if not task.id:
            self._send()
        else:
            self._look(unknown="unknown", patience_s=0)
            if task.asks:
                task.answering()
                self._send()
            else:
                self._output.event("notice", text="it has the task already: the message is not sent again")
        self._follow()
        if self._is_from_stream and task.lacks_result:
            # The stream may say that the task has ended before it has the result, and is then read no more.
            with contextlib.suppress(Unsent, Cut, End, ServerError):
                self._take(self._call(wire.GET, self._named()))
        return task.end()

    def cancel(self) -> None:
        """Cancel the remote task, and wait up to ``CANCEL_S`` seconds for it to end."""
        if not self.task.id or self.task.ended:
            return
        until = time.monotonic() + CANCEL_S
        with contextlib.suppress(Unsent, Cut, End, ServerError):
            self._take(self._call(wire.CANCEL, {"id": self.task.id}, timeout_s=CANCEL_S))
            while not self.task.ended and time.monotonic() < until:
                time.sleep(FIRST_PAUSE_S)
                self._take(self._call(wire.GET, {"id": self.task.id}, timeout_s=CANCEL_S))
        known = "says that it is cancelled" if self.task.ended else "was asked to cancel it"
        self._output.event("notice", text=f"the remote agent {known}")

    def _send(self) -> None:
        """Send the message. Raises End when that is impossible, or when it is unknown whether the agent has it."""
        task, pauses = self.task, _pauses()
        metadata = {"skill_used": self._order.skill} if self._order.skill else {}
        params = wire.message(
            self._interface.version,
            self._order.prompt,
            self._order.message_id,
            task_id=task.id,
            context_id=task.context_id,
            metadata=metadata,
        )
        had, repeats = task.id, REPEATS if self._order.deduplicates else 0
        while True:
            try:
                if self._interface.streams:
                    self._stream(wire.STREAM, params)
                else:
                    # No timeout: some servers answer only when the task has ended.
                    self._take(self._call(wire.SEND, params, timeout_s=None))
            except Unsent as error:
                raise End(error.outcome, str(error)) from error
            except Cut as error:
                if task.id and not had:
                    return
                if had:
                    # If the task still asks, it did not get the answer, and a person is asked again.
                    task.not_answered()
                    time.sleep(SETTLING_S)
                    return
                if repeats == 0:
                    raise _lost(str(error), deduplicates=self._order.deduplicates) from error
            except ServerError as error:
                raise _rpc_end(error) from error
            else:
                if task.id or task.settled:
                    return
                if repeats == 0:
                    raise _lost("it did not say which task it made", deduplicates=self._order.deduplicates)
            repeats -= 1
            time.sleep(next(pauses))

    def _follow(self) -> None:
        """Take updates until the task is settled."""
        pauses = _pauses()
        refusals, refused_s = 0, 0.0
        while not self.task.settled:
            since, news = time.monotonic(), self.task.news
            attended = self._no_subscription or self._subscribe()
            if not self.task.settled:
                self._look(unknown="lost")
            if self.task.news > news:
                attended, self._is_left = True, False
            refusals = 0 if attended else refusals + 1
            if refusals == 1:
                refused_s = since
            unattended_s = time.monotonic() - refused_s
            if refusals >= (1 if self._is_left else MIN_REFUSALS) and unattended_s >= UNATTENDED_S:
                raise self._unattended()
            if time.monotonic() - since > LASTING_S:
                pauses = _pauses()
            if not self.task.settled:
                time.sleep(next(pauses))

    def _subscribe(self) -> bool:
        """Take the task's updates until its stream ends. Return False where nobody seems to work on the task: the
        server has no stream of it, or a silent one after it closed the one before."""
        try:
            self._stream(wire.SUBSCRIBE, self._named(), silence_s=UNATTENDED_S if self._is_left else None)
        except ServerError as error:
            if error.code == wire.TASK_NOT_FOUND:
                return False
            self._no_subscription = True
        except Cut:
            return not self._is_left
        except Unsent:
            pass
        else:
            self._output.alive(self.task.state)
        return True

    def _unattended(self) -> End:
        """Cancel a running task that nobody works on, so that nothing is done twice, and return the run's end. Servers
        of 0.3 do not notice that the agent of a task has failed."""
        state = self.task.state
        self.cancel()
        error = f"the server says that the task is {state}, but nobody works on it: its agent failed without a word"
        return End("failed" if self.task.ended else "lost", error)

    def _look(self, *, unknown: str, patience_s: float = PATIENCE_S) -> None:
        """Poll the task. unknown: the outcome if the server does not know it. Raises End."""
        since, pauses = time.monotonic(), _pauses()
        while True:
            try:
                self._take(self._call(wire.GET, self._named()))
            except (Unsent, Cut) as error:
                if time.monotonic() - since > patience_s:
                    raise End(error.outcome, str(error)) from error
            except ServerError as error:
                if error.code == wire.TASK_NOT_FOUND:
                    raise End(unknown, f"the server does not know the task {self.task.id}: {error}") from error
                raise _rpc_end(error) from error
            except End as end:
                wait = end.fields.get("retry_after_s")
                if wait is None or wait > MAX_WAIT_S:
                    raise
                time.sleep(wait)
            else:
                # No sign of life: a server knows a task that nobody works on as well. A silent run must stall.
                return
            time.sleep(next(pauses))

    def _named(self) -> dict[str, Any]:
        return {"id": self.task.id}

    def _take(self, result: object) -> None:
        update = wire.read(result)
        if update is not None:
            self.task.take(update)

    def _call(self, method: str, params: dict[str, Any], *, timeout_s: float | None = READ_S) -> object:
        """Return the result of a request. Raises Unsent, Cut, ServerError and End."""
        answer = self._server.request(
            "POST", self._interface.path, self._body(method, params), self._headers(), timeout_s=timeout_s
        )
        return _result(self._server, answer)

    def _stream(self, method: str, params: dict[str, Any], *, silence_s: float | None = None) -> None:
        """Take updates until the task is settled or the stream ends. silence_s: how long the stream may stay without
        its first update, keep-alives aside; None: forever. Raises as ``_call``."""
        heard = False
        since = time.monotonic()
        body = self._body(method, params)
        with self._server.stream(self._interface.path, body, self._headers(), timeout_s=STREAM_SILENCE_S) as streamed:
            if isinstance(streamed, HttpAnswer):
                self._take(_result(self._server, streamed))
                return
            for data in streamed:
                if data is None:
                    if not heard and silence_s is not None and time.monotonic() - since >= silence_s:
                        break
                    if heard or method != wire.SUBSCRIBE:
                        # Not for a silent subscription: servers of 0.3 keep one open although the agent has raised an
                        # exception, so it does not show that anybody works on the task.
                        self._output.alive(self.task.state)
                    continue
                with contextlib.suppress(_NotRpc):
                    self._take(_result_of(data))
                    heard = True
                if self.task.settled:
                    self._is_from_stream = True
                    return
            self._is_left = self._is_left or (method == wire.STREAM and streamed.is_whole)
        if not heard:
            raise Cut("the stream ended before its first update")

    def _body(self, method: str, params: dict[str, Any]) -> bytes:
        tenant = {"tenant": self._interface.tenant} if self._interface.tenant else {}
        return wire.request(self._interface.version, method, {**tenant, **params})

    def _headers(self) -> dict[str, str]:
        version = {"A2A-Version": "1.0"} if self._interface.version == wire.V1 else {}
        return {"Content-Type": "application/json", "Accept": "application/json", **version}


def _result(server: RemoteServer, answer: HttpAnswer) -> object:
    """Return the result in a complete answer. Raises Cut, ServerError and End."""
    refused = refusal(server, answer)
    if refused is not None and refused.outcome in ("auth", "no_credit", "limited", "overloaded"):
        raise refused
    if answer.status in (502, 504):
        raise Cut(f"{server.origin} answered with HTTP {answer.status}: whether the agent got the request is unknown")
    with contextlib.suppress(_NotRpc):
        return _result_of(answer.body)
    raise refused or Cut(f"{server.origin} did not answer with JSON-RPC{excerpt(answer.body)}")


class _NotRpc(Exception):
    """The body is no JSON-RPC answer."""


def _result_of(data: bytes) -> object:
    """Return the result of a JSON-RPC answer. Raises ServerError, and _NotRpc for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not ("result" in value or isinstance(value.get("error"), dict)):
        raise _NotRpc(data[:200].decode(errors="replace"))
    if isinstance(error := value.get("error"), dict):
        code, message = error.get("code"), error.get("message")
        raise ServerError(
            code if isinstance(code, int) else 0, message if isinstance(message, str) else "no reason given"
        )
    return value["result"]


def _rpc_end(error: ServerError) -> End:
    if error.code == wire.TASK_NOT_FOUND:
        return End("unknown", str(error))
    # -32700 to -32600 and A2A's own codes will be the same the next time; -32603 is an internal error.
    persistent = error.code in (-32700, -32600, -32601, -32602) or -32099 <= error.code <= -32001
    return End("invalid" if persistent else "failed", f"{error} ({error.code})")


def _lost(what: str, *, deduplicates: bool) -> End:
    why = "" if deduplicates else "; it is not sent again, as the agent may have begun it"
    return End("lost", f"{what}{why}")


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(pause * 1.5, MAX_PAUSE_S)
