"""Run by nodes of a cluster, with the standard library alone: try the file system that two machines share.

Usage: ``python node_trial.py FOLDER answer``, and on the other machine ``... ask``, or ``compared`` of this module.
The one that answers holds a lock on ``lock``, creates ``theirs``, and reports that in ``held``; once ``go`` exists, it
reports in ``seen`` what it sees of the one that asks. That one holds a lock on ``ours``, has created ``mine``, renames
``before`` to ``after``, and writes the result to ``result``. ``wanted`` lists paths and names of programs, of which
those that are missing are reported.
"""

import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path

PATIENCE_S = 100.0
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Report = dict[str, Any]


def answer(folder: Path) -> None:
    """Hold the lock, wait for ``go``, and report what is visible."""
    wanted = json.loads((folder / "wanted").read_text(encoding="utf-8"))
    with (folder / "lock").open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        can_create(folder / "theirs")
        write(folder / "held", {**about_here(), "time": time.time()})
        wait(folder / "go")
        report = {
            "exclusive": not can_create(folder / "mine"),
            "renamed": (folder / "after").exists(),
            "locked": not can_lock(folder / "ours"),
            "absent": [path for path in wanted["files"] if not Path(path).exists()]
            + [name for name in wanted["programs"] if shutil.which(name, path=wanted["path"]) is None],
        }
        write(folder / "seen", report)


def ask(folder: Path) -> None:
    """Do the other part, and report the result."""

    def read(name: str) -> "Report":
        wait(folder / name)
        report: Report = json.loads((folder / name).read_text(encoding="utf-8"))
        return report

    write(folder / "result", {**compared(folder, read), "asker": about_here()})


def compared(folder: Path, read: "Callable[[str], Report]") -> "Report":
    """Return what this machine and the one that answers see of each other. read: waits for a file of that name in the
    folder, and returns its content."""
    can_create(folder / "mine")
    (folder / "before").touch()
    with (folder / "ours").open("a+b") as ours:
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = read("held")
        skew_s = time.time() - held["time"]
        is_locked, is_exclusive = not can_lock(folder / "lock"), not can_create(folder / "theirs")
        (folder / "before").rename(folder / "after")
        (folder / "go").touch()
        seen = read("seen")
    return {
        "answerer": held,
        "skew_s": skew_s,
        "locked": is_locked and seen["locked"],
        "exclusive": is_exclusive and seen["exclusive"],
        "renamed": seen["renamed"],
        "absent": seen["absent"],
    }


def about_here() -> "Report":
    """Return the user, the name of this machine in the cluster, and the version of Python."""
    node = os.environ.get("SLURMD_NODENAME", os.uname().nodename)
    return {"uid": os.getuid(), "node": node, "python": sys.version.split()[0]}


def can_create(file: Path) -> bool:
    """Return whether a file can be created exclusively although another machine may have created it."""
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def can_lock(file: Path) -> bool:
    """Return whether the file can be locked although another machine may hold its lock."""
    with file.open("a+b") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def wait(file: Path) -> None:
    """Wait for a file. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE_S
    # Listing the folder makes network file systems refresh it.
    while file.name not in os.listdir(file.parent):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{file.name} has not appeared within {PATIENCE_S:.0f} seconds")
        time.sleep(0.05)


def write(file: Path, report: "Report") -> None:
    """Write the file durably and at once. Raises OSError, also where nothing can be flushed."""
    partial = file.with_name(f".{file.name}")
    with partial.open("w", encoding="utf-8") as writing:
        json.dump(report, writing)
        writing.flush()
        os.fsync(writing.fileno())
    partial.rename(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


if __name__ == "__main__":
    {"answer": answer, "ask": ask}[sys.argv[2]](Path(sys.argv[1]))
