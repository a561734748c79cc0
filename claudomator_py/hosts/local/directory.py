"""A run directory from the daemon's side: made before the run, asked to cancel, removed in the end."""

import dataclasses
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.run import RunConflict, RunFate, RunSpec, WindDown
from claudomator_py.hosts import leftovers
from claudomator_py.hosts.durable import FlushGroup, flush_directory
from claudomator_py.hosts.git.changes import SCRATCH
from claudomator_py.hosts.local.fate import AnyPath, decide_fate, held_lock, mark, shim_identity, write_revoked
from claudomator_py.hosts.shim import procfs, record, spec, watch
from claudomator_py.hosts.shim.main import PROMPT

CHECK = "check"
MAILBOX = "mailbox"
"""See ``agents/hub_runner``."""
_MAX_LINE_BYTES = 8 * 1024 * 1024
"""Of a mailbox: several times what a frame of the hub may have."""
HANDOFF = "handoff.json"
HANDOFF_NOTE = "handoff.md"
NEW_SUFFIX = ".new"
TRASH_SUFFIX = ".trash"

_LAST_REMOVED = (record.REVOKED, record.LOCK)


class RunStarted(RunConflict):
    """The directory belongs to a run that was started already; a run starts at most once."""


class RunAlive(RunConflict):
    """The run's shim is alive; cancel it and wait for its end first."""


class RunDirectory:
    """One directory of the protocol: a run's own, or that of a check in it."""

    def __init__(self, path: AnyPath) -> None:
        self._place = str(path)

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self._place)

    def create(self, order: RunSpec, *, scratch: str | None = None) -> None:
        """Make the directory with everything the shim needs; it is complete, or not there, and durable on return.

        What the shim opens for writing it makes itself: its lock, and the files of the output. scratch: the working
        directory of an order without one; made here if it lies here; None: ``work``. What an earlier attempt left
        without starting the run is replaced. Raises RunStarted, RunAlive, OSError.
        """
        path = self._place
        if os.path.exists(path):
            if decide_fate(path).fate is not RunFate.REVOKED:
                raise RunStarted(f"the run in {path} has been started already")
            self.remove()
        folder, name = os.path.split(path)
        new = f"{folder}/.{name}{NEW_SUFFIX}"
        try:
            os.mkdir(new, 0o700)
        except FileExistsError:
            remove_tree(Path(new))
            os.mkdir(new, 0o700)
        crashpoint("run-dir-new")
        scratch = scratch or f"{path}/{SCRATCH}"
        if order.cwd is None and os.path.dirname(scratch) == path:
            os.mkdir(f"{new}/{os.path.basename(scratch)}", 0o700)
        files = {
            spec.FILE: _spec_json(order, order.cwd or scratch),
            PROMPT: order.stdin.encode(errors="surrogateescape"),
        }
        for name, text in ((HANDOFF, order.handoff), (HANDOFF_NOTE, order.note)):
            if text is not None:
                files[name] = text.encode(errors="surrogateescape")
        with FlushGroup() as group:
            directory = group.add_directory(new)
            for name, data in files.items():
                group.write_new(name, data, directory)
            crashpoint("run-files-written")
            os.rename(new, path)
            crashpoint("run-dir-renamed")
            group.add_directory(folder)
            # Only now, since a loss of power may leave part of it, too: no row knows of it, and it is made again.
            group.flush()
        crashpoint("run-dir-made")

    def request_cancel(self) -> None:
        """Ask for the run's end; durable when this returns, and done by the shim, or by its absence. Raises OSError.

        The shim is woken by a signal only when its boot, pid and start time agree and it holds the lock; else it
        sees the request within a quarter of a second.
        """
        mark(self.path / record.CANCEL)
        crashpoint("cancel-made")
        flush_directory(self.path)
        crashpoint("cancel-written")
        identity = shim_identity(self.path)
        if identity is not None:
            with held_lock(self.path) as held:
                if not held:
                    procfs.send(identity.pid, identity.start_time, watch.NUDGE)
        # Passed even if the shim saw the request by itself and has left by now, as on a busy machine.
        crashpoint("cancel-nudged")

    def wind_down(self, order: WindDown) -> None:
        """Ask for the run's end once it has stayed too long. Not flushed: after a loss of power there is no run. Raises
        OSError.
        """
        new = self.path / f"{record.WIND_DOWN}{NEW_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="ascii") as file:
            json.dump(dataclasses.asdict(order), file)
        new.rename(self.path / record.WIND_DOWN)

    def tell(self, message: bytes, *, durable: bool) -> None:
        """Add a line to the mailbox, which the run's process reads; see ``RunHost.tell``."""
        path = self.path / MAILBOX
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            # A daemon that ended while it wrote has left half a line.
            cut = b"\n" if end and file.read(1) != b"\n" else b""
            file.write(cut + message + b"\n")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if durable and not end:
            flush_directory(self.path)

    def told(self) -> Iterator[bytes]:
        """Yield the lines of the mailbox. What is in its place and no file is not waited for or followed, and a line
        that nobody wrote in order is not taken into memory. Raises OSError."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            fd = os.open(self.path / MAILBOX, flags)
        except FileNotFoundError:
            return
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{self.path / MAILBOX} is not a file")
            is_whole = True
            while piece := file.readline(_MAX_LINE_BYTES):
                begins, is_whole = is_whole, piece.endswith(b"\n")
                if begins:
                    yield piece.removesuffix(b"\n")

    def checks(self) -> list["RunDirectory"]:
        """Return the directories of the run's checks."""
        return [RunDirectory(path) for path in self.path.glob(f"{CHECK}*") if path.is_dir()]

    def remove(self) -> None:
        """Remove the directory with its checks; nothing if there is none. Raises RunAlive, OSError.

        It is given up before, and the lock is held to the last, so that a shim that wakes late starts nothing.
        """
        for check in self.checks():
            check.remove()
        try:
            with held_lock(self.path) as held:
                if not held:
                    raise RunAlive(f"the run in {self.path} is alive; cancel it and wait for its end")
                write_revoked(self.path)
                trash = self.path.with_name(f".{self.path.name}{TRASH_SUFFIX}")
                remove_tree(trash)
                self.path.rename(trash)
                crashpoint("run-dir-trashed")
                remove_tree(trash)
        except FileNotFoundError:
            return
        flush_directory(self.path.parent)
        crashpoint("run-dir-removed")


