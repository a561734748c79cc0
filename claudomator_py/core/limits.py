"""Holds: reasons not to start anything on an agent until a time, and how long they last."""

from dataclasses import dataclass, replace

from claudomator_py.core.outcome import REASON_POLICIES, HoldKind, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.core.units import HOUR_MS, MINUTE_MS, SECOND_MS

BRIEF_MS = 30 * SECOND_MS
FIRST_ESTIMATE_MS = 5 * MINUTE_MS
LONGEST_ESTIMATE_MS = HOUR_MS
SHORTEST_MS = SECOND_MS
STALE_MS = MINUTE_MS


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

    previous: the agent's last hold, released or not. An estimate that proved too short is doubled; one that still
    runs is confirmed, as several runs meet one limit together. Whatever is limited holds, or it would be tried again
    at once.
    """
    if outcome.reason is None:
        return None
    source = outcome.limit or outcome.detail or outcome.reason.value
    kind = REASON_POLICIES[outcome.reason].hold
    if kind is HoldKind.NONE and outcome.status is OutcomeStatus.LIMITED:
        kind = HoldKind.UNTIL_RESET
    match kind:
        case HoldKind.NONE:
            return None
        case HoldKind.UNTIL_OPERATOR:
            return Hold(agent, outcome.reason, None, Provenance.REPORTED, source, now_ms)
        case HoldKind.BRIEF:
            return Hold(agent, outcome.reason, now_ms + BRIEF_MS, Provenance.ESTIMATED, source, now_ms)
        case HoldKind.UNTIL_RESET:
            # A reset that is long past says nothing about when the next one is.
            if outcome.reset_at is not None and outcome.reset_at > now_ms - STALE_MS:
                until = max(outcome.reset_at, now_ms + SHORTEST_MS)
                return Hold(agent, outcome.reason, until, outcome.provenance or Provenance.REPORTED, source, now_ms)
            return _estimated(outcome.reason, agent, previous, source, now_ms)


def _estimated(reason: Reason, agent: str, previous: Hold | None, source: str, now_ms: int) -> Hold:
    first = Hold(agent, reason, now_ms + FIRST_ESTIMATE_MS, Provenance.ESTIMATED, source, now_ms)
    if previous is None or previous.until_ms is None:
        return first
    if previous.reason is not reason or previous.provenance is not Provenance.ESTIMATED:
        return first
    if previous.holds_at(now_ms):
        return replace(previous, agent=agent)
    length = previous.until_ms - previous.created_ms
    if now_ms - previous.until_ms >= length:
        return first
    return replace(first, until_ms=now_ms + min(2 * length, LONGEST_ESTIMATE_MS))
