"""The daemon's event stream on a thread of its own, for commands that wait for a change."""

import threading
from collections.abc import Collection
from typing import Final, Self

from claudomator_py.cli.connect import Client
from claudomator_py.client import ClientError

PATIENCE_S: Final = 60.0
"""How long a daemon may be away by default."""


class EventWatch:
    """Waits for events, of one task or any. Use it in a ``with`` block."""

    def __init__(self, client: Client, task: str | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._task = task
        self._patience_s = patience_s
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._tasks: set[str] | None = None
        self._failure: ClientError | None = None
        self._left = False
        # A daemon thread, as it may be waiting for the daemon, which cannot be interrupted.
        self._thread = threading.Thread(target=self._listen, name="changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True

    def wait(self, seconds: float) -> bool:
        """Wait for a change since the last call; False if there was none in that time.

        The first change is that listening has begun. Raises ClientError when the daemon is gone for good.
        """
        changed = self._changed.wait(seconds)
        self._changed.clear()
        if self._failure is not None:
            raise self._failure
        return changed

    def tasks(self) -> Collection[str] | None:
        """Return the ids of the tasks with events since the last call; None: unknown, so any may have changed."""
        with self._lock:
            task_ids, self._tasks = self._tasks, set()
        return task_ids

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
            if not self._left:  # otherwise the command has ended, and with it what this thread needs
                raise

    def _note(self, task_id: str | None) -> None:
        """Note an event of that task, of no task (''), or possibly of any (None)."""
        with self._lock:
            if task_id is None:
                self._tasks = None
            elif self._tasks is not None and task_id:
                self._tasks.add(task_id)
        self._changed.set()
