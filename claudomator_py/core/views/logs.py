"""What runs wrote."""

from dataclasses import dataclass
from typing import Literal

from claudomator_py.core.outcome import OutcomeStatus
from claudomator_py.core.view import Instant, View
from claudomator_py.core.views.runs import RunState

LogKind = Literal["message", "thinking", "tool_call", "tool_result", "usage", "notice", "error", "text"]


class LogTextView(View):
    """A piece of what a run wrote, from the byte ``offset`` up to ``next_offset``, as text for people.

    Without terminal codes, and with ``[redacted]`` in the place of secrets.
    """

    offset: int
    next_offset: int
    text: str


class LogEntryView(View):
    """One thing that an agent said or did, made from the bytes from ``offset`` up to ``next_offset``.

    tool: its name, for a call and its result. at: when, as far as the agent says. omitted: characters of the text that
    were left out; the bytes have them. partial: the text goes on in the next entry of this kind.
    """

    offset: int
    next_offset: int
    kind: LogKind
    text: str
    tool: str | None = None
    at: Instant | None = None
    omitted: int = 0
    partial: bool = False


class LogPageView(View):
    """A part of a log. next_cursor: where to go on, now or when there is more. ended: nothing will follow."""

    items: tuple[LogEntryView | LogTextView, ...]
    next_cursor: str
    ended: bool


class LogEndView(View):
    """The run is over, and its log was told up to ``next_offset``. state: the run's; status: of its outcome."""

    next_offset: int
    state: RunState
    status: OutcomeStatus | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a run's stream from ``offset``. ended: the run is over and nothing follows ``next_offset``."""

    data: bytes
    offset: int
    next_offset: int
    ended: bool
