"""The daemon's state folder, seen by a client: its contents count only if nobody else can have put them there.

A folder can come from anywhere: a checked-out repository may contain a configuration, and an archive even files of mode
0600. So a file only says where a daemon *may* be; that it is this user's is proved by what runs: here by the holder of
the folder's lock, in ``client.peer`` by the process at the other end of a connection.
"""

import fcntl
import os
import socket
import stat
from pathlib import Path
from typing import Final, Self

from claudomator_py.client import DiscoveryFailed, NotAuthorised

SOCKET_FILE: Final = "api.sock"
_LOCK_FILE = "daemon.lock"
_MAX_BYTES = 16_384


class StateFolder:
    """An open state folder that belongs to this user, or root, and that nobody else can enter."""

    def __init__(self, path: Path) -> None:
        """Raises FileNotFoundError, NotAuthorised for another user's folder, DiscoveryFailed for one open to others."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except PermissionError:
            raise _of_another(path) from None
        except OSError as error:
            raise _not_believed(path, error.strerror or str(error)) from error
        try:
            stat = os.fstat(self._fd)
            if not is_trusted(stat.st_uid):
                raise _of_another(path)
            if stat.st_mode & 0o077:
                raise _not_believed(path, "other users can enter it", "Close it with `chmod 700`, if it is yours.")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder. May be called again."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, name: str) -> str:
        """Return the text of a file that only this user, or root, can have read or written.

        Raises FileNotFoundError, PermissionError, DiscoveryFailed.
        """
        descriptor = self._open(name)
        try:
            return os.read(descriptor, _MAX_BYTES).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)

    def has_listener(self) -> bool:
        """Return whether the daemon's Unix socket exists, and a process listens on it.

        Raises DiscoveryFailed if something else is in its place.
        """
        try:
            info = os.stat(SOCKET_FILE, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISSOCK(info.st_mode):
            raise _not_believed(self.path / SOCKET_FILE, "it is not a socket")
        if not is_trusted(info.st_uid):
            raise _not_believed(self.path / SOCKET_FILE, "it belongs to another user")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.setblocking(False)
            try:
                connection.connect(self.socket_address)
            except BlockingIOError:
                return True  # the listener is busy
            except OSError:
                return False
        return True

    @property
    def socket_address(self) -> str:
        """The socket's address while the folder is open, by its descriptor, as an address has at most 107 bytes."""
        return f"/proc/self/fd/{self._fd}/{SOCKET_FILE}"

    def daemon_runs(self) -> bool:
        """Return whether the lock is held by a live process of this user, or root, that the lock file names.

        Never blocks. Raises DiscoveryFailed.
        """
        try:
            descriptor = self._open(_LOCK_FILE)
        except (FileNotFoundError, PermissionError):
            return False
        try:
            named = os.pread(descriptor, 32, 0).strip()
            # Check the process first: trying the lock could disturb a daemon that is just starting.
            if not named.isdigit() or not is_trusted(Path(f"/proc/{int(named)}").stat().st_uid):
                return False
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False

    def _open(self, name: str) -> int:
        path = self.path / name
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=self._fd)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as error:
            raise _not_believed(path, error.strerror or str(error)) from error
        status = os.fstat(descriptor)
        for wrong, why in (
            (not stat.S_ISREG(status.st_mode), "it is not a regular file"),
            (not is_trusted(status.st_uid), "it belongs to another user"),
            (status.st_mode & 0o077, "other users can read or write it"),
        ):
            if wrong:
                os.close(descriptor)
                raise _not_believed(path, why)
        return descriptor


def is_trusted(uid: int) -> bool:
    """Return whether that user's files and processes can be trusted: they are this user's, or root's."""
    return uid in (os.geteuid(), 0)


def _of_another(path: Path) -> NotAuthorised:
    remedy = "Set CLAUDOMATOR_URL to where its daemon listens, and CLAUDOMATOR_TOKEN to a token that it takes."
    return NotAuthorised(f"The state folder {path} belongs to another user.", remedy=remedy)


def _not_believed(path: Path, why: str, remedy: str = "Remove it and start the daemon again.") -> DiscoveryFailed:
    return DiscoveryFailed(f"{path} is not trusted: {why}.", remedy=remedy)
