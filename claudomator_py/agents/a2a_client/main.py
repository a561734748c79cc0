"""The client's process: reads the command line, does the run, returns an exit code.

Over a plain POST, a run is one request with the prompt, whose answer ends it. The request is a JSON object with ``id``
and ``text``, and ``skill`` and ``conversation`` if there are any. The answer is plain text, or a JSON object with
``text`` and, optionally, ``status`` (``completed``, ``failed``, ``rejected`` or ``input-required``), ``conversation``
and ``usage``.
"""

import argparse
import json
import os
import sys
import time
from typing import Any, Final

from claudomator_py.agents.a2a_client.a2a import REPEATS, Conversation, RemoteTaskOrder
from claudomator_py.agents.a2a_client.connection import Cut, HttpAnswer, RemoteServer, Unsent, address, refusal
from claudomator_py.agents.a2a_client.discovery import AgentInterface, discover
from claudomator_py.agents.a2a_client.task import conversation_text, ids_of
from claudomator_py.agents.client_output import End, Output, Terminated, ignore_termination, raise_on_termination
from claudomator_py.json_fields import event_of

_OUTCOMES: Final = {"completed": "completed", "failed": "failed", "rejected": "rejected", "input-required": "question"}


def post(server: RemoteServer, path: str, order: RemoteTaskOrder) -> End:
    """Send the prompt and return the run's end. Raises End as well."""
    conversation = ids_of(order.conversation)[1]
    payload = {"id": order.message_id, "text": order.prompt, "skill": order.skill, "conversation": conversation}
    body = json.dumps({key: value for key, value in payload.items() if value}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/plain",
        "Idempotency-Key": order.message_id,
    }
    for repeat in range(REPEATS + 1):
        try:
            answer = server.request("POST", path, body, headers, timeout_s=None)
        except Unsent as error:
            raise End(error.outcome, str(error)) from error
        except Cut as error:
            if not order.deduplicates or repeat == REPEATS:
                raise End("lost", str(error)) from error
            time.sleep(2**repeat / 2)
        else:
            return _end(server, answer, conversation)
    raise AssertionError("the last repeat ends the run")


def _end(server: RemoteServer, answer: HttpAnswer, conversation: str) -> End:
    if answer.status in (502, 504):
        return End("lost", f"{server.origin} answered with HTTP {answer.status}: it is unknown what the agent did")
    if (refused := refusal(server, answer)) is not None:
        return refused
    if answer.status != 200:
        return End("lost", f"{server.origin} answered with HTTP {answer.status}, which leaves the result open")
    if answer.headers.get("Content-Type", "").partition(";")[0].strip() == "text/plain":
        text = answer.body.decode(errors="replace")
        return End("completed", text=text, conversation=conversation_text("", conversation))
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    outcome = _OUTCOMES.get(value.get("status", "completed")) if isinstance(value, dict) else None
    if not isinstance(value, dict) or outcome is None or not isinstance(value.get("text", ""), str):
        return End("lost", f"the answer of {server.origin} is not an object with a known `status` and a `text`")
    text, named = value.get("text", ""), value.get("conversation")
    fields: dict[str, Any] = {
        "conversation": conversation_text("", named if isinstance(named, str) else conversation),
        "usage": event_of(value, "usage") or None,
    }
    if outcome == "completed":
        return End(outcome, text=text, **fields)
    if outcome == "question":
        return End(outcome, question=text or "It needs input, and does not say what.", **fields)
    return End(outcome, text or f"the remote agent says that the task is {value['status']}", **fields)


def main() -> int:
    """Do one run and return the exit code: 0 if the agent completed the task or asks something."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--remote", required=True, type=json.loads, help="JSON of claudomator_py.domain.remote")
    parser.add_argument("--message", required=True, help="id of the message, the same for the same run")
    parser.add_argument("--conversation", default="", help="the conversation to continue")
    given = parser.parse_args()
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    order = RemoteTaskOrder(
        prompt=prompt,
        message_id=given.message,
        conversation=given.conversation,
        deduplicates=given.remote.get("deduplicates") is True,
        skill=given.remote.get("skill") or "",
    )
    return A2aClient(given.remote, order).run()


class A2aClient:
    """One run. remote: the value of ``--remote``."""

    def __init__(self, remote: dict[str, Any], order: RemoteTaskOrder) -> None:
        self._remote = remote
        self._order = order
        self._output = Output()
        self._conversation: Conversation | None = None

    def run(self) -> int:
        """Do the run, print its end, and return the exit code."""
        raise_on_termination()
        try:
            end = self._end()
        except End as raised:
            end = raised
            if end.outcome == "too_large" and self._conversation is not None:
                self._conversation.cancel()
        except (Unsent, Cut) as error:
            end = End(error.outcome, str(error))
        except Terminated:
            ignore_termination()
            if self._conversation is not None:
                self._conversation.cancel()
            end = End("interrupted", "it was told to stop")
        if self._conversation is not None and self._conversation.task.id:
            end.fields.setdefault("conversation", self._conversation.task.conversation)
        fields = {key: value for key, value in end.fields.items() if key != "retry_after_s"}
        self._output.event("end", outcome=end.outcome, error=end.error, **fields)
        return 0 if end.outcome in ("completed", "question") else 1

    def _end(self) -> End:
        """Return the run's end. Raises End as well."""
        origin, path = address(self._remote["url"])
        server = RemoteServer(origin, _authorization(self._remote["authentication"]))
        protocol = self._remote["protocol"]
        self._output.event("begin", server=str(origin), protocol=protocol)
        if protocol == "post":
            return post(server, path, self._order)
        if protocol == "auto":
            interface = discover(server, path)
        else:
            interface = AgentInterface(protocol, path, streams=False)
        self._output.event("notice", text=_described(interface))
        self._conversation = Conversation(server, interface, self._order, self._output)
        return self._conversation.run()


def _described(interface: AgentInterface) -> str:
    how = "streaming" if interface.streams else "polling"
    return f"A2A {interface.version}, {how}{f', {interface.agent}' if interface.agent else ''}"


def _authorization(authentication: dict[str, Any]) -> dict[str, str]:
    """Return the header that authenticates the client. Raises End if the secret is not in the environment."""
    scheme, name = authentication["scheme"], authentication["secret"]
    if scheme == "none":
        return {}
    secret = os.environ.get(name or "", "").strip()
    if not secret:
        error = "the daemon's environment lacks the variable of the agent's secret, which the run's log names"
        raise End("setup", error, elsewhere=name)
    if scheme == "bearer":
        return {"Authorization": f"Bearer {secret}"}
    return {authentication["header"] or "X-API-Key": secret}
