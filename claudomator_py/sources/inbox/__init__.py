"""The watched folder: events in the inbox folders become calls on an intake.

What follows from each event:

- **Written.** A file is read only when no program has it open for writing (checked by a kernel read lease), and
  accepted only if its stamp (mtime, size, inode) is the same before and after. Where leases are not reliable, for
  instance on network file systems, it must not have changed for a second; the same applies to an empty file. A file
  written by opening it several times is complete each time it is closed: it is accepted, and replaced by its next
  state.
- **Changed.** After its stamp has changed a file is read and offered again; the intake compares contents. A file is
  offered whole. Changes that do not affect the stamp, right after a reading, are found by a second check.
- **Refused.** Every problem is in ``refusals`` and in ``<file>.error.txt``, which is removed once the file is valid or
  gone. Whatever was accepted from the file before stays as it is. Deleting the error file has no effect. Refusals are
  not remembered across a restart; the file is read again. What the intake refused is offered again whenever other files
  change, and by every rescan.
- **Deleted.** A file missing for half a second is gone, provided the inbox itself can be read; at the start,
  immediately.
- **Renamed.** A file that is missing and appears with the same stamp under another name is the same file: nothing is
  gone, and what it became is known under the new path. Any other file is identified by its path alone.
- **One after the other.** A file is accepted at once, and files that arrive meanwhile come next; nothing starts before
  a whole burst is accepted, see ``Burst``. A file that comes alone is accepted by the tick that starts its task.
- **Very many.** A survey of everything only determines which files must be examined. They are read in steps of a
  fraction of a second; new events come first, and a stop waits for at most one step.
- **Exposed.** An inbox that an untrusted user could write to or replace is not read, and a file that such a user could
  have written is refused. A hard link is a file like any other: only a trusted user can have created it.
- **Unavailable.** While an inbox does not exist or cannot be read, nothing in it is gone, and it is looked for every
  second. If a different file system appears in its place, what was accepted from the former one is neither present nor
  gone. An inbox missing at the start is created if its parent folder exists; later it is not, as it may be unmounted.
- **Not a file.** A folder, pipe, socket or device with the name of a task file is refused without being opened, and so
  is a link that leads out of the inbox. Subfolders are not searched. Names beginning with ``.``, ``#`` or ``~`` are
  ignored.
- **``after_accept: move``.** See ``archive``.

File system events say where to look; a rescan of everything finds what they missed.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.settings import Inbox as InboxSettings
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox.arrivals import Burst
from claudomator_py.sources.inbox.claims import Claims
from claudomator_py.sources.inbox.folder import FolderScan, is_examined
from claudomator_py.sources.inbox.ledger import (
    TASK_FILES,
    AfterAccept,
    FileFormat,
    FolderStatus,
    Intake,
    ScanReport,
    drop_other_folders,
)
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.sources.inbox.scanner import Scanner
from claudomator_py.sources.inbox.watch import Watcher
from claudomator_py.store.database import StoreUnavailable

Names = dict[str, None] | None  # names in one folder, in the order of their events; None for all

_LOOK_FOR_LOST_S = 1.0
_RETRY_S = (1.0, 30.0)
_RESCAN_SHARE = 0.0005
"""The share of a CPU that rescans of watched folders may take, unless they were more than ten times rarer."""
_MAX_RESCAN_FACTOR = 10
_STOP_S = 30.0

log = logging.getLogger("claudomator.inbox")


def absolute_path(path: str | os.PathLike[str]) -> str:
    """Return an inbox's path in the form in which it is watched and claimed: absolute, without ``..`` and ``~``; links
    stay."""
    return os.path.normpath(Path(path).expanduser().absolute())


class InboxWatcher:
    """Watches the folders from a thread of its own. Thread-safe."""

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        intake: Intake[Any],
        *,
        after_accept: AfterAccept = "keep",
        on_change: Callable[[], None],
        guard: InboxGuard,
        rescan_s: float = 30.0,
        refusals: Refusals | None = None,
        claim: Callable[[str], Problem | None] = lambda _: None,
        file_format: FileFormat = TASK_FILES,
    ) -> None:
        """on_change: called on the scanning thread after tasks, problems or availability have changed. rescan_s:
        seconds between rescans of everything; up to ten times as many if one takes long. refusals: where to record
        refusals. claim: returns why the folder at that path is not this daemon's to watch, or None."""
        self._paths = tuple(dict.fromkeys(map(absolute_path, paths)))
        self._on_change = on_change
        self._rescan_s = rescan_s
        self._stop = threading.Event()
        self.refusals = Refusals() if refusals is None else refusals
        folders = [
            FolderScan(path, intake, after_accept, self._stop.is_set, self.refusals, claim, guard, file_format)
            for path in self._paths
        ]
        self._scanner = Scanner(folders, intake, self._stop.is_set)
        self._thread: threading.Thread | None = None
        self._watcher: Watcher | None = None
        self._watched: dict[str, tuple[int, int]] = {}
        self._unreported = False
        """True if there is a change that has not been reported yet."""
        # The attributes below are guarded by the condition.
        self._wake = threading.Condition()
        self._dirty: dict[str, Names] = {}
        self._burst = Burst()
        self._watch_anew = False
        self._due: dict[str, dict[str, float]] = {}
        self._offer_all = False
        self._status = self._scanner.status()

    def start(self) -> None:
        """Examine everything, then watch, in the background."""
        self._thread = threading.Thread(target=self._run, name="claudomator-inbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the files in progress; the next start finds the rest. Cannot be started again."""
        self._stop.set()
        with self._wake:
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(_STOP_S)
        if self._watcher is not None:
            self._watcher.close()

    def rescan(self) -> None:
        """Rescan everything soon, for example after a change of the configuration."""
        with self._wake:
            self._dirty = dict.fromkeys(self._paths)
            self._offer_all = True
            self._wake.notify_all()

    @property
    def arriving(self) -> bool:
        """True if a file that has just arrived was not accepted yet, or another one may follow those that were: it may
        be more urgent than they are. See ``Burst``."""
        return time.monotonic() < self._burst.over_at

    def status(self) -> Mapping[str, FolderStatus]:
        """Return the status of each inbox at its last scan, by path."""
        with self._wake:
            return dict(self._status)

    # --- scanning ---

    def _scan(self, scan: Callable[[], ScanReport]) -> None:
        try:
            scan()
        finally:
            self._unreported |= self._scanner.changed
            self._publish()
            if self._unreported and not self.arriving:
                self._unreported = False
                self._notify()

    def hand_over(self, submit: Callable[[], None]) -> bool:
        """Have the next tick do what ``submit`` queues, if it is to start the task at once: return False, without
        calling that, if more files are arriving. Call it on the scanning thread."""
        with self._wake:
            if self._dirty or self._burst.is_several or self._stop.is_set():
                return False
            self._burst.taken()
        submit()
        self._notify()
        return True

    def _publish(self) -> None:
        status, due = self._scanner.status(), self._scanner.due()
        with self._wake:
            self._status, self._due = status, due
            self._wake.notify_all()

    def _look_at(self, names: Mapping[str, Iterable[str]]) -> ScanReport:
        """Examine these names in these folders, and some of those still to be examined."""
        try:
            return self._scanner.step(names)
        finally:
            with self._wake:
                if not self._dirty:
                    self._burst.taken()

    def _notify(self) -> None:
        try:
            self._on_change()
        except Exception:
            log.exception("reporting a change in the inbox failed")

    # --- the thread ---

    def _run(self) -> None:
        shortest, longest = _RETRY_S
        failures = 0
        wanted: dict[str, Names] = dict.fromkeys(self._paths)
        rescan_at = pause_until = 0.0
        while not self._stop.is_set():
            whole = [path for path in self._paths if path in wanted and wanted[path] is None]
            everything = len(whole) == len(self._paths)
            begun_s = time.thread_time()
            try:
                # Anything that arrived before the watch was set is found by the survey after it.
                if whole := list(dict.fromkeys([*whole, *self._watch(again=everything)])):
                    offer_all, self._offer_all = self._offer_all and everything, False
                    self._scan(partial(self._scanner.survey, whole, offer_all=offer_all))
                self._scan(partial(self._look_at, {path: names for path, names in wanted.items() if names}))
                self._queue_unwatched()
            except Exception as error:
                delay = min(longest, shortest * 2 ** min(failures, 8))
                is_new = failures == 0 and not isinstance(error, StoreUnavailable)
                log.warning("scanning the inbox failed; again in %.0f s: %s", delay, error, exc_info=is_new)
                failures += 1
                pause_until = time.monotonic() + delay
                rescan_at = pause_until
            else:
                failures = 0
                if everything:
                    rescan_at = time.monotonic() + self._rescan_pause_s(time.thread_time() - begun_s)
            wanted = self._await(pause_until, rescan_at)

    def _rescan_pause_s(self, rescan_took_s: float) -> float:
        """Return the seconds until the next rescan: as configured if no watch finds files meanwhile."""
        if self._watcher is None or not self._watcher.alive:
            return self._rescan_s
        return min(max(self._rescan_s, rescan_took_s / _RESCAN_SHARE), _MAX_RESCAN_FACTOR * self._rescan_s)

    def _await(self, pause_until: float, rescan_at: float) -> dict[str, Names]:
        """Sleep until there is something to examine, and return it; empty if earlier files must still be read, or a
        burst has ended that was not reported yet. Times are ``time.monotonic()``."""
        with self._wake:
            lost = [path for path, folder in self._status.items() if not folder.available]
            look_for_lost = time.monotonic() + _LOOK_FOR_LOST_S
            while not self._stop.is_set():
                now = time.monotonic()
                if now >= rescan_at:
                    self._dirty.clear()
                    return dict.fromkeys(self._paths)
                wake_at = pause_until
                if now >= pause_until:
                    for path, due in self._due.items():
                        self._queue(path, [name for name, at in due.items() if at <= now])
                    if now >= look_for_lost:
                        for path in lost:
                            self._queue(path, None)
                    if self._dirty or self._scanner.unread or (self._unreported and not self.arriving):
                        wanted, self._dirty = self._dirty, {}
                        return wanted
                    dues = [at for due in self._due.values() for at in due.values()]
                    report_at = [self._burst.over_at] if self._unreported else []
                    wake_at = min([rescan_at, *dues, *report_at, *([look_for_lost] if lost else [])])
                self._wake.wait(max(0.001, wake_at - now))
            return {}

    def _queue(self, path: str, names: Iterable[str] | None) -> None:
        """Queue these names, or everything if None, in this order; the caller holds the condition."""
        known = self._dirty.get(path, {})
        if names is None or known is None:
            self._dirty[path] = None
        elif more := dict.fromkeys(names):
            self._dirty[path] = known | more

    # --- watching ---

    def _watch(self, *, again: bool) -> Iterable[str]:
        """Set watches on the folders that exist; returns those with a new watch. again: retry after a failure."""
        entries = {}
        for path in self._paths:
            try:
                stat = os.stat(path)  # noqa: PTH116 - before every scan, and pathlib takes ten times as long
            except OSError:
                continue
            entries[path] = (stat.st_dev, stat.st_ino)
        with self._wake:
            anew, self._watch_anew = self._watch_anew, False
        failed = bool(entries) and (self._watcher is None or not self._watcher.alive)
        if entries == self._watched and not anew and not (failed and again):
            return ()
        former, self._watcher, self._watched = self._watcher, None, entries
        try:
            if entries:
                self._watcher = Watcher(entries, self._on_names, self._on_lost)
        except FileNotFoundError:
            self._watched = {}
        except Exception as error:
            log.warning("cannot watch the inbox, only the rescan finds files: %s", error)
        finally:
            if former is not None:
                former.close()
        return self._watched

    def _queue_unwatched(self) -> None:
        """Queue folders that were missing when the watch was set but present for the scan, as they may change
        unnoticed."""
        with self._wake:
            for path, folder in self._status.items():
                if folder.available and path not in self._watched:
                    self._queue(path, None)

    def _on_names(self, folder: str, names: Iterable[str]) -> None:
        wanted = [name for name in names if is_examined(name)]
        with self._wake:
            self._queue(folder, wanted)
            now = time.monotonic()
            for name in wanted:
                self._burst.came(f"{folder}/{name}", now)
            self._wake.notify_all()

    def _on_lost(self, folders: set[str], set_again: bool) -> None:
        with self._wake:
            self._watch_anew |= set_again
            for folder in folders:
                self._queue(folder, None)
            self._wake.notify_all()


class ConfiguredInbox:
    """Watches the folders most recently passed to ``follow``. Call ``follow`` and ``stop`` from one thread, the rest
    from any. refusals: the refused files in these folders."""

    def __init__(
        self,
        intake: Intake[Any],
        guarding: Callable[[InboxSettings], InboxGuard],
        on_change: Callable[[], None],
        refusals: Refusals,
        file_format: FileFormat = TASK_FILES,
        *,
        claims: bool = True,
    ) -> None:
        """guarding: returns whom a configuration trusts. refusals: where to record refusals. claims: True if the
        folders are exclusive to this daemon."""
        self._intake = intake
        self._guarding = guarding
        self._on_change = on_change
        self._followed: InboxSettings | None = None
        self._inbox: InboxWatcher | None = None
        self._claims = Claims()
        self.refusals = refusals
        self._format = file_format
        self._claiming = claims

    def claim(self, wanted: InboxSettings) -> None:
        """Ensure, before these folders are followed, that no other daemon has them. Raises InboxInUse, having changed
        nothing."""
        self._claims.take_all(map(absolute_path, wanted.paths))

    def follow(self, wanted: InboxSettings) -> None:
        """Watch these folders from now on, and no others. Every file is examined again in any case, since what is
        allowed may have changed. Blocks while a former inbox finishes the files in progress."""
        if self._inbox is not None and wanted == self._followed:
            self._inbox.rescan()
            return
        self.stop()
        try:
            drop_other_folders(self._intake, wanted.paths)
        except StoreUnavailable as error:
            log.warning("what was accepted from other folders counts as present until the next start: %s", error)
        self._claims.keep_only(set(map(absolute_path, wanted.paths)))
        former, self._followed = self._followed, wanted
        self.refusals.forget(() if former is None else map(absolute_path, former.paths))
        self._inbox = InboxWatcher(
            wanted.paths,
            self._intake,
            after_accept=wanted.after_accept.value,
            on_change=self._on_change,
            guard=self._guarding(wanted),
            refusals=self.refusals,
            claim=self._claims.take if self._claiming else lambda _: None,
            file_format=self._format,
        )
        self._inbox.start()

    def stop(self) -> None:
        """Stop watching. Claims are kept until ``close``."""
        if self._inbox is not None:
            self._inbox.stop()

    def close(self) -> None:
        """Stop watching, and release the folders for other daemons."""
        self.stop()
        self._claims.keep_only(())

    def arriving(self) -> bool:
        """Return whether a file has just arrived that was not accepted yet; see ``InboxWatcher.arriving``."""
        return self._inbox is not None and self._inbox.arriving

    def hand_over(self, submit: Callable[[], None]) -> bool:
        """See ``InboxWatcher.hand_over``."""
        return self._inbox is not None and self._inbox.hand_over(submit)

    def is_surveyed(self) -> bool:
        """Return whether each inbox has been examined since it is followed, so that it is known which files are
        gone."""
        status = self.status()
        return self._inbox is not None and all(folder.available or folder.problem for folder in status.values())

    def status(self) -> Mapping[str, FolderStatus]:
        """Return the status of each inbox at its last scan, by path."""
        return self._inbox.status() if self._inbox is not None else {}
