"""``python -m bench [NAME ...]``: run the measurements of that name, or all; all of them are written to RESULTS.md."""

import os
import platform
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import TextIO

from bench import (
    acp,
    adoption,
    beside,
    changes,
    disk,
    hotpath,
    load,
    metrics,
    pages,
    peers,
    queue,
    routing,
    scale,
    shims,
    size,
    steps,
)

MEASUREMENTS: dict[str, tuple[Callable[[], None], int]] = {
    "hotpath": (hotpath.measure, 900),
    "beside": (beside.measure, 600),
    "peers": (peers.measure, 900),
    "size": (size.measure, 1800),
    "steps": (steps.measure, 600),
    "adoption": (adoption.measure, 300),
    "queue": (queue.measure, 300),
    "metrics": (metrics.measure, 300),
    "pages": (pages.measure, 300),
    "routing": (routing.measure, 120),
    "changes": (changes.measure, 300),
    "shims": (shims.measure, 120),
    "acp": (acp.measure, 120),
    "load": (load.measure, 600),
    "scale": (scale.measure, 300),
}
"""Each with the seconds after which it is given up, so that the whole of it ends."""
RESULTS = Path(__file__).with_name("RESULTS.md")


class TooLong(BaseException):
    """A measurement did not end in time."""


def main(names: Sequence[str]) -> int:
    """Run them; 2 for a name that is not known, 1 where one fails or takes too long."""
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        sys.stderr.write(f"no measurement is called {unknown[0]}; there are: {', '.join(MEASUREMENTS)}\n")
        return 2
    kept, failed = StringIO(), False
    with disk.undisturbed(), redirect_stdout(_Both(sys.stdout, kept)):
        kept.write(conditions())
        for name in names or MEASUREMENTS:
            measure, seconds = MEASUREMENTS[name]
            text = (sys.modules[measure.__module__].__doc__ or "").strip()
            sys.stdout.write(f"\n## {name}\n\n{text}\n\n")
            began = time.monotonic()
            try:
                with _at_most(seconds):
                    measure()
            except TooLong:
                failed = True
                sys.stdout.write(f"\nGiven up after {seconds} s.\n")
            except Exception as error:
                failed = True
                sys.stdout.write(f"\nFailed: {error!r}\n")
            sys.stderr.write(f"{name}: {time.monotonic() - began:.0f} s\n")
    if not names:
        RESULTS.write_text(kept.getvalue())
    return int(failed)


def conditions() -> str:
    """What the figures hold for."""
    versions = {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "SQLAlchemy": version("sqlalchemy"),
        "pydantic": version("pydantic"),
        "Linux": platform.release(),
        "task-spooler": _version_of_spooler(),
    }
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        "# Results\n\n"
        f"`make bench` of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}. "
        f"{', '.join(f'{name} {number}' for name, number in versions.items())}; "
        f"{os.cpu_count()} cores of {_processor()}, load before {load}; "
        f"{disk.costs()}. "
        "Medians, unless they say otherwise. Compare figures of one run only.\n"
    )


def _commit() -> str:
    completed = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        cwd=RESULTS.parent,
        check=False,
    )
    return completed.stdout.strip() or "unknown"


def _version_of_spooler() -> str:
    try:
        completed = subprocess.run(["tsp", "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return completed.stdout.split(" - ")[0].removeprefix("Task Spooler v")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raise TooLong inside after so many seconds."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Both:
    """Writes to two files."""

    def __init__(self, *files: TextIO) -> None:
        self._files = files

    def write(self, text: str) -> int:
        """To both."""
        for file in self._files:
            file.write(text)
        return len(text)

    def flush(self) -> None:
        """Both."""
        for file in self._files:
            file.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
