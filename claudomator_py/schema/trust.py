"""Who, other than the daemon's user, could change a file that tells the daemon what to do.

The criteria are those of sshd's StrictModes: the file, its folder and all folders above belong to a trusted user, and
nobody else may write to them. A folder above with the sticky bit, such as /tmp, may be writable by everybody: only the
owner of an entry can replace it. Symbolic links on the path are followed, and the folders that contain them are
checked, too.
"""

import contextlib
import errno
import grp
import os
import pwd
import shlex
import stat
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.settings import Inbox
from claudomator_py.values import dataclass

ROOT = 0
_MAX_LINKS = 40
_MEMORY_S = 10.0
_ACL = "system.posix_acl_access"
_ACL_ENTRY = struct.Struct("<HHI")  # tag, permissions, id
_ACL_USER, _ACL_GROUP_OWNER, _ACL_GROUP = 0x02, 0x04, 0x08
_WRITE = 0o2
_UID_MAP = Path("/proc/self/uid_map")
_OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")


@dataclass(frozen=True, slots=True)
class Exposure:
    """A file or folder that an untrusted user could change."""

    path: str
    why: str
    """A clause, such as ``every user can write to it``."""
    command: str
    """The command that fixes it."""
    user: str | None = None
    """The user who could be trusted instead, by name, or by number if there is none."""
    group: str | None = None
    """The group that could be trusted instead; see ``user``."""

    def of(self, path: str) -> str:
        """Return the clause as applied to the file at that path."""
        return self.why if self.path == path else f"{self.path}, on the path to it: {self.why}"


