"""The limits of a run while the machine's clock is set: they are reckoned on one that nobody sets."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.hosts.shim import watch
from claudomator_py.hosts.shim.events import Events
from claudomator_py.hosts.shim.spec import Spec
from claudomator_py.hosts.shim.watch import Watch
from claudomator_py.hosts.shim.workdir import Bounds

HOURS_S = 5 * 3600.0


class Clocks:
    """What the machine shows, and what goes on whatever it shows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown = time.time()
        self.gone = 1_000.0
        monkeypatch.setattr(time, "time", lambda: self.shown)
        monkeypatch.setattr(time, "time_ns", lambda: int(self.shown * 1e9))
        monkeypatch.setattr(time, "monotonic", lambda: self.gone)

    def pass_by(self, seconds: float) -> None:
        self.shown += seconds
        self.gone += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


class Quiet(Events):
    """No signals."""

    def __init__(self) -> None:
        self.interrupted = False


def spec(*, timeout: float | None = None, stall: float | None = None) -> Spec:
    return Spec(
        run_id="r",
        commands=[["true"]],
        cwd="/",
        bounds=Bounds([], []),
        folders=[],
        folder_bounds=Bounds([], []),
        env_names=[],
        timeout=timeout,
        stall=stall,
        grace=1.0,
        output_bytes=1 << 20,
    )


@pytest.mark.parametrize("jump_s", [HOURS_S, -HOURS_S])
@pytest.mark.parametrize("limit", ["timeout", "stall"])
def test_a_jump_neither_ends_a_run_nor_gives_it_time(
    clocks: Clocks, directory: int, monkeypatch: pytest.MonkeyPatch, limit: str, jump_s: float
) -> None:
    monkeypatch.setattr(watch, "cpu_by_process", lambda _: {})
    watching = Watch(directory, spec(timeout=60) if limit == "timeout" else spec(stall=60), [], Quiet())
    clocks.pass_by(59)

    clocks.shown += jump_s

    assert watching.ending() is None
    assert 0 < watching.pause() <= 1
    clocks.pass_by(1.5)
    assert watching.ending() == limit


def test_a_run_whose_directory_is_gone_is_ended(clocks: Clocks, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    watching = Watch(fd, spec(), [], Quiet())
    assert watching.ending() is None

    folder.rmdir()

    assert watching.ending() == "interrupt"
    assert clocks.gone == 1_000
    os.close(fd)
