"""How long tests wait for what comes, and waiting for it."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 120.0
"""Only a hang may meet it: what takes a second on a calm machine takes a minute on one where others work."""

T = TypeVar("T")


def until(look: Callable[[], T | None], seconds: float = PATIENCE_S) -> T:
    """What look returns once it is true. Fails when it does not come to that."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"did not come about within {seconds} s"
        time.sleep(0.005)
    return found
