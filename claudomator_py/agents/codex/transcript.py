"""What Codex said and did, from ``--json``."""

from collections.abc import Iterator

from claudomator_py.agents.jsonlines import Event, count_of, event_of, text_of
from claudomator_py.agents.transcript import (
    EventTranscript,
    TextTranscript,
    arguments,
    content_text,
    shown,
    tokens_text,
)
from claudomator_py.domain.run import Part

_WORDS = {"agent_message": "message", "reasoning": "thinking"}
_PASSING = "Reconnecting"
REQUEST = "codex_http_client::client: Request completed "
"""In a line of its log that tells the answer to a request."""


class CodexComplaints(TextTranscript):
    """Reads its stderr, without the log of its requests."""

    def line(self, line: bytes) -> Iterator[Part]:
        """The line, if it is for people."""
        return iter(()) if REQUEST.encode() in line else super().line(line)


class CodexTranscript(EventTranscript):
    """Reads one run."""

    def __init__(self, offset: int = 0) -> None:
        super().__init__(offset)
        self._error: str | None = None

    def event(self, event: Event) -> Iterator[Part]:
        """What an event says."""
        item = event_of(event, "item")
        match event.get("type"):
            case "thread.started":
                yield Part("notice", f"begins: {shown(event.get('thread_id'))}")
            case "item.started":
                self.called(text_of(item, "id"), _tool(item))
                yield from _call(item)
            case "item.completed":
                yield from self._completed(item)
            case "error":
                self._error = text_of(event, "message")
                passing = (self._error or "").startswith(_PASSING)
                yield Part("notice" if passing else "error", self._error or shown(event))
            case "turn.failed":
                message = text_of(event_of(event, "error"), "message") or shown(event)
                if message != self._error:
                    yield Part("error", message)
            case "turn.completed":
                usage = event_of(event, "usage")
                yield Part("usage", tokens_text(count_of(usage, "input_tokens"), count_of(usage, "output_tokens")))

    def _completed(self, item: Event) -> Iterator[Part]:
        match item.get("type"):
            case "agent_message":
                yield Part("message", text_of(item, "text") or "")
            case "reasoning":
                yield Part("thinking", text_of(item, "text") or "")
            case "error":
                yield Part("error", text_of(item, "message") or shown(item))
            case _:
                if self.tool_of(text_of(item, "id")) is None:
                    yield from _call(item)
                if (tool := _tool(item)) is not None:
                    yield Part("tool_result", _result(item), tool)


def _tool(item: Event) -> str | None:
    kind = text_of(item, "type")
    if kind is None or kind in _WORDS or kind == "error":
        return None
    return text_of(item, "tool") or kind


def _call(item: Event) -> Iterator[Part]:
    tool = _tool(item)
    if tool is None:
        return
    asked = next((item[key] for key in ("command", "arguments", "query", "changes", "items") if item.get(key)), None)
    yield Part("tool_call", arguments(asked), tool)


def _result(item: Event) -> str:
    output = next((item[key] for key in ("aggregated_output", "error", "result") if item.get(key)), None)
    if isinstance(output, dict):
        output = output.get("message") or output.get("content") or output
    exit_code = item.get("exit_code")
    end = f"[exit code {exit_code}]" if isinstance(exit_code, int) and exit_code != 0 else ""
    return "\n".join(part for part in (content_text(output).rstrip("\n"), end) if part) or shown(item.get("status"))
