"""Copies of private files to where the user wants them, be it a folder that others can write to."""

import os
import secrets
import shutil
from pathlib import Path


def copy_to_new(source: Path, target: Path) -> None:
    """Copy a file, across file systems too, to a new one (0600) that appears whole or not at all.

    Raises FileExistsError rather than replace anything, OSError.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as copy, source.open("rb") as original:
            shutil.copyfileobj(original, copy)
            copy.flush()
            os.fsync(copy.fileno())
        _appear(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _appear(partial: Path, target: Path) -> None:
    try:
        os.link(partial, target, follow_symlinks=False)
    except PermissionError:
        # A file system without hard links, such as that of a memory stick.
        if os.path.lexists(target):
            raise FileExistsError(str(target)) from None
        partial.rename(target)
