"""The command line: one module per group of commands. Data goes to stdout, messages to stderr."""

import os
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ExitCode(IntEnum):
    """Exit codes; scripts rely on them."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_RUNNING = 3
    NOT_AUTHORISED = 4
    RUN_FAILED = 5
    NEEDS_PERSON = 6
    TIMED_OUT = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def exists(path: "Path") -> bool:
    """Return whether this user can reach something there. Path.exists raises for what lies in a closed folder, and for
    a name that is too long."""
    return os.path.exists(path)  # noqa: PTH110
