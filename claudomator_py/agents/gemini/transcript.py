"""What the Gemini CLI said and did, from ``-o stream-json``."""

from collections.abc import Iterator

from claudomator_py.agents.jsonlines import Event, count_of, event_of, instant_of, text_of
from claudomator_py.agents.transcript import EventTranscript, arguments, content_text, shown, tokens_text
from claudomator_py.domain.run import Part


class GeminiTranscript(EventTranscript):
    """Reads one run. A message comes in pieces, each an entry that goes on in the next."""

    def event(self, event: Event) -> Iterator[Part]:
        """What an event says."""
        at_ms = instant_of(event, "timestamp")
        match event.get("type"):
            case "init":
                yield Part("notice", f"begins: {shown(event.get('model'))}", at_ms=at_ms)
            case "message" if event.get("role") == "assistant":
                yield Part("message", text_of(event, "content") or "", None, at_ms, partial=event.get("delta") is True)
            case "tool_use":
                tool = text_of(event, "tool_name")
                self.called(text_of(event, "tool_id"), tool)
                yield Part("tool_call", arguments(event.get("parameters")), tool, at_ms)
            case "tool_result":
                said = content_text(event.get("output")) or text_of(event_of(event, "error"), "message")
                text = said or shown(event.get("status"))
                yield Part("tool_result", text, self.tool_of(text_of(event, "tool_id")), at_ms)
            case "error":
                passing = event.get("severity") == "warning"
                yield Part("notice" if passing else "error", text_of(event, "message") or shown(event), at_ms=at_ms)
            case "result":
                if event.get("status") != "success":
                    yield Part("error", text_of(event_of(event, "error"), "message") or shown(event), at_ms=at_ms)
                stats = event_of(event, "stats")
                if used := tokens_text(count_of(stats, "input_tokens"), count_of(stats, "output_tokens")):
                    yield Part("usage", used, at_ms=at_ms)
