"""The daemon's event stream on a thread of its own: waiting for tasks to end, and ``status --watch``."""

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Self

from claudomator_py.cli.output import note, out, out_json_line
from claudomator_py.client.errors import ClientError, DaemonNotRunning, ServiceProblem
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.text import one_line
from claudomator_py.resources.tasks.shape import TaskView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

PATIENCE_S: Final = 60.0
"""How long a daemon that was there before is waited for, unless somebody has more patience."""


class Changes:
    """Says when something happened, to one task or at all. Use it in a ``with`` block."""

    def __init__(self, client: "Client", task: str | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._task = task
        self._patience_s = patience_s
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._tasks: set[str] | None = None
        self._failure: ClientError | None = None
        self._left = False
        # It ends with the command: it may be waiting for the daemon, which cannot be interrupted.
        self._thread = threading.Thread(target=self._listen, name="changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True

    def wait(self, seconds: float) -> bool:
        """Wait for the next change since the last call; False if there was none that long.

        The first is that listening has begun. Raises ClientError when the daemon is gone permanently.
        """
        changed = self._changed.wait(seconds)
        self._changed.clear()
        if self._failure is not None:
            raise self._failure
        return changed

    def tasks(self) -> Collection[str] | None:
        """The tasks to which something happened since the last call, by id; None: to any, as nobody had listened."""
        with self._lock:
            found, self._tasks = self._tasks, set()
        return found

    def _listen(self) -> None:
        try:
            for event in self._client.events(
                task=self._task, patience_s=self._patience_s, on_connect=lambda: self._note(None)
            ):
                self._note(None if event.kind == "reset" else event.task_id or "")
                if self._left:
                    return
        except ClientError as error:
            self._failure = error
            self._changed.set()
        except (RuntimeError, OSError):
            if not self._left:  # the command has ended, and closed the client; what it would need may be gone as well
                raise

    def _note(self, task_id: str | None) -> None:
        """Something happened to that task, to none ('') or, where that is not known, to any (None)."""
        with self._lock:
            if task_id is None:
                self._tasks = None
            elif self._tasks is not None and task_id:
                self._tasks.add(task_id)
        self._changed.set()


WAIT_PATIENCE_S = 600.0
"""How long a daemon that has gone is waited for: an upgrade takes less."""
SAFETY_S = 15.0
"""After so long without an event tasks are fetched anyway."""
_UNAVAILABLE = 503

Told = Callable[[TaskView, TaskView], None]
"""Is given a task as it was last seen, and as it is now."""


def wait_for_end(client: "Client", tasks: dict[str, TaskView], deadline: float | None, told: Told) -> None:
    """Return once all these tasks, by id, have ended, or at the deadline of the monotonic clock.

    tasks is kept as they were last seen. Raises ClientError when the daemon is gone permanently.
    """
    there = True
    with Changes(client, patience_s=WAIT_PATIENCE_S) as changes:
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
                # Once it is back, the stream begins again, and everything is looked at.
                if there:
                    note("The daemon does not answer; waiting for it. Running tasks continue.")
                there = False
            else:
                there = True


_LEAST_S = 0.5
"""Between two drawings."""
_MAX_S = 10.0
"""After that long it is drawn anyway: it says how long ago things were."""


def draw(client: "Client", text: Callable[[], str]) -> None:
    """Show the text on the whole terminal, again when something has changed, until interrupted."""
    from rich.live import Live
    from rich.text import Text

    with Changes(client) as changes, Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text.from_ansi(text()), refresh=True)
            time.sleep(_LEAST_S)
            changes.wait(_MAX_S - _LEAST_S)


def lines(client: "Client", wanted: TaskFilter) -> None:
    """Write a line for each task that matches and has not ended, then one for each change of one that matches."""
    names: dict[str, str] = {}
    by_task = wanted != TaskFilter(state=wanted.state)

    def present() -> None:
        if not names:
            for task in reversed(list(client.all_tasks(wanted))):
                names[task.id] = task.name
                if task.state == wanted.state or task.state not in ENDED:
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
    said = ((wanted.agent, task.agent), (wanted.specialist, task.specialist), (wanted.creator, task.creator))
    return (wanted.tag is None or wanted.tag in task.tags) and all(one in (None, is_so) for one, is_so in said)
