"""For tests: the process ends at a named point, as kill -9 would end it there."""

import os
import signal
from collections.abc import Mapping

from claudomator_py.core import crashpoint

VARIABLE = "CLAUDOMATOR_CRASH_AT"


def install_crash_hook(environ: Mapping[str, str]) -> None:
    """If the variable names a point: end this process at the n-th passing of it. ``name`` or ``name:n``."""
    wanted, _, count = environ.get(VARIABLE, "").partition(":")
    if not wanted:
        return
    left = int(count or 1)

    def hook(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    crashpoint.install(hook)
