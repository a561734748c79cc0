"""Noticing the end of runs with asyncio, by a message of the shim or the end of its process; polling is needed only
until the shim is known."""

import asyncio
import os
import socket
from collections.abc import Callable

from claudomator_py.hosts.local.fate import AnyPath, ShimIdentity, held_lock, shim_identity
from claudomator_py.hosts.local.launcher import Shim, ended_by_itself
from claudomator_py.hosts.shim import procfs, record
from claudomator_py.values import dataclass

_FIRST_PAUSE_S = 0.02
_MAX_PAUSE_S = 1.0
_START_S = 30.0
_NEVER_STARTS = (record.STARTED, record.REVOKED, record.CANCEL, record.EXIT)


@dataclass(slots=True)
class _Watched:
    path: AnyPath
    word: socket.socket | None = None
    """Readable once the shim has sent a message."""
    fd: int | None = None
    """Pidfd of the shim."""
    timer: asyncio.TimerHandle | None = None
    give_up_at: float = 0.0
    """Time on the loop's clock."""
    pause_s: float = _FIRST_PAUSE_S


class RunWatcher:
    """Calls on_end with the run's id, once, when the run no longer has a shim; ``reconcile`` then returns its fate. All
    calls are on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[str], None]) -> None:
        self._loop = loop
        self._on_end = on_end
        self._watched: dict[str, _Watched] = {}

    def watch(self, run_id: str, run_dir: AnyPath, shim: Shim | None = None) -> None:
        """Watch a run, unless it is watched already.

        shim: from the launcher; it may not have written its identity yet. A run that no shim has taken for 30 seconds
        counts as ended, too. Raises OSError, and then does not watch the run.
        """
        if run_id in self._watched:
            return
        watched = _Watched(run_dir, give_up_at=self._loop.time() + _START_S)
        self._watched[run_id] = watched
        if shim is None:
            watched.timer = self._loop.call_later(0, self._find, run_id)
            return
        try:
            identity = ShimIdentity(shim.pid, shim.start_time)
            watched.word = word = shim.listen()
            if word is None:
                self._follow(run_id, identity)
            else:
                self._loop.add_reader(word.fileno(), self._hear, run_id, word, identity)
        except OSError:
            self.unwatch(run_id)
            raise

    def watches(self, run_id: str) -> bool:
        """Return whether that run is watched."""
        return run_id in self._watched

    def unwatch(self, run_id: str) -> None:
        """Stop watching the run, if it is watched."""
        watched = self._watched.pop(run_id, None)
        if watched is not None:
            self._release(watched)

    def close(self) -> None:
        """Stop watching all runs."""
        for run_id in list(self._watched):
            self.unwatch(run_id)

    def _find(self, run_id: str) -> None:
        """Look for the run's shim: follow it, look again later, or report that the run has none."""
        watched = self._watched[run_id]
        watched.timer = None
        identity = shim_identity(watched.path)
        if identity is not None:
            self._follow(run_id, identity)
        elif _is_held(watched.path) or (_may_start(watched.path) and self._loop.time() < watched.give_up_at):
            watched.timer = self._loop.call_later(watched.pause_s, self._find, run_id)
            watched.pause_s = min(watched.pause_s * 2, _MAX_PAUSE_S)
        else:
            self._end(run_id)

    def _hear(self, run_id: str, word: socket.socket, identity: ShimIdentity) -> None:
        """Handle a message of the shim that the run has ended, or the loss of the connection."""
        has_ended = ended_by_itself(word)
        if has_ended:
            self._end(run_id)
        elif has_ended is False:
            self._release(self._watched[run_id])
            self._follow(run_id, identity)

    def _follow(self, run_id: str, identity: ShimIdentity) -> None:
        watched = self._watched[run_id]
        watched.fd = procfs.open_pidfd(identity.pid, identity.start_time)
        if watched.fd is None:
            watched.timer = self._loop.call_later(0, self._shim_exited, run_id)
        else:
            self._loop.add_reader(watched.fd, self._shim_exited, run_id)

    def _shim_exited(self, run_id: str) -> None:
        """Handle the exit of a shim. Another one may have the run: of two that were started, one exits at once and the
        other holds the lock."""
        watched = self._watched[run_id]
        self._release(watched)
        if _is_held(watched.path):
            self._find(run_id)
        else:
            self._end(run_id)

    def _end(self, run_id: str) -> None:
        self.unwatch(run_id)
        self._on_end(run_id)

    def _release(self, watched: _Watched) -> None:
        if watched.word is not None:
            self._loop.remove_reader(watched.word.fileno())
            watched.word.close()
            watched.word = None
        if watched.fd is not None:
            self._loop.remove_reader(watched.fd)
            os.close(watched.fd)
            watched.fd = None
        if watched.timer is not None:
            watched.timer.cancel()
            watched.timer = None


def _is_held(path: AnyPath) -> bool:
    try:
        with held_lock(path) as free:
            return not free
    except FileNotFoundError:
        return False


def _may_start(path: AnyPath) -> bool:
    return os.path.isdir(path) and not any(os.path.exists(f"{path}/{name}") for name in _NEVER_STARTS)
