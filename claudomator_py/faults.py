"""Fault isolation: work on one task, run or file can fail without holding up the rest.

Each such piece of work is an *item*. Its exception is recorded, logged once for as long as it stays the same, shown to
the operator, and the item is retried after a growing pause. An unavailable store is not an item's fault and is raised.
"""

import errno
import threading
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.domain.worktree import TreeBusy
from claudomator_py.log import FieldLogger, get_logger
from claudomator_py.ports import Clock
from claudomator_py.store import explain
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.texts import cut_line
from claudomator_py.values import dataclass

log = get_logger("claudomator.faults")

T = TypeVar("T")

CHECK = "faults"
SHOWN = 20
LASTING_FROM = 2
_TEXT = 500
_PATTERNS = Redactor()
_PACKAGE = Path(__file__).parent


class Activity(StrEnum):
    """What is being done for an item, worded to precede the item's name."""

    START = "starting"
    CLASSIFY = "asking for the tier of"
    ROUTE = "routing"
    COLLECT = "reading the run of"
    STOP = "stopping the run of"
    CANCEL = "cancelling"
    READY = "queueing"
    SWEEP = "removing the run directory"
    LIMITS = "looking for runs that test a limit"
    SCHEDULE = "creating the task of schedule"
    CLEAN = "cleaning up"
    PRUNE = "pruning"


_WHILE = {
    "WAITING": (Activity.READY, Activity.START, Activity.CANCEL),
    "QUEUED": (Activity.START, Activity.ROUTE, Activity.CLASSIFY, Activity.CANCEL),
    "NEEDS_INPUT": (Activity.CANCEL,),
    "RUNNING": (Activity.COLLECT, Activity.STOP),
}
"""Activities that can fail for a task, by the task's state."""

_SLOW = (5 * SECOND_MS, 10 * MINUTE_MS)
_QUICK = (SECOND_MS, MINUTE_MS)
_SLOWEST = (MINUTE_MS, HOUR_MS)
_PAUSES = {
    Activity.START: _SLOW,
    Activity.CLASSIFY: _SLOW,
    Activity.ROUTE: _SLOW,
    Activity.SWEEP: _SLOWEST,
    Activity.CLEAN: _SLOWEST,
}
"""First and longest pause in milliseconds; the pause doubles in between."""


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of work that can fail independently of others."""

    activity: Activity
    id: str
    """Id of the task, run, directory or schedule; with ``activity`` it identifies the item."""
    name: str = field(default="", compare=False)
    """Display name."""
    task_id: str | None = field(default=None, compare=False)
    content: str = field(default="", compare=False)
    """What the work depends on; once this changes, earlier faults no longer apply."""


@dataclass(frozen=True, slots=True)
class ItemFault:
    """The last exception that an item raised."""

    item: Item
    text: str
    remedy: str
    times: int
    """Consecutive failures."""
    since_ms: int
    """Time of the first failure, in milliseconds since the epoch."""
    last_ms: int
    """Time of the last failure, in milliseconds since the epoch."""
    again_ms: int
    """Time of the next attempt, in milliseconds since the epoch."""
    own: bool = True
    """True if the item itself appears to be at fault."""
    blocking: bool = False
    """True if nothing else of its kind can work either, because the machine or the state folder is at fault."""

    @property
    def lasting(self) -> bool:
        """True if the fault is worth an operator's attention; one that is gone on the second attempt is only logged."""
        return self.times >= LASTING_FROM

    @property
    def blocked(self) -> Blocked:
        """The fault as the reason why its task is blocked."""
        return blocked(
            BlockCode.FAULT,
            doing=self.item.activity.value,
            task=self.item.name or self.item.id,
            times=self.times if self.times > 1 else None,
            text=self.text,
            remedy=self.remedy or None,
            until=self.again_ms,
        )


def item_of(activity: Activity, task: Task) -> Item:
    """Return the item for this activity on the task, at the task's current generation and content."""
    return Item(activity, task.id, task.name, task.id, f"{task.generation}.{task.revision}")


class HostFault(Exception):
    """The machine or the state folder is at fault, not the item: it is retried for as long as that takes."""


class UnreadableCard(Exception):
    """The stored card of the specialist that does a task cannot be read."""


_NOBODYS = (HostFault, RunConflict, TreeBusy)
"""Exceptions that are not the item's own fault; the item waits for as long as they last."""


