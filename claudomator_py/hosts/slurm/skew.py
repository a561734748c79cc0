"""By how much the clocks of nodes differ from this machine's."""

from collections import deque
from typing import Final

from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.ports import Clock

_MAX_SKEWS: Final = 20


class ClockSkew:
    """By how much the clocks of a cluster's nodes differ at least from this machine's, as its latest runs show.

    A run begins after its submission and ends before its end is seen. If its own times contradict that, its node's
    clock is wrong by at least the difference.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._submitted: dict[str, int] = {}
        """By job: the time before its submission, in epoch milliseconds."""
        self._latest: deque[int] = deque(maxlen=_MAX_SKEWS)

    def submitting(self, key: str) -> None:
        """Note the time at which a job is submitted."""
        self._submitted[key] = self._clock()

    def over(self, key: str, exit_record: ExitRecord | None) -> None:
        """Compare the times in the exit record, if there is one, with this machine's. Repeating it changes nothing."""
        submitted_ms = self._submitted.pop(key, None)
        if submitted_ms is not None and exit_record is not None:
            ahead, behind = exit_record.ended_ms - self._clock(), exit_record.started_ms - submitted_ms
            self._latest.append(max(ahead, 0) or min(behind, 0))

    @property
    def seconds(self) -> float | None:
        """The largest difference, to a tenth of a second, positive if the node's clock is ahead; None until a run has
        ended."""
        return round(max(self._latest, key=abs) / SECOND_MS, 1) if self._latest else None
