"""Whether work grows with a text as fast as the text does, or faster."""

import time
from collections.abc import Callable

_SHORT = 5_000
_TIMES = 4
_MARGIN = 2
"""By how much more than the text the work may grow: what is quadratic grows four times as much."""
_TRIES = 3
_TOO_LITTLE_S = 0.005
"""Of the processor's time, to say anything."""


def grows_linearly(work: Callable[[str], object], piece: str) -> bool:
    """Whether the work on a text of such pieces takes about so much more of the processor's time as the text is longer.
    It is tried several times, as others use the processor's caches too. Work that remembers texts is no work."""
    text = piece * (_SHORT * _TIMES // len(piece) + 1)
    for _ in range(_TRIES):
        long, short = _cost(work, text[: _SHORT * _TIMES]), _cost(work, text[:_SHORT])
        if long <= max(_TOO_LITTLE_S, short * _TIMES * _MARGIN):
            return True
    return False


def _cost(work: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun
