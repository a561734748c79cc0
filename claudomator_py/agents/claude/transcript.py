"""What Claude Code said and did, from ``--output-format stream-json``."""

from collections.abc import Iterator

from claudomator_py.agents.jsonlines import Event, amount_of, count_of, event_of, instant_of, list_of, text_of
from claudomator_py.agents.transcript import EventTranscript, arguments, content_text, shown, tokens_text, total
from claudomator_py.domain.run import Part

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class ClaudeTranscript(EventTranscript):
    """Reads one run. Pieces of messages (``stream_event``) are left out: the whole message follows."""

    def __init__(self, offset: int = 0) -> None:
        super().__init__(offset)
        self._answer: str | None = None

    def event(self, event: Event) -> Iterator[Part]:
        """What an event says."""
        at_ms = instant_of(event, "timestamp")
        match event.get("type"):
            case "system":
                yield from _system(event, at_ms)
            case "assistant":
                for block in list_of(event_of(event, "message"), "content"):
                    if isinstance(block, dict):
                        yield from self._said(block, at_ms, failed=bool(event.get("error")))
            case "user":
                yield from self._given(event_of(event, "message").get("content"), at_ms)
            case "rate_limit_event":
                yield from _limit(event_of(event, "rate_limit_info"), at_ms)
            case "result":
                yield from self._result(event, at_ms)

    def _said(self, block: Event, at_ms: int | None, *, failed: bool) -> Iterator[Part]:
        match block.get("type"):
            case "text":
                text = text_of(block, "text") or ""
                self._answer = text
                yield Part("error" if failed else "message", text, at_ms=at_ms)
            case "thinking":
                yield Part("thinking", text_of(block, "thinking") or "", at_ms=at_ms)
            case "redacted_thinking":
                yield Part("thinking", "(withheld by the service)", at_ms=at_ms)
            case str() as kind if kind.endswith("tool_use"):
                tool = text_of(block, "name")
                self.called(text_of(block, "id"), tool)
                yield Part("tool_call", arguments(block.get("input")), tool, at_ms)
            case str() as kind if kind.endswith("tool_result"):
                yield self._answered(block, at_ms)

    def _given(self, content: object, at_ms: int | None) -> Iterator[Part]:
        """What was put before the model: results of tools, and words of the program."""
        if isinstance(content, str):
            yield Part("notice", content, at_ms=at_ms)
            return
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield self._answered(block, at_ms)
            elif isinstance(block, dict) and (text := text_of(block, "text")):
                yield Part("notice", text, at_ms=at_ms)

    def _answered(self, block: Event, at_ms: int | None) -> Part:
        tool = self.tool_of(text_of(block, "tool_use_id"))
        return Part("tool_result", content_text(block.get("content")), tool, at_ms)

    def _result(self, event: Event, at_ms: int | None) -> Iterator[Part]:
        text = text_of(event, "result")
        errors = [error for error in list_of(event, "errors") if isinstance(error, str)]
        if errors:
            yield Part("error", "\n".join(errors), at_ms=at_ms)
        elif text is not None and text != self._answer:
            yield Part("error" if event.get("is_error") else "message", text, at_ms=at_ms)
        usage = event_of(event, "usage")
        used = tokens_text(total(usage, *_INPUT), count_of(usage, "output_tokens"), amount_of(event, "total_cost_usd"))
        turns = count_of(event, "num_turns")
        if words := ", ".join(part for part in (used, f"{turns} turns" if turns is not None else "") if part):
            yield Part("usage", words, at_ms=at_ms)


def _system(event: Event, at_ms: int | None) -> Iterator[Part]:
    match event.get("subtype"):
        case "init":
            names = [shown(event.get(key)) for key in ("model", "claude_code_version", "permissionMode")]
            yield Part("notice", f"begins: {', '.join(name for name in names if name)}", at_ms=at_ms)
        case "api_retry":
            attempt, most = (shown(event.get(key)) or "?" for key in ("attempt", "max_retries"))
            cause = " ".join(part for part in (shown(event.get("error_status")), shown(event.get("error"))) if part)
            yield Part("notice", f"asks again ({attempt} of {most}): {cause}", at_ms=at_ms)
        case "permission_denied":
            yield Part("notice", text_of(event, "message") or "denied", text_of(event, "tool_name"), at_ms)
        case _:
            if words := text_of(event, "content") or text_of(event, "message"):
                yield Part("notice", words, at_ms=at_ms)


def _limit(info: Event, at_ms: int | None) -> Iterator[Part]:
    if info.get("status") == "rejected":
        yield Part("notice", f"limited: {text_of(info, 'rateLimitType') or 'rate limit'}", at_ms=at_ms)
