"""What an agent said and did, as lines on a terminal or in a pipe."""

import io

from claudomator_py.cli.output import wants_colour
from claudomator_py.domain.text import plain
from claudomator_py.domain.views import LogEntryView, LogKind

_INDENT = "  "
_MARKS: dict[LogKind, str] = {"tool_call": "> ", "usage": "- ", "notice": "- ", "error": "! "}
_STYLES: dict[LogKind, str] = {
    "thinking": "dim italic",
    "tool_call": "cyan",
    "tool_result": "dim",
    "usage": "dim",
    "notice": "dim",
    "error": "bold red",
}


class EntryLines:
    """Writes entries one after the other; one that goes on in the next stays on its line."""

    def __init__(self) -> None:
        self._open: LogKind | None = None

    def text(self, entry: LogEntryView) -> str:
        """What to write for the next entry, its line end included unless it goes on."""
        going_on = self._open == entry.kind
        before = "\n" if self._open is not None and not going_on else ""
        self._open = entry.kind if entry.partial else None
        shown = plain(entry.text) if going_on else _marked(entry)
        return before + _painted(shown, _STYLES.get(entry.kind)) + ("" if entry.partial else "\n")

    def end(self) -> str:
        """What to write when nothing follows."""
        return "\n" if self._open is not None else ""


def _marked(entry: LogEntryView) -> str:
    text = plain(entry.text)
    if entry.omitted:
        text += f"\n[{entry.omitted} characters more]"
    tool = plain(entry.tool) if entry.tool else ""
    match entry.kind:
        case "message" | "text":
            return text
        case "thinking" | "tool_result":
            return "\n".join(_INDENT + line for line in text.rstrip("\n").split("\n"))
        case "tool_call":
            return f"{_MARKS[entry.kind]}{tool}: {text}" if text else f"{_MARKS[entry.kind]}{tool}"
    words = f"{tool}: {text}" if tool else text
    return _MARKS[entry.kind] + words


def _painted(text: str, style: str | None) -> str:
    if style is None or not wants_colour():
        return text
    from rich.console import Console
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)
    with console.capture() as capture:
        console.print(Text(text, style), soft_wrap=True, end="")
    return capture.get()
