"""Files without git: listing them, and comparing them by size and time."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from claudomator_py.domain.changes import FileChange

_GIT_DIRECTORY = "/.git/"
MAX_ENTRIES = 20_000
"""Maximum number of files that are examined without a repository, or compared in one."""


def size_and_time(path: str) -> tuple[int, int]:
    """Return size and modification time of a file; constants for a folder."""
    status = os.lstat(path)
    return (0, 0) if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns)


def files_in(folder: str, is_late: Callable[[], bool]) -> dict[str, tuple[int, int]]:
    """Return size and time of each file below a folder. Raises ValueError for too many files; OSError."""
    sizes: dict[str, tuple[int, int]] = {}
    for path, status in _walk(folder, is_late):
        if len(sizes) == MAX_ENTRIES:
            raise ValueError(f"there are more than the {MAX_ENTRIES:,} files that are looked at without a repository")
        sizes[path] = (status.st_size, status.st_mtime_ns)
    return sizes


def _walk(folder: str, is_late: Callable[[], bool]) -> Iterator[tuple[str, os.stat_result]]:
    below = [""]
    while below:
        here = below.pop()
        if is_late():
            raise ValueError("it took too long")
        if here and (f"/{here}".endswith(_GIT_DIRECTORY) or _is_cache(f"{folder}/{here}")):
            continue
        with os.scandir(f"{folder}/{here}") as entries:
            for entry in entries:
                path = f"{here}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{path}/")
                else:
                    yield text_of(path), entry.stat(follow_symlinks=False)


def _is_cache(folder: str) -> bool:
    """Return whether a folder marks itself as ignored by git, as caches and virtual environments do."""
    try:
        return (Path(folder) / ".gitignore").read_bytes()[:64].strip() in (b"*", b"*\n!.gitignore")
    except OSError:
        return False


def differences(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> list[FileChange]:
    changes = []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was != now:
            change: Literal["added", "modified", "deleted"] = "modified"
            if was is None or now is None:
                change = "added" if was is None else "deleted"
            changes.append(FileChange(path=text_of(path), change=change))
    return changes


def repository_name(common_dir: str) -> str:
    """Return what a repository is called: the folder that its work trees lie next to, or the bare repository."""
    return text_of(common_dir.removesuffix("/.git"))


def text_of(words: str) -> str:
    """Return names and messages as text, with invalid bytes marked."""
    return words.encode(errors="surrogateescape").decode(errors="replace")
