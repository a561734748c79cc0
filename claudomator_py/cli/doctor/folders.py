"""Configuration, state folder and inboxes: whether they exist, writable and private, on a suitable disk with room."""

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.cli import exists
from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.units import format_size, size_text
from claudomator_py.schema.settings import Inbox, Settings
from claudomator_py.schema.trust import InboxGuard, exposed_config, exposed_state, user_name

MOUNTS = Path("/proc/self/mountinfo")
REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre"}
    | {"ncpfs", "nfs", "nfs4", "smb3", "smbfs", "virtiofs", "vboxsf"}
)
_RUNS = "runs"


def state_findings(folder: Path, settings: Settings) -> Iterator[Finding]:
    """Yield findings about the state folder, its files, and its disk."""
    yield _state_folder(folder)
    if exists(folder) and folder.is_dir():
        yield from _private_files(folder)
    yield _disk(folder, settings.limits.min_free)
    yield file_system(folder, sqlite=settings.database == "sqlite")


def configuration(path: Path | None, state: Path, *, named: bool) -> Finding:
    """Check the configuration file, which is readable. state: the state folder. named: whether the file was named."""
    name = "configuration"
    if path is None:
        return ok(name, "none found; using defaults")
    try:
        exposed = exposed_config(path, named=named, own=_user_of(state))
    except OSError as error:
        return problem(name, f"{path} cannot be examined: {error.strerror}", "Fix its permissions.")
    return (
        ok(name, str(path))
        if exposed is None
        else problem(name, f"{path} {exposed.message}", sentence(exposed.remedy or ""))
    )


def inbox_findings(settings: Inbox, base_dir: Path, state: Path) -> Iterator[Finding]:
    """Yield findings about the watched folders, and who may submit tasks there. state: the state folder."""
    guard = InboxGuard(settings, _user_of(state))
    if guard.unknown:
        remedy = "Fix inbox.trusted_users and inbox.trusted_groups, or create them."
        yield warn("inbox", f"unknown users or groups: {', '.join(guard.unknown)}", remedy)
    for path in settings.paths:
        yield _inbox(base_dir / path, guard)


def _inbox(folder: Path, guard: InboxGuard) -> Finding:
    try:
        exposed = guard.folder(str(folder)) if exists(folder) else guard.place_for(str(folder))
    except OSError:
        exposed = None  # the checks below report it
    if exposed is not None:
        return problem("inbox", f"{folder} is not read: {exposed.message}", sentence(exposed.remedy or ""))
    if not exists(folder):
        return _to_create("inbox", folder, "Create it, or change inbox.paths.")
    if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return ok("inbox", str(folder))
    return problem(
        "inbox",
        f"{folder} is not a folder that the daemon can read and write",
        "Fix its permissions, or change inbox.paths.",
    )


def file_system(folder: Path, *, sqlite: bool, mounts: Path = MOUNTS) -> Finding:
    """Check whether the folder's disk is local: remote file systems lack reliable locks and shared memory."""
    kind = _kind_of(nearest(folder), mounts)
    if kind is None:
        return ok("file system", "unknown file system")
    if kind not in REMOTE:
        return ok("file system", kind)
    detail = f"{folder} is on {kind}, which is shared with other machines"
    if sqlite:
        return problem("file system", f"{detail}: SQLite's log needs shared memory", "Set state_dir to a local folder.")
    return warn("file system", f"{detail}: its locks may not hold", "Set state_dir to a local folder.")


def _user_of(state: Path) -> int:
    """Return the user of the daemon: the state folder's owner, or this user if there is no folder yet."""
    try:
        return state.stat().st_uid
    except OSError:
        return os.geteuid()


def nearest(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if exists(place))


def _state_folder(folder: Path) -> Finding:
    name = "state folder"
    try:
        exposed = exposed_state(folder, _user_of(folder))
    except OSError:
        exposed = None  # the checks below report it
    if exposed is not None:
        return problem(name, exposed.message, sentence(exposed.remedy or ""))
    if not exists(folder):
        return _to_create(name, folder, "Set state_dir to a folder you can write.")
    if not folder.is_dir():
        return problem(name, f"{folder} is not a folder", "Remove it, or set state_dir to a folder.")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        detail = f"{folder} is not writable"
        return problem(name, detail, "Fix its permissions, or set state_dir to another folder.")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return problem(name, f"{folder} is open to other users", f"Run: chmod 700 {shlex.quote(str(folder))}")
    if (owner := _user_of(folder)) != os.geteuid():
        detail = f"{folder} belongs to {user_name(owner)}, and only that user's daemon can use it"
        return warn(name, detail, f"Run doctor as {user_name(owner)}, or set state_dir to a folder of yours.")
    return ok(name, str(folder))


def _to_create(name: str, folder: Path, remedy: str) -> Finding:
    """Check whether the daemon can create the folder."""
    parent = nearest(folder)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return ok(name, f"{folder} will be created at the first start")
    return problem(name, f"{folder} cannot be created: {parent} is not writable", remedy)


def _private_files(folder: Path) -> Iterator[Finding]:
    """Yield findings about files that are not private: the daemon creates them with 0600."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name != _RUNS and not entry.is_symlink()]
        opened = [entry.path for entry in entries if entry.is_file() and entry.stat().st_mode & 0o077]
        foreign = [entry.path for entry in entries if entry.stat().st_uid != os.geteuid()]
    except OSError as error:
        yield problem("state files", f"{folder} cannot be read: {error.strerror}", "Fix its permissions.")
        return
    if foreign:
        remedy = "Run doctor as the daemon's user, or give the files to that user with chown."
        yield warn("state files", f"{foreign[0]} belongs to another user", remedy)
    if opened:
        words = " ".join(shlex.quote(path) for path in sorted(opened))
        yield problem("state files", f"{len(opened)} can be read by other users", f"Run: chmod 600 {words}")


def _disk(folder: Path, least: int) -> Finding:
    free = shutil.disk_usage(nearest(folder)).free
    detail = f"{size_text(free)} free for the state folder"
    if free >= least:
        return ok("disk space", detail)
    remedy = f"Free some space, or lower limits.min_free ({format_size(least)}); below it nothing starts."
    return problem("disk space", detail, remedy)


def _kind_of(folder: Path, mounts: Path) -> str | None:
    """Return the type of the file system with the longest mount point above the folder, mounted last."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    best, kind = -1, None
    real = folder.resolve()
    for line in lines:
        before, separator, after = line.partition(" - ")
        words = before.split(" ")
        if not separator or len(words) < 5:
            continue
        point = Path(words[4].replace("\\040", " "))
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind
