"""Readiness checks other than the store's: ticks, disk space, agents, and readable inboxes."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from claudomator_py.dispatch.reconciler import OverdueRequest
from claudomator_py.domain.health import CheckView, Trouble
from claudomator_py.domain.units import SECOND_MS, format_duration, format_instant, format_size, size_text
from claudomator_py.domain.wording import instant_text
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Item
from claudomator_py.ports import Clock
from claudomator_py.schema.agent_settings import no_agent_message
from claudomator_py.sources.inbox.ledger import FolderStatus

LATE_S = 60.0
"""Age of the last tick that counts as late. A tick takes milliseconds; one that cleans up after a lost run takes
seconds."""
_SHOWN_SUBFOLDERS = 5
_REMEDY = "see `dmesg` and the mount that it works on; if this lasts, restart the daemon: runs carry on without it"


class Pulse:
    """Tracks whether ticks complete. Its checks may be called from any thread.

    current: returns the item that the tick is working on. monotonic: in seconds; time asleep does not count.
    """

    def __init__(
        self, current: Callable[[], Item | None], clock: Clock, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._current = current
        self._clock = clock
        self._monotonic = monotonic
        self._round_s = monotonic()
        self.overdue: OverdueRequest | None = None
        """The oldest cancel or restart request that the last tick left untouched."""

    def came_round(self, overdue: OverdueRequest | None) -> None:
        """Note that a tick was completed."""
        self._round_s = self._monotonic()
        self.overdue = overdue

    def check(self) -> CheckView:
        """Return whether a tick completed recently and no cancel or restart request is overdue."""
        since_s = self._monotonic() - self._round_s
        if since_s > LATE_S:
            item = self._current()
            what = "" if item is None else f"; it is {item.activity.value} {item.name or item.id}"
            detail = f"no tick has completed for {format_duration(int(since_s) * SECOND_MS)}{what}"
            return CheckView(name="scheduler", ok=False, detail=detail, remedy=_REMEDY)
        if (left := self.overdue) is not None and self._clock() - left.since_ms > LATE_S * SECOND_MS:
            detail = f"that {left.name} is to be stopped was asked for at {left.since}, and nothing was done about it"
            return CheckView(name="scheduler", ok=False, detail=detail, remedy="restart the daemon, and report a bug")
        return CheckView(name="scheduler", ok=True, detail="the last tick was completed")

    @property
    def steady(self) -> bool:
        """Whether to tell the service manager that all is well."""
        return self.check().ok


def disk_check(state: Path, least: int) -> CheckView:
    """Return whether there is enough disk space to start runs. least: ``limits.min_free``, in bytes."""
    try:
        free = shutil.disk_usage(state).free
    except OSError as error:
        detail = f"the state folder {state} cannot be examined: {error.strerror}"
        return CheckView(name="disk", ok=False, detail=detail, remedy="check that its disk is mounted and readable")
    have = f"{size_text(free)} are free on the disk of the state folder"
    if free >= least:
        return CheckView(name="disk", ok=True, detail=have)
    detail = f"{have}, and nothing is started below {format_size(least)}"
    return CheckView(name="disk", ok=False, detail=detail, remedy="make room there, or lower limits.min_free")


def agent_check(registry: AgentRegistry, path: str, *, configured: bool) -> CheckView:
    """Return whether any agent is open to balancing.

    path: the PATH searched for programs. configured: whether the configuration has agents. If it does and none is open
    to balancing, that is intended and passes; a machine without any agent fails the check, but the daemon continues.
    """
    names = [agent.name for agent in registry.agents if agent.auto_select]
    if not names and not configured:
        remedy = (
            "install one and log in, or name its program under agents in the configuration; until then, tasks that "
            "name no agent wait; `claudomator doctor` shows the PATH that was searched (a service has that of its unit)"
        )
        return CheckView(name="agents", ok=False, detail=no_agent_message(path), remedy=remedy, blocking=False)
    detail = f"for tasks that name none: {', '.join(names)}" if names else "each for tasks that name it, as configured"
    return CheckView(name="agents", ok=True, detail=detail, blocking=False)


def trouble_check(name: str, trouble: Trouble | None, instead: str, remedy: str) -> list[CheckView]:
    """Return a failed check while an optional service does not answer. instead: what is done without it."""
    if trouble is None:
        return []
    since = instant_text(format_instant(trouble.since_ms))
    detail = f"{trouble.problem}; since {since} {instead}"
    return [CheckView(name=name, ok=False, detail=detail, remedy=remedy, blocking=False)]


def inbox_checks(status: Mapping[str, FolderStatus]) -> list[CheckView]:
    """Return whether each inbox can be read."""
    return [_inbox_check(path, folder) for path, folder in sorted(status.items())]


def card_folder_checks(status: Mapping[str, FolderStatus]) -> list[CheckView]:
    """Return whether each folder of specialists can be read. Nothing waits for its first scan, so none of them
    blocks."""
    checks = []
    for path, folder in sorted(status.items()):
        check = _inbox_check(path, folder, "specialists")
        if folder.problem is None:
            check = CheckView(name=check.name, ok=True, detail=check.detail)
        checks.append(check.model_copy(update={"blocking": False}))
    return checks


def _inbox_check(path: str, folder: FolderStatus, name: str = "inbox") -> CheckView:
    if folder.problem is not None:
        detail, remedy = f"{path}: {folder.problem.message}", folder.problem.remedy
        return CheckView(name=name, ok=False, detail=detail, remedy=remedy)
    if not folder.available:
        return CheckView(name=name, ok=False, detail=f"{path}: it was not looked at yet", remedy="wait a moment")
    detail = f"{path}: files accepted: {folder.files}, refused: {folder.refused}"
    if folder.subfolders:
        detail += f"; subfolders are not searched: {', '.join(folder.subfolders[:_SHOWN_SUBFOLDERS])}"
    return CheckView(name=name, ok=True, detail=detail)
