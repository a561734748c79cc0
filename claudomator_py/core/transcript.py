"""An agent's output as a list of what it said and did."""

from dataclasses import dataclass

from claudomator_py.core.views import LogKind


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a line of output says. at_ms: epoch milliseconds, as far as it says; partial: it goes on."""

    kind: LogKind
    text: str
    tool: str | None = None
    at_ms: int | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A part, and the bytes that it was made from."""

    offset: int
    next_offset: int
    part: Part
