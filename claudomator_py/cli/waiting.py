"""Waiting for the end of tasks: by the daemon's event stream, over restarts of the daemon."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from claudomator_py.cli.changes import Changes
from claudomator_py.cli.output import note
from claudomator_py.client.errors import DaemonNotRunning, ServiceProblem
from claudomator_py.domain.views import TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
PATIENCE_S = 600.0
"""How long a daemon that has gone is waited for: an upgrade takes less."""
SAFETY_S = 15.0
"""After so long without an event it is looked all the same."""
_UNAVAILABLE = 503

Told = Callable[[TaskView, TaskView], None]
"""Is given a task as it was last seen, and as it is now."""


def wait_for_end(client: "Client", tasks: dict[str, TaskView], deadline: float | None, told: Told) -> None:
    """Return once all these tasks, by id, have ended, or at the deadline of the monotonic clock.

    tasks is kept as they were last seen. Raises ClientError when the daemon is gone for good.
    """
    there = True
    with Changes(client, patience_s=PATIENCE_S) as changes:
        while pending := [task for task in tasks.values() if task.state not in ENDED]:
            left = SAFETY_S if deadline is None else min(SAFETY_S, deadline - time.monotonic())
            if left <= 0:
                return
            changed = changes.tasks() if changes.wait(left) else None
            try:
                for task in pending:
                    if changed is None or task.id in changed:
                        now = client.task_unless(task.id, task.version)
                        if now is not None:
                            tasks[task.id] = now
                            told(task, now)
            except (DaemonNotRunning, ServiceProblem) as error:
                if isinstance(error, ServiceProblem) and error.details.status != _UNAVAILABLE:
                    raise
                # Once it is back, the stream begins anew, and everything is looked at.
                if there:
                    note("The daemon does not answer; waiting for it. What runs goes on.")
                there = False
            else:
                there = True
