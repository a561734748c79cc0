"""Changes that a run makes in its working directory: a record before it, one after it, and their difference.

In a repository the records are exact (see ``look``), so that earlier changes do not count. Elsewhere files are compared
by size and time.

A record costs a few processes outside of the tick, and has a deadline. A failure is noted, and has no other effect.
"""

import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from claudomator_py.domain.changes import MAX_RECORDED, RunChanges
from claudomator_py.hosts.git import Git, GitRefused
from claudomator_py.hosts.git.files import differences, files_in, repository_name, text_of
from claudomator_py.hosts.git.indexes import Indexes
from claudomator_py.hosts.git.look import DEADLINE_S, RECORD_FOLDER, Look, PlaceState
from claudomator_py.hosts.git.shadow import Repository, discover

BEFORE = "before.json"
_PAIRS = ("files", "contents", "at_head")
"""Keys of the record that map a path to a pair, which JSON stores as a list."""
RECORD = "changes.json"
SCRATCH = "work"
"""Folder in the run directory in which a run without a working directory works."""
_FAULTS = (GitRefused, OSError, ValueError, RuntimeError)
"""RuntimeError: raised by ``pathlib`` for a loop of links."""


class ChangeRecorder:
    """Creates the records of runs. Safe to use from many threads; ``close`` ends those in progress."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._git = Git(environ)
        self._indexes = Indexes()

    def close(self) -> None:
        """End the records in progress, and start no more."""
        self._git.close()

    def before(self, run_dir: Path, folder: str) -> None:
        """Record the state of the working directory before the run. Never raises."""
        state = self._state(run_dir, folder)
        with suppress(OSError):
            _replace(run_dir / BEFORE, json.dumps({name: getattr(state, name) for name in PlaceState.__slots__}))

    @staticmethod
    def is_of_interest(run_dir: str) -> bool:
        """Return whether there may be changes to record after the run; False for an empty folder of its own."""
        if os.access(f"{run_dir}/{BEFORE}", os.F_OK):
            return True
        try:
            with os.scandir(f"{run_dir}/{SCRATCH}") as entries:
                return next(entries, None) is not None
        except OSError:
            return False

    def after(self, run_dir: Path) -> RunChanges | None:
        """Return the changes since ``before``, and store them in the run directory; None if there is no earlier record.
        Never raises."""
        try:
            message: dict[str, Any] = json.loads((run_dir / BEFORE).read_text(encoding="utf-8"))
            pairs = {key: {path: it and tuple(it) for path, it in message[key].items()} for key in _PAIRS}
            before = PlaceState(**{**message, **pairs})
        except (OSError, ValueError, TypeError, KeyError):
            # Its own folder was empty at the beginning.
            if not (scratch := run_dir / SCRATCH).is_dir():
                return None
            before = PlaceState(str(scratch))
        known = recorded(run_dir)
        if known is not None:
            return known
        changes = self._compared(run_dir, before)
        with suppress(OSError):
            _replace(run_dir / RECORD, changes.model_dump_json())
            if before.git_dir is not None:
                self._indexes.keep(before.git_dir, run_dir / RECORD_FOLDER, run_dir)
            shutil.rmtree(run_dir / RECORD_FOLDER, ignore_errors=True)
        return changes

    def _state(self, run_dir: Path, folder: str) -> PlaceState:
        """Return the state of a folder."""
        until = time.monotonic() + DEADLINE_S
        if not _is_in_repository(folder, run_dir.parent):
            return self._files(folder, until)
        try:
            return self._look(run_dir, discover(self._git, folder), until).state()
        except _FAULTS as error:
            return PlaceState(folder, fault=_fault(error))

    @staticmethod
    def _files(folder: str, until: float) -> PlaceState:
        """Return the state of a folder's files, also if the run has made a repository of it."""
        try:
            return PlaceState(folder, files=files_in(folder, lambda: time.monotonic() > until))
        except _FAULTS as error:
            return PlaceState(folder, fault=_fault(error))

    def _compared(self, run_dir: Path, before: PlaceState) -> RunChanges:
        if before.fault is not None:
            return RunChanges(place=text_of(before.place), fault=before.fault)
        until = time.monotonic() + DEADLINE_S
        if before.git_dir is None or before.common_dir is None:
            after = self._files(before.place, until)
            if after.fault is not None:
                return RunChanges(place=text_of(before.place), is_repository=False, fault=after.fault)
            return _compared_files(before, after)
        try:
            look = self._look(run_dir, Repository(before.place, before.git_dir, before.common_dir), until)
            return look.between(before, look.state())
        except _FAULTS as error:
            return RunChanges(
                place=text_of(before.place),
                repository=repository_name(before.common_dir),
                head=before.head,
                head_before=before.head,
                fault=_fault(error),
            )

    def _look(self, run_dir: Path, repository: Repository, until: float) -> Look:
        return Look(self._git, self._indexes, run_dir, repository, lambda: until - time.monotonic())


def _replace(file: Path, text: str) -> None:
    new = file.with_name(f"{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.rename(file)


def recorded(run_dir: Path) -> RunChanges | None:
    """Return the record in a run directory; None if there is none, or it cannot be read."""
    try:
        return RunChanges.model_validate_json((run_dir / RECORD).read_bytes())
    except (OSError, ValueError):
        return None


def _fault(error: Exception) -> str:
    message = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    return text_of(" ".join(message.split()))[:500]


def _is_in_repository(folder: str, runs: Path) -> bool:
    """Return whether a folder or one of its parents has a ``.git``; git examines what it is. A folder of a run's own
    is in no repository that holds the run directories as well, such as one of the user's home."""
    real, above = Path(os.path.realpath(folder)), Path(os.path.realpath(runs))
    parents = (place for place in real.parents if not (real.is_relative_to(above) and above.is_relative_to(place)))
    return any(os.path.lexists(place / ".git") for place in (real, *parents))


def _compared_files(before: PlaceState, after: PlaceState) -> RunChanges:
    changes = differences(before.files, after.files)
    files = tuple(changes[:MAX_RECORDED])
    return RunChanges(place=text_of(before.place), is_repository=False, files=files, file_count=len(changes))
