"""A run over a plain POST: one request with the prompt, whose answer ends the run.

The request is a JSON object with ``id`` and ``text``, and ``skill`` and ``conversation`` if there are any. The answer
is plain text, or a JSON object with ``text`` and, optionally, ``status`` (``completed``, ``failed``, ``rejected`` or
``input-required``), ``conversation`` and ``usage``.
"""

import json
import time
from typing import Any, Final

from claudomator_py.agents.a2a_client.a2a import REPEATS, RemoteTaskOrder
from claudomator_py.agents.a2a_client.connection import Cut, HttpAnswer, RemoteServer, Unsent, refusal
from claudomator_py.agents.a2a_client.task import conversation_text, ids_of
from claudomator_py.agents.client_output import End

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
            raise End("unreachable", str(error)) from error
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
    text, named, usage = value.get("text", ""), value.get("conversation"), value.get("usage")
    fields: dict[str, Any] = {
        "conversation": conversation_text("", named if isinstance(named, str) else conversation),
        "usage": usage if isinstance(usage, dict) else None,
    }
    if outcome == "completed":
        return End(outcome, text=text, **fields)
    if outcome == "question":
        return End(outcome, question=text or "It needs input, and does not say what.", **fields)
    return End(outcome, text or f"the remote agent says that the task is {value['status']}", **fields)
