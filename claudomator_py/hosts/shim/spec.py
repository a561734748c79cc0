"""The commands of a run and their limits: the content of ``spec.json``, written by the daemon and read by the shim."""

from __future__ import annotations

import os

from claudomator_py.hosts.shim.builtin import loads
from claudomator_py.hosts.shim.workdir import WorkdirBounds

FILE = "spec.json"


class BadSpec(Exception):
    """The specification cannot be used."""


IDLE_SHARE = 0.01
"""The timers of an idle runtime are not work."""


class Spec:
    """A run.

    commands: argv of each step; the first that does not exit with 0 is the last. cwd: absolute path; bounds: its
    permitted places. folders: real paths of additional folders for the commands; folder_bounds: their permitted places.
    env_names: variables passed on from the shim's source of variables; their values are not in this file. timeout,
    stall, grace: in seconds; None for no limit. output_bytes: per stream. idle_share: of a processor, below which the
    agent's own process counts as waiting.
    """

    __slots__ = (
        "bounds", "commands", "cwd", "env_names", "folder_bounds", "folders", "grace", "idle_share", "output_bytes",
        "run_id", "stall", "timeout",
    )  # fmt: skip

    def __init__(
        self,
        *,
        run_id: str,
        commands: list[list[str]],
        cwd: str,
        bounds: WorkdirBounds,
        folders: list[str],
        folder_bounds: WorkdirBounds,
        env_names: list[str],
        timeout: float | None,
        stall: float | None,
        grace: float,
        output_bytes: int,
        idle_share: float = IDLE_SHARE,
    ) -> None:
        self.run_id = run_id
        self.commands = commands
        self.cwd = cwd
        self.bounds = bounds
        self.folders = folders
        self.folder_bounds = folder_bounds
        self.env_names = env_names
        self.timeout = timeout
        self.stall = stall
        self.grace = grace
        self.output_bytes = output_bytes
        self.idle_share = idle_share


def load(directory: int) -> Spec:
    """Return the specification in an opened run directory. Raises BadSpec."""
    try:
        fd = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        with open(fd, "rb", buffering=0) as file:
            data = loads(file.read())
        limits = data["limits"]
        # Earlier versions wrote neither.
        folders = data.get("folders") or {"paths": [], "roots": [], "reserved": []}
        spec = Spec(
            run_id=data["run_id"],
            commands=data["commands"],
            cwd=data["cwd"],
            bounds=WorkdirBounds(data["roots"], data.get("reserved", [])),
            folders=folders["paths"],
            folder_bounds=WorkdirBounds(folders["roots"], folders["reserved"]),
            env_names=data["env_names"],
            timeout=_seconds(limits["timeout_ms"]),
            stall=_seconds(limits["stall_ms"]),
            grace=limits["grace_ms"] / 1000,
            output_bytes=limits["output_bytes"],
            idle_share=float(limits.get("idle_share") or IDLE_SHARE),  # earlier versions wrote none
        )
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadSpec(f"{FILE} cannot be used: {type(problem).__name__}: {problem}") from problem
    if not spec.commands or not all(spec.commands):
        raise BadSpec(f"{FILE} names no command to run")
    return spec


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
