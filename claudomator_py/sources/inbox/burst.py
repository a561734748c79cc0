"""Files that come one right after the other, as a shell loop drops them: the last may be the most urgent."""

import math

PAUSE_S = 0.03
"""In arrivals, which ends a burst."""
MAX_S = 0.2
"""How long a burst can keep whoever asks from beginning with what was taken."""


class Burst:
    """Whether files are arriving. Not thread-safe; times are ``time.monotonic()``.

    A file that comes alone is waited for until it is taken, and no longer. If another one comes by then they are a
    burst, which goes on until a pause.
    """

    def __init__(self) -> None:
        self._began = self._last = -math.inf
        self._first = ""
        self._several = False
        self._untaken = False

    def came(self, path: str, now: float) -> None:
        """Something happened to that file."""
        if not (self._untaken or (self._several and now < self._last + PAUSE_S)):
            self._began, self._first, self._several = now, path, False
        self._several |= path != self._first
        self._last = now
        self._untaken = True

    def taken(self) -> None:
        """All that has come is taken, or refused."""
        self._untaken = False

    @property
    def over_at(self) -> float:
        """When it is over at the latest, if nothing more comes or is taken."""
        if self._untaken:
            return self._began + MAX_S
        return min(self._began + MAX_S, self._last + PAUSE_S) if self._several else -math.inf
