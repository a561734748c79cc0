"""The sockets that the daemon listens on: TCP for all, and a Unix socket for commands of its own user."""

import socket
from pathlib import Path

from claudomator_py.service.daemon_log import get_logger
from claudomator_py.web.endpoint import bind, bind_own, is_loopback, parse_listen

log = get_logger("claudomator")


class CannotListen(Exception):
    """The address cannot be listened on; the message says why and what to do."""


def open_sockets(address: str, state: Path) -> list[socket.socket]:
    """The TCP socket on that address, and the Unix socket in the state folder where its file system takes one.

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
