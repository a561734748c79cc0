"""The sockets to listen on, and the state folder: created if missing, owned by this user and closed to others."""

import os
import socket
import stat
from pathlib import Path

from claudomator_py.api.endpoint import bind, bind_own, parse_listen
from claudomator_py.domain.errors import CannotServe
from claudomator_py.domain.remote import is_loopback
from claudomator_py.log import get_logger
from claudomator_py.private_files import UNFINISHED
from claudomator_py.schema.trust import exposed_state

log = get_logger("claudomator")


class CannotListen(CannotServe):
    """The address cannot be listened on; the message gives the reason and the remedy."""


def open_sockets(address: str, state: Path) -> list[socket.socket]:
    """Return a TCP socket on the address and, if the file system allows one, a Unix socket in the state folder.

    Raises CannotListen, ValueError.
    """
    host, _ = parse_listen(address)
    if not is_loopback(host):
        log.warning("listening_to_others", address=address, note="the token is all that protects it")
    try:
        tcp = bind(address)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {address} ({error.strerror}); choose another http.listen, or port 0 for a free one"
        ) from error
    try:
        return [tcp, bind_own(state)]
    except OSError as error:
        log.warning("no_unix_socket", state=str(state), problem=str(error), note="commands of this user connect by TCP")
        return [tcp]


PRIVATE = 0o700


class StateExposed(CannotServe):
    """Others could read or replace the state folder's content; the message gives the reason and the remedy."""


def make_private(state: Path) -> None:
    """Make the folder (0700) and any missing parents, or close an existing folder to other users.

    Raises StateExposed, OSError; an exposed path is refused before anything is made or changed.
    """
    _refuse_exposed(state)
    for folder in (*reversed(state.parents), state):
        if not folder.exists():
            folder.mkdir(mode=PRIVATE)
    descriptor = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise StateExposed(f"{state} was exchanged a moment ago; see who can write to the folders above it")
        os.fchmod(descriptor, PRIVATE)
        # A file system without permissions reports success and does nothing.
        if (mode := stat.S_IMODE(os.fstat(descriptor).st_mode)) & 0o077:
            raise StateExposed(
                f"{state} stays open to other users (mode {mode:04o}): its file system keeps no permissions; "
                "choose another state_dir, or mount it with umask=077"
            )
    except OSError as error:
        # A call on a descriptor names no path.
        error.filename = error.filename or str(state)
        raise
    finally:
        os.close(descriptor)


def _refuse_exposed(state: Path) -> None:
    problem = exposed_state(state)
    if problem is not None:
        raise StateExposed(str(problem))


def remove_leftovers(state: Path) -> None:
    """Remove temporary files that a killed daemon left behind; the lock is held, so nobody uses them.

    Also remove pages with login links of an earlier daemon, which this one does not know.
    """
    for pattern in (UNFINISHED, f"backups/{UNFINISHED}", "login-*.html"):
        for path in state.glob(pattern):
            path.unlink(missing_ok=True)
