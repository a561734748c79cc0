"""What the tests of the launcher share: runs that wait to be let go, and the processes that there are of it."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher
from tests.integration.hosts.rig import PATH, alive

ENV = {"PATH": PATH}
GATED = ("sh", "-c", "echo $$; while test ! -e go; do sleep .01; done; exit 6")


def start(launcher: Launcher, path: Path, env: dict[str, str] = ENV) -> int:
    """Have a shim do this run and no other; its pid."""
    with launcher.start(path, env) as shim:
        return shim.pid


def is_over(path: Path) -> Callable[[], bool]:
    return lambda: (path / "exit.json").exists() and decide_fate(path).fate is RunFate.ENDED


def is_dead(pid: int) -> bool:
    return not alive(pid)


def servers() -> list[int]:
    """Fork servers that are children of this test."""
    return forked_by(os.getpid())


def forked_by(pid: int) -> list[int]:
    """Children of that process that look like a fork server: as what waits for its run does, too."""
    results = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                command = entry.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == pid and b"forkserver" in command:
                results.append(int(entry.name))
    return results


def open_files(pid: int) -> list[str]:
    """What the process has open, but for what it closes meanwhile."""
    results = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            results.append(str(fd.readlink()))
    return results
