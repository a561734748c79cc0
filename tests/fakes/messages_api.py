"""A fake Messages API on loopback: it streams as the real one does, and its refusals."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.http_api import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Answer,
    Exchange,
    Refusal,
    Request,
    ScriptedApi,
    Text,
)

_numbers = itertools.count(1)


class MessagesApi(ScriptedApi):
    """The server. Requests beside the loop (titles, quota checks) get the next step as well if that is a refusal."""

    def in_loop(self, request: Request) -> bool:
        return request.path.split("?")[0] == "/v1/messages" and bool(request.body.get("tools"))

    def answer_beside(self, exchange: Exchange, request: Request) -> None:
        step = self.next_step
        if not request.path.startswith("/v1/messages"):
            exchange.not_found()
        elif "/count_tokens" in request.path:
            exchange.send_json(200, {"input_tokens": INPUT_TOKENS})
        elif isinstance(step, Refusal):
            exchange.send_json(step.status, step.body, step.headers)
        else:
            self.answer(exchange, request, Text("ok"))

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        if not request.body.get("stream"):
            exchange.send_json(200, {**_message(step, request), "content": [_block(step)]})
            return
        exchange.start_stream()
        message = {**_message(step, request), "content": [], "stop_reason": None, "usage": _usage(1)}
        _send(exchange, "message_start", message=message)
        empty = {"type": "text", "text": ""} if isinstance(step, Text) else {**_block(step), "input": {}}
        _send(exchange, "content_block_start", index=0, content_block=empty)
        for delta in _deltas(step):
            _send(exchange, "content_block_delta", index=0, delta=delta)
            if self.pause(step):
                return
        _send(exchange, "content_block_stop", index=0)
        ending = {"stop_reason": _stop_reason(step), "stop_sequence": None}
        _send(exchange, "message_delta", delta=ending, usage={"output_tokens": OUTPUT_TOKENS})
        _send(exchange, "message_stop")
        exchange.end_stream()


def refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """An error in this API's words."""
    error = {"type": kind, "message": message}
    return Refusal(status, {"type": "error", "error": error, "request_id": "req_fake"}, headers or {})


def overloaded() -> Refusal:
    """The service is at capacity."""
    return refusal(529, "overloaded_error", "Overloaded")


def unauthorized() -> Refusal:
    """The key is not accepted."""
    return refusal(401, "authentication_error", "invalid x-api-key")


def throttled(retry_after_s: int | None = None, headers: Mapping[str, str] | None = None) -> Refusal:
    """An API key's rate limit."""
    retry_after = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    message = "This request would exceed your account's rate limit. Please try again later."
    return refusal(429, "rate_limit_error", message, {**retry_after, **(headers or {})})


def used_up(resets_at_s: int, claim: str = "five_hour", retry_after_s: int = 10_800) -> Refusal:
    """A subscription's limit. resets_at_s: epoch seconds. claim: which window, such as seven_day or seven_day_opus."""
    headers = {
        "x-should-retry": "false",
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(resets_at_s),
        "anthropic-ratelimit-unified-representative-claim": claim,
        "anthropic-ratelimit-unified-5h-status": "rejected" if claim == "five_hour" else "allowed",
        "anthropic-ratelimit-unified-5h-reset": str(resets_at_s),
        "anthropic-ratelimit-unified-5h-utilization": "1.0",
        "anthropic-ratelimit-unified-overage-status": "rejected",
        "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
    }
    return throttled(retry_after_s, headers)


def _send(exchange: Exchange, kind: str, **fields: object) -> None:
    exchange.send_event({"type": kind, **fields}, kind)


def _message(step: Answer, request: Request) -> dict[str, Any]:
    return {
        "id": f"msg_fake{next(_numbers)}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "fake"),
        "stop_reason": _stop_reason(step),
        "stop_sequence": None,
        "usage": _usage(OUTPUT_TOKENS),
    }


def _usage(output_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def _block(step: Answer) -> dict[str, Any]:
    if isinstance(step, Text):
        return {"type": "text", "text": step.text}
    return {"type": "tool_use", "id": f"toolu_fake{next(_numbers)}", "name": step.name, "input": dict(step.input)}


def _deltas(step: Answer) -> list[dict[str, str]]:
    if isinstance(step, Text):
        return [{"type": "text_delta", "text": word} for word in step.words()]
    return [{"type": "input_json_delta", "partial_json": json.dumps(dict(step.input))}]


def _stop_reason(step: Answer) -> str:
    return (step.stop or "end_turn") if isinstance(step, Text) else "tool_use"
