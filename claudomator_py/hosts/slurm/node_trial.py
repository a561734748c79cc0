"""Run by a cluster's node, with the standard library alone: try the file system that it shares with this machine.

Usage: ``python node_trial.py FOLDER``. It holds a lock on ``lock``, creates ``theirs``, and reports that in ``held``;
once ``go`` exists, it reports in ``found`` what it sees. The caller has created ``mine`` and holds a lock on ``ours``
before, and meanwhile renames ``before`` to ``after``. ``wanted`` is a list of paths and of names of programs, of which
those that are not there are reported.
"""

import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path

PATIENCE_S = 30.0


def main(folder: Path) -> None:
    """Hold the lock, wait for ``go``, and report what is visible."""
    wanted = json.loads((folder / "wanted").read_text(encoding="utf-8"))
    with (folder / "lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        can_make(folder / "theirs")
        about = {"uid": os.getuid(), "node": os.uname().nodename, "python": sys.version.split()[0]}
        say(folder / "held", {**about, "time": time.time()})
        deadline = time.monotonic() + PATIENCE_S
        while not (folder / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        report = {
            "exclusive": not can_make(folder / "mine"),
            "renamed": (folder / "after").exists(),
            "locked": not can_lock(folder / "ours"),
            "absent": [path for path in wanted["files"] if not Path(path).exists()]
            + [name for name in wanted["programs"] if shutil.which(name, path=wanted["path"]) is None],
        }
        say(folder / "found", report)


def can_make(file: Path) -> bool:
    """Return whether a file can be created exclusively although another machine may have created it."""
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def can_lock(file: Path) -> bool:
    """Return whether the file can be locked although another machine may hold its lock."""
    with file.open("r+b") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def say(file: Path, what: "dict[str, object]") -> None:
    """Write the file durably and at once. Raises OSError, also where nothing can be flushed."""
    partial = file.with_name(f".{file.name}")
    with partial.open("w", encoding="utf-8") as writing:
        json.dump(what, writing)
        writing.flush()
        os.fsync(writing.fileno())
    partial.rename(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
