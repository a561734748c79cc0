"""Another user of the machine who opens connections and says nothing, thousands of them and ever new ones."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from tests.e2e.site import Site

ANSWERED_S = 10.0
"""The operator was locked out for ten seconds at a time. What an answer takes here is mostly the machine's business."""
MANY = 600
# Keeps as many as it may open, and a new one goes in place of the oldest all the time. Tells of every MANY.
SILENT = f"""
import collections, resource, socket, sys
host, port, word = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
most = min(3000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50)
kept = collections.deque()
count = 0
while True:
    try:
        kept.append(socket.create_connection((host, port), timeout=1))
        kept[-1].sendall(word)
    except OSError:
        continue
    if len(kept) >= most:
        kept.popleft().close()
    count += 1
    if count % {MANY} == 0:
        print(count, flush=True)
"""


@contextmanager
def silent(address: str, word: str) -> Iterator[IO[str]]:
    """While there are ever more of them; says when there are so many more."""
    host, _, port = address.rpartition(":")
    command = [sys.executable, "-I", "-S", "-c", SILENT, host, port, word]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


@pytest.mark.parametrize("word", ["", "GET / HTTP/1.1\r\nHost: "], ids=["nothing", "half a head"])
def test_they_keep_nobody_out(site: Site, word: str) -> None:
    daemon = site.start().ready()
    assert site.endpoint is not None
    address = site.endpoint.removeprefix("http://")
    host, _, port = address.rpartition(":")
    with silent(address, word) as record:
        for number in range(1, 4):
            assert record.readline() == f"{number * MANY}\n"
            begin_s = time.monotonic()
            with socket.create_connection((host, int(port)), timeout=ANSWERED_S) as sock:
                sock.sendall(f"GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - begin_s < ANSWERED_S
        assert daemon.client.status() is not None
    assert daemon.stop() == 0
