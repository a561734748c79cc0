"""All inbox folders together: what is looked at next, and what one folder's changes mean for the others.

No thread of its own. What just happened is looked at before what was there already, in steps that end soon, so that
neither a stop nor a good file waits for thousands of bad ones.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from claudomator_py.domain.units import counted
from claudomator_py.sources.inbox.folder import CHUNK, FolderScan
from claudomator_py.sources.inbox.values import (
    FileStamp,
    FolderStatus,
    Intake,
    ScanReport,
)

_TELL_EVERY_S = 10.0

log = logging.getLogger("claudomator.inbox")


class Scanner:
    """The inbox folders. Not thread-safe.

    Whatever the intake raises comes through; a survey repairs what is left undone. After each call ``changed`` says
    whether anything changed that a person could see, even if it raised.
    """

    def __init__(
        self,
        folders: Iterable[FolderScan],
        intake: Intake[Any],
        stopped: Callable[[], bool],
    ) -> None:
        self._intake = intake
        self._stopped = stopped
        self._folders = {folder.path: folder for folder in folders}
        self._created = False
        self._known = False
        self._may_be_good = False
        self._progress = _ScanProgress()
        self.changed = False

    def survey(self, paths: Iterable[str], *, offer_all: bool = False) -> ScanReport:
        """Find out what is in these folders; ``step`` then looks at the files that need it.

        offer_all: look also at every file that the intake refused, as what is allowed may have changed.
        """
        if not self._created:
            self._created = True
            for folder in self._folders.values():
                folder.create()
        return self._do(lambda: self._each(paths, lambda folder: [folder.survey(offer_all=offer_all)]))

    def step(self, fresh: Mapping[str, Iterable[str]]) -> ScanReport:
        """Look at these names in these folders, if they are few, and at some that are still to be looked at."""
        return self._do(lambda: self._each(self._folders, lambda folder: self._step(folder, fresh)))

    @property
    def unread(self) -> int:
        """How many files ``step`` still has to look at."""
        return sum(folder.unread for folder in self._folders.values())

    def status(self) -> dict[str, FolderStatus]:
        """Return each folder, by path."""
        return {path: folder.status() for path, folder in self._folders.items()}

    def due(self) -> dict[str, dict[str, float]]:
        """Return when (``time.monotonic()``) to look at which name of which folder again."""
        return {path: due for path, folder in self._folders.items() if (due := folder.due())}

    def _step(self, folder: FolderScan, fresh: Mapping[str, Iterable[str]]) -> list[ScanReport]:
        names = list(fresh.get(folder.path, ()))
        reports = []
        if folder.unread > CHUNK and names:
            # Else there are so few that the order of arrival can be kept.
            reports.append(folder.scan(names[:CHUNK]))
            self.changed |= folder.changed
            names = names[CHUNK:]
        folder.read_later(names)
        if folder.unread or names:
            reports.append(folder.step())
        if folder.flooded:
            # A good file among very many bad ones is most likely one of the last.
            self.changed |= folder.changed
            reports.append(folder.step(newest=True))
        return reports

    def _do(self, work: Callable[[], list[ScanReport]]) -> ScanReport:
        self.changed = False
        try:
            self._remember()
            reports = work()
            reports += self._offer_again(reports)
        except BaseException:
            # How far the intake came before it failed is not known here: ask it.
            self._known = False
            raise
        report = merged(reports)
        self._progress.tell(report, self.unread)
        return report

    def _remember(self) -> None:
        if self._known:
            return
        known: dict[str, dict[str, FileStamp]] = {path: {} for path in self._folders}
        for path, stamp in self._intake.known_files().items():
            folder, name = os.path.split(path)
            if folder in known:
                known[folder][name] = stamp
        for path, files in known.items():
            self._folders[path].remember(files)
        self._known = True

    def _each(self, paths: Iterable[str], work: Callable[[FolderScan], list[ScanReport]]) -> list[ScanReport]:
        """Do this in every folder, even if one fails; then raise what failed first."""
        reports: list[ScanReport] = []
        failure: Exception | None = None
        for path in paths:
            if self._stopped():
                break
            folder = self._folders[path]
            try:
                reports += work(folder)
            except Exception as error:
                failure = failure or error
            self.changed |= folder.changed
        if failure is not None:
            raise failure
        return reports

    def _offer_again(self, reports: Sequence[ScanReport]) -> list[ScanReport]:
        """What the intake refused may be good now that something else changed: a name is free, say. Or now that another
        was refused: two that name each other are good together."""
        more: list[ScanReport] = []
        self._may_be_good |= _has_changed(reports) or any(report.refused for report in reports)
        while self._may_be_good and not self.unread and not self._stopped():
            offered = [self._each([path], _offer) for path in self._folders]
            more += chain.from_iterable(offered)
            self._may_be_good = any(map(_has_changed, offered))
        return more


def _offer(folder: FolderScan) -> list[ScanReport]:
    names = folder.offerable()
    return [folder.scan(names)] if names else []


def _has_changed(reports: Iterable[ScanReport]) -> bool:
    return any(report.accepted or report.gone for report in reports)


class _ScanProgress:
    """Tells of what was done: when all of it is done, and now and then before."""

    def __init__(self) -> None:
        self._counts = [0, 0, 0]  # accepted, refused, gone
        self._told_s = time.monotonic()

    def tell(self, report: ScanReport, unread: int) -> None:
        """unread: how many files are still to be looked at."""
        new = report.accepted, report.refused, report.gone
        self._counts = [count + len(paths) for count, paths in zip(self._counts, new, strict=True)]
        if not any(self._counts):
            return
        now = time.monotonic()
        if unread and now - self._told_s < _TELL_EVERY_S:
            return
        self._told_s = now
        accepted, *others = self._counts
        counts = counted(accepted, "file"), *others
        if unread:
            log.info("inbox: %s accepted, %d refused, %d gone so far; %d still to be looked at", *counts, unread)
        else:
            log.info("inbox: %s accepted, %d refused, %d gone", *counts)
            self._counts = [0, 0, 0]


def merged(reports: Iterable[ScanReport]) -> ScanReport:
    """Return what several scans did. What was refused and then accepted counts as accepted."""
    found = list(reports)
    accepted = dict.fromkeys(chain.from_iterable(report.accepted for report in found))
    refused = dict.fromkeys(chain.from_iterable(report.refused for report in found))
    return ScanReport(
        accepted=tuple(accepted),
        refused=tuple(path for path in refused if path not in accepted),
        gone=tuple(chain.from_iterable(report.gone for report in found)),
    )
