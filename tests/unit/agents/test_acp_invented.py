"""Turns in the manner of what agents were recorded to say, with other words, fields and orders: none of them succeeded,
and none says when a limit will be over."""

from typing import Any

import pytest

from claudomator_py.agents.acp.profiles import GENERIC
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from tests.unit.agents.test_acp_recordings import judged

NONE = {"inputTokens": 0, "outputTokens": 0}
SOME = {"inputTokens": 1200, "outputTokens": 25}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}}


def thought(text: str) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}}


def tool(status: str, call: str = "c1", **more: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, **more}}


def ended(stop: str = "end_turn", **result: Any) -> dict[str, Any]:
    return {"result": {"stopReason": stop, **result}}


def error(code: int, message: str, data: object = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **({} if data is None else {"data": data})}}


COPILOT_GAVE_UP = "Error: Failed to get response from the AI model; retried 5 times Last error: "
FAILED = "I hit an internal error while calling the model: generic request failed for model 'm1'"
"""How fast-agent begins its answer if its service fails."""
LIMITED = (Reason.RATE_LIMITED,)
AWAY = (Reason.OVERLOADED, Reason.NETWORK)
TURNS: list[tuple[str, list[dict[str, Any]], dict[str, Any] | None, tuple[Reason, ...]]] = [
    # Errors, by code and data alone, wherever the data has it.
    ("gemini", [thought("Let me see.")], error(429, "You have no capacity left on this model."), LIMITED),
    ("gemini", [said("I beg"), said("in.")], error(429, "quota", {"details": "Resource has been exhausted"}), LIMITED),
    ("claude", [], error(-32603, "Internal error", {"errorKind": "rate_limit"}), LIMITED),
    ("claude", [said("I begin.")], error(-32603, "Internal error", {"error": {"kind": "rate_limit_error"}}), LIMITED),
    ("claude", [], error(-32603, "Internal error: You've hit your weekly limit"), LIMITED),
    ("claude", [tool("completed")], error(-32603, "Internal error", {"errorKind": "overloaded"}), AWAY),
    ("claude", [], error(-32603, "Internal error", {"errorKind": "billing_error"}), (Reason.NO_CREDIT,)),
    ("codex", [], error(-32603, "failed", {"codexErrorInfo": "usageLimitExceeded"}), LIMITED),
    ("codex", [], error(-32603, "failed", {"codex_error_info": {"usage_limit_exceeded": {}}}), LIMITED),
    ("codex", [], error(-32603, "x", {"codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 503}}}), AWAY),
    ("vibe", [said("Half an answer")], error(-31001, "Rate limits exceeded. Please wait a moment."), LIMITED),
    ("vibe", [], error(-31002, "Invalid credentials"), (Reason.AUTH,)),
    ("qwen", [], error(-32603, "Internal error", {"details": "401 Incorrect API key provided"}), (Reason.AUTH,)),
    ("opencode", [], error(-32603, "x", {"errorName": "APIError", "statusCode": 429}), LIMITED),
    ("cline", [], error(-32603, "Internal error", {"details": "429 Too many requests"}), LIMITED),
    (GENERIC, [], error(-32603, "Internal error", {"cause": {"response": {"status": 429}}}), LIMITED),
    (GENERIC, [], error(-32000, "Authentication required"), (Reason.AUTH,)),
    (GENERIC, [tool("completed"), said("Now I")], error(-32603, "Service Unavailable", {"status": 503}), AWAY),
    (
        GENERIC,
        [said("Half")],
        error(-32603, "Internal error", {"error_kind": "max_tokens_truncation"}),
        (Reason.UNFINISHED,),
    ),
    (GENERIC, [said("Half")], error(-32603, "The response was truncated at 8000 tokens"), (Reason.UNFINISHED,)),
    # Turns that end with a refusal that is an error of the service, in the result's metadata.
    *(
        (GENERIC, [], ended("refusal", _meta={key: message}), reasons)
        for key in ("errorMessage", "an.agent/error")
        for message, reasons in (
            ({"code": -32603, "message": "Internal error", "data": {"statusCode": 401}}, (Reason.AUTH,)),
            ('{"code": -32003, "message": "Quota exceeded", "data": {"statusCode": 429}}', LIMITED),
            ('{"message": "Quota exceeded: 503", "data": {"type": "server_error", "statusCode": 503}}', AWAY),
            ("Rate limit reached", LIMITED),
        )
    ),
    (GENERIC, [said("No.")], ended("refusal", _meta={"errorMessage": "", "errors": 0}), (Reason.REFUSED,)),
    # Turns that call themselves ended.
    *((GENERIC, [said("Half")], ended(stop), (Reason.UNFINISHED,)) for stop in ("length", "pause_turn", "END_TURN")),
    *(
        (agent, [said("\u200b\u2060 ")], ended(usage=SOME), (Reason.NO_ANSWER,))
        for agent in (GENERIC, "claude", "codex")
    ),
    ("codex", [said("unexpected status 429 Too Many Requests: slow down")], ended(usage=None), LIMITED),
    ("codex", [said("stream disconnected before completion")], ended(usage=NONE), ()),
    ("copilot", [said("Info: Retrying"), said('Error: 429 {"message": "slow down"}')], ended(), LIMITED),
    ("copilot", [said("Error: Authentication failed: bad token")], ended(usage=NONE), (Reason.AUTH,)),
    (
        "copilot",
        [said(f"{COPILOT_GAVE_UP}Failed to finalize chat-completions stream: none")],
        ended(),
        AWAY,
    ),
    ("copilot", [said(f"{COPILOT_GAVE_UP}non-streaming response body was not valid JSON: EOF")], ended(), AWAY),
    ("copilot", [said("Info: Operation cancelled by user")], ended(), ()),
    ("opencode", [], ended(usage=NONE), ()),
    ("opencode", [said("summary of what was said")], ended(usage={"inputTokens": 0, "outputTokens": 0}), ()),
    ("kimi", [thought("I would")], ended(), AWAY),
    ("pi", [said("pi v1.6.0\n---\n"), said("Retrying (attempt 2/3) in 4s")], ended(), AWAY),
    ("pi", [said("Retry finished, resuming.\n")], ended(), AWAY),
    ("gemini", [thought("I look."), tool("in_progress")], ended(), ()),
    ("gemini", [], error(403, "<!DOCTYPE html><title>Wi-Fi login</title>"), (Reason.NETWORK,)),
    (GENERIC, [], error(-32603, "<html>Blocked</html>", {"statusCode": 403, "code": "forbidden"}), (Reason.NETWORK,)),
    (GENERIC, [], error(403, "Forbidden: no such page"), (Reason.AUTH,)),
    ("claude", [said("I begin.")], ended("max_tokens", usage=SOME), (Reason.UNFINISHED,)),
    ("claude", [said("No.")], ended("refusal", usage=SOME), (Reason.REFUSED,)),
    ("claude", [], error(-32603, "API Error: API returned an empty or malformed response (HTTP 200)"), AWAY),
    ("vibe", [said("Still at it")], ended("max_turn_requests", usage=SOME), (Reason.TURN_LIMIT,)),
    ("qwen", [said("Stopped.")], ended("cancelled"), ()),
    ("qwen", [said("Stopped.")], ended("a_reason_of_its_own"), ()),
    ("hermes", [said("HTTP 401: Incorrect API key provided")], ended(), (Reason.AUTH,)),
    ("hermes", [said("API call failed after 3 retries: HTTP 429: Rate limit reached for requests")], ended(), LIMITED),
    ("hermes", [said("API call failed after 3 retries: Connection error.")], ended(), AWAY),
    ("fast-agent", [said(f"{FAILED} (code: invalid_api_key) (status=401)")], ended("refusal"), (Reason.AUTH,)),
    ("fast-agent", [said(f"{FAILED} (code: x) (status=429): Error code: 429")], ended("refusal"), LIMITED),
    ("fast-agent", [said(f"{FAILED}: Connection error.")], ended("refusal"), (Reason.NETWORK,)),
    ("fast-agent", [said("I will not do that.")], ended("refusal"), (Reason.REFUSED,)),
    ("nanocoder", [], error(-32603, "Server error: The server had an error while processing your request"), AWAY),
    (GENERIC, [said("Error: 503 Service Unavailable")], ended(), AWAY),
    (GENERIC, [said("API Error: 429 rate limit exceeded")], ended(), LIMITED),
    (GENERIC, [said("  "), said("\n")], ended(usage=SOME), ()),
    # An update that the protocol does not have, a number where a text belongs, an end without a reason.
    (GENERIC, [{"update": {"sessionUpdate": "finished", "text": "All done."}}], ended(), ()),
    (GENERIC, [{"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": 12}}}], ended(), ()),
    (GENERIC, [said("All done.")], {"result": {"stopReason": None}}, ()),
    ("claude", [said("All done.")], None, ()),
]


@pytest.mark.parametrize("number", range(len(TURNS)))
def test_it_is_no_success_and_has_no_time_that_nobody_named(number: int) -> None:
    agent, heard, end, reasons = TURNS[number]
    outcome = judged(agent, {"heard": heard, "end": end, "cancelled": False})
    assert outcome.status is not OutcomeStatus.SUCCEEDED, outcome
    assert outcome.reset_at is None
    assert not reasons or outcome.reason in reasons, outcome


@pytest.mark.parametrize("number", [n for n, turn in enumerate(TURNS) if turn[0] != "pi"])
def test_who_does_not_know_the_agent_is_not_deceived_either(number: int) -> None:
    _, heard, end, _ = TURNS[number]
    known = TURNS[number][0] in ("copilot", "codex")  # what these put as an answer, one has to know
    outcome = judged(GENERIC, {"heard": heard, "end": end, "cancelled": False})
    assert known or outcome.status is not OutcomeStatus.SUCCEEDED, outcome
    assert outcome.reset_at is None


@pytest.mark.parametrize("text", ["412 tests pass.", "500 lines were moved.", "HTTP 404 is now sent for it."])
def test_an_answer_that_begins_with_a_number_is_no_error(text: str) -> None:
    outcome = judged(GENERIC, {"heard": [said(text)], "end": ended(), "cancelled": False})
    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, text)
