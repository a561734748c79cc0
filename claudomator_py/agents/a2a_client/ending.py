"""How a run of the client ends: one word that ``agents/a2a/events.py`` knows, and what there is to say."""

from email.utils import parsedate_to_datetime
from typing import Any, Final

SHORTEST_HOLD_S: Final = 1.0
MAX_HOLD_S: Final = 24 * 3600.0
"""What a service asks for beyond this is cut to it: nobody waits for a year because of a digit too many."""


class End(Exception):
    """The run ends here. outcome: a word of ``OUTCOMES`` in ``agents/a2a/events.py``. fields: of the last event."""

    def __init__(self, outcome: str, error: str | None = None, **fields: Any) -> None:
        super().__init__(error or outcome)
        self.outcome = outcome
        self.error = error
        self.fields = fields


class Terminated(BaseException):
    """The supervisor wants an end. No handler of errors is to take it for one."""


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """How long ``Retry-After`` asks for: seconds, whole or not, or an HTTP date; None: nothing that can be read.

    Source: RFC 9110, 10.2.3, which knows no fractions; services send them anyway.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    if seconds != seconds:  # NaN
        return None
    return min(max(seconds, SHORTEST_HOLD_S), MAX_HOLD_S)
