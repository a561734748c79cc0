"""The daemon with its own waiting times made shorter, as the windows of the accounts are: five hours are seconds.

``python -m tests.nights.compressed serve --config FILE``; everything else is the installed command.
"""

from claudomator_py.__main__ import main
from claudomator_py.core import limits

TIMES_MS = {
    "BRIEF_MS": 500,
    "LONGEST_BRIEF_MS": 2_000,
    "FIRST_ESTIMATE_MS": 1_000,
    "LONGEST_ESTIMATE_MS": 8_000,
    "SHORTEST_MS": 100,
    "STALE_MS": 1_000,
}


def compress() -> None:
    """From here on, in this process. Raises AttributeError if there is no such time any more."""
    for name, value in TIMES_MS.items():
        getattr(limits, name)
        setattr(limits, name, value)


if __name__ == "__main__":
    compress()
    main()
