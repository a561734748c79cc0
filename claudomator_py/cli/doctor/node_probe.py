"""Run by a cluster's node, with the standard library alone: check the file system that it shares with this machine.

Usage: ``python node_probe.py FOLDER``. It holds a lock on ``lock`` and reports that in ``held``; once ``go`` exists, it
reports in ``found`` what it sees. The caller has created ``mine`` before, and meanwhile renames ``before`` to
``after``.
"""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

PATIENCE_S = 30.0


def main(folder: Path) -> None:
    """Hold the lock, wait for ``go``, and report what is visible."""
    with (folder / "lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        about = {"uid": os.getuid(), "node": os.uname().nodename, "python": sys.version.split()[0]}
        say(folder / "held", {**about, "time": time.time()})
        deadline = time.monotonic() + PATIENCE_S
        while not (folder / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        say(folder / "found", {"exclusive": not can_make(folder / "mine"), "renamed": (folder / "after").exists()})


def can_make(file: Path) -> bool:
    """Return whether a file can be created exclusively although another machine has created it."""
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def say(file: Path, what: dict[str, object]) -> None:
    """Write the file atomically."""
    partial = file.with_name(f".{file.name}")
    partial.write_text(json.dumps(what), encoding="utf-8")
    partial.rename(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
