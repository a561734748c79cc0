"""Secrets that systemd hands over as files: variables that the environment lacks, and the operator's token.

A variable in the environment of a service is seen by everything it starts; a file in ``$CREDENTIALS_DIRECTORY`` becomes
the variable of that name only for whom the configuration passes it on to.
"""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path

from claudomator_py.service.surroundings.environment import BASE, BASE_PREFIX

log = logging.getLogger("claudomator")

DIRECTORY = "CREDENTIALS_DIRECTORY"
TOKEN = "token"  # noqa: S105 - the name of a file
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 64 * 1024


def with_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, and each credential as the variable of its name where that is not set.

    What every run gets anyway, such as HOME, is never taken from a credential.
    """
    return {**_variables(environ), **environ}


def token_file(environ: Mapping[str, str]) -> Path | None:
    """The file with the operator's token, if it is a credential."""
    folder = environ.get(DIRECTORY)
    path = Path(folder) / TOKEN if folder else None
    return path if path is not None and path.is_file() else None


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get(DIRECTORY)
    if not folder:
        return {}
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        log.warning("the credentials in %s cannot be read: %s", folder, error.strerror)
        return {}
    wanted = [name for name in names if _NAME.fullmatch(name) and name != TOKEN]
    found = {name: _value(Path(folder) / name) for name in wanted if name not in BASE and name[:3] != BASE_PREFIX}
    return {name: value for name, value in found.items() if value is not None}


def _value(path: Path) -> str | None:
    """The content without the line end that editors leave; None, and logged, for what no variable can hold."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1).decode().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the credential %s is left out: %s", path.name, error)
        return None
    if "\0" in text or len(text) > _LONGEST:
        log.warning("the credential %s is left out: it is too long, or binary", path.name)
        return None
    return text
