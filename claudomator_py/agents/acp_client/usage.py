"""What a run has used, by what its agent means with the numbers that it tells."""

from collections.abc import Mapping
from typing import Any, Final

_INPUT: Final = ("inputTokens", "input_tokens", "cachedReadTokens", "cachedWriteTokens")
_OUTPUT: Final = ("outputTokens", "output_tokens")


class Usage:
    """The numbers of a run. means: ``usage`` of the agent's profile."""

    def __init__(self, means: str) -> None:
        self._means = means
        self._chunks = [0, 0]
        self._has_chunks = False
        self.cost_usd: float | None = None
        self.told = "absent"
        """``absent``: the turn's end tells no numbers; ``nothing``: it tells that there are none; ``counts``: some."""

    def take_chunk(self, meta: object) -> None:
        """Take what a piece of a message tells of its call."""
        found = meta.get("usage") if isinstance(meta, Mapping) else None
        if isinstance(found, Mapping):
            self._has_chunks = True
            self._chunks[0] += _total(found, _INPUT[:1])
            self._chunks[1] += _total(found, _OUTPUT)

    def take_update(self, update: Mapping[str, Any]) -> None:
        """Take an update of it. Only dollars mean the same everywhere: those of the session."""
        cost = update.get("cost")
        if isinstance(cost, Mapping) and cost.get("currency", "USD") == "USD":
            amount = cost.get("amount")
            if isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0:
                self.cost_usd = float(amount)

    def of_turn(self, result: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the turn has used in all, by its end; None: that is not known."""
        counts = self._counts(result)
        if "usage" in result or counts is not None:
            self.told = "counts" if counts is not None and sum(counts) > 0 else "nothing"
        if self._means == "chunk":
            if not self._has_chunks:
                return None
            self.told = "counts" if sum(self._chunks) > 0 else "nothing"
            counts = (self._chunks[0], self._chunks[1])
        if counts is None or self._means in ("none", "last_call"):
            return None
        return {"input_tokens": counts[0], "output_tokens": counts[1]}

    def _counts(self, result: Mapping[str, Any]) -> tuple[int, int] | None:
        found = result.get("usage")
        if self._means == "gemini" or not isinstance(found, Mapping):
            meta = result.get("_meta")
            quota = meta.get("quota") if isinstance(meta, Mapping) else None
            found = quota.get("token_count") if isinstance(quota, Mapping) else None
        if not isinstance(found, Mapping):
            return None
        used, made, whole = _total(found, _INPUT[:2]), _total(found, _OUTPUT), _total(found, ("totalTokens",))
        # What was read from a cache is counted with the rest by some, and beside it by others: the total tells.
        return (max(used, whole - made) if whole else _total(found, _INPUT)), made


def _total(found: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    counts = (found.get(key) for key in keys)
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count > 0)