class Trust:
    """The users whose files are obeyed: the daemon's own, root, and those named. Thread-safe. Members of the named
    groups are trusted, too, as far as the system lists them."""

    def __init__(self, users: Iterable[str] = (), groups: Iterable[str] = (), own: int | None = None) -> None:
        """users, groups: names or numbers. Those that this machine does not know end up in ``unknown``. own: the
        daemon's user; None for that of this process."""
        self._own = os.geteuid() if own is None else own
        self.unknown: list[str] = []
        found_users = {name: _id(name, lambda name: pwd.getpwnam(name).pw_uid) for name in users}
        found_groups = {name: _id(name, lambda name: grp.getgrnam(name).gr_gid) for name in groups}
        self.unknown = [name for name, ids in (found_users | found_groups).items() if ids is None]
        self._users = {self._own, ROOT, *(uid for uid in found_users.values() if uid is not None)}
        self._groups = {gid for gid in found_groups.values() if gid is not None}
        self._remembered: dict[tuple[str, int], tuple[float, bool]] = {}
        self._unmapped_root = _unmapped_root()

    def way(self, path: str) -> Exposure | None:
        """Return who could replace the entry at this absolute path through the folders above it; the last part may be
        missing. Raises OSError if the path cannot be followed."""
        return self._walk(path)[1]

    def place(self, path: str) -> Exposure | None:
        """Return who could replace or write to the entry at this absolute path. Raises OSError, also if there is
        none."""
        real, exposure = self._walk(path)
        return exposure or self.entry(real, os.lstat(real))

    def entry(self, path: str, status: os.stat_result, fd: int | None = None) -> Exposure | None:
        """Return who could write to the file or folder itself. status: its status; fd: its descriptor, if open."""
        if not self.trusts(status.st_uid):
            return self._foreign(path, status.st_uid)
        return None if stat.S_ISLNK(status.st_mode) else self._writers(path, status, fd)

    def trusts(self, uid: int) -> bool:
        """Return whether files of that user are obeyed."""
        return uid in self._users or (bool(self._groups) and self._recall("member", uid, self._is_member))

    def _walk(self, path: str) -> tuple[str, Exposure | None]:
        """The path without links, and who could redirect it."""
        # With texts, because this runs before every scan of an inbox, and pathlib takes several times as long.
        rest = path.split("/")[::-1]
        at, here = "/", os.lstat("/")
        links = 0
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                at = os.path.dirname(at)
                here = os.lstat(at)
                continue
            there = f"{at}/{name}" if at != "/" else f"/{name}"
            try:
                status = os.lstat(there)
            except FileNotFoundError:
                return there, self._folder_above(at, here, there, self._own)
            if (exposure := self._folder_above(at, here, there, status.st_uid)) is not None:
                return there, exposure
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(there)
                rest += target.split("/")[::-1]
                if target.startswith("/"):
                    at, here = "/", os.lstat("/")
            else:
                at, here = there, status
        return at, None

    def _folder_above(self, folder: str, status: os.stat_result, within: str, owner: int) -> Exposure | None:
        """Who could replace the entry with that path and owner in the folder."""
        if not self._trusts_above(status.st_uid):
            return self._foreign(folder, status.st_uid)
        if not status.st_mode & stat.S_ISVTX:
            return self._writers(folder, status, None)
        return None if self._trusts_above(owner) else self._foreign(within, owner)

    def _trusts_above(self, uid: int) -> bool:
        return uid == self._unmapped_root or self.trusts(uid)

    def _writers(self, path: str, status: os.stat_result, fd: int | None) -> Exposure | None:
        mode = stat.S_IMODE(status.st_mode)
        if not mode & (stat.S_IWOTH | stat.S_IWGRP):
            return None
        quoted = shlex.quote(path)
        if mode & stat.S_IWOTH:
            return Exposure(path, f"every user can write to it (mode {mode:04o})", f"chmod go-w {quoted}")
        users, groups = _access_list(path if fd is None else fd, status.st_gid)
        for user in users:
            if not self.trusts(user):
                name = user_name(user)
                return Exposure(path, f"its access list lets {name} write to it", f"setfacl -b {quoted}", user=name)
        for group in groups:
            if group not in self._groups and not self._recall("group", group, self._has_trusted_members):
                name = _group_name(group)
                why = f"everyone in the group {name} can write to it (mode {mode:04o})"
                return Exposure(path, why, f"chmod g-w {quoted}", group=name)
        return None

    def _foreign(self, path: str, uid: int) -> Exposure:
        owner = user_name(uid)
        command = f"chown {shlex.quote(user_name(self._own))} {shlex.quote(path)}"
        return Exposure(path, f"it belongs to {owner}, who is not trusted", command, user=owner)

    def _has_trusted_members(self, gid: int) -> bool:
        """True if all members of the group are trusted, as in a user's private group. A group without members is used
        by programs that assume it, so its users are unknown."""
        members = _members(gid)
        return bool(members) and all(map(self.trusts, members))

    def _is_member(self, uid: int) -> bool:
        try:
            user = pwd.getpwuid(uid)
        except KeyError:
            return False
        return not self._groups.isdisjoint(os.getgrouplist(user.pw_name, user.pw_gid))

    def _recall(self, what: str, number: int, ask: Callable[[int], bool]) -> bool:
        """A cached answer of the user database, which may be remote; refreshed after some seconds."""
        now = time.monotonic()
        remembered = self._remembered.get((what, number))
        if remembered is None or now - remembered[0] > _MEMORY_S:
            remembered = self._remembered[what, number] = (now, ask(number))
        return remembered[1]


def user_name(uid: int) -> str:
    """Return the user's name, or the number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _id(name: str, look_up: Callable[[str], int]) -> int | None:
    try:
        return look_up(name)
    except KeyError:
        return int(name) if name.isdecimal() else None


def _members(gid: int) -> Sequence[int]:
    """The users that the system lists as members, including those whose primary group it is."""
    uids = [user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid]
    with contextlib.suppress(KeyError):
        for name in grp.getgrgid(gid).gr_mem:
            with contextlib.suppress(KeyError):
                uids.append(pwd.getpwnam(name).pw_uid)
    return uids


def _access_list(at: str | int, owning_group: int) -> tuple[Sequence[int], Sequence[int]]:
    """The users and groups that may write to a file whose mode lets its group write. If there is an access list, that
    bit of the mode is the list's mask, and the list determines who may write."""
    try:
        data = os.getxattr(at, _ACL)
    except OSError:
        return (), (owning_group,)
    users, groups = [], []
    for tag, permissions, who in _ACL_ENTRY.iter_unpack(data[4:]):
        if not permissions & _WRITE:
            continue
        if tag == _ACL_USER:
            users.append(who)
        elif tag in (_ACL_GROUP, _ACL_GROUP_OWNER):
            groups.append(who if tag == _ACL_GROUP else owning_group)
    return users, groups


