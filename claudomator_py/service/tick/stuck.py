"""Reading along with live runs: which sleeps in a limit, so that it is better ended, and what each has used so far."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from claudomator_py.core.pricing import Used
from claudomator_py.core.run import Stream
from claudomator_py.core.units import MINUTE_MS
from claudomator_py.service.ports import OutputReader, RunHost

# A sleep shorter than this costs less than starting again.
WORTH_ENDING_MS = MINUTE_MS
# How long a CLI may wait out a limit without saying for how long.
PATIENCE_MS = 5 * MINUTE_MS
_PIECE = 1 << 18
_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


@dataclass(slots=True)
class _Live:
    reader: OutputReader
    offsets: dict[Stream, int] = field(default_factory=lambda: dict.fromkeys(_STREAMS, 0))


class StuckRuns:
    """Reads along with live runs, only what is new at each look."""

    def __init__(self, host: RunHost) -> None:
        self._host = host
        self._live: dict[str, _Live] = {}

    def is_stuck(self, run_id: str, make: Callable[[], OutputReader | None], now_ms: int) -> bool:
        """Whether the run sleeps in a limit for longer than is worth waiting. Raises OSError."""
        live = self._live.get(run_id)
        if live is None:
            reader = make()
            if reader is None:
                return False
            live = self._live[run_id] = _Live(reader)
        for stream in _STREAMS:
            while piece := self._host.read(run_id, stream, live.offsets[stream], _PIECE):
                live.offsets[stream] += len(piece)
                live.reader.feed(stream, piece)
        until, since = live.reader.stuck_until, live.reader.stuck_since
        if until is not None:
            return until - now_ms > WORTH_ENDING_MS
        return since is not None and now_ms - since > PATIENCE_MS

    def has_answered(self, run_id: str) -> bool:
        """Whether the model of the run had answered at the last look."""
        live = self._live.get(run_id)
        return live is not None and live.reader.answered

    def has_ended(self, run_id: str) -> bool:
        """Whether the agent had said at the last look how the run came out, and only its process is to end yet."""
        live = self._live.get(run_id)
        return live is not None and live.reader.terminal

    def used(self, run_id: str) -> Used:
        """What the run had used at the last look, as far as it had said."""
        live = self._live.get(run_id)
        return Used() if live is None else live.reader.used

    def keep(self, run_ids: Collection[str]) -> None:
        """Forget all runs but these."""
        self._live = {run_id: live for run_id, live in self._live.items() if run_id in run_ids}
