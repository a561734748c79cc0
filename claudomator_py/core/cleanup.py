"""Cleaning up: what is asked for, and what is told of it."""

from typing import Literal

from pydantic import ConfigDict, Field

from claudomator_py.core.fields import Duration, Flag
from claudomator_py.core.units import DAY_MS
from claudomator_py.core.view import View

DEFAULT_AGE_MS = 7 * DAY_MS


class CleanupRequest(View):
    """Remove what ended tasks have left and nobody misses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dry_run: Flag = Field(False, description="Say what would be removed, and remove nothing.")
    older_than: Duration = Field(DEFAULT_AGE_MS, le=3_650 * DAY_MS, description="Only what ended longer ago than that.")


class CleanupItemView(View):
    """A work tree with its branch, or the directory of a run with its output and scratch folder.

    bytes: what it takes, or took, on the disk. removed: or would be, in a dry run. why: in words.
    """

    kind: Literal["worktree", "run"]
    path: str
    task_id: str | None = None
    task: str | None = None
    branch: str | None = None
    bytes: int = 0
    removed: bool
    why: str


class CleanupView(View):
    """What was removed and what is kept. Run directories that are too young to be looked at are not listed.

    freed_bytes: in a dry run, what would be. more: not everything was looked at; ask again.
    """

    dry_run: bool
    items: tuple[CleanupItemView, ...] = ()
    freed_bytes: int = 0
    more: bool = False
