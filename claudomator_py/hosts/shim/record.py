"""The files that record a run's progress: each is complete, missing, or recognisably damaged."""

from __future__ import annotations

import fcntl
import os
import stat
import time

from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.builtin import dumps, loads
from claudomator_py.hosts.shim.crash import crash

LOCK = "lock"
SHIM = "shim.json"
AGENT = "agent.json"
STARTED = "started"
REVOKED = "revoked"
CANCEL = "cancel"
WIND_DOWN = "wind-down.json"
VARIABLES = "variables.json"
CLONE = "clone.json"
EXIT = "exit.json"
EXIT_TEMPORARY = "exit.json.tmp"
OF_THE_MACHINE = ("TMPDIR", "XDG_RUNTIME_DIR")
"""Variables that name folders of a single machine. A run elsewhere has those of its node, unless it is given others."""
_GIVE_UP = frozenset((REVOKED, CANCEL, STARTED, EXIT))

_EXIT_BYTES = 4096
_MAX_READ_LENGTH = 64 * 1024
_MAX_PID = 2**22
_ERROR_CHARACTERS = 500
_LOCK_ATTEMPTS = 100
_LOCK_PAUSE_S = 0.01


def take_lock(directory: int) -> int | None:
    """Take the run's lock for the life of this process. Return None if another shim has it, or the directory is gone.
    The daemon holds the lock only briefly, for decisions; this function waits for that."""
    try:
        fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError:
        return None
    crash("lock-opened")
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
            continue
        crash("lock-taken")
        return fd
    return None


def exists(directory: int, name: str) -> bool:
    """Return whether the run directory has that file."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_gone(directory: int) -> bool:
    """Return whether the run directory was removed, so that it can carry neither requests nor a record."""
    return os.fstat(directory).st_nlink == 0


def names(directory: int) -> list[str]:
    """Return the names in the run directory as its server has them: opening it makes network file systems ask, while
    ``exists`` may be answered from a cache. Raises OSError."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def given_up(directory: int) -> bool:
    """Return whether the run was revoked or has already started. The answer cannot change while the lock is held."""
    return not _GIVE_UP.isdisjoint(names(directory))


def read(path: str | os.PathLike[str], directory: int | None = None) -> dict[str, object]:
    """Return the content of one of these files. An agent may have put anything in its place: this function never waits
    for a pipe, follows a link or reads a large file. directory: descriptor to which the path is relative. Raises
    OSError, ValueError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is not a file")
        text = os.read(fd, _MAX_READ_LENGTH + 1)
    finally:
        os.close(fd)
    if len(text) > _MAX_READ_LENGTH:
        raise ValueError("it is too long")
    try:
        data = loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("it is not an object")
    return data


def write_shim(directory: int, process: procfs.Process) -> None:
    """Record which process supervises the run. Not flushed, because the process does not survive a loss of power.
    Raises OSError."""
    _write_identity(directory, SHIM, process)
    crash("shim-written")
    os.rename(_temporary(SHIM), SHIM, src_dir_fd=directory, dst_dir_fd=directory)
    crash("shim-renamed")


def write_agent(directory: int, pid: int) -> None:
    """Record which process is the agent, so that another shim can take it over if this one is killed. Not flushed, for
    the reason given for ``write_shim``. Raises OSError."""
    process = procfs.read(pid)
    if process is None:
        return
    _write_identity(directory, AGENT, process)
    os.rename(_temporary(AGENT), AGENT, src_dir_fd=directory, dst_dir_fd=directory)
    crash("agent-recorded")


def living_agent(directory: int) -> procfs.Process | None:
    """Return the agent of a run whose shim may be gone, if its boot id, pid and start time match a live process. None
    otherwise, or if no agent was recorded."""
    try:
        pid, start_time, boot = identity(read(AGENT, directory))
    except (OSError, ValueError):
        return None
    process = procfs.read(pid)
    same = process is not None and process.alive and process.start == start_time and boot == procfs.boot_id()
    return process if same else None


def identity(data: dict[str, object]) -> tuple[int, int, str]:
    """Return pid, start time and boot id of the recorded process. Raises ValueError."""
    match data:
        case {"pid": int(pid), "start_time": int(start_time), "boot_id": str(boot)} if 0 < pid <= _MAX_PID:
            return pid, start_time, boot
    raise ValueError("it names no process")


def orphan(directory: int) -> procfs.Process | None:
    """Return the agent of a run that was started and has no exit record, if it is alive. The caller holds the lock, so
    nobody supervises it."""
    unfinished = exists(directory, STARTED) and not exists(directory, EXIT) and not exists(directory, REVOKED)
    return living_agent(directory) if unfinished else None


def _write_identity(directory: int, name: str, process: procfs.Process) -> None:
    data = {"boot_id": procfs.boot_id(), "pid": process.pid, "start_time": process.start}
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(_temporary(name), flags, 0o600, dir_fd=directory)
    try:
        os.write(fd, dumps(data))
    finally:
        os.close(fd)


def _temporary(name: str) -> str:
    return f"{name}.tmp"


def claim_start(directory: int) -> None:
    """Record durably that the run has started, before the agent is. Raises FileExistsError, OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(STARTED, flags, 0o600, dir_fd=directory))
    crash("started-made")
    os.fsync(directory)  # The file is empty; its existence is the record.
    crash("started-synced")


