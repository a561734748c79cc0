"""A file that leads a browser to a login link: the arguments of a program can be read by every user of the machine."""

import contextlib
import html
import os
import secrets
import time
from pathlib import Path

from claudomator_py.client.errors import ClientError
from claudomator_py.client.state_folder import StateFolder

_PATTERN = "login-*.html"
_LASTS_S = 60.0
"""As long as a login code."""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Claudomator</title>
<p><a href="{url}">Log in</a></p>
</html>
"""


def folder_for(state_dir: Path | None) -> Path | None:
    """A folder that nobody else can enter: the state folder of this user's daemon, else the session's; None: neither.

    The daemon removes what is left in its state folder when it starts.
    """
    session = os.environ.get("XDG_RUNTIME_DIR")
    for folder in (state_dir, Path(session) if session else None):
        if folder is None or not folder.is_absolute():
            continue
        try:
            StateFolder(folder).close()
        except (ClientError, OSError):
            continue
        return folder
    return None


def write(folder: Path, url: str) -> Path:
    """A new file (0600) in the folder. Those whose links have expired are removed. Raises OSError."""
    for old in folder.glob(_PATTERN):
        with contextlib.suppress(FileNotFoundError):  # another command has removed it
            if time.time() - old.lstat().st_mtime > _LASTS_S:
                old.unlink()
    path = folder / f"login-{secrets.token_hex(8)}.html"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(url=html.escape(url)))
    return path
