"""One scan over all inbox folders, and what one folder's changes mean for the others. No thread of its own."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from claudomator_py.core.problem import Problem
from claudomator_py.service.inbox.folder import WatchedFolder
from claudomator_py.service.inbox.values import AfterAccept, FileStamp, FolderStatus, Intake, ScanReport, TaskFormat

Names = set[str] | None  # of one folder; None: all

log = logging.getLogger("claudomator.inbox")


class Scanner:
    """The inbox folders. Not thread-safe."""

    def __init__(
        self,
        paths: Sequence[str],
        intake: Intake,
        taskfiles: TaskFormat,
        after_accept: AfterAccept,
        stopped: Callable[[], bool],
    ) -> None:
        self._intake = intake
        self._stopped = stopped
        self._folders = {path: WatchedFolder(path, intake, taskfiles, after_accept, stopped) for path in paths}
        self._created = False
        self._known = False
        self._reports: list[ScanReport] = []
        self.changed = False

    def scan(self, wanted: Mapping[str, Names]) -> ScanReport:
        """Look at these names in these folders. Raises what the intake raises; the next scan repairs what is left.

        Afterwards ``changed`` says whether anything changed that a person could see, even if it raised.
        """
        self._reports = []
        self.changed = False
        if not self._created:
            self._created = True
            for folder in self._folders.values():
                folder.create()
        try:
            self._remember()
            self._scan_each(wanted)
            self._offer_again()
        except BaseException:
            # How far the intake came before it failed is not known here: ask it.
            self._known = False
            raise
        report = self._report(wanted)
        if report.accepted or report.refused or report.gone:
            counts = (len(report.accepted), len(report.refused), len(report.gone))
            log.info("inbox: %d files accepted, %d refused, %d gone", *counts)
        return report

    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """The refused files, by path, with every reason."""
        return dict(chain.from_iterable(folder.problems().items() for folder in self._folders.values()))

    def status(self) -> dict[str, FolderStatus]:
        """Each folder, by path."""
        return {path: folder.status() for path, folder in self._folders.items()}

    def due(self) -> dict[str, dict[str, float]]:
        """When (``time.monotonic()``) to look at which name of which folder again."""
        return {path: due for path, folder in self._folders.items() if (due := folder.due())}

    def _report(self, scanned: Iterable[str]) -> ScanReport:
        accepted = dict.fromkeys(chain.from_iterable(report.accepted for report in self._reports))
        refused = dict.fromkeys(chain.from_iterable(report.refused for report in self._reports))
        status = [(path, self._folders[path].status()) for path in scanned]
        return ScanReport(
            accepted=tuple(accepted),
            refused=tuple(path for path in refused if path not in accepted),
            gone=tuple(chain.from_iterable(report.gone for report in self._reports)),
            waiting=tuple(chain.from_iterable(folder.waiting for _, folder in status)),
            unavailable=tuple(path for path, folder in status if not folder.available),
        )

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

    def _scan_each(self, wanted: Mapping[str, Names]) -> None:
        """Scan every folder, even if one fails; then raise what failed first."""
        failure: Exception | None = None
        for path, names in wanted.items():
            if self._stopped():
                return
            folder = self._folders[path]
            try:
                self._reports.append(folder.scan(names))
            except Exception as error:
                failure = failure or error
            self.changed |= folder.changed
        if failure is not None:
            raise failure

    def _offer_again(self) -> None:
        """What the intake refused may be good now that something else changed: a name is free, say."""
        seen = 0
        while any(report.accepted or report.gone for report in self._reports[seen:]):
            seen = len(self._reports)
            self._scan_each({path: names for path, folder in self._folders.items() if (names := folder.offerable())})
