"""What opencode said and did, from ``--format json``."""

from collections.abc import Iterator

from claudomator_py.agents.jsonlines import Event, amount_of, count_of, event_of, instant_of, text_of
from claudomator_py.agents.transcript import EventTranscript, arguments, content_text, shown, tokens_text, total
from claudomator_py.domain.run import Part


class OpencodeTranscript(EventTranscript):
    """Reads one run."""

    def event(self, event: Event) -> Iterator[Part]:
        """What an event says."""
        at_ms = instant_of(event, "timestamp")
        part = event_of(event, "part")
        match event.get("type"):
            case "text":
                yield Part("message", text_of(part, "text") or "", at_ms=at_ms)
            case "reasoning":
                yield Part("thinking", text_of(part, "text") or "", at_ms=at_ms)
            case "tool_use":
                yield from _tool(part, at_ms)
            case "step_finish":
                tokens = event_of(part, "tokens")
                cache = event_of(tokens, "cache")
                read, written = total(tokens, "input"), total(cache, "read", "write")
                used = None if read is None else read + (written or 0)
                if words := tokens_text(used, count_of(tokens, "output"), amount_of(part, "cost")):
                    yield Part("usage", words, at_ms=at_ms)
            case "error":
                error = event_of(event, "error")
                data = event_of(error, "data")
                said = text_of(data, "message") or text_of(error, "message") or text_of(error, "name")
                yield Part("error", said or shown(event), at_ms=at_ms)


def _tool(part: Event, at_ms: int | None) -> Iterator[Part]:
    """A call is told together with its result."""
    tool = text_of(part, "tool")
    state = event_of(part, "state")
    yield Part("tool_call", arguments(state.get("input")), tool, at_ms)
    result = content_text(state.get("output")) or shown(state.get("error")) or shown(state.get("status"))
    yield Part("tool_result", result, tool, at_ms)
