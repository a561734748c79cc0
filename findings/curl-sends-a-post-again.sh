#!/usr/bin/env bash
# curl 7.88.1 (Debian 12) and pycurl 7.49.0 (PyPI, libcurl 8.23.0), without --retry: a POST is sent a second time,
# without a word, where the server has read it, has done the work, and then closed the connection without an answer.
#
# It happens to each request that is not the first on its connection: the second of `curl -d x URL URL`, of a --config
# file with several, and all but the first of a handle of pycurl that is used again. libcurl takes the silence for a
# connection that had been idle too long, so it opens another and repeats the request, whatever the method. The server
# has had it: it was restarted while it worked, or killed by a limit on memory. So the task is submitted twice, both
# with exit code 0, and -v alone tells ("Connection died, retrying a fresh connect"). Of the HTTP clients of Python,
# aiohttp and urllib3 repeat a GET and none repeats a POST. Send an idempotency key, or have each request make its own
# connection (-H "Connection: close").
# Source: https://curl.se/libcurl/c/CURLOPT_FRESH_CONNECT.html, https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycurl==7.49.0 requests==2.34.2 httpx==0.28.1 \
    aiohttp==3.14.5 urllib3==2.8.0 2>/dev/null
env -i PATH="$PATH" HOME="$folder" "$folder/venv/bin/python" - <<'PYTHON'
import asyncio, io, re, socket, subprocess, threading

import aiohttp, httpx, pycurl, requests, urllib3


class Server:
    """Answers every request but the second of its first connection, which it reads and then closes."""

    def __init__(self):
        self.work, self.connections, self.socket = [], 0, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection, self.connections), daemon=True).start()

    def serve(self, connection, number):
        with connection, connection.makefile("rb") as file:
            count = 0
            while line := file.readline():
                head = b"".join(iter(file.readline, b"\r\n"))
                length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
                file.read(int(length[1]) if length else 0)
                self.work.append(line.split()[0].decode())
                count += 1
                if (number, count) == (1, 2):
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def curl(method, url):
    data = ["--data", "x"] if method == "POST" else []
    subprocess.run(["curl", "--silent", *data, url, url], stdout=-1, check=True)


def of_pycurl(method, url):
    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.WRITEDATA, io.BytesIO())
    if method == "POST":
        handle.setopt(pycurl.POSTFIELDS, "x")
    for _ in range(2):
        handle.perform()


def twice(client, **options):
    def ask(method, url):
        for _ in range(2):
            client.request(method, url, **(options if method == "POST" else {}))

    return ask


def of_aiohttp(method, url):
    async def ask():
        async with aiohttp.ClientSession() as session:
            for _ in range(2):
                async with session.request(method, url, data=b"x" if method == "POST" else None) as answer:
                    await answer.read()

    asyncio.run(ask())


clients = {
    "curl": curl,
    "pycurl": of_pycurl,
    "urllib3": twice(urllib3.PoolManager(), body=b"x"),
    "aiohttp": of_aiohttp,
    "requests": twice(requests.Session(), data=b"x"),
    "httpx": twice(httpx.Client(), content=b"x"),
}
seen = {}
for name, ask in clients.items():
    for method in ("GET", "POST"):
        server, end = Server(), "success"
        try:
            ask(method, server.url)
        except Exception as error:
            end = type(error).__name__
        seen[name, method] = server.work.count(method) - 1
        print(f"{name}, the second {method}: sent {seen[name, method]} time(s), {end}")
again = [(name, method) for name in ("curl", "pycurl") for method in ("GET", "POST")]
again += [("urllib3", "GET"), ("aiohttp", "GET")]
assert [key for key, times in seen.items() if times == 2] == again, "it has changed"
PYTHON
