"""Folders as agents leave them, of any depth and with any permissions: what they take, who works there, their end."""

import os
from itertools import count
from pathlib import Path

_BLOCK = 512


def remove(path: Path) -> None:
    """Remove the folder with all that is in it; links are not followed. Raises OSError.

    A folder in a folder is moved up and removed there: no path grows too long, and no stack too deep.
    """
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
                _open_up(entry.path)  # a folder that cannot be written to cannot be moved either
                place = next(name for name in names if not os.path.lexists(name))
                pending.append(Path(entry.path).rename(place))
        if folder != path:
            folder.rmdir()
    path.rmdir()


def size_of(path: Path) -> int:
    """Return the bytes that a folder takes on the disk, as far as it can be read; links are not followed."""
    total = 0
    pending = [str(path)]
    while pending:
        try:
            with os.scandir(pending.pop()) as found:
                entries = list(found)
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


def working_in(path: Path) -> list[int]:
    """Return the processes whose working directory is that folder or lies in it, as far as they can be seen."""
    real = path.resolve()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "cwd").readlink().is_relative_to(real):
                    found.append(int(process.name))
            except OSError:
                continue
    return sorted(found)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    _open_up(folder)
    with os.scandir(folder) as entries:
        return list(entries)


def _open_up(folder: str | Path) -> None:
    try:
        Path(folder).chmod(0o700)
    except PermissionError:
        pass  # Somebody else's: it can be removed if it is empty.