def take_variables(directory: int) -> dict[str, str]:
    """Read the agent's variables from the run directory and remove the file. Return them, with those of this machine.

    The caller holds the lock and has started nothing. Without the file no shim starts anything, so a shim that is
    killed after this costs no attempt. Raises OSError, ValueError.
    """
    fd = os.open(VARIABLES, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    with open(fd, "rb", buffering=0) as file:
        variables: dict[str, str] = loads(file.read())
    # Closed first: network file systems only rename a file that is removed while it is open.
    os.unlink(VARIABLES, dir_fd=directory)
    return {name: os.environ[name] for name in OF_THE_MACHINE if name in os.environ} | variables


class ExitFields:
    """The end of the run, as far as it is known, with the fields of ``exit.json``.

    ended_by: why the shim ended the run: cancel, timeout, stall, output_limit, disk_full, wind_down (the daemon
    reported that the run has finished its work), or interrupt (the shim was stopped by a signal). stragglers: number of
    processes that outlived the agent and were ended.
    """

    __slots__ = ("ended_by", "ended_ms", "error", "exit_code", "started_ms", "step", "stragglers")

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.ended_by: str | None = None
        self.started_ms = now_ms()
        self.ended_ms = 0
        self.error: str | None = None
        self.step = 0
        self.stragglers = 0


class ExitFile:
    """The exit record, whose disk space is reserved before anything is started, so that a full disk cannot prevent
    it."""

    def __init__(self, directory: int) -> None:
        """Reserve the space. Raises OSError."""
        self._directory = directory
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(EXIT_TEMPORARY, flags, 0o600, dir_fd=directory)
        os.posix_fallocate(self._fd, 0, _EXIT_BYTES)
        crash("exit-reserved")

    def write(self, ending: ExitFields) -> None:
        """Write the record under its final name, once.

        A loss of power before ``flush`` may leave a partial record under that name, which cannot be parsed and counts
        as missing. Therefore the rename need not wait for a flush, and both flushes share a commit of the file system.
        """
        fields: dict[str, object] = {name: getattr(ending, name) for name in ExitFields.__slots__}
        if ending.error is not None:
            fields["error"] = ending.error[:_ERROR_CHARACTERS]
        data = dumps(fields)
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))
        crash("exit-written")
        os.rename(EXIT_TEMPORARY, EXIT, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        crash("exit-renamed")

    def flush(self) -> None:
        """Make the record durable. Raises OSError."""
        os.fsync(self._fd)
        os.close(self._fd)
        crash("exit-synced")
        os.fsync(self._directory)
        crash("exit-directory-synced")


def now_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
