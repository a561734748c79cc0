"""Holds: reasons not to start anything on an agent until a time, and how long they last."""

from dataclasses import dataclass

from claudomator_py.core.outcome import REASON_POLICIES, HoldKind, Outcome, Provenance, Reason
from claudomator_py.core.units import HOUR_MS, MINUTE_MS, SECOND_MS

BRIEF_MS = 30 * SECOND_MS
FIRST_ESTIMATE_MS = 5 * MINUTE_MS
LONGEST_ESTIMATE_MS = HOUR_MS
SHORTEST_MS = SECOND_MS


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an agent is left alone. until: epoch milliseconds; None: until an operator releases it.

    source: where it was read, such as the agent's window or its words.
    """

    agent: str
    reason: Reason
    until_ms: int | None
    provenance: Provenance
    source: str
    created_ms: int

    def holds_at(self, now_ms: int) -> bool:
        """Whether it still holds."""
        return self.until_ms is None or self.until_ms > now_ms


def hold_after(outcome: Outcome, agent: str, previous: Hold | None, now_ms: int) -> Hold | None:
    """The hold that follows from a run's outcome, or None.

    previous: the agent's last hold, released or not. An estimate that proved too short is doubled.
    """
    if outcome.reason is None:
        return None
    source = outcome.limit or outcome.detail or outcome.reason.value
    match REASON_POLICIES[outcome.reason].hold:
        case HoldKind.NONE:
            return None
        case HoldKind.UNTIL_OPERATOR:
            return Hold(agent, outcome.reason, None, Provenance.REPORTED, source, now_ms)
        case HoldKind.BRIEF:
            return Hold(agent, outcome.reason, now_ms + BRIEF_MS, Provenance.ESTIMATED, source, now_ms)
        case HoldKind.UNTIL_RESET:
            if outcome.reset_at is not None:
                until = max(outcome.reset_at, now_ms + SHORTEST_MS)
                return Hold(agent, outcome.reason, until, outcome.provenance or Provenance.REPORTED, source, now_ms)
            until = now_ms + _estimate(previous, now_ms)
            return Hold(agent, outcome.reason, until, Provenance.ESTIMATED, source, now_ms)


def _estimate(previous: Hold | None, now_ms: int) -> int:
    if previous is None or previous.until_ms is None or previous.provenance is not Provenance.ESTIMATED:
        return FIRST_ESTIMATE_MS
    length = previous.until_ms - previous.created_ms
    met_again_at_once = now_ms - previous.until_ms < length
    return min(2 * length, LONGEST_ESTIMATE_MS) if met_again_at_once else FIRST_ESTIMATE_MS
