"""File system events of the inbox folders, as a hint where to look. What they miss, the periodic rescan finds."""

import logging
import threading
from collections.abc import Callable, Iterable

from watchfiles._rust_notify import RustNotify

# Milliseconds. An event is seen after one to two steps; a stream of them is handed on at least every debounce.
_STEP = 5
_DEBOUNCE = 50

log = logging.getLogger("claudomator.inbox")


class Watcher:
    """Watches some folders, not their subfolders, from a thread of its own, and calls back with the changed paths."""

    def __init__(self, folders: Iterable[str], on_changes: Callable[[set[str]], None]) -> None:
        """The watch is set when this returns. Raises OSError where the system allows no more of them."""
        self._on_changes = on_changes
        self._stop = threading.Event()
        self._notify = RustNotify(list(folders), False, False, 0, False, True)
        self._thread = threading.Thread(target=self._run, name="claudomator-inbox-watch", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether events can still come."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the watch."""
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                changes = self._notify.watch(_DEBOUNCE, _STEP, 0, self._stop)
                if isinstance(changes, str):
                    return
                self._on_changes({path for _, path in changes})
        except Exception:
            log.exception("watching the inbox failed; files are found by the rescan until it is set up again")
        finally:
            self._notify.close()
