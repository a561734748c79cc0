"""Faults stay where they are: what is done for one task, run or file may fail without keeping anything else waiting.

Each such piece of work is an *item*. What it raises is noted, logged once as long as it stays the same, shown to the
operator, and tried again after a pause that grows. A store that is not available is no item's fault: it is raised.
"""

import errno
import threading
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from structlog.stdlib import BoundLogger

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.run import RunConflict
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.domain.worktree import TreeBusy
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.store.errors import explain
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.values import dataclass

log = get_logger("claudomator.faults")

T = TypeVar("T")

CHECK = "faults"
SHOWN = 20
LASTING_FROM = 2
_TEXT = 500
_SHAPES = Redactor()
_PACKAGE = Path(__file__).parent


class Activity(StrEnum):
    """What is done for one item, as it is said of the item's name."""

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
    "WAITING": (Activity.READY, Activity.CANCEL),
    "QUEUED": (Activity.START, Activity.ROUTE, Activity.CLASSIFY, Activity.CANCEL),
    "NEEDS_INPUT": (Activity.CANCEL,),
    "RUNNING": (Activity.COLLECT, Activity.STOP),
}
"""What can fail for a task, by its state."""

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
"""The first pause and the longest, in milliseconds; it doubles in between."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is done beside others."""

    doing: Activity
    id: str
    """Of the task, run, directory or schedule; it identifies the item together with what is done."""
    name: str = field(default="", compare=False)
    """What it is, for people."""
    task_id: str | None = field(default=None, compare=False)
    content: str = field(default="", compare=False)
    """What the work depends on; when it has changed, former faults say nothing any more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What an item raised last."""

    item: Item
    text: str
    remedy: str
    times: int
    """How many times in a row."""
    since_ms: int
    """When it was met first, in milliseconds since the epoch."""
    again_ms: int
    """When it is tried again, in milliseconds since the epoch."""
    own: bool = True
    """Whether the item itself is at fault, as far as one can tell."""
    blocking: bool = False
    """Whether nothing else of its kind can be done either, as the machine or the state folder is at fault."""

    @property
    def lasting(self) -> bool:
        """Whether it is worth an operator's time; one that is gone at the second attempt is in the log only."""
        return self.times >= LASTING_FROM

    @property
    def blocked(self) -> Blocked:
        """It as what stands in the way of its task."""
        return blocked(
            BlockCode.FAULT,
            doing=self.item.doing.value,
            task=self.item.name or self.item.id,
            times=self.times if self.times > 1 else None,
            text=self.text,
            remedy=self.remedy or None,
            until=self.again_ms,
        )


def item_of(doing: Activity, task: Task) -> Item:
    """Return what is done for that task, in its present generation and with its present content."""
    return Item(doing, task.id, task.name, task.id, f"{task.generation}.{task.revision}")


class HostFault(Exception):
    """The machine or the state folder is at fault, and not the item: it is tried for as long as that takes."""


class UnreadableCard(Exception):
    """What is stored as the card of whoever does a task cannot be read."""


_NOBODYS = (HostFault, RunConflict, TreeBusy)
"""What is no fault of the item itself, and is waited for as long as that takes."""


class Faults:
    """The faults of the items that one thread works on. Only that thread attempts; any may note what has failed or is
    over of what is done beside it, and ask."""

    def __init__(self, clock: Clock, redact: Callable[[str], str] = _SHAPES.redact_piece) -> None:
        """redact: takes secrets out of what was raised, of which the end may be cut off."""
        self._clock = clock
        self._redact = redact
        self._lock = threading.Lock()
        self._faults: dict[Item, Fault] = {}
        self._doing: Item | None = None

    @property
    def doing(self) -> Item | None:
        """The item that is being worked on at this moment."""
        return self._doing

    def attempt(self, item: Item, work: Callable[[], T], *, whole: bool = True) -> T | None:
        """Return what work returns; None if it raised, or is in the pause after it did.

        whole: the item is done when work returns; else more of it follows, and its former faults still count. Raises
        StoreUnavailable.
        """
        if self.is_paused(item, self._clock()):
            return None
        outer, self._doing = self._doing, item
        try:
            result = work()
        except VersionConflict:
            log.debug("task_changed_meanwhile", task_id=item.task_id)
            return None
        except Exception as error:
            # Within a transaction the database's own trouble is not told as StoreUnavailable yet.
            if explain(error) is not None:
                raise
            self.note(item, error)
            return None
        finally:
            self._doing = outer
        if whole:
            self.over(item)
        return result

    def note(self, item: Item, error: Exception) -> Fault:
        """Record that the item has failed again. Logged when it is new, or another fault than before."""
        now_ms, before = self._clock(), self.find(item)
        text = self._redact(error_text(error))
        times = 1 if before is None else before.times + 1
        first_ms, longest_ms = _PAUSES.get(item.doing, _QUICK)
        pause_ms = min(longest_ms, first_ms << min(times - 1, 20))
        since_ms = now_ms if before is None else before.since_ms
        own, blocking = not isinstance(error, _NOBODYS), isinstance(error, HostFault)
        fault = Fault(item, text, remedy_of(error), times, since_ms, now_ms + pause_ms, own, blocking)
        with self._lock:
            self._faults[item] = fault
        if before is None or before.text != text:
            trace = None if _is_known(error) else error
            _log_of(item).error("item_failed", doing=item.doing.value, problem=text, exc_info=trace)
        return fault

    def over(self, item: Item) -> None:
        """Forget what was wrong with the item: it is done."""
        if not self._faults:
            return
        with self._lock:
            fault = self._faults.pop(item, None)
        if fault is not None:
            _log_of(item).info("item_recovered", doing=item.doing.value, failed=fault.times)

    def forget(self, items: Iterable[Item]) -> None:
        """Forget these: there is nothing left to do for them."""
        if not self._faults:
            return
        with self._lock:
            for item in items:
                self._faults.pop(item, None)

    def forget_others(self, doing: Activity, ids: Collection[str]) -> None:
        """Forget all other items of what is done there: only these are left."""
        self.forget(fault.item for fault in self.all() if fault.item.doing is doing and fault.item.id not in ids)

    def find(self, item: Item) -> Fault | None:
        """Return the fault of that item, unless its content has changed since."""
        fault = self._faults.get(item)
        return None if fault is None or fault.item.content != item.content else fault

    def is_paused(self, item: Item, now_ms: int) -> bool:
        """Return whether it is in the pause after a fault."""
        fault = self.find(item)
        return fault is not None and now_ms < fault.again_ms

    def all(self) -> list[Fault]:
        """Return every fault, the oldest first."""
        if not self._faults:
            return []
        with self._lock:
            return sorted(self._faults.values(), key=lambda fault: fault.since_ms)

    def of_task(self, task: Task) -> Fault | None:
        """Return what fails for the task in its present state and with its present content; the one that is tried
        last."""
        if not (doing := _WHILE.get(task.state)):
            return None
        faults = [fault for fault in self.all() if fault.item.task_id == task.id and fault.item.doing in doing]
        content = item_of(Activity.START, task).content
        of_now = (fault for fault in faults if fault.item.content in ("", content))
        return max(of_now, key=lambda fault: fault.again_ms, default=None)

    def next_ms(self, after_ms: int) -> int | None:
        """Return when the next attempt is due, in epoch milliseconds."""
        return min((fault.again_ms for fault in self.all() if fault.again_ms > after_ms), default=None)


