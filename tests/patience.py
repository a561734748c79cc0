"""How long tests wait for what comes, and waiting for it."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 120.0
"""Only a hang may meet it: what takes a second on a calm machine takes a minute on one where others work."""

T = TypeVar("T")


def until(look: Callable[[], T | None], seconds: float = PATIENCE_S) -> T:
    """What look returns once it is true. Fails when it does not come to that."""
    began = time.monotonic()
    while not (found := look()):
        waited = time.monotonic() - began
        assert waited < seconds, f"did not come about within {seconds} s"
        time.sleep(min(max(0.005, waited / 8), 0.1))
    return found
