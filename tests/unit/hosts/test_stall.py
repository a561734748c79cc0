"""When a run counts as hanging, on a clock and a processor of the test's own."""

import os
import subprocess
import sys

import pytest

from claudomator_py.hosts.shim import procfs, watch
from claudomator_py.hosts.shim.watch import Stall

TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 1800.0


class Bench:
    """A run looked at once a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.used: dict[int, int] = {0: 0, 7: 500}
        self.samples = 0
        monkeypatch.setattr(watch, "cpu_by_process", self._sample)
        self.stall = Stall(LIMIT, self.now)

    def _sample(self, _: procfs.Process | None) -> dict[int, int]:
        self.samples += 1
        return dict(self.used)

    def hangs_after(self, seconds: int, *, share: float = 0.0, writes_every: int | None = None) -> float | None:
        """When it counts as hanging, with that share of a processor used; None: not within these seconds."""
        start = self.now
        for second in range(1, seconds + 1):
            self.now = start + second
            self.used[7] = 500 + round(self.now * share * TICKS)
            wrote = writes_every is not None and second % writes_every == 0
            if self.stall.reached(self.now, wrote=wrote):
                return self.now
        return None


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_silence_and_no_work_is_a_stall(bench: Bench) -> None:
    hangs_after = bench.hangs_after(4000)
    # What was used before the first look counts as work once.
    assert hangs_after is not None
    assert LIMIT <= hangs_after <= LIMIT + 30


def test_writing_is_no_stall(bench: Bench) -> None:
    assert bench.hangs_after(10_000, writes_every=1700) is None


def test_work_is_no_stall(bench: Bench) -> None:
    assert bench.hangs_after(10_000, share=0.05) is None


def test_the_timers_of_an_idle_runtime_are_no_work(bench: Bench) -> None:
    assert bench.hangs_after(10_000, share=0.004) is not None


def test_a_stall_begins_when_the_work_ends(bench: Bench) -> None:
    assert bench.hangs_after(5000, share=0.5) is None
    worked_until = bench.now
    bench.used[7] += 1
    for second in range(1, 4000):
        if bench.stall.reached(worked_until + second, wrote=False):
            assert LIMIT - 30 <= second <= LIMIT + 30
            break
    else:
        pytest.fail("it never counted as hanging")


def test_what_earlier_runs_of_the_same_shim_used_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "for _ in range(10_000_000): pass"], check=True)
    assert watch.cpu_by_process()[0] > 0
    monkeypatch.setattr(procfs, "descendants_now", lambda _: [])
    stall = Stall(LIMIT, 0.0)
    looks = (second for second in range(1, 4000) if stall.reached(float(second), wrote=False))
    assert next(looks) == LIMIT


def test_processes_are_looked_at_seldom(bench: Bench) -> None:
    bench.hangs_after(1500)
    assert bench.samples <= 1500 / 15 + 1


def test_the_end_of_a_process_is_not_taken_for_idleness(bench: Bench) -> None:
    """Its use disappears from /proc; that of the others still counts."""
    assert bench.hangs_after(100, share=0.5) is None
    del bench.used[7]
    for second in range(1, 5000):
        bench.used[8] = second * TICKS // 10
        assert not bench.stall.reached(bench.now + second, wrote=False)
