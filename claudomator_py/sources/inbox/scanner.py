"""All inbox folders together: what is examined next, and what changes in one folder mean for the others.

Has no thread of its own. Recent events are handled before older files, in short steps, so that neither a stop nor a
valid file has to wait for thousands of invalid ones.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from claudomator_py.domain.units import counted
from claudomator_py.sources.inbox.folder import CHUNK_SIZE, FolderScan
from claudomator_py.sources.inbox.ledger import FileStamp, FolderStatus, Intake, ScanReport

_LOG_INTERVAL_S = 10.0

log = logging.getLogger("claudomator.inbox")


class Scanner:
    """The inbox folders. Not thread-safe. Exceptions of the intake propagate; a survey repairs what was left undone.
    After each call ``changed`` says whether anything visible to a person changed, even if the call raised."""

    def __init__(self, folders: Iterable[FolderScan], intake: Intake[Any], stopped: Callable[[], bool]) -> None:
        self._intake = intake
        self._stopped = stopped
        self._folders = {folder.path: folder for folder in folders}
        self._created = False
        self._known = False
        self._may_be_good = False
        self._progress = _ScanProgress()
        self.changed = False

    def survey(self, paths: Iterable[str], *, offer_all: bool = False) -> ScanReport:
        """Determine what is in these folders; ``step`` then examines the files that need it. offer_all: also examine
        every file that the intake refused, as what is allowed may have changed."""
        if not self._created:
            self._created = True
            for folder in self._folders.values():
                folder.create()
        return self._do(lambda: self._each(paths, lambda folder: [folder.survey(offer_all=offer_all)]))

    def step(self, fresh: Mapping[str, Iterable[str]]) -> ScanReport:
        """Examine these names in these folders, if they are few, and some of the files still to be examined."""
        return self._do(lambda: self._each(self._folders, lambda folder: self._step(folder, fresh)))

    @property
    def unread(self) -> int:
        """Number of files that ``step`` must still examine."""
        return sum(folder.unread for folder in self._folders.values())

    def status(self) -> dict[str, FolderStatus]:
        """Return the status of each folder, by path."""
        return {path: folder.status() for path, folder in self._folders.items()}

    def due(self) -> dict[str, dict[str, float]]:
        """Return when (``time.monotonic()``) to examine which name of which folder again."""
        return {path: due for path, folder in self._folders.items() if (due := folder.due())}

    def _step(self, folder: FolderScan, fresh: Mapping[str, Iterable[str]]) -> list[ScanReport]:
        names = list(fresh.get(folder.path, ()))
        reports = []
        if folder.unread > CHUNK_SIZE and names:
            # Otherwise there are so few that the order of arrival can be kept.
            reports.append(folder.scan(names[:CHUNK_SIZE]))
            self.changed |= folder.changed
            names = names[CHUNK_SIZE:]
        folder.read_later(names)
        if folder.unread or names:
            reports.append(folder.step())
        if folder.flooded:
            # A valid file among very many invalid ones is most likely one of the last.
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
            # It is unknown here how far the intake got before it failed, so it is asked.
            self._known = False
            raise
        report = merged(reports)
        self._progress.log_progress(report, self.unread)
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
        """Do the work in every folder, even if one fails; then raise the first failure."""
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
        """Offer files refused by the intake again, as they may be acceptable after another change: a name may be free,
        or two files that name each other may be acceptable together."""
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
    """Logs progress: at the end, and now and then before."""

    def __init__(self) -> None:
        self._counts = [0, 0, 0]  # accepted, refused, gone
        self._logged_s = time.monotonic()

    def log_progress(self, report: ScanReport, unread: int) -> None:
        """unread: number of files still to be examined."""
        new = report.accepted, report.refused, report.gone
        self._counts = [count + len(paths) for count, paths in zip(self._counts, new, strict=True)]
        if not any(self._counts):
            return
        now = time.monotonic()
        if unread and now - self._logged_s < _LOG_INTERVAL_S:
            return
        self._logged_s = now
        accepted, *others = self._counts
        counts = counted(accepted, "file"), *others
        if unread:
            log.info("inbox: %s accepted, %d refused, %d gone so far; %d still to be looked at", *counts, unread)
        else:
            log.info("inbox: %s accepted, %d refused, %d gone", *counts)
            self._counts = [0, 0, 0]


def merged(reports: Iterable[ScanReport]) -> ScanReport:
    """Return the combined result of several scans. A file refused and then accepted counts as accepted."""
    reported = list(reports)
    accepted = dict.fromkeys(chain.from_iterable(report.accepted for report in reported))
    refused = dict.fromkeys(chain.from_iterable(report.refused for report in reported))
    return ScanReport(
        accepted=tuple(accepted),
        refused=tuple(path for path in refused if path not in accepted),
        gone=tuple(chain.from_iterable(report.gone for report in reported)),
    )
