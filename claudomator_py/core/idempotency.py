"""A request that may be sent again and is done once, as the IETF's draft-ietf-httpapi-idempotency-key-header has it."""

from dataclasses import dataclass
from typing import Final

from claudomator_py.core.units import DAY_MS

LONGEST_KEY: Final = 255
KEPT_MS: Final = DAY_MS
"""How long an answer is kept for repetitions, in milliseconds."""
MOST_KEPT: Final = 10_000
"""How many answers are kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The client's name for one request. fingerprint: a digest of what was asked, by which another request shows."""

    key: str
    fingerprint: str
