"""Traces: how tasks and their runs are named to OpenTelemetry, and a span as a value.

The names follow from ids alone. Whoever has the id of a task, a run or a decision has its trace or span, and a span
that is sent again has the name that it had.
"""

import uuid
from collections.abc import Mapping

from claudomator_py.values import dataclass

_SPAN_DIGITS = 16

Attribute = str | bool | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpanName:
    """Where a span is found: both are positive, of 128 and of 64 bits."""

    trace_id: int
    span_id: int

    @property
    def traceparent(self) -> str:
        """How a process is told that it works on behalf of this span (W3C Trace Context, version 00, sampled)."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


@dataclass(frozen=True, slots=True)
class SpanLink:
    """Another span that has to do with this one."""

    to: SpanName
    why: str
    """``handoff``, ``resumes`` or ``subtask``."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took its time and has ended. Times in epoch milliseconds."""

    name: SpanName
    title: str
    """What it is called; of few different values."""
    parent: SpanName | None
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Attribute]
    links: tuple[SpanLink, ...] = ()
    failed: bool = False
    calls_agent: bool = False
    """Whether the work was done by a process of somebody else's."""


def trace_id(task_id: str) -> int:
    """Return the task's id, as it is."""
    return uuid.UUID(task_id).int


def task_span(task_id: str, generation: int) -> SpanName:
    """Name the span of one generation of a task; the first one's is the root."""
    if generation == 1:
        return SpanName(trace_id(task_id), _first_digits(task_id))
    return part_span(task_id, task_id, f"generation/{generation}")


def own_span(task_id: str, own_id: str) -> SpanName:
    """Name the span of a run or a decision: the first 16 digits of its id."""
    return SpanName(trace_id(task_id), _first_digits(own_id))


def part_span(task_id: str, whole_id: str, part: str) -> SpanName:
    """Name the span of something that has no id of its own. whole_id: that of the task or run that it is a part of."""
    return SpanName(trace_id(task_id), _first_digits(str(uuid.uuid5(uuid.UUID(whole_id), part))))


def check_span(task_id: str, run_id: str) -> SpanName:
    """Name the span of the check of a run."""
    return part_span(task_id, run_id, "check")


def _first_digits(own_id: str) -> int:
    return int(uuid.UUID(own_id).hex[:_SPAN_DIGITS], 16)
