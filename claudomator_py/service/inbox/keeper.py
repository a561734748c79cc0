"""The inbox of the present configuration: one is watched at a time, and another configuration may bring another."""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from claudomator_py.core.settings import Inbox as InboxSettings
from claudomator_py.service.inbox.claims import Claims
from claudomator_py.service.inbox.inbox import Inbox, whole_path
from claudomator_py.service.inbox.refusals import Clean, Refusals, as_they_are
from claudomator_py.service.inbox.values import FolderStatus, Guard, Intake, TaskFormat
from claudomator_py.store.database import StoreUnavailable

log = logging.getLogger("claudomator.inbox")


class _Intake(Intake, Protocol):
    def keep_to(self, folders: Collection[str]) -> None: ...


class InboxKeeper:
    """Watches the folders that it was last told to. ``follow`` and ``stop`` from one thread, the rest from any.

    refusals: the files in them that are refused.
    """

    def __init__(
        self,
        intake: _Intake,
        taskfiles: TaskFormat,
        guarding: Callable[[InboxSettings], Guard],
        on_change: Callable[[], None],
        clean: Clean = as_they_are,
    ) -> None:
        """guarding: who is trusted by a configuration. clean: takes secrets out of what is said of a file."""
        self._intake = intake
        self._taskfiles = taskfiles
        self._guarding = guarding
        self._on_change = on_change
        self._followed: InboxSettings | None = None
        self._inbox: Inbox | None = None
        self._claims = Claims()
        self.refusals = Refusals(clean)

    def claim(self, wanted: InboxSettings) -> None:
        """Make sure that these folders are no other daemon's, before they are followed. Raises InboxInUse; then
        nothing has changed."""
        self._claims.take_all(map(whole_path, wanted.paths))

    def follow(self, wanted: InboxSettings) -> None:
        """Watch these folders from now on, and no others. Every file is looked at again in any case, since what is
        allowed may have changed. Blocks while a former inbox finishes the files in hand."""
        if self._inbox is not None and wanted == self._followed:
            self._inbox.rescan()
            return
        self.stop()
        try:
            self._intake.keep_to(wanted.paths)
        except StoreUnavailable as error:
            log.warning("what was accepted from other folders counts as present until the next start: %s", error)
        self._claims.keep_only(set(map(whole_path, wanted.paths)))
        self._followed = wanted
        self.refusals.clear()
        self._inbox = Inbox(
            wanted.paths,
            self._intake,
            self._taskfiles,
            after_accept=wanted.after_accept.value,
            on_change=self._on_change,
            guard=self._guarding(wanted),
            refusals=self.refusals,
            claim=self._claims.take,
        )
        self._inbox.start()

    def stop(self) -> None:
        """Watch nothing any more. What was claimed stays so until ``close``."""
        if self._inbox is not None:
            self._inbox.stop()

    def close(self) -> None:
        """Watch nothing any more, and leave the folders to others."""
        self.stop()
        self._claims.keep_only(())

    def looked(self) -> bool:
        """Whether each inbox was looked at since it is followed, so that it is known which files are gone."""
        status = self.status()
        return self._inbox is not None and all(folder.available or folder.problem for folder in status.values())

    def status(self) -> Mapping[str, FolderStatus]:
        """Each inbox, by path, as it was at its last scan."""
        return self._inbox.status() if self._inbox is not None else {}
