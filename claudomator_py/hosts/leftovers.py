"""Folders left by agents, of any depth and with any permissions: their size, processes in them, and removal."""

import os
from itertools import count
from pathlib import Path

_BLOCK = 512


def remove(path: Path) -> None:
    """Remove the folder and its content; links are not followed. Raises OSError. Nested folders are moved up before
    they are removed, so that neither paths nor the stack become too long."""
    names = (path / f".removed-{number}" for number in count())
    pending = [path]
    while pending:
        folder = pending.pop()
        for entry in _entries(folder):
            if not entry.is_dir(follow_symlinks=False):
                Path(entry.path).unlink()
            elif folder == path:
                pending.append(Path(entry.path))
            else:
                _open_up(entry.path)  # a folder without write permission cannot be moved
                place = next(name for name in names if not os.path.lexists(name))
                pending.append(Path(entry.path).rename(place))
        if folder != path:
            folder.rmdir()
    path.rmdir()


def size_of(path: Path) -> int:
    """Return the size of a folder on disk in bytes, as far as it is readable; links are not followed."""
    total = 0
    pending = [str(path)]
    while pending:
        try:
            with os.scandir(pending.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
            except OSError:
                continue
    return total


def unreadable(path: Path) -> str | None:
    """Return a folder in that folder whose content cannot be listed; None if all can. Links are not followed."""
    pending = [str(path)]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as listing:
                pending += [entry.path for entry in listing if entry.is_dir(follow_symlinks=False)]
        except PermissionError:
            return folder
    return None


def working_in(path: Path) -> list[int]:
    """Return the pids of visible processes whose working directory is in that folder."""
    real = path.resolve()
    folders = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "cwd").readlink().is_relative_to(real):
                    folders.append(int(process.name))
            except OSError:
                continue
    return sorted(folders)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    _open_up(folder)
    with os.scandir(folder) as entries:
        return list(entries)


def _open_up(folder: str | Path) -> None:
    try:
        Path(folder).chmod(0o700)
    except PermissionError:
        pass  # Another user owns it; it can still be removed if it is empty.
