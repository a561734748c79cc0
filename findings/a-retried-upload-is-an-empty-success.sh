#!/usr/bin/env bash
# requests 2.34.2, httpx 0.28.1, aiohttp 3.14.5 and urllib3 2.7.0, with tenacity 9.2.1 (PyPI): an upload is refused with
# 503, the retry of the same call succeeds with 200, and what has arrived is empty.
#
#                            the retry with a file    with a generator    with files={"log": file}
#   requests                 200, empty               200, empty          200, a part of no bytes
#   httpx                    LocalProtocolError       200, empty          200, whole
#   aiohttp                  ValueError               200, empty
#   urllib3, its own Retry   200, whole
#
# The first attempt has read the file to its end, and nobody goes back: requests sends what is left from there, with
# `Content-Length: 0`; httpx goes back for files= alone; aiohttp has closed it. A generator is used up for all three.
# urllib3 remembers where the body began. So a log or an artifact that is uploaded behind a retry is there, under its
# name, with no byte in it, just on the nights on which the service was busy, and the test that has the first attempt
# succeed passes. Open the file, and call the generator, inside of what is retried.
# Source: https://requests.readthedocs.io/en/latest/user/advanced/#streaming-uploads,
# https://www.python-httpx.org/quickstart/#sending-binary-request-data, silent about a second attempt.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5 \
    urllib3==2.7.0 tenacity==9.2.1 2>/dev/null
cat >"$folder/try.py" <<'PYTHON'
import asyncio
import http.server
import pathlib
import threading

import aiohttp
import httpx
import requests
import tenacity
import urllib3

LOG = b"all tests have passed\n"
here = pathlib.Path(__file__).parent
(here / "log").write_bytes(LOG)
arrived = {}  # bodies by path


class Service(http.server.BaseHTTPRequestHandler):
    """Refuses the first request to each path, and accepts the next."""

    def do_POST(self):
        if "content-length" in self.headers:
            body = self.rfile.read(int(self.headers["content-length"]))
        else:
            body = b""
            while size := int(self.rfile.readline() or b"0", 16):
                body += self.rfile.read(size + 2)[:size]
            self.rfile.readline()
        (bodies := arrived.setdefault(self.path, [])).append(body)
        self.send_response(503 if len(bodies) == 1 else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()


def by_requests(url, **body):
    return requests.post(url, **body, proxies={"http": ""}).raise_for_status()


def by_httpx(url, **body):
    return httpx.post(url, **body, trust_env=False).raise_for_status()


def by_aiohttp(url, **body):
    async def post():
        async with aiohttp.ClientSession(raise_for_status=True) as session, session.post(url, **body):
            pass

    asyncio.run(post())


def by_urllib3(url, body):
    pool = urllib3.PoolManager(retries=urllib3.Retry(1, status_forcelist=[503], allowed_methods=None))
    pool.request("POST", url, body=body)


async def chunks():
    yield LOG


CASES = {
    "requests, a file": (by_requests, {"data": (here / "log").open("rb")}),
    "requests, a generator": (by_requests, {"data": iter([LOG])}),
    "requests, files=": (by_requests, {"files": {"log": (here / "log").open("rb")}}),
    "httpx, a file": (by_httpx, {"content": (here / "log").open("rb")}),
    "httpx, a generator": (by_httpx, {"content": (part for part in [LOG])}),
    "httpx, files=": (by_httpx, {"files": {"log": (here / "log").open("rb")}}),
    "aiohttp, a file": (by_aiohttp, {"data": (here / "log").open("rb")}),
    "aiohttp, a generator": (by_aiohttp, {"data": chunks()}),
    "urllib3, a file": (by_urllib3, {"body": (here / "log").open("rb")}),
}
seen = {}
for number, (name, (post, body)) in enumerate(CASES.items()):
    try:
        for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(2), reraise=True):
            with attempt:
                post(f"http://127.0.0.1:{server.server_port}/{number}", **body)
        seen[name] = f"200, {'whole' if LOG in arrived[f'/{number}'][-1] else 'empty'}"
    except Exception as error:
        seen[name] = type(error).__name__
    print(f"{name}: {seen[name]}")
expected = dict.fromkeys(CASES, "200, empty") | {
    "httpx, a file": "LocalProtocolError",
    "httpx, files=": "200, whole",
    "aiohttp, a file": "ValueError",
    "urllib3, a file": "200, whole",
}
assert seen == expected, "it has changed"
PYTHON
env -u http_proxy -u all_proxy "$folder/venv/bin/python" "$folder/try.py"