class Faults:
    """The faults of the items that one thread works on. Only that thread calls ``attempt``; any thread may record or
    clear faults of work done elsewhere, and query them."""

    def __init__(self, clock: Clock, redact: Callable[[str], str] = _PATTERNS.redact_piece) -> None:
        """redact: removes secrets from an error text, which may have been cut off at its end."""
        self._clock = clock
        self._redact = redact
        self._lock = threading.Lock()
        self._faults: dict[Item, ItemFault] = {}
        self._current: Item | None = None

    @property
    def current(self) -> Item | None:
        """The item being worked on right now."""
        return self._current

    def attempt(self, item: Item, work: Callable[[], T], *, whole: bool = True) -> T | None:
        """Return the result of ``work``; None if it raised or the item is pausing after a fault.

        whole: the item is done when ``work`` returns; otherwise more of it follows, and earlier faults still count.
        Raises StoreUnavailable.
        """
        if self._faults and self.is_paused(item, self._clock()):
            return None
        outer, self._current = self._current, item
        try:
            result = work()
        except VersionConflict:
            log.debug("task_changed_meanwhile", task_id=item.task_id)
            return None
        except Exception as error:
            # Inside a transaction the database's own errors have not been turned into StoreUnavailable yet.
            if explain(error) is not None:
                raise
            self.note(item, error)
            return None
        finally:
            self._current = outer
        if whole:
            self.clear(item)
        return result

    def note(self, item: Item, error: Exception) -> ItemFault:
        """Record another failure of the item. Logs it if it is new or differs from the previous fault."""
        now_ms, before = self._clock(), self.find(item)
        text = self._redact(error_text(error))
        times = 1 if before is None else before.times + 1
        first_ms, longest_ms = _PAUSES.get(item.activity, _QUICK)
        pause_ms = min(longest_ms, first_ms << min(times - 1, 20))
        since_ms = now_ms if before is None else before.since_ms
        own, blocking = not isinstance(error, _NOBODYS), isinstance(error, HostFault)
        fault = ItemFault(item, text, remedy_of(error), times, since_ms, now_ms, now_ms + pause_ms, own, blocking)
        with self._lock:
            self._faults[item] = fault
        if before is None or before.text != text:
            trace = None if is_known(error) else error
            _log_of(item).error("item_failed", doing=item.activity.value, problem=text, exc_info=trace)
        return fault

    def clear(self, item: Item) -> None:
        """Clear the item's fault, as the item is done."""
        if not self._faults:
            return
        with self._lock:
            fault = self._faults.pop(item, None)
        if fault is not None:
            _log_of(item).info("item_recovered", doing=item.activity.value, failed=fault.times)

    def forget(self, items: Iterable[Item]) -> None:
        """Clear the faults of these items, for which nothing is left to do."""
        if not self._faults:
            return
        with self._lock:
            for item in items:
                self._faults.pop(item, None)

    def forget_others(self, activity: Activity, ids: Collection[str]) -> None:
        """Clear the faults of all items of this activity except those with these ids."""
        self.forget(fault.item for fault in self.all() if fault.item.activity is activity and fault.item.id not in ids)

    def find(self, item: Item) -> ItemFault | None:
        """Return the item's fault, unless the item's content has changed since."""
        fault = self._faults.get(item)
        return None if fault is None or fault.item.content != item.content else fault

    def is_paused(self, item: Item, now_ms: int) -> bool:
        """Return whether the item is pausing after a fault. A clock that was set back ends the pause."""
        fault = self.find(item)
        return fault is not None and fault.last_ms <= now_ms < fault.again_ms

    def all(self) -> list[ItemFault]:
        """Return every fault, oldest first."""
        if not self._faults:
            return []
        with self._lock:
            return sorted(self._faults.values(), key=lambda fault: fault.since_ms)

    def of_task(self, task: Task) -> ItemFault | None:
        """Return the fault of the task in its current state and content: of several, the one retried last."""
        if not (activities := _WHILE.get(task.state)):
            return None
        faults = [fault for fault in self.all() if fault.item.task_id == task.id and fault.item.activity in activities]
        content = item_of(Activity.START, task).content
        of_now = (fault for fault in faults if fault.item.content in ("", content))
        return max(of_now, key=lambda fault: fault.again_ms, default=None)

    def next_ms(self, after_ms: int) -> int | None:
        """Return when the next attempt is due, in epoch milliseconds."""
        return min((fault.again_ms for fault in self.all() if fault.again_ms > after_ms), default=None)