def checks(faults: Iterable[Fault]) -> list[CheckView]:
    """Return what readiness says of them."""
    lasting = [fault for fault in faults if fault.lasting]
    if not lasting:
        return [CheckView(name=CHECK, ok=True, detail="nothing fails repeatedly", blocking=False)]
    found = [
        CheckView(name=CHECK, ok=False, detail=_detail(fault), remedy=fault.remedy, blocking=fault.blocking)
        for fault in lasting[:SHOWN]
    ]
    more = len(lasting) - SHOWN
    if more > 0:
        detail = f"{more} more {'item fails' if more == 1 else 'items fail'} like these"
        found.append(CheckView(name=CHECK, ok=False, detail=detail, remedy="see the daemon's log", blocking=False))
    return found


def _detail(fault: Fault) -> str:
    """What fails, how often it did, and why. A check has its remedy beside it."""
    return blocked_text(fault.blocked.having(remedy=None, until=None))


def error_text(error: BaseException) -> str:
    """Return the error in one line, with the path or the line of this program that it is about."""
    if isinstance(error, HostFault) and error.__cause__ is not None:
        return error_text(error.__cause__)
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        text = f"{' -> '.join(names)}: {error.strerror}" if names else error.strerror
    else:
        text = str(error) or type(error).__name__
    if not _is_known(error):
        text = f"{type(error).__name__}: {text}{_place(error)}"
    text = " ".join(text.split())
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 3]}..."


_REMEDIES = {
    errno.ELOOP: "remove the loop of symbolic links",
    errno.EACCES: "give the daemon's user access to it",
    errno.EPERM: "give the daemon's user rights to it, or do it as its owner",
    errno.ENOSPC: "make room on that disk",
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
    """Return what an operator can do about it."""
    if isinstance(error, HostFault) and error.__cause__ is not None:
        return remedy_of(error.__cause__)
    if isinstance(error, RunConflict):
        return "wait for the end of that run, or end it"
    if isinstance(error, TreeBusy):
        return "wait for the end of the git that works on it, or end it"
    if isinstance(error, UnreadableCard):
        return "register that card again, or have another specialist do it"
    if isinstance(error, OSError):
        return _REMEDIES.get(error.errno or 0, "check that path; it is tried again by itself")
    if isinstance(error, RuntimeError) and "symlink loop" in str(error).lower():
        return _REMEDIES[errno.ELOOP]
    return "this is a bug: report it with the traceback in the daemon's log"


def _is_known(error: BaseException) -> bool:
    """Whether the message alone says what is wrong; else the log needs the traceback."""
    loop = isinstance(error, RuntimeError) and "symlink loop" in str(error).lower()
    return isinstance(error, OSError | HostFault | RunConflict | TreeBusy | UnreadableCard) or loop


def _place(error: BaseException) -> str:
    """The last line of this program that the error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{_PACKAGE}/")]
    return f" ({Path(frames[-1].filename).relative_to(_PACKAGE)}:{frames[-1].lineno})" if frames else ""


def _log_of(item: Item) -> BoundLogger:
    fields = {"task_id": item.task_id, "task" if item.task_id else "item": item.name or item.id}
    return log.bind(**{name: value for name, value in fields.items() if value})
