#!/usr/bin/env bash
# Uvicorn 0.54.0 (PyPI), `--fd`: a TCP socket that is handed over, as by systemd's socket activation, answers 40 ms later.
#
# asyncio sets TCP_NODELAY on connections whose family is AF_INET or AF_INET6. Uvicorn takes the socket of `--fd` for a
# Unix one, whatever it is: socket.fromfd(fd, AF_UNIX, SOCK_STREAM). That listens and accepts as before, but asyncio no
# longer sees TCP, so Nagle's algorithm stays on: the second piece of a streamed answer waits until the client has
# acknowledged the first, which Linux puts off by 40 ms. The same application on the same socket opened by `--port`
# needs about a millisecond. Nothing is logged, but for "running on socket ('127.0.0.1', ...)" in place of an address.
# Source: https://www.uvicorn.org/deployment/ (socket activation), asyncio/base_events.py (_set_nodelay)
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check uvicorn==0.54.0 2>/dev/null
cat >"$folder/app.py" <<'PYTHON'
async def app(scope, receive, send):
    """Answer in two pieces, as any streaming response does."""
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"ab", "more_body": True})
    await send({"type": "http.response.body", "body": b"cd"})
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" - <<'PYTHON'
import http.client, socket, statistics, subprocess, sys, time


def milliseconds(by_fd):
    """Return how long each of 30 requests on one connection took, and where Uvicorn says it runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    where = ["--fd", str(listener.fileno())] if by_fd else ["--port", str(port)]
    passed = (listener.fileno(),) if by_fd else ()
    if not by_fd:
        listener.close()
    command = [sys.executable, "-m", "uvicorn", "app:app", "--loop", "asyncio", "--http", "h11", "--no-access-log"]
    server = subprocess.Popen([*command, *where], pass_fds=passed, stderr=subprocess.PIPE, text=True)
    runs_on = next(line for line in server.stderr if "running on" in line)
    connection, took = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(30):
        began = time.perf_counter()
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"abcd"
        took.append((time.perf_counter() - began) * 1000)
    server.terminate()
    server.wait()
    return took, runs_on.split("running on ")[1].rpartition(" (")[0].replace(str(port), "PORT")


medians = {}
for name, by_fd in (("--port", False), ("--fd", True)):
    took, where = milliseconds(by_fd)
    medians[name] = statistics.median(took)
    print(f"{name:6} on {where}: {medians[name]:.0f} ms a request (median of 30)", flush=True)
assert medians["--fd"] > medians["--port"] + 25, "it has changed"
PYTHON
# Seen with Python 3.11 on Linux, twice, 2026-11:
# --port on http://127.0.0.1:PORT: 1 ms a request (median of 30)
# --fd   on socket ('127.0.0.1', PORT): 44 ms a request (median of 30)
