"""A fake chat completions API on loopback, as a provider of models of one's own has it, and its refusals."""

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


class ChatApi(ScriptedApi):
    """The server. input_tokens: what each answer says that it was given."""

    input_tokens = INPUT_TOKENS

    def in_loop(self, request: Request) -> bool:
        return request.path.endswith("/chat/completions") and bool(request.body.get("tools"))

    def answer_beside(self, exchange: Exchange, request: Request) -> None:
        self.answer(exchange, request, Text("A title"))

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        exchange.start_stream()
        if isinstance(step, Text):
            for word in step.words():
                exchange.send_event(_chunk({"role": "assistant", "content": word}))
                if self.pause(step):
                    return
        else:
            function = {"name": step.name, "arguments": json.dumps(dict(step.input))[: step.length]}
            call = {"index": 0, "id": f"call_fake{next(_numbers)}", "type": "function", "function": function}
            exchange.send_event(_chunk({"role": "assistant", "content": None, "tool_calls": [call]}))
        if isinstance(step, Text):
            finish = step.stop or "stop"
        else:
            finish = "tool_calls" if step.length is None else "length"
        usage = {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": self.input_tokens + OUTPUT_TOKENS,
        }
        exchange.send_event({**_chunk({}, finish), "usage": usage})
        exchange.send_event("[DONE]")
        exchange.end_stream()


def refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """An error in this API's words."""
    return Refusal(status, {"error": {"type": kind, "code": kind, "message": message}}, headers or {})


def throttled(retry_after_s: int = 1) -> Refusal:
    """Too many requests."""
    headers = {"retry-after": str(retry_after_s)}
    return refusal(429, "rate_limit_exceeded", "Rate limit reached for requests", headers)


def overloaded() -> Refusal:
    """The service is at capacity."""
    return refusal(503, "server_error", "overloaded")


def unauthorized() -> Refusal:
    """The key is not accepted."""
    return refusal(401, "invalid_api_key", "Incorrect API key provided")


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"id": "chat_fake", "object": "chat.completion.chunk", "created": 0, "model": "fake", "choices": [choice]}
