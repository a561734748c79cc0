"""A fake Gemini API on loopback: generateContent and streamGenerateContent, and its refusals."""

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


class GeminiApi(ScriptedApi):
    """The server."""

    def in_loop(self, request: Request) -> bool:
        return ":streamGenerateContent" in request.path and bool(request.body.get("tools"))

    def answer_beside(self, exchange: Exchange, request: Request) -> None:
        if ":countTokens" in request.path:
            exchange.send_json(200, {"totalTokens": INPUT_TOKENS})
        else:
            exchange.send_json(200, _chunk({"text": "{}"}, last=True))

    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        exchange.start_stream()
        if isinstance(step, Text):
            words = step.words()
            for number, word in enumerate(words, 1):
                exchange.send_event(_chunk({"text": word}, last=number == len(words)))
                if self.pause(step):
                    break
        else:
            exchange.send_event(_chunk({"functionCall": {"name": step.name, "args": dict(step.input)}}, last=True))
        exchange.end_stream()


def refusal(status: int, name: str, message: str, *details: dict[str, Any]) -> Refusal:
    """An error as Google's services word it."""
    error: dict[str, Any] = {"code": status, "message": message, "status": name}
    return Refusal(status, {"error": {**error, "details": list(details)} if details else error})


def daily_quota_used_up() -> Refusal:
    """The quota of the day."""
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "200"}
    failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    return refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", failure)


def capacity_used_up(seconds: float, text: str) -> Refusal:
    """A subscription's quota, for so many seconds; text: the same for people, such as 7h12m3s."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "QUOTA_EXHAUSTED",
        "domain": "cloudcode-pa.googleapis.com",
        "metadata": {"quotaResetDelay": f"{seconds}s"},
    }
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}
    message = f"You have exhausted your capacity on this model. Your quota will reset after {text}."
    return refusal(429, "RESOURCE_EXHAUSTED", message, info, retry)


def throttled() -> Refusal:
    """Too many requests, without a word on when to try again."""
    return refusal(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")


def overloaded() -> Refusal:
    """The service is at capacity."""
    return refusal(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")


def unauthorized() -> Refusal:
    """The key is not accepted: a 400, as the real service has it."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", info)


def _chunk(part: dict[str, Any], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS,
        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}
