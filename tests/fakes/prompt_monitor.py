"""A monitor without a thread: whatever is asked of it has been read when it answers."""

from collections.abc import Callable

from claudomator_py.domain.report import LiveOutput, OutputPiece
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.hosts.live_output import LiveRunMonitor, ReadOutput, Report
from claudomator_py.ports import Clock, OutputReader


class PromptMonitor(LiveRunMonitor):
    """Reads on the thread that asks, without a rest."""

    def __init__(self, read: ReadOutput, clock: Clock) -> None:
        def in_odd_pieces(run_id: str, stream: Stream, offset: int, limit: int) -> OutputPiece:
            return read(run_id, stream, offset, min(limit, 61))

        super().__init__(in_odd_pieces, clock, rest=lambda _: None)

    def follow(self, run_id: str, make: Callable[[], OutputReader]) -> LiveOutput:
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
