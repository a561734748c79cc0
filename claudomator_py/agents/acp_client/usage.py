"""Count what a run has used, by the meaning of the agent's numbers."""

import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any, Final

_INPUT: Final = ("inputTokens", "input_tokens", "cachedReadTokens", "cachedWriteTokens")
_OUTPUT: Final = ("outputTokens", "output_tokens")
_FILE_TRIES: Final = 10
_FILE_WAIT_S: Final = 0.1
_MAX_FILE: Final = 1 << 20
_PLAIN: Final = re.compile(r"\w[\w.-]*")
"""Session ids that can be part of a path."""


class UsageTally:
    """The numbers of a run. means: the profile's ``usage``."""

    def __init__(self, means: str) -> None:
        self._means = means
        self._chunks = [0, 0]
        self._has_chunks = False
        self._file: tuple[int, int] | None = None
        self.cost_usd: float | None = None
        self.told = "absent"
        """What the end of the turn reports: ``absent`` (no numbers), ``nothing`` (zeros), ``counts``."""

    def take_chunk(self, meta: object) -> None:
        """Take the usage in a message chunk's metadata."""
        usage = meta.get("usage") if isinstance(meta, Mapping) else None
        if isinstance(usage, Mapping):
            self._has_chunks = True
            self._chunks[0] += _total(usage, _INPUT[:1])
            self._chunks[1] += _total(usage, _OUTPUT)

    def take_update(self, update: Mapping[str, Any]) -> None:
        """Take a usage update. Only its cost is read, as only dollars mean the same everywhere: the session's total."""
        cost = update.get("cost")
        if isinstance(cost, Mapping) and cost.get("currency", "USD") == "USD":
            amount = cost.get("amount")
            if isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0:
                self.cost_usd = float(amount)

    def take_file(self, where: Mapping[str, str], session: str, since: float) -> None:
        """Take the session's usage from the agent's file, if written since that time; wait a second for it."""
        if not _PLAIN.fullmatch(session):
            return
        path = os.path.join(os.path.expanduser("~"), where["path"].format(session=session))  # noqa: PTH111, PTH118
        for _ in range(_FILE_TRIES):
            try:
                if os.stat(path).st_mtime >= since:  # noqa: PTH116
                    with open(path, "rb") as file:  # noqa: PTH123
                        usage = json.loads(file.read(_MAX_FILE))
                    used, made = _at(usage, where["input"]), _at(usage, where["output"])
                    self._file = (used, made) if used is not None and made is not None else None
                    return
            except (OSError, ValueError):
                pass
            time.sleep(_FILE_WAIT_S)

    def of_turn(self, result: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the usage of the whole turn; None: not known."""
        counts = self._counts(result)
        if "usage" in result or counts is not None:
            self.told = "counts" if counts is not None and sum(counts) > 0 else "nothing"
        if self._means == "chunk":
            if not self._has_chunks:
                return None
            self.told = "counts" if sum(self._chunks) > 0 else "nothing"
            counts = (self._chunks[0], self._chunks[1])
        if self._means == "file":
            counts = self._file
        if counts is None or self._means in ("none", "last_call"):
            return None
        return {"input_tokens": counts[0], "output_tokens": counts[1]}

    def _counts(self, result: Mapping[str, Any]) -> tuple[int, int] | None:
        usage = result.get("usage")
        if self._means == "gemini" or not isinstance(usage, Mapping):
            meta = result.get("_meta")
            quota = meta.get("quota") if isinstance(meta, Mapping) else None
            usage = quota.get("token_count") if isinstance(quota, Mapping) else None
        if not isinstance(usage, Mapping):
            return None
        used, made, whole = _total(usage, _INPUT[:2]), _total(usage, _OUTPUT), _total(usage, ("totalTokens",))
        # Some count cached tokens within the input and others beside it: the total shows which.
        return (max(used, whole - made) if whole else _total(usage, _INPUT)), made


def _total(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    counts = (usage.get(key) for key in keys)
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count > 0)


def _at(value: Any, place: str) -> int | None:
    """Return the count at a dotted path of a document."""
    for key in place.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
