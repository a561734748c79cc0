"""The files by which the daemon and clients of the same user find and trust each other."""

import os
import socket
import threading
from pathlib import Path

import pytest

from claudomator_py.api.endpoint import bind, bound_address, parse_listen, publish_endpoint, url_of, withdraw_endpoint
from claudomator_py.api.guard.operator_token import TokenFileError, ensure_token


def test_the_first_start_makes_a_token_that_only_its_owner_can_read(tmp_path: Path) -> None:
    token = ensure_token(tmp_path)
    path = tmp_path / "token"
    assert path.read_text() == token + "\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 32
    assert [file.name for file in tmp_path.iterdir()] == ["token"]


def test_later_starts_keep_the_token_and_folders_differ(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    token = ensure_token(tmp_path)
    assert ensure_token(tmp_path) == token
    assert ensure_token(tmp_path / "other") != token


def test_a_loose_umask_does_not_open_the_token(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ensure_token(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_all_that_start_at_once_get_one_token(tmp_path: Path) -> None:
    tokens: list[str] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        tokens.append(ensure_token(tmp_path))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 8
    assert len(set(tokens)) == 1


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_token_that_others_can_reach_is_not_used(tmp_path: Path, mode: int) -> None:
    ensure_token(tmp_path)
    (tmp_path / "token").chmod(mode)
    with pytest.raises(TokenFileError, match="Delete it"):
        ensure_token(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", b"two words in one line here\n", b"\xff" * 40, b"x" * 600])
def test_a_file_that_holds_no_token_is_not_used(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(TokenFileError, match="does not hold a token"):
        ensure_token(tmp_path)


def test_a_link_or_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x" * 40)
    (tmp_path / "token").symlink_to("real")
    with pytest.raises(TokenFileError):
        ensure_token(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "token").mkdir()
    with pytest.raises(TokenFileError, match="not a regular file"):
        ensure_token(tmp_path / "folder")


def test_the_endpoint_is_published_for_its_owner_and_withdrawn(tmp_path: Path) -> None:
    publish_endpoint(tmp_path, "http://127.0.0.1:1")
    publish_endpoint(tmp_path, "http://127.0.0.1:2")
    assert (tmp_path / "endpoint").read_text() == "http://127.0.0.1:2\n"
    assert (tmp_path / "endpoint").stat().st_mode & 0o777 == 0o600
    withdraw_endpoint(tmp_path)
    withdraw_endpoint(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("127.0.0.1:8484", ("127.0.0.1", 8484)), ("[::1]:0", ("::1", 0)), ("localhost:80", ("localhost", 80))],
)
def test_addresses_are_parsed(text: str, parsed: tuple[str, int]) -> None:
    assert parse_listen(text) == parsed


@pytest.mark.parametrize("text", ["", "8484", ":8484", "host", "host:", "host:x", "host:70000", "host:-1", "host:²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:8484"):
        parse_listen(text)


def test_a_free_port_is_told(tmp_path: Path) -> None:
    with bind("127.0.0.1:0") as sock:
        host, port = parse_listen(bound_address(sock))
        assert (host, url_of(sock)) == ("127.0.0.1", f"http://127.0.0.1:{port}")
        assert port > 0
        socket.create_connection((host, port), timeout=5).close()


def test_a_port_is_not_shared_with_another_daemon() -> None:
    with bind("127.0.0.1:0") as sock, pytest.raises(OSError, match="in use"):
        bind(bound_address(sock))


def test_the_url_for_every_address_is_one_that_can_be_reached() -> None:
    with bind("0.0.0.0:0") as sock:
        assert url_of(sock).startswith("http://127.0.0.1:")
