"""Whether anyone is writing to a file: a read lease, which the kernel grants only where no writer has the file open.

A lease also makes a program that opens the file for writing wait until the lease is given back, so what is read under
it is one state of the file. It sees the writers of this machine only; on file systems that others write to as well,
and where there are no leases, nothing is known and the caller has to wait until the file is quiet.
"""

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

_SHARED_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "ocfs2"}
    | {"smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)


class Writers(Enum):
    """Who has the file open for writing."""

    NONE = "none"
    SOME = "some"
    UNKNOWN = "unknown"


@contextlib.contextmanager
def read_lease(fd: int) -> Iterator[Writers]:
    """Hold a read lease on the file, where it is granted; it is given back on leaving. fd: opened for reading only."""
    writers = _take(fd)
    try:
        yield writers
    finally:
        if writers is Writers.NONE:
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _take(fd: int) -> Writers:
    if not hasattr(fcntl, "F_SETLEASE"):
        return Writers.UNKNOWN
    try:
        # A writer who comes is announced by a signal. The default, SIGIO, would end the process; SIGURG is ignored.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return Writers.SOME if error.errno == errno.EAGAIN else Writers.UNKNOWN
    return Writers.NONE


def written_elsewhere(device: int, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether other machines, or a program behind the file system, may write to this device unseen by leases."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            kind = source.split(" ", 1)[0]
            return kind.split(".", 1)[0] in _SHARED_FILE_SYSTEMS
    return False
