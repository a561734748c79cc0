"""A daemon's own waiting times, shorter, as the windows of the accounts are: five hours are seconds in such a night."""

from claudomator_py.domain import limits

TIMES_MS = {
    "BRIEF_MS": 500,
    "MAX_BRIEF_MS": 2_000,
    "FIRST_ESTIMATE_MS": 1_000,
    "MAX_ESTIMATE_MS": 8_000,
    "SHORTEST_MS": 100,
    "STALE_MS": 1_000,
}


def compress() -> None:
    """From here on, in this process. Raises AttributeError if there is no such time any more."""
    for name, value in TIMES_MS.items():
        getattr(limits, name)
        setattr(limits, name, value)
