"""``status --watch``: on a terminal the status as it changes, in a pipe a line for each change."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from claudomator_py.cli.changes import Changes
from claudomator_py.cli.output import out, out_json_line
from claudomator_py.client.errors import ServiceProblem
from claudomator_py.domain.text import one_line
from claudomator_py.domain.views import TaskFilter, TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_ENDED = ("COMPLETED", "FAILED", "CANCELLED")
_LEAST_S = 0.5
"""Between two drawings."""
_MOST_S = 10.0
"""After that long it is drawn anyway: it says how long ago things were."""


def draw(client: "Client", text: Callable[[], str]) -> None:
    """Show the text on the whole terminal, anew when something has changed, until interrupted."""
    from rich.live import Live
    from rich.text import Text

    with Changes(client) as changes, Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text.from_ansi(text()), refresh=True)
            time.sleep(_LEAST_S)
            changes.wait(_MOST_S - _LEAST_S)


def lines(client: "Client", wanted: TaskFilter) -> None:
    """Write a line for each task that matches and has not ended, then one for each change of one that matches."""
    names: dict[str, str] = {}
    by_task = wanted != TaskFilter(state=wanted.state)

    def present() -> None:
        if not names:
            for task in reversed(list(client.all_tasks(wanted))):
                names[task.id] = task.name
                if task.state == wanted.state or task.state not in _ENDED:
                    out(_words(task.updated_at, task.name, task.state, task.phase, task.reason))

    # Told once the stream has begun, so that no change comes in between.
    for event in client.events(kinds=("state",), on_connect=present):
        if event.task_id is None or wanted.state not in (None, event.data.get("state")):
            continue
        task = None
        if by_task or event.task_id not in names:
            task = _task(client, event.task_id)
            names[event.task_id] = task.name if task is not None else event.task_id
        if by_task and (task is None or not _matches(task, wanted)):
            continue
        out(_words(event.at, names[event.task_id], *(event.data.get(key) for key in ("state", "phase", "reason"))))


def json_lines(client: "Client") -> None:
    """Write each event as a line of JSON, from now on."""
    for event in client.events():
        out_json_line(event)


def _words(*said: object) -> str:
    return " ".join(one_line(str(part)) for part in said if part)


def _task(client: "Client", task_id: str) -> TaskView | None:
    try:
        return client.task(task_id)
    except ServiceProblem as problem:
        if problem.code == "not_found":
            return None
        raise


def _matches(task: TaskView, wanted: TaskFilter) -> bool:
    return (wanted.tag is None or wanted.tag in task.tags) and wanted.agent in (None, task.agent)
