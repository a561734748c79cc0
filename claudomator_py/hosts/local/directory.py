"""The daemon's view of a run directory: creating it, requesting the run's end, and removing it."""

import dataclasses
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.run import RunConflict, RunFate, RunSpec, WindDown
from claudomator_py.hosts import leftovers
from claudomator_py.hosts.git.changes import SCRATCH
from claudomator_py.hosts.local.fate import AnyPath, decide_fate, held_lock, mark, shim_identity, write_revoked
from claudomator_py.hosts.shim import procfs, record, spec, watch
from claudomator_py.hosts.shim.builtin import dumps
from claudomator_py.hosts.shim.main import PROMPT
from claudomator_py.private_files import create_file, flush_path

CHECK = "check"
MAILBOX = "mailbox"
"""See ``agents/hub_runner``."""
_MAX_LINE_BYTES = 8 * 1024 * 1024
"""Maximum line in a mailbox: several times the maximum frame of the hub."""
HANDOFF = "handoff.json"
HANDOFF_NOTE = "handoff.md"
NEW_SUFFIX = ".new"
TRASH_SUFFIX = ".trash"

_LAST_REMOVED = (record.REVOKED, record.LOCK)


class RunStarted(RunConflict):
    """The directory belongs to a run that has started; a run starts at most once."""


class RunAlive(RunConflict):
    """The run's shim is alive; the run must be cancelled and end first."""


class RunDirectory:
    """A directory of the run protocol: that of a run, or of a check in it."""

    def __init__(self, path: AnyPath) -> None:
        self._place = str(path)

    @property
    def path(self) -> Path:
        """Its path."""
        return Path(self._place)

    def create(self, order: RunSpec, *, scratch: str | None = None) -> None:
        """Create the directory with everything that the shim needs, atomically. Its name becomes durable when its
        parent is flushed; its contents need not be, because no shim on this machine survives a loss of power.

        The shim creates its lock and the output files itself. scratch: working directory of an order without one,
        created if it is in this directory; None for ``work``. A directory left by an attempt that did not start the run
        is replaced. Raises RunStarted, RunAlive, OSError.
        """
        path = self._place
        if os.access(path, os.F_OK):
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
        for name, data in files.items():
            os.close(create_file(f"{new}/{name}", data))
        crashpoint("run-files-written")
        os.rename(new, path)
        crashpoint("run-dir-renamed")

    def request_cancel(self) -> None:
        """Request the run's end, durably. The shim ends the run; without a shim the run never starts. Raises OSError.

        The shim is woken by a signal only if its boot id, pid and start time match and it holds the lock; otherwise it
        sees the request within a quarter of a second.
        """
        mark(self.path / record.CANCEL)
        crashpoint("cancel-made")
        flush_path(self.path)
        crashpoint("cancel-written")
        identity = shim_identity(self.path)
        if identity is not None:
            with held_lock(self.path) as held:
                if not held:
                    procfs.send(identity.pid, identity.start_time, watch.NUDGE)
        # Reached even if the shim has already seen the request and exited, as on a busy machine.
        crashpoint("cancel-nudged")

    def wind_down(self, order: WindDown) -> None:
        """Request the end of a run that has finished its work but does not exit. Not flushed, because no run survives a
        loss of power. Raises OSError."""
        new = self.path / f"{record.WIND_DOWN}{NEW_SUFFIX}"
        os.close(create_file(new, json.dumps(dataclasses.asdict(order)).encode()))
        new.rename(self.path / record.WIND_DOWN)

    def append_message(self, message: bytes, *, durable: bool) -> None:
        """Append a line to the mailbox that the run's process reads; see ``RunHost.append_message``."""
        path = self.path / MAILBOX
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            # A daemon that was killed while writing has left a partial line.
            cut = b"\n" if end and file.read(1) != b"\n" else b""
            file.write(cut + message + b"\n")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if durable and not end:
            flush_path(self.path)

    def messages(self) -> Iterator[bytes]:
        """Yield the lines of the mailbox, without those longer than the maximum. Never follows a link or waits for a
        pipe in its place. Raises OSError."""
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
        """Remove the directory and those of its checks, if it exists. Raises RunAlive, OSError. The run is revoked
        first and the lock is held until the end, so that a shim that wakes late starts nothing."""
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
        flush_path(self.path.parent)
        crashpoint("run-dir-removed")


def remove_tree(path: Path) -> None:
    """Remove a tree, whatever an agent left in it, if it exists. Raises OSError. The specification is removed first and
    the marks last, so that the rest after a crash can never be started."""
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
            "idle_share": limits.idle_share,
        },
        "node": {
            "agent": order.agent,
            # In bytes, and not as people write it.
            "needs": None if order.needs is None else dict(order.needs),
        },
    }
    return dumps(data)
