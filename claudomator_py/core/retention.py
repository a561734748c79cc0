"""How long what has ended is kept."""

from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from claudomator_py.core.fields import DURATION_PATTERN, Strict, refusal
from claudomator_py.core.problem import shown
from claudomator_py.core.units import DAY_MS, HOUR_MS, format_duration, parse_duration

FOREVER = "forever"


def _kept(value: object) -> object:
    if value == FOREVER:
        return None
    try:
        return parse_duration(str(value))
    except ValueError:
        remedy = f"write a number and a unit, such as 30d, or {FOREVER}"
        raise refusal(f"`{shown(str(value))}` is not a duration", remedy) from None


def _text(kept_ms: int | None) -> str:
    return FOREVER if kept_ms is None else format_duration(kept_ms)


Kept = Annotated[
    int | None,
    BeforeValidator(_kept),
    PlainSerializer(_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{FOREVER}$|{DURATION_PATTERN}", "examples": ["30d", FOREVER]}),
]
"""Milliseconds; None: forever."""


class Retention(Strict):
    """How long what has ended is kept. What a task that has not ended needs is kept in any case."""

    runs: Kept = Field(
        30 * DAY_MS,
        ge=HOUR_MS,
        description="Run directories of ended tasks, and the decisions behind their runs; or `forever`.",
    )
    events: Kept = Field(
        90 * DAY_MS, ge=HOUR_MS, description="Events of ended tasks, times of schedules, ended holds; or `forever`."
    )
    tasks: Kept = Field(
        365 * DAY_MS,
        ge=2 * DAY_MS,
        description="Ended tasks with all their runs, unless their file is still in the inbox; or `forever`.",
    )
