"""How long tests wait for what comes, and waiting for it."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 120.0
"""Only a hang may meet it: what takes a second on a calm machine takes a minute on one where others work."""

_LEAST_PAUSE_S, _MAX_PAUSE_S = 0.005, 0.2

T = TypeVar("T")


def wait_until(condition: Callable[[], T | None], what: str = "it", deadline_s: float = PATIENCE_S) -> T:
    """The first value of the condition that is true. Fails at the deadline."""
    first = began = time.monotonic()
    while not (value := condition()):
        looked = time.monotonic()
        if looked > first + deadline_s:
            raise AssertionError(f"waited {deadline_s:.0f} s in vain for {what}")
        # Most of the time is for what is waited for, and little for asking about it: the less, the longer it takes.
        time.sleep(min(max(_LEAST_PAUSE_S, 9 * (looked - began), (looked - first) / 4), _MAX_PAUSE_S))
        began = time.monotonic()
    return value
