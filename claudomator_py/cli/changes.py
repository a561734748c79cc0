"""Noticing that something has changed: the daemon's event stream, read on a thread of its own."""

import threading
from typing import TYPE_CHECKING, Self

from claudomator_py.client.errors import ClientError

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


class Changes:
    """Says when something happened, to one task or at all. Use it in a ``with`` block."""

    def __init__(self, client: "Client", task: str | None = None) -> None:
        self._client = client
        self._task = task
        self._changed = threading.Event()
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

        The first is that listening has begun. Raises ClientError when the daemon is gone for good.
        """
        changed = self._changed.wait(seconds)
        self._changed.clear()
        if self._failure is not None:
            raise self._failure
        return changed

    def _listen(self) -> None:
        try:
            for _ in self._client.events(task=self._task, on_connect=self._changed.set):
                self._changed.set()
                if self._left:
                    return
        except ClientError as error:
            self._failure = error
            self._changed.set()
        except RuntimeError:
            if not self._left:  # the command has ended, and closed the client
                raise
