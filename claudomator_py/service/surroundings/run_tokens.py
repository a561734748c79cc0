"""The token of a run: derived from its id and the operator's token, so it is stored nowhere and outlives restarts.

Whether the run that it names is still under way, its signature does not say: that is asked of the database.
"""

import hashlib
import hmac

PREFIX = "cmr_"
VARIABLE = "CLAUDOMATOR_RUN_TOKEN"
_PURPOSE = b"claudomator run token 1"
_LONGEST = 200


class RunTokens:
    """Makes and reads them. operator: the operator's token; with another one, all are others."""

    def __init__(self, operator: str) -> None:
        self._key = hmac.digest(operator.encode("ascii"), _PURPOSE, hashlib.sha256)

    def of(self, run_id: str) -> str:
        """The run's token."""
        return f"{PREFIX}{run_id}_{self._signature(run_id)}"

    def run_id(self, token: str) -> str | None:
        """The run that it is of, under way or not; None for what was not made here."""
        if not token.startswith(PREFIX) or len(token) > _LONGEST or not token.isascii():
            return None
        run_id, _, signature = token.removeprefix(PREFIX).rpartition("_")
        return run_id if hmac.compare_digest(signature, self._signature(run_id)) else None

    def _signature(self, run_id: str) -> str:
        return hmac.digest(self._key, run_id.encode("ascii"), hashlib.sha256).hex()
