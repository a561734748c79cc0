"""A monitor without a thread: whatever is asked of it has been read when it answers."""

from collections.abc import Callable

from claudomator_py.dispatch.live_output import LiveRunMonitor, Report, Said
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.ports import Clock, OutputReader, RunHost


class PromptMonitor(LiveRunMonitor):
    """Reads on the thread that asks, without a rest."""

    def __init__(self, host: RunHost, clock: Clock) -> None:
        super().__init__(_InOddPieces(host), clock, rest=lambda _: None)

    def follow(self, run_id: str, make: Callable[[], OutputReader]) -> Said:
        super().follow(run_id, make)
        self._read_all()
        return super().follow(run_id, make)

    def report(self, run_id: str, make: Callable[[], OutputReader], record: ExitRecord | None) -> Report | None:
        super().report(run_id, make, record)
        self._read_all()
        return super().report(run_id, make, record)

    def _read_all(self) -> None:
        while self.turn():
            pass


class _InOddPieces:
    """The host, of whose outputs a reader has to take a few bytes at a time."""

    def __init__(self, host: RunHost) -> None:
        self._host = host

    def read_on(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> tuple[int, bytes]:
        return self._host.read_on(run_id, stream, offset, min(limit, 61), step)

    def size(self, run_id: str, stream: Stream, step: int = 0) -> int:
        return self._host.size(run_id, stream, step)
