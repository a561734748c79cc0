"""Named points at which a test may kill the process; outside tests they do nothing."""

from collections.abc import Callable

CRASH_POINTS = (
    "daemon-locked", "schema-changed", "token-written", "token-linked", "endpoint-written", "store-begin",
    "store-before-commit", "store-after-commit", "run-dir-new", "run-files-written", "run-dir-renamed", "run-dir-made",
    "run-spawned", "lock-held", "cancel-made", "cancel-written", "cancel-nudged", "revoked-made", "revoked-written",
    "run-dir-trashed", "run-dir-removed", "survivors-signalled", "survivors-ended", "inbox-before-take",
    "inbox-after-take", "inbox-before-error-file", "inbox-after-error-file", "inbox-before-move", "inbox-after-move",
    "tier-asked", "tick-begin", "tick-end", "worktree-intended", "worktree-added", "worktree-made", "worktree-removed",
    "worktree-committed", "merge-noted", "merge-locked", "merge-checked", "merge-moved", "merge-files", "merge-indexed",
    "discard-kept", "start-prepared", "start-committed", "start-spawned", "cancel-asked", "budget-met", "outcome-read",
    "check-committed", "check-prepared", "finish-begin", "finish-committed", "submit-committed", "cancel-committed",
    "restart-committed", "input-committed", "notice-stored", "notice-sent", "schedule-due", "schedule-met",
    "rows-pruned", "answer-due", "answer-given", "spans-sent",
)  # fmt: skip

_hook: Callable[[str], None] | None = None


def install(hook: Callable[[str], None] | None) -> None:
    """Call hook with the name of every crash point passed from now on; None removes the hook."""
    global _hook
    _hook = hook


def crashpoint(name: str) -> None:
    """Mark a line after which the process may die. List the name in CRASH_POINTS, so that tests cover it."""
    if _hook is not None:
        _hook(name)
