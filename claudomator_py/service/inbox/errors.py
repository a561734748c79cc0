"""``<file>.error.txt``: what is wrong with a file, beside it in the inbox, where its author looks.

The name belongs to Claudomator: whatever lies there is replaced, and removed once the file is good or gone. It is
written under a hidden name and renamed, so it is never half there, and no link is ever followed.
"""

import contextlib
import logging
import os
import secrets
from collections.abc import Iterable

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.service.inbox.files import Folder

SUFFIX = ".error.txt"
_HIDDEN = ".claudomator-error-"

log = logging.getLogger("claudomator.inbox")


def is_error_file(name: str) -> bool:
    """Whether the name is that of an error file, or of one that was being written."""
    return name.endswith(SUFFIX) or name.startswith(_HIDDEN)


def write_error_file(folder: Folder, name: str, text: str) -> None:
    """Write the error file of that task file. If that is not possible it is logged, and the problem shows elsewhere."""
    hidden = f"{_HIDDEN}{secrets.token_hex(8)}"
    try:
        fd = os.open(
            hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder.fd
        )
        try:
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            crashpoint("inbox-before-error-file")
            os.rename(hidden, name + SUFFIX, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(hidden, dir_fd=folder.fd)
            raise
    except OSError as error:
        log.warning("cannot write %r in %s: %s", name + SUFFIX, folder.path, error.strerror)
    else:
        crashpoint("inbox-after-error-file")


def remove_error_file(folder: Folder, name: str) -> None:
    """Remove the error file of that task file, if there is one."""
    try:
        os.unlink(name + SUFFIX, dir_fd=folder.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("cannot remove %r in %s: %s", name + SUFFIX, folder.path, error.strerror)


def sweep(folder: Folder, names: Iterable[str], still_wrong: Iterable[str]) -> None:
    """Remove what an earlier process left: half-written error files, and those of files that are good or gone."""
    keep = {name + SUFFIX for name in still_wrong}
    for name in names:
        if name.startswith(_HIDDEN):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder.fd)
        elif name not in keep:
            remove_error_file(folder, name.removesuffix(SUFFIX))
