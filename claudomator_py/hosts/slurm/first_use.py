"""A host is tried before its first run: locks, exclusive creation, renaming and flushing have to work between this
machine and its nodes, because nothing else keeps a run from beginning twice."""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.slurm.trial import Untried, tried

log = logging.getLogger(__name__)

AGAIN_S: Final = 300.0
"""How long after a failed trial the next one begins."""
_MARK: Final = ".tried-"
_MATTERS: Final = ("python", "partition", "constraint", "account", "qos")
"""What decides, with the folder, which nodes get runs."""


class _Closed(Exception):
    """The daemon stops."""


class FirstUse:
    """Whether one host may have runs. A success is recorded in the host's folder, and holds for this folder, file
    system and configuration. Safe to call from many threads."""

    def __init__(self, name: str, host: HostSpec, news: Callable[[], None]) -> None:
        """news: called on another thread when ``obstacle`` changes."""
        self._host = host
        self._news = news
        self._mark = Path(host.root) / f"{_MARK}{name}"
        self._is_proved = self._is_recorded()
        self._words: str | None = None
        self._lock = threading.Lock()
        self._trying: threading.Thread | None = None
        self._next = 0.0
        self._closing = threading.Event()

    def obstacle(self) -> str | None:
        """Return why the host may have no runs yet, as a clause; None if it may have them. Returns at once; a thread
        tries the host when it is time."""
        if self._is_proved:
            return None
        with self._lock:
            if self._trying is None and time.monotonic() >= self._next and not self._closing.is_set():
                self._words = self._words or "is being tried before its first run"
                self._trying = threading.Thread(target=self._try, name="slurm-trial", daemon=True)
                self._trying.start()
        return self._words

    @property
    def words(self) -> str | None:
        """The latest result of ``obstacle``; None before the first."""
        return None if self._is_proved else self._words

    def close(self) -> None:
        """End a trial in progress."""
        self._closing.set()
        trying = self._trying
        if trying is not None:
            trying.join()

    def _try(self) -> None:
        try:
            result = tried(self._host, start_s=float("inf"), pause=self._pause, waits=self._waits)
        except _Closed:
            return
        except Untried as problem:
            words, remedy = problem.args
            self._refuse("could not be tried", words, remedy)
        except (OSError, ValueError, LookupError) as problem:
            self._refuse("could not be tried", str(problem), f"See the log in {self._host.root}.")
        else:
            if result.faults:
                self._refuse("is not used", "; ".join(fault.words for fault in result.faults), result.faults[0].remedy)
            else:
                self.record()
                self._is_proved = True
        with self._lock:
            self._trying = None
        self._news()

    def _refuse(self, what: str, words: str, remedy: str) -> None:
        self._next = time.monotonic() + AGAIN_S
        self._words = f"{what}: {words}. {remedy} It is tried again after {AGAIN_S / 60:.0f} minutes"
        log.warning("the host whose runs are in %s %s", self._host.root, self._words)

    def _pause(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise _Closed

    def _waits(self, state: str) -> None:
        self._words = f"is being tried before its first run; the job for that is {state}"

    def _digest(self) -> str:
        """Return a digest of what the result depends on. Raises OSError."""
        root = os.path.realpath(self._host.root)
        about = [root, os.statvfs(root).f_fsid, *(getattr(self._host, name) for name in _MATTERS)]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def _is_recorded(self) -> bool:
        try:
            return self._mark.read_text() == self._digest()
        except (OSError, ValueError):
            return False

    def record(self) -> None:
        """Record that runs on the host are safe."""
        try:
            self._mark.write_text(self._digest())
        except OSError as problem:
            log.warning("that the host works cannot be recorded, so it will be tried again: %s", problem)
