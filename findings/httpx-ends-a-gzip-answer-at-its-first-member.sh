#!/usr/bin/env bash
# httpx 0.28.1 (PyPI): of an answer with `Content-Encoding: gzip` whose body has several members, only the first comes
# out. There is no error, and the status is 200.
#
# gzip files may be joined: `cat a.gz b.gz` is a valid file with the content of both, and so are a log that is appended
# to in pieces, an export that a bucket serves as it lies there, and what a server compresses piece by piece with a new
# member each. By RFC 9110 the coding is the format of RFC 1952, in which a file "consists of a series of members".
# requests 2.34.2, aiohttp 3.14.5 and the fetch of Node.js 20.20.2 return all of it, as gzip does; httpx leaves the rest
# in unused_data of zlib. iter_bytes(), iter_lines() and a stream end there, too. The SDKs of OpenAI, Anthropic and MCP
# are made with httpx. With zstd, httpx returns all frames.
# So of four lines of a log one is left, and each line that is left is whole. Ask for `Accept-Encoding: identity`.
# Source: https://www.rfc-editor.org/rfc/rfc1952#section-2.2, https://www.rfc-editor.org/rfc/rfc9110#name-gzip-coding,
# httpx/_decoders.py (GZipDecoder).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check httpx==0.28.1 requests==2.34.2 aiohttp==3.14.5 \
    zstandard==0.25.0 2>/dev/null
cat >"$folder/try.py" <<'PYTHON'
import asyncio
import gzip
import http.server
import json
import subprocess
import threading

import aiohttp
import httpx
import requests
import zstandard

LINES = [json.dumps({"event": number}).encode() + b"\n" for number in range(4)]
BODIES = {
    "gzip": b"".join(map(gzip.compress, LINES)),
    "zstd": b"".join(map(zstandard.compress, LINES)),
}
assert gzip.decompress(BODIES["gzip"]) == b"".join(LINES)


class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        coding = self.path[1:]
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("content-encoding", coding)
        self.send_header("content-length", str(len(BODIES[coding])))
        self.end_headers()
        self.wfile.write(BODIES[coding])

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/gzip"


async def by_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


async def by_httpx():
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
        return "\n".join([line async for line in answer.aiter_lines()])


with httpx.Client(trust_env=False) as client, requests.Session() as session:
    session.trust_env = False
    texts = {
        "httpx": client.get(url).text,
        "httpx, a stream of lines": asyncio.run(by_httpx()),
        "httpx, zstd": client.get(url.replace("gzip", "zstd")).text,
        "requests": session.get(url).text,
        "aiohttp": asyncio.run(by_aiohttp()),
        "fetch": subprocess.check_output(
            ["node", "-e", "fetch(process.argv[1]).then(r => r.text()).then(console.log)", url], text=True
        ),
    }
seen = {name: len(text.strip().splitlines()) for name, text in texts.items()}
for name, count in seen.items():
    print(f"{name}: {count} of {len(LINES)} lines")
expected = dict.fromkeys(texts, 4) | {"httpx": 1, "httpx, a stream of lines": 1}
assert seen == expected, "it has changed"
PYTHON
env -u NODE_OPTIONS "$folder/venv/bin/python" "$folder/try.py"
