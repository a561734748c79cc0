"""Which processes belong to a site, whoever started them."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from claudomator_py.hosts.shim import procfs

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU, user and system, that the process has used; not those of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def ticks_since_boot() -> int:
    """Return the time as /proc has it of a process's start."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_A_SECOND)


def processes_of(folder: Path, run_ids: Iterable[str], since: int) -> dict[int, str]:
    """Each process that works in the folder, has a file of it open, or carries the id of one of the runs, by pid with
    its command line: daemons, fork servers, shims and agents.

    since: clock ticks since boot at which none had begun yet. Most processes of a machine are older, and have hundreds
    of files open.
    """
    marks = {procfs.RUN_VARIABLE.encode() + b"=" + run_id.encode() for run_id in run_ids}
    younger = [process.pid for process in procfs.snapshot().values() if process.start >= since]
    return {pid: _command_line(pid) for pid in younger if pid != os.getpid() and _belongs(pid, folder, marks)}


def _belongs(pid: int, folder: Path, marks: set[bytes]) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as files:
            if _leads_into(folder, f"/proc/{pid}/cwd") or any(_leads_into(folder, file.path) for file in files):
                return True
        return not marks.isdisjoint(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _leads_into(folder: Path, link: str) -> bool:
    try:
        target = os.readlink(link)  # noqa: PTH115 - of thousands, often: with pathlib it is ten times the work
        return f"{target}/".startswith(f"{folder}/")
    except OSError:  # closed meanwhile; or a folder too deep to have a name, as a test elsewhere may work in
        return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