def _unmapped_root() -> int | None:
    """The user that root's files appear to belong to in a user namespace without root, such as a sandbox. None if it is
    root."""
    try:
        maps = [tuple(map(int, line.split())) for line in _UID_MAP.read_text(encoding="ascii").splitlines()]
        nobody = int(_OVERFLOW_UID.read_text(encoding="ascii"))
        named = any(outer == ROOT or inner <= nobody < inner + count for inner, outer, count in maps)
    except (OSError, ValueError):
        return None
    return None if named else nobody


class InboxGuard:
    """Checks inboxes and their files according to the configuration. Thread-safe."""

    def __init__(self, wanted: Inbox, own: int | None = None) -> None:
        """own: the daemon's user; None for that of this process."""
        self._trust = Trust(wanted.trusted_users, wanted.trusted_groups, own)
        self.unknown = tuple(self._trust.unknown)
        """Trusted users and groups that this machine does not know."""

    def folder(self, path: str) -> Problem | None:
        """Return why the inbox at that absolute path is not read. Raises OSError, also if there is none."""
        return _problem(self._trust.place(path), path)

    def place_for(self, path: str) -> Problem | None:
        """Return why no inbox may be created at that absolute path. Raises OSError."""
        return _problem(self._trust.way(path), path)

    def file(self, path: str, status: os.stat_result, fd: int | None = None) -> Problem | None:
        """Return why a file in an inbox is not accepted. status: its status; fd: its descriptor, if open."""
        return _problem(self._trust.entry(path, status, fd), path)


def exposed_config(path: Path, *, named: bool, own: int | None = None) -> Problem | None:
    """Return why the configuration at that absolute path must not command a daemon. Raises OSError.

    named: True if whoever starts the daemon named the file, and so vouches for its owner. own: the daemon's user; None
    for that of this process.
    """
    owners = (str(path.stat().st_uid),) if named else ()
    exposure = Trust(owners, own=own).place(str(path))
    if exposure is None:
        return None
    message = f"could have been written by other users: {exposure.of(str(path))}"
    return Problem(message=message, remedy=f"look through it, and run `{exposure.command}`")


def _problem(exposure: Exposure | None, path: str) -> Problem | None:
    if exposure is None:
        return None
    remedy = f"run `{exposure.command}`"
    if exposure.user is not None:
        remedy += f", or name {exposure.user} in inbox.trusted_users if you trust that user"
    elif exposure.group is not None:
        remedy += f", or name {exposure.group} in inbox.trusted_groups if you trust all of its members"
    return Problem(message=exposure.of(path), remedy=remedy)


_DATABASE = "claudomator.db"
STATE_ENTRIES = (
    *("daemon.lock", "token", "endpoint", "api.sock", "agents.json", "runs", "worktrees", "backups"),
    *(f"{_DATABASE}{side}" for side in ("", "-wal", "-shm", "-journal")),
)
"""What the daemon keeps in its state folder."""


def exposed_state(folder: Path, own: int | None = None) -> Problem | None:
    """Return why no daemon may use that absolute path, which may be missing, as its state folder. Raises OSError. own:
    the daemon's user; None for that of this process."""
    user = os.geteuid() if own is None else own
    exposure = Trust(own=user).way(str(folder))
    if exposure is not None:
        return _above(exposure, folder)
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return Problem(message=f"{folder} is not a folder", remedy="remove it, or choose another state_dir")
    if status.st_uid != user:
        message = f"{folder} belongs to {user_name(status.st_uid)}, and this is {user_name(user)}"
        return Problem(message=message, remedy=f"run as {user_name(status.st_uid)}, or choose another state_dir")
    return next((problem for name in STATE_ENTRIES if (problem := _entry(folder / name, user)) is not None), None)


def _above(exposure: Exposure, folder: Path) -> Problem:
    message = f"{folder} could be exchanged by other users: {exposure.of(str(folder))}"
    return Problem(message=message, remedy=f"run `{exposure.command}`, or choose another state_dir")


def _entry(path: Path, user: int) -> Problem | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        message = f"{path} is a symbolic link, and none is followed there"
        return Problem(message=message, remedy="put what it leads to in its place, or mount it there")
    if status.st_uid not in (user, ROOT):
        message = f"{path} belongs to {user_name(status.st_uid)}"
        remedy = f"look at it, and run `chown {shlex.quote(user_name(user))} {shlex.quote(str(path))}`"
        return Problem(message=message, remedy=remedy)
    return None
