#!/usr/bin/env bash
# With http_proxy set, which requests for a service of one's own go to the proxy all the same, by the form of no_proxy:
# requests 2.34.2, httpx 0.28.1, httpx2 2.16.2 and aiohttp 3.14.5 with trust_env=True (PyPI), urllib of Python 3.11,
# axios 1.21.1 and undici 7.30.2 with EnvHttpProxyAgent (npm), curl 7.88.1 (Debian 12). "-" is direct.
#
#   for               no_proxy           requests  httpx  httpx2  aiohttp  urllib  axios  undici  curl
#   127.0.0.1         (not set)          proxy     proxy  proxy   proxy    proxy   proxy  proxy   proxy
#   127.0.0.1         127.0.0.1          -         -      -       -        -       -      -       -
#   127.0.0.1         127.0.0.0/8        -         proxy  -       proxy    proxy   -      proxy   -
#   127.0.0.1:PORT    127.0.0.1:PORT     proxy     -      -       proxy    -       -      -       proxy
#   a.localhost       .localhost         -         -      -       -        -       -      -       -
#   a.localhost       *.localhost        proxy     proxy  -       proxy    proxy   -      -       proxy
#   a.localhost       localhost          -         proxy  proxy   -        -       proxy  -       -
#   127.0.0.1         one 127.0.0.1      proxy     proxy  proxy   proxy    proxy   -      -       -
#
# The variable has no definition. What each client knows is the exact name or address, between commas, and for what is
# below a name, that name behind a dot. None has loopback direct by itself. OpenAI's SDK for Python has moved from httpx
# (2.54.0) to httpx2 (3.57.0): with 127.0.0.0/8, a model on the machine itself was asked through the proxy before, and
# is not now. A proxy that cannot reach it answers 502 or 504, which is retried as an outage of the service.
# Source: https://about.gitlab.com/blog/we-need-to-talk-no-proxy/
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check requests==2.34.2 httpx==0.28.1 httpx2==2.16.2 \
    aiohttp==3.14.5 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" axios@1.21.1 undici@7.30.2 >/dev/null
cd "$folder"
cat >axios.cjs <<'JS'
require("axios").get(process.argv[2]);
JS
cat >undici.cjs <<'JS'
const { EnvHttpProxyAgent, request } = require("undici");
request(process.argv[2], { dispatcher: new EnvHttpProxyAgent() }).then(() => process.exit());
JS
cat >of_aiohttp.py <<'PYTHON'
import asyncio, sys

import aiohttp


async def ask():
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(sys.argv[1]):
        pass


asyncio.run(ask())
PYTHON
venv/bin/python - <<'PYTHON'
import http.server, os, subprocess, threading


class Service(http.server.BaseHTTPRequestHandler):
    """Both the proxy and the service."""

    def do_GET(self):
        asked.append(self.server)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_CONNECT = do_GET  # by which undici asks a proxy

    def log_message(self, *_):
        pass


asked = []
proxy, service = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) for _ in range(2)]
for server in (proxy, service):
    threading.Thread(target=server.serve_forever, daemon=True).start()
PORT, PYTHON = service.server_port, ["venv/bin/python", "-c"]
CLIENTS = {
    "requests": [*PYTHON, "import requests, sys; requests.get(sys.argv[1])"],
    "httpx": [*PYTHON, "import httpx, sys; httpx.get(sys.argv[1])"],
    "httpx2": [*PYTHON, "import httpx2, sys; httpx2.get(sys.argv[1])"],
    "aiohttp": ["venv/bin/python", "of_aiohttp.py"],
    "urllib": [*PYTHON, "import urllib.request, sys; urllib.request.urlopen(sys.argv[1])"],
    "axios": ["node", "axios.cjs"],
    "undici": ["node", "undici.cjs"],
    "curl": ["curl", "--silent"],
}
CASES = [
    ("127.0.0.1", ""),
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1", "127.0.0.0/8"),
    ("127.0.0.1", f"127.0.0.1:{PORT}"),
    ("a.localhost", ".localhost"),
    ("a.localhost", "*.localhost"),
    ("a.localhost", "localhost"),
    ("127.0.0.1", "one 127.0.0.1"),
]
seen = []
for host, no_proxy in CASES:
    env = {"PATH": os.environ["PATH"], "HOME": ".", "http_proxy": f"http://127.0.0.1:{proxy.server_port}"}
    by_proxy = []
    for name, command in CLIENTS.items():
        asked.clear()
        subprocess.run([*command, f"http://{host}:{PORT}/"], env=env | {"no_proxy": no_proxy}, stderr=-1, stdout=-1)
        if proxy in asked:
            by_proxy.append(name)
    seen.append(" ".join(by_proxy))
    print(f"{host}, no_proxy={no_proxy.replace(str(PORT), 'PORT')}: by the proxy: {seen[-1] or 'none'}", flush=True)
everybody = " ".join(CLIENTS)
assert seen == [
    everybody,
    "",
    "httpx aiohttp urllib undici",
    "requests aiohttp curl",
    "",
    "requests httpx aiohttp urllib curl",
    "httpx httpx2 axios",
    "requests httpx httpx2 aiohttp urllib",
], "it has changed"
PYTHON
