"""The machine: git, the clock, kernel limits, and Python's SQLite."""

import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import claudomator_py
from claudomator_py.cli.doctor import Finding, ok, problem, warn

INOTIFY = Path("/proc/sys/fs/inotify")
LEAST_WATCHES = 8_192
LEAST_INSTANCES = 64
LEAST_FILES = 1_024
OLDEST_SQLITE = (3, 37, 0)
_CLOCK_SLACK_S = 24 * 60 * 60
_PATIENCE_S = 5.0


def machine_findings() -> Iterator[Finding]:
    """Yield all findings about the machine."""
    yield git()
    yield clock()
    yield synchronised()
    yield inotify()
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield sqlite(sqlite3.sqlite_version)


def git() -> Finding:
    """Check whether git is installed."""
    program = shutil.which("git")
    if program is not None:
        return ok("git", program)
    return problem("git", "git is not on PATH", "Install git; agents that work in repositories need it.")


def clock() -> Finding:
    """Check the clock: a time before this program's installation must be wrong."""
    installed = Path(claudomator_py.__file__).stat().st_mtime
    now = time.time()
    detail = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if now < installed - _CLOCK_SLACK_S:
        return problem("clock", f"{detail} is before this program was installed", "Set the clock; limits end by it.")
    return ok("clock", detail)


def synchronised() -> Finding:
    """Check whether the clock follows a time server, as far as systemd knows."""
    name, unknown = "time server", "cannot tell whether the clock is synchronised"
    program = shutil.which("timedatectl")
    if program is None:
        return ok(name, f"{unknown}: there is no timedatectl")
    try:
        asked = [program, "show", "--property=NTPSynchronized", "--value"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ok(name, unknown)
    match done.stdout.strip():
        case "yes":
            return ok(name, "the clock is synchronised")
        case "no":
            return warn(
                name, "the clock is not synchronised", "Run: timedatectl set-ntp true. Limits end by the clock."
            )
    return ok(name, unknown)


def inotify(settings: Path = INOTIFY) -> Finding:
    """Check whether there are enough watches for inboxes and runs, besides those that editors use."""
    try:
        watches = int((settings / "max_user_watches").read_text())
        instances = int((settings / "max_user_instances").read_text())
    except (OSError, ValueError):
        return ok("inotify", "limits unknown")
    detail = f"{watches} watches, {instances} instances for each user"
    if watches >= LEAST_WATCHES and instances >= LEAST_INSTANCES:
        return ok("inotify", detail)
    remedy = (
        f"Run: sysctl fs.inotify.max_user_watches={max(watches, 524_288)} "
        f"fs.inotify.max_user_instances={max(instances, 512)}. Without watches, files are found by the slower rescan."
    )
    return warn("inotify", detail, remedy)


def open_files(hard: int) -> Finding:
    """Check this shell's hard limit, which a daemon started from it raises its own limit to. -1: none."""
    detail = "no limit" if hard < 0 else f"{hard} for a process"
    if hard < 0 or hard >= LEAST_FILES:
        return ok("open files", detail)
    return warn("open files", detail, f"Have an administrator raise the hard limit to {LEAST_FILES} (limits.conf).")


def sqlite(version: str) -> Finding:
    """Check the version of SQLite, as it reports it."""
    if tuple(int(part) for part in version.split(".")) >= OLDEST_SQLITE:
        return ok("SQLite", version)
    least = ".".join(map(str, OLDEST_SQLITE))
    return problem("SQLite", f"{version} is older than {least}", "Use a Python with a newer SQLite, or use PostgreSQL.")
