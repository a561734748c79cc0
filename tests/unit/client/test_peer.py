"""Whose process answers on a connection, by the real tables of the kernel."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from claudomator_py.api.endpoint import bind_own
from claudomator_py.client import NotAuthorised, peer
from claudomator_py.client.discovery import Endpoint
from claudomator_py.client.http import Client
from claudomator_py.client.peer import check_peer
from tests.patience import PATIENCE_S

NOBODY = 65534


@contextmanager
def listening(address: str, *, as_user: int | None = None, v6_only: bool = False) -> Iterator[socket.socket]:
    """A listener on a free port, of that user."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    own = os.geteuid()
    os.seteuid(own if as_user is None else as_user)
    try:
        sock = socket.socket(family)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(v6_only))
        sock.bind((address, 0))
        sock.listen()
    finally:
        os.seteuid(own)
    with sock:
        yield sock


@contextmanager
def connected(listener: socket.socket, host: str) -> Iterator[socket.socket]:
    with socket.create_connection((host, listener.getsockname()[1]), timeout=PATIENCE_S) as connection:
        yield connection


WAYS = [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "::1"), ("::", "::1")]
WAYS.append(("::ffff:127.0.0.1", "127.0.0.1"))


@pytest.mark.parametrize(("address", "host"), WAYS)
def test_our_own_listener_is_known_on_every_address(address: str, host: str) -> None:
    with listening(address) as listener, connected(listener, host) as connection:
        check_peer(connection)
        accepted, _ = listener.accept()
        with accepted:
            check_peer(connection)


@pytest.mark.needs_root
@pytest.mark.parametrize(("address", "host"), WAYS)
def test_the_listener_of_another_user_is_known_on_every_address(
    address: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(address, as_user=NOBODY) as listener, connected(listener, host) as connection:
        with pytest.raises(NotAuthorised, match="uid 65534"):
            check_peer(connection)
        monkeypatch.setattr(peer, "is_trusted", (NOBODY, 0).__contains__)
        check_peer(connection)
        with listening(address) as of_root, connected(of_root, host) as other:
            check_peer(other)


@pytest.mark.needs_root
def test_another_user_on_the_wildcard_of_ipv6_is_not_in_the_way_of_our_listener() -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(listening("127.0.0.1"))
        own = os.geteuid()
        os.seteuid(NOBODY)
        try:
            theirs = stack.enter_context(socket.socket(socket.AF_INET6))
            theirs.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            theirs.bind(("::", ours.getsockname()[1]))
            theirs.listen()
        finally:
            os.seteuid(own)
        check_peer(stack.enter_context(connected(ours, "127.0.0.1")))
        with pytest.raises(NotAuthorised):
            check_peer(stack.enter_context(connected(theirs, "::1")))


@pytest.mark.needs_root
def test_who_has_accepted_counts_even_when_the_listener_was_exchanged() -> None:
    """Another user takes the connection, stops listening, and lets our daemon have the port."""
    with listening("127.0.0.1", as_user=NOBODY) as theirs, connected(theirs, "127.0.0.1") as connection:
        port = theirs.getsockname()[1]
        os.seteuid(NOBODY)
        try:
            accepted, _ = theirs.accept()
        finally:
            os.seteuid(0)
        theirs.close()
        with accepted, socket.socket() as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ours.bind(("127.0.0.1", port))
            ours.listen()
            with pytest.raises(NotAuthorised, match="uid 65534"):
                check_peer(connection)


def test_a_kernel_that_does_not_tell_is_not_trusted(tmp_path: Path) -> None:
    with (
        listening("127.0.0.1") as listener,
        connected(listener, "127.0.0.1") as connection,
        pytest.raises(NotAuthorised, match="is unknown"),
    ):
        check_peer(connection, tables=tmp_path)


def overheard(listener: socket.socket, heard: list[bytes]) -> threading.Thread:
    """Takes one connection, and keeps what is sent on it."""

    def listen() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            heard.append(connection.recv(65536))

    thread = threading.Thread(target=listen)
    thread.start()
    return thread


@pytest.mark.needs_root
@pytest.mark.parametrize("over_unix", [False, True])
def test_nothing_is_sent_to_a_process_of_another_user(tmp_path: Path, *, over_unix: bool) -> None:
    heard: list[bytes] = []
    if over_unix:
        listener = bind_own(tmp_path)
        listener.setblocking(True)
        os.seteuid(NOBODY)
        try:
            listener.listen()  # the kernel remembers who listens
        finally:
            os.seteuid(0)
        endpoint = Endpoint("http://127.0.0.1:9", "t" * 40, own=tmp_path, socket=True)
    else:
        os.seteuid(NOBODY)
        try:
            listener = socket.create_server(("127.0.0.1", 0))
        finally:
            os.seteuid(0)
        endpoint = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", "t" * 40, own=tmp_path)
    with listener:
        thread = overheard(listener, heard)
        client = Client(endpoint.url, endpoint.token, own=endpoint.own, socket=endpoint.socket)
        with client, pytest.raises(NotAuthorised, match="another user"):
            client.status()
        thread.join()
    assert heard == [b""]
