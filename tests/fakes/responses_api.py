"""A fake Responses API on loopback, and its refusals."""

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

CACHED_TOKENS = 200
_numbers = itertools.count(1)


class ResponsesApi(ScriptedApi):
    """The server. A tool of a namespace is ``namespace/name``."""

    def in_loop(self, request: Request) -> bool:
        return request.path.split("?")[0].endswith("/responses")

    def answer_beside(self, exchange: Exchange, request: Request) -> None:
        exchange.not_found()

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        response = {"id": f"resp_fake{next(_numbers)}", "object": "response"}
        item = _item(step)
        exchange.start_stream()
        _send(exchange, "response.created", response={**response, "status": "in_progress"})
        _send(exchange, "response.output_item.added", output_index=0, item=item)
        for word in step.words() if isinstance(step, Text) else []:
            _send(exchange, "response.output_text.delta", item_id=item["id"], output_index=0, delta=word)
            if self.pause(step):
                return
        _send(exchange, "response.output_item.done", output_index=0, item=item)
        done = {**response, "status": "completed", "output": [item], "usage": _usage()}
        _send(exchange, "response.completed", response=done)
        exchange.end_stream()


def refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None, **more: object) -> Refusal:
    """An error in this API's words."""
    return Refusal(status, {"error": {"type": kind, "code": kind, "message": message, **more}}, headers or {})


def used_up(resets_at_s: int) -> Refusal:
    """A subscription's limit. resets_at_s: epoch seconds."""
    headers = {
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(resets_at_s),
    }
    more = {"plan_type": "plus", "resets_at": resets_at_s}
    return refusal(429, "usage_limit_reached", "The usage limit has been reached", headers, **more)


def throttled(retry_after: str = "1") -> Refusal:
    """Too many requests. retry_after: seconds, or an HTTP date."""
    return refusal(429, "tokens", "Rate limit reached for requests", {"retry-after": retry_after})


def no_credit() -> Refusal:
    """Nothing left to spend."""
    return refusal(429, "insufficient_quota", "You exceeded your current quota, please check your plan.")


def overloaded() -> Refusal:
    """The service is at capacity."""
    return refusal(503, "server_is_overloaded", "overloaded")


def unauthorized() -> Refusal:
    """The key is not accepted."""
    return refusal(401, "invalid_request_error", "Incorrect API key provided: sk-fake.")


def _item(step: Answer) -> dict[str, Any]:
    number = next(_numbers)
    if isinstance(step, Text):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {"type": "message", "id": f"msg_fake{number}", "role": "assistant", "content": content}
    namespace, _, name = step.name.rpartition("/")
    return {
        "type": "function_call",
        "id": f"fc_fake{number}",
        "call_id": f"call_fake{number}",
        **({"namespace": namespace} if namespace else {}),
        "name": name,
        "arguments": json.dumps(dict(step.input)),
    }


def _usage() -> dict[str, Any]:
    return {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def _send(exchange: Exchange, kind: str, **fields: object) -> None:
    exchange.send_event({"type": kind, **fields}, kind)
