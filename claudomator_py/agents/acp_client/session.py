"""ACP version 1, from ``initialize`` to the end of the one turn. Every request has its own time limit.

The agent may send requests at any time. Permission requests are decided; all others are refused as unknown.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from claudomator_py.agents.acp_client import TurnOrder
from claudomator_py.agents.acp_client.choices import choose_effort, choose_mode, choose_model
from claudomator_py.agents.acp_client.journal import Journal
from claudomator_py.agents.acp_client.peer import Message, PeerGone, RequestRefused, RpcChannel
from claudomator_py.agents.acp_client.turn import Turn, failure_of, stop_of
from claudomator_py.agents.client_output import End, Output, shown
from claudomator_py.json_fields import Event, event_of, objects_of, text_of

VERSION: Final = 1
START_S: Final = 180.0
"""For ``initialize``: a runner may download the program first."""
SESSION_S: Final = 180.0
"""For opening a session: it starts the MCP servers, and reads the conversation if one is loaded."""
OPTION_S: Final = 60.0
CANCEL_S: Final = 5.0
"""How long the agent may take to answer the prompt after it was cancelled."""
INTERRUPT_S: Final = 1.5
"""The same after this client was told to stop."""
QUIET_S: Final = 0.3
"""After this silence, a loaded session has replayed its past."""
_MAX_QUIET_S: Final = 10.0
_SLICE_S: Final = 5.0
"""How long to wait for a message before the journal is read again."""
_METHOD_NOT_FOUND: Final = -32601
_LOST: Final = (-32002, -32601, -32602, -32603)
"""Error codes of agents that do not know the session."""
_MINUTE_S: Final = 60.0
_MAX_JOURNAL_READS: Final = 10
_JOURNAL_WAIT_S: Final = 0.1


class AcpSession:
    """One run over a channel. prompt: the text that is sent."""

    def __init__(
        self,
        channel: RpcChannel,
        order: TurnOrder,
        prompt: str,
        output: Output,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channel = channel
        self._order = order
        self._prompt = prompt
        self._output = output
        self._clock = clock
        self._number = 0
        self._id = ""
        self._turn: Turn | None = None
        self._cwd = os.getcwd()  # noqa: PTH109 - imports here delay every run
        self.step = "start"

    @property
    def turn(self) -> Turn | None:
        """The turn, once it has begun."""
        return self._turn

    def run(self) -> End:
        """Do the run and return its end. Raises End, PeerGone and RequestRefused as well."""
        self._begin()
        state = self._open()
        choose_mode(self, self._order, state, self._output)
        choose_model(self, self._order, state, self._output)
        choose_effort(self, self._order, state, self._output)
        return self._ask()

    def interrupt(self) -> None:
        """Cancel the turn, and wait a moment for the agent to comply."""
        if self._turn is not None:
            self._cancel(INTERRUPT_S)

    def set(self, method: str, **params: Any) -> Event:
        """Send a request about the session and return its result. Raises RequestRefused, PeerGone and End."""
        return self._call(method, {"sessionId": self._id, **params}, OPTION_S)

    # --- the steps ---

    def _begin(self) -> None:
        capabilities = {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "session": {"notices": {}},
        }
        info = {"name": "claudomator", "title": "Claudomator", "version": "1"}
        params = {"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": info}
        self._capabilities = self._call("initialize", params, START_S)
        version = self._capabilities.get("protocolVersion")
        named = event_of(self._capabilities, "agentInfo")
        agent = f"{named.get('name', '')} {named.get('version', '')}".strip()
        self._output.event("begin", agent=agent or self._order.command[0], profile=self._order.profile)
        if version != VERSION or isinstance(version, bool):
            raise End("version", f"it answers with protocol version {version!r} instead of 1")

    def _open(self) -> Event:
        place = {"cwd": self._cwd, "mcpServers": self._servers()}
        if not self._order.session:
            state = self._call("session/new", place, SESSION_S)
            session = text_of(state, "sessionId")
            if session is None:
                raise End("auth", "it opens no session: it is not logged in, or has no model set up")
            self._id = session
        else:
            self._id = self._order.session
            state = self._resume(place)
        self._output.event("session", session=self._id, resumed=bool(self._order.session) or None)
        return state

    def _resume(self, place: Message) -> Event:
        """Continue the session. The replay of its past is dropped."""
        can = event_of(self._capabilities, "agentCapabilities")
        ways = ["session/resume"] if event_of(can, "sessionCapabilities").get("resume") is not None else []
        ways += ["session/load"] if can.get("loadSession") is True else []
        problem = "it offers no way to continue one"
        for way in ways:
            if way == "session/load" and self._order.load_waits:
                self._await_minute()
            try:
                state = self._call(way, {"sessionId": self._id, **place}, SESSION_S)
            except RequestRefused as refused:
                if refused.code not in _LOST:
                    raise
                problem = refused.message
                continue
            self._await_quiet()
            return state
        raise End("lost", f"it does not know the session {self._id}: {problem}")

    def _await_minute(self) -> None:
        """Wait for the next minute: some agents name a session's file by the minute, and overwrite it within one."""
        left = _MINUTE_S - time.time() % _MINUTE_S + 1.0
        self._output.event("notice", text=f"waits {left:.0f} s: it cannot load a session in the minute it was used in")
        time.sleep(left)

    def _await_quiet(self) -> None:
        end = self._clock() + _MAX_QUIET_S
        while self._clock() < end:
            message = self._channel.receive(QUIET_S)
            if message is None:
                return
            self._handle(message)

    def _servers(self) -> list[Message]:
        command = self._order.mcp_command
        if not command or self._order.mcp == "none":
            return []
        if self._order.mcp == "http":
            return self._server_over_http(command[-1])
        names = [name for name in self._order.mcp_variables if name in os.environ]
        env = [{"name": name, "value": os.environ[name]} for name in names]
        return [{"name": "claudomator", "command": command[0], "args": list(command[1:]), "env": env}]

    def _server_over_http(self, state: str) -> list[Message]:
        """Serve the run's MCP server in this process, for agents that accept MCP over HTTP only."""
        from claudomator_py.agents.mcp_server.main import server_for
        from claudomator_py.agents.mcp_server.over_http import HttpServer

        offered = server_for([state], os.environ)
        if offered is None:
            return []
        server = HttpServer(offered)
        headers = [{"name": "Authorization", "value": server.authorization}]
        return [{"type": "http", "name": "claudomator", "url": server.url, "headers": headers}]

    def _ask(self) -> End:
        turn = Turn(self._order, self._output, self._clock)
        self._turn = turn
        begun = time.time()
        journal = Journal(self._order.journal, self._id) if self._order.journal else None
        self._output.event("prompted")
        self.step = "session/prompt"
        prompt = [{"type": "text", "text": self._prompt}]
        number = self._send("session/prompt", {"sessionId": self._id, "prompt": prompt})
        while True:
            silent_s = turn.silent_s
            if silent_s is not None and silent_s >= self._order.silence_s:
                _read_journal(journal, turn)
                return self._end_silent_turn(number, turn)
            wait_s = _SLICE_S if silent_s is None else min(_SLICE_S, self._order.silence_s - silent_s)
            message = self._channel.receive(max(wait_s, 0.01))
            if message is None:
                self._output.flush()
                _read_journal(journal, turn)
            if (result := self._result(message, number)) is None:
                continue
            if self._order.usage_file:
                turn.usage.take_file(self._order.usage_file, self._id, begun)
            _read_journal(journal, turn, to_the_end=True)
            if (error := failure_of(result, journal)) is not None:
                raise RequestRefused(error)
            return End("answered", stop_reason=stop_of(result, journal), **turn.facts(result))

    def _end_silent_turn(self, number: int, turn: Turn) -> End:
        """Cancel a silent turn. Whatever the agent then answers, the turn has failed."""
        facts = turn.facts()
        self._cancel(CANCEL_S, number)
        waited = f"{self._order.silence_s:.0f} s"
        return End("silent", f"it was silent for {waited} while none of its tools was running", **facts)

    def _cancel(self, wait_s: float, number: int | None = None) -> None:
        number = self._number if number is None else number
        end = self._clock() + wait_s
        try:
            self._channel.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self._id}})
            while (left := end - self._clock()) > 0:
                message = self._channel.receive(left)
                if message is not None and self._is_answer(message, number):
                    return
                if message is not None:
                    self._handle(message, cancelled=True)
        except PeerGone:
            return

    # --- messages ---

    def _send(self, method: str, params: Mapping[str, Any]) -> int:
        self._number += 1
        self._channel.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def _call(self, method: str, params: Mapping[str, Any], limit_s: float) -> Event:
        """Return the result of a request. Raises RequestRefused, PeerGone, and End when it takes too long."""
        self.step = method
        number = self._send(method, params)
        end = self._clock() + limit_s
        while (left := end - self._clock()) > 0:
            if (result := self._result(self._channel.receive(left), number)) is not None:
                return result
        raise End("no_answer", f"it did not answer {method} within {limit_s:.0f} s")

    def _result(self, message: Message | None, number: int) -> Event | None:
        """Return the result if the message answers that request; handle any other, and return None. Raises
        RequestRefused, PeerGone."""
        if message is None:
            return None
        if not self._is_answer(message, number):
            self._handle(message)
            return None
        if "error" in message:
            raise RequestRefused(message["error"])
        return event_of(message, "result")

    @staticmethod
    def _is_answer(message: Message, number: int) -> bool:
        """Whether the message answers that request. Some agents return the id as a string."""
        if "method" in message or not ("result" in message or "error" in message):
            return False
        message_id = message.get("id")
        return not isinstance(message_id, bool) and (message_id == number or message_id == str(number))

    def _handle(self, message: Message, *, cancelled: bool = False) -> None:
        """Answer a request of the agent, or take its notification. Raises PeerGone."""
        method, params = message.get("method"), event_of(message, "params")
        if not isinstance(method, str):
            return
        if "id" in message:
            self._answer(message["id"], method, params, cancelled=cancelled)
        elif self._turn is not None and not cancelled:
            update = params.get("update")
            if method == "session/update" and isinstance(update, Mapping):
                self._turn.take(update)
            else:
                self._turn.take_notification(method, params)

    def _answer(self, request: object, method: str, params: Mapping[str, Any], *, cancelled: bool) -> None:
        if method == "session/request_permission":
            outcome = {"outcome": "cancelled"} if cancelled else self._decide(params)
            answer: Message = {"result": {"outcome": outcome}}
        else:
            error = {"code": _METHOD_NOT_FOUND, "message": "Method not found", "data": {"method": shown(method)}}
            answer = {"error": error}
        self._channel.send({"jsonrpc": "2.0", "id": request, **answer})

    def _decide(self, params: Mapping[str, Any]) -> Message:
        """Return the outcome: an option for this call alone, or ``cancelled`` if the agent offers none."""
        call = event_of(params, "toolCall")
        allowed = self._turn is not None and self._turn.decide(call)
        wanted = "allow_once" if allowed else "reject_once"
        for option in objects_of(params, "options"):
            if option.get("kind") == wanted:
                return {"outcome": "selected", "optionId": option.get("optionId")}
        if allowed and self._turn is not None:
            self._turn.cannot_allow(call)
        return {"outcome": "cancelled"}


def _read_journal(journal: Journal | None, turn: Turn, *, to_the_end: bool = False) -> None:
    """Read the agent's journal. to_the_end: wait a second until the end of the turn was written."""
    if journal is None:
        return
    before = journal.retry
    journal.read()
    for _ in range(_MAX_JOURNAL_READS if to_the_end else 0):
        if journal.is_over:
            break
        time.sleep(_JOURNAL_WAIT_S)
        journal.read()
    turn.usage.take_journal(journal)
    if to_the_end and journal.text is not None:
        turn.take_answer(journal.text)
    if journal.retry is None:
        turn.retry = None
    elif journal.retry is not before and not to_the_end:
        turn.asks_again(*journal.retry)
