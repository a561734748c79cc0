"""Traces: how tasks and their runs are identified in OpenTelemetry, and a span as a value.

Span names are derived from ids alone: the id of a task, run or decision determines its trace or span, and a span that
is sent again has the same name.
"""

import uuid
from collections.abc import Mapping

from claudomator_py.values import dataclass

_SPAN_DIGITS = 16

Attribute = str | bool | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpanName:
    """Identifies a span; both ids are positive, of 128 and 64 bits."""

    trace_id: int
    span_id: int

    @property
    def traceparent(self) -> str:
        """Header telling a process that it works on behalf of this span (W3C Trace Context, version 00, sampled)."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A related span."""

    to: SpanName
    why: str
    """``handoff``, ``resumes`` or ``subtask``."""


@dataclass(frozen=True, slots=True)
class Span:
    """An operation that has ended. Times in epoch milliseconds."""

    name: SpanName
    title: str
    """Display name, with few distinct values."""
    parent: SpanName | None
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Attribute]
    links: tuple[SpanLink, ...] = ()
    failed: bool = False
    calls_agent: bool = False
    """True if somebody else's process did the work."""


def trace_id(task_id: str) -> int:
    """Return the task's id as a number."""
    return uuid.UUID(task_id).int


def task_span(task_id: str, generation: int) -> SpanName:
    """Name the span of one generation of a task; the first generation's is the root span."""
    if generation == 1:
        return SpanName(trace_id(task_id), _first_digits(task_id))
    return part_span(task_id, task_id, f"generation/{generation}")


def own_span(task_id: str, own_id: str) -> SpanName:
    """Name the span of a run or a decision: the first 16 digits of its id."""
    return SpanName(trace_id(task_id), _first_digits(own_id))


def part_span(task_id: str, whole_id: str, part: str) -> SpanName:
    """Name the span of something without an id of its own. whole_id: id of the task or run that it is part of."""
    return SpanName(trace_id(task_id), _first_digits(str(uuid.uuid5(uuid.UUID(whole_id), part))))


def check_span(task_id: str, run_id: str) -> SpanName:
    """Name the span of a run's check."""
    return part_span(task_id, run_id, "check")


def _first_digits(own_id: str) -> int:
    return int(uuid.UUID(own_id).hex[:_SPAN_DIGITS], 16)
