"""Who is at the other end of a connection, according to the kernel.

When a daemon is killed, any user of the machine can listen at its address. So before the token of this user's own
daemon is sent, the other end must prove to be a process of this user, or root's.
"""

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from claudomator_py.client import NotAuthorised
from claudomator_py.client.state_folder import is_trusted

_TABLES = ("tcp", "tcp6")
_ESTABLISHED, _LISTEN = 0x01, 0x0A
_ANY_IPV4, _ANY_IPV6 = ipaddress.IPv4Address(0), ipaddress.IPv6Address(0)
_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid

Address = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]
"""IP address and port of a TCP socket. An IPv4-mapped IPv6 address is given as IPv4."""


class _Row(NamedTuple):
    """A TCP socket of this machine. inode: 0 if no process has it, such as a connection not yet accepted."""

    local: Address
    remote: Address
    state: int
    uid: int
    inode: int


def check_peer(connection: socket.socket, tables: Path = Path("/proc/net")) -> None:
    """Raise NotAuthorised unless the connection's other end is a process of this user, or root's.

    tables: the folder of the kernel's tables of TCP sockets.
    """
    if connection.family == socket.AF_UNIX:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        owners = {_CREDENTIALS.unpack(credentials)[1]}
        where = "the daemon's socket"
    else:
        there, here = _address(connection.getpeername()), _address(connection.getsockname())
        owners = _owners(there, here, tables)
        where = f"{there[0]} port {there[1]}"
    foreign = sorted(uid for uid in owners if not is_trusted(uid))
    if foreign:
        raise NotAuthorised(
            f"A process of another user (uid {foreign[0]}) listens at {where}, so the token is not sent to it.",
            remedy="Start your own daemon with `claudomator serve`. To use another user's, set CLAUDOMATOR_URL and "
            "CLAUDOMATOR_TOKEN.",
        )
    if not owners:
        raise NotAuthorised(
            f"The owner of the process that listens at {where} is unknown, so the token is not sent to it.",
            remedy="Set CLAUDOMATOR_URL and CLAUDOMATOR_TOKEN, if you trust it.",
        )


def _owners(there: Address, here: Address, tables: Path) -> set[int]:
    """Return the users at the other end of a connection: of the listener, and of the process that has accepted it."""
    rows = [row for row in _rows(tables, there[1]) if row.local[1] == there[1]]
    accepted = {
        row.uid for row in rows if (row.local, row.remote, row.state) == (there, here, _ESTABLISHED) and row.inode
    }
    listening = [row for row in rows if row.state == _LISTEN]
    # In the kernel's order of preference: a listener on the IPv6 wildcard may get IPv4 connections as well.
    wildcards = (_ANY_IPV4, _ANY_IPV6) if there[0].version == 4 else (_ANY_IPV6,)
    for address in (there[0], *wildcards):
        if uids := {row.uid for row in listening if row.local[0] == address}:
            return accepted | uids
    return accepted


def _rows(tables: Path, port: int) -> Iterator[_Row]:
    """Yield the sockets with that local port; none if the kernel does not list them."""
    suffix = f":{port:04X}"
    for name in _TABLES:
        try:
            lines = (tables / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[1].endswith(suffix):
                yield _Row(_parsed(words[1]), _parsed(words[2]), int(words[3], 16), int(words[7]), int(words[9]))


def _parsed(text: str) -> Address:
    """Return an address of ``/proc/net/tcp``: 32-bit words in the machine's byte order, and the port."""
    host, _, port = text.partition(":")
    words = (int(host[start : start + 8], 16) for start in range(0, len(host), 8))
    return _plain(ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))), int(port, 16)


def _address(name: tuple[object, ...]) -> Address:
    """Return an address of a Python socket."""
    host, port = name[:2]
    return _plain(ipaddress.ip_address(str(host).partition("%")[0])), int(str(port))


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