def checks(faults: Iterable[ItemFault]) -> list[CheckView]:
    """Return the readiness checks for these faults."""
    lasting = [fault for fault in faults if fault.lasting]
    if not lasting:
        return [CheckView(name=CHECK, ok=True, detail="nothing fails repeatedly", blocking=False)]
    checks = [
        CheckView(name=CHECK, ok=False, detail=_detail(fault), remedy=fault.remedy, blocking=fault.blocking)
        for fault in lasting[:SHOWN]
    ]
    more = len(lasting) - SHOWN
    if more > 0:
        detail = f"{more} more {'item fails' if more == 1 else 'items fail'} like these"
        checks.append(CheckView(name=CHECK, ok=False, detail=detail, remedy="see the daemon's log", blocking=False))
    return checks


def _detail(fault: ItemFault) -> str:
    """What fails, how often and why, without the remedy, which a check shows separately."""
    return blocked_text(fault.blocked.having(remedy=None, until=None))


def error_text(error: BaseException) -> str:
    """Return the error as one line, including the path or the line of this program that it concerns."""
    if isinstance(error, HostFault) and error.__cause__ is not None:
        return error_text(error.__cause__)
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        text = f"{' -> '.join(names)}: {error.strerror}" if names else error.strerror
    else:
        text = str(error) or type(error).__name__
    if not is_known(error):
        text = f"{type(error).__name__}: {text}{_place(error)}"
    return cut_line(text, _TEXT)


_REMEDIES = {
    errno.ELOOP: "remove the loop of symbolic links",
    errno.EACCES: "give the daemon's user access to it",
    errno.EPERM: "give the daemon's user rights to it, or do it as its owner",
    errno.ENOSPC: "make room on that disk, or remove files if it has space but no inodes (df -i)",
    errno.EDQUOT: "make room, or raise the disk quota of the daemon's user",
    errno.EROFS: "mount that file system for writing",
    errno.EIO: "check the disk or the mount that it is on",
    errno.ESTALE: "mount that file system again",
    errno.ENOTCONN: "mount that file system again",
    errno.ETIMEDOUT: "check the server of that file system",
    errno.EMFILE: "raise the limit of open files (LimitNOFILE) of the daemon",
    errno.ENFILE: "raise the system's limit of open files (fs.file-max)",
    errno.ENOMEM: "free memory on this machine",
    errno.EAGAIN: "raise the limit of processes (TasksMax, ulimit -u)",
    errno.E2BIG: "make the task's environment or its agent's arguments smaller",
    errno.ENOTEMPTY: "see what is in it, and remove it by hand",
    errno.EBUSY: "unmount what is mounted there",
}


def remedy_of(error: BaseException) -> str:
    """Return what an operator can do about the error."""
    if isinstance(error, HostFault) and error.__cause__ is not None:
        return remedy_of(error.__cause__)
    if isinstance(error, RunConflict):
        return "wait for the end of that run, or end it"
    if isinstance(error, TreeBusy):
        return "wait for the end of the git that works on it, or end it"
    if isinstance(error, UnreadableCard):
        return "register that card again, or have another specialist do it"
    if isinstance(error, OSError):
        otherwise = "see the daemon's log" if error.filename is None else "check that path"
        return _REMEDIES.get(error.errno or 0, otherwise)
    if isinstance(error, RuntimeError) and "symlink loop" in str(error).lower():
        return _REMEDIES[errno.ELOOP]
    return "this is a bug: report it with the traceback in the daemon's log"


def is_known(error: BaseException) -> bool:
    """Return whether the message alone explains the error; otherwise the log needs the traceback."""
    loop = isinstance(error, RuntimeError) and "symlink loop" in str(error).lower()
    if isinstance(error, OSError):
        return error.filename is not None or error.errno in _REMEDIES
    return isinstance(error, HostFault | RunConflict | TreeBusy | UnreadableCard) or loop


def _place(error: BaseException) -> str:
    """The innermost line of this package in the traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{_PACKAGE}/")]
    return f" ({Path(frames[-1].filename).relative_to(_PACKAGE)}:{frames[-1].lineno})" if frames else ""


def _log_of(item: Item) -> FieldLogger:
    fields = {"task_id": item.task_id, "task" if item.task_id else "item": item.name or item.id}
    return log.bind(**{name: value for name, value in fields.items() if value})
