"""How long things are kept after they have ended."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from claudomator_py.domain.errors import shown
from claudomator_py.domain.fields import DURATION_PATTERN, Duration, Flag, Strict, refusal
from claudomator_py.domain.shape import View
from claudomator_py.domain.units import DAY_MS, HOUR_MS, format_duration, parse_duration

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
"""Milliseconds; None for forever."""


class Retention(Strict):
    """How long things are kept after they have ended. What a task still needs before its end is always kept."""

    runs: Kept = Field(
        30 * DAY_MS,
        ge=HOUR_MS,
        description="How long to keep run directories of ended tasks, or `forever`.",
    )
    decisions: Kept = Field(
        365 * DAY_MS,
        ge=HOUR_MS,
        description="How long to keep decisions, also of tasks that are gone, or `forever`.",
    )
    snapshots: Kept = Field(
        30 * DAY_MS,
        ge=HOUR_MS,
        description="How long to keep what the scheduler had observed when it decided, which `claudomator replay` "
        "needs, or `forever`.",
    )
    messages: Kept = Field(
        365 * DAY_MS,
        ge=DAY_MS,
        description="How long to keep messages of channels that nobody is asked to answer any more, or `forever`.",
    )
    events: Kept = Field(
        90 * DAY_MS,
        ge=HOUR_MS,
        description="How long to keep events of ended tasks, past times of schedules and ended holds, or `forever`.",
    )
    tasks: Kept = Field(
        365 * DAY_MS,
        ge=2 * DAY_MS,
        description="How long to keep ended tasks with all their runs, unless their file is still in the inbox; or "
        "`forever`.",
    )


DEFAULT_AGE_MS = 7 * DAY_MS


class CleanupRequest(View, frozen=True, extra="forbid"):
    """A request to remove what ended tasks no longer need."""

    dry_run: Flag = Field(False, description="Show what would be removed without removing it.")
    older_than: Duration = Field(DEFAULT_AGE_MS, le=3_650 * DAY_MS, description="Only what ended longer ago than this.")


class CleanupItemView(View):
    """A work tree with its branch, or a run directory with its output and scratch folder."""

    kind: Literal["worktree", "run"]
    path: str
    task_id: str | None = None
    task: str | None = None
    branch: str | None = None
    bytes: int = 0
    """Disk space that it takes, or took."""
    removed: bool
    """True if it was removed or, in a dry run, would be."""
    why: str
    """The reason, in words."""


class CleanupView(View):
    """What was removed and what is kept. Run directories that are too young to be considered are not listed."""

    dry_run: bool
    items: tuple[CleanupItemView, ...] = ()
    freed_bytes: int = 0
    """Bytes freed or, in a dry run, to be freed."""
    more: bool = False
    """True if not everything was examined; send the request again."""
