"""``<file>.error.txt``: what is wrong with a file, next to it in the inbox, where its author looks.

The name belongs to Claudomator: anything under it is replaced, and removed once the file is valid or gone. The file is
written under a hidden name and renamed, so it is never incomplete, and links are never followed. If it cannot be
written, because the folder is read-only or full or the name would be too long, the status shows the problem anyway.
"""

import contextlib
import errno
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import Problem
from claudomator_py.private_files import create_private
from claudomator_py.schema.taskfile import default_task_name
from claudomator_py.sources.inbox.files import Folder
from claudomator_py.values import dataclass

SUFFIX = ".error.txt"
_HIDDEN = ".claudomator-error-"
_PRIVATE = 0o600
_OTHER_READERS = 0o044

_COMPLAIN_EVERY_S = 60.0

log = logging.getLogger("claudomator.inbox")


class _Complaint:
    """A complaint that may apply to thousands of files at once, and is logged once a minute."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next_s = 0.0
        self._kept_back = 0

    def log(self, name: str, folder: str, error: OSError) -> None:
        """Log the complaint, unless it was logged a moment ago."""
        now = time.monotonic()
        if now < self._next_s:
            self._kept_back += 1
            return
        more = f" (and {self._kept_back} more since the last message)" if self._kept_back else ""
        log.warning("%s %r in %s: %s%s", self._text, name + SUFFIX, folder, error.strerror, more)
        self._next_s, self._kept_back = now + _COMPLAIN_EVERY_S, 0


_NOT_WRITTEN = _Complaint("cannot write")
_NOT_REMOVED = _Complaint("cannot remove")


def is_error_file(name: str) -> bool:
    """Return whether the name is that of an error file, finished or not."""
    return name.endswith(SUFFIX) or name.startswith(_HIDDEN)


def write_error_file(folder: Folder, name: str, text: str) -> None:
    """Write the task file's error file, readable by those who can read the task file, as it may quote that. If this
    fails it is logged, and the problem is shown elsewhere."""
    hidden = f"{_HIDDEN}{secrets.token_hex(8)}"
    try:
        error_file = create_private(hidden, folder.fd)
        try:
            with error_file:
                error_file.write(text.encode(errors="backslashreplace"))
                os.fchmod(error_file.fileno(), _PRIVATE | _readers(folder, name))
            crashpoint("inbox-before-error-file")
            os.rename(hidden, name + SUFFIX, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(hidden, dir_fd=folder.fd)
            raise
    except OSError as error:
        _NOT_WRITTEN.log(name, folder.path, error)
    else:
        crashpoint("inbox-after-error-file")


def _readers(folder: Folder, name: str) -> int:
    """Read permissions of group and others, as in the task file's mode."""
    try:
        status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except OSError:
        return 0
    return status.st_mode & _OTHER_READERS if stat.S_ISREG(status.st_mode) else 0


def remove_error_file(folder: Folder, name: str) -> None:
    """Remove the task file's error file, if there is one."""
    try:
        os.unlink(name + SUFFIX, dir_fd=folder.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # then there was none
            _NOT_REMOVED.log(name, folder.path, error)


def sweep(folder: Folder, names: Iterable[str], still_wrong: Iterable[str]) -> None:
    """Remove what an earlier process left: incomplete error files, and those of files that are valid or gone."""
    keep = {name + SUFFIX for name in still_wrong}
    for name in names:
        if name.startswith(_HIDDEN):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder.fd)
        elif name not in keep:
            remove_error_file(folder, name.removesuffix(SUFFIX))


MAX_PROBLEMS = 50

Clean = Callable[[tuple[Problem, ...]], tuple[Problem, ...]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused file. number: increases with each refusal. path: may contain any bytes, decoded by ``os.fsdecode``.
    names: those that the file gives its tasks or cards."""

    number: int
    path: str
    problems: tuple[Problem, ...]
    names: tuple[str, ...]


class Refusals:
    """Which files were refused, and why. Thread-safe."""

    def __init__(self, clean: Clean = tuple) -> None:
        """clean: removes secrets from what is said about a file, such as a value in the faulty line; by default, none
        are known."""
        self.clean = clean
        self._lock = threading.Lock()
        self._refused: dict[str, Refusal] = {}  # in order of their numbers
        self._last = 0

    def __len__(self) -> int:
        return len(self._refused)

    def put(self, path: str, problems: Sequence[Problem], names: Sequence[str] = ()) -> None:
        """Record that the file, which gives these names, is refused for these reasons."""
        with self._lock:
            self._last += 1
            self._refused.pop(path, None)
            self._refused[path] = Refusal(self._last, path, tuple(problems), tuple(names))

    def drop(self, path: str) -> None:
        """Drop the file's refusal, as the file is valid or gone."""
        with self._lock:
            self._refused.pop(path, None)

    def forget(self, folders: Iterable[str]) -> None:
        """Forget the refusals in these folders, which are no longer watched, or are watched afresh."""
        with self._lock:
            left = set(folders)
            for path in [path for path in self._refused if str(Path(path).parent) in left]:
                del self._refused[path]

    def page(self, before: int | None = None, limit: int | None = None) -> list[Refusal]:
        """Return refused files, latest first. before: the number to continue after; limit: maximum number of files."""
        with self._lock:
            refusals = (
                refusal for refusal in reversed(self._refused.values()) if before is None or refusal.number < before
            )
            return list(islice(refusals, limit))

    def of_task(self, name: str) -> Refusal | None:
        """Return the latest refusal of a file that names a task so, by itself or by its own name; None if there is
        none."""
        for refusal in self.page():
            if name in refusal.names or default_task_name(Path(refusal.path).name) == name:
                return refusal
        return None


def shortened(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems that are kept, followed by the number of further ones."""
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    more = len(problems) - MAX_PROBLEMS
    rest = Problem(message=f"and {more} more problems", remedy="correct these first")
    return (*problems[:MAX_PROBLEMS], rest)


def readable(path: str) -> str:
    """Return the path in a form that can be shown and sent, whatever bytes it contains."""
    return os.fsencode(path).decode(errors="backslashreplace")