def remove_tree(path: Path) -> None:
    """Remove a tree, whatever an agent left in it; nothing if there is none. Raises OSError.

    The specification goes first and the marks last: what a crash leaves over can never be started.
    """
    if not path.is_dir():
        return
    (path / spec.FILE).unlink(missing_ok=True)
    for entry in sorted(path.iterdir(), key=lambda entry: entry.name in _LAST_REMOVED):
        if entry.is_dir() and not entry.is_symlink():
            leftovers.remove(entry)
        else:
            entry.unlink()
    path.rmdir()


def _spec_json(order: RunSpec, cwd: str) -> bytes:
    limits = order.limits
    data = {
        "run_id": order.run_id,
        "commands": order.commands,
        "cwd": cwd,
        "roots": order.roots,
        "reserved": order.reserved,
        "folders": {
            "paths": order.folders,
            "roots": order.folder_bounds.roots,
            "reserved": order.folder_bounds.reserved,
        },
        "env_names": order.env_names,
        "limits": {
            "timeout_ms": limits.timeout_ms,
            "stall_ms": limits.stall_ms,
            "grace_ms": limits.grace_ms,
            "output_bytes": limits.output_bytes,
        },
        "node": {
            "agent": order.agent,
            # In bytes, and not as people write it.
            "needs": None if order.needs is None else dict(order.needs),
        },
    }
    return json.dumps(data).encode()
