"""The protocol: JSON-RPC over standard input and output, one message a line (MCP, transport ``stdio``).

CLIs need four methods: ``initialize``, ``tools/list``, ``tools/call`` and ``ping``. Version 2026-07-28 has no
handshake: each request names its version, ``server/discover`` replaces ``initialize`` and ``ping``, and each result
names its type. Every message is answered or ignored; only the end of the input ends the server.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

from claudomator_py import __version__
from claudomator_py.agents.mcp_server import INSTRUCTIONS, TOOLS, Tool, ToolFailed
from claudomator_py.json_fields import refuse_constant

RUN_VARIABLE: Final = "CLAUDOMATOR_RUN"
TOKEN_VARIABLE: Final = "CLAUDOMATOR_RUN_TOKEN"  # noqa: S105 - the name of a variable
NEWEST: Final = "2025-11-25"
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", NEWEST)
"""Versions that ``initialize`` can agree on. They differ in nothing that this server does."""
STATELESS: Final = "2026-07-28"
"""The version without a handshake, which each request names."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SERVER: Final = {"name": "claudomator", "version": __version__}
CACHED_MS: Final = 3_600_000
"""How long a client may cache the list of tools, which does not change while the server runs."""
MAX_LINE_LENGTH: Final = 1024 * 1024
"""Bytes of a message; a longer one is refused."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
UNSUPPORTED_VERSION: Final = -32022

Answer = Callable[[Tool, Mapping[str, Any]], str]
"""Calls a tool of the run with arguments and returns its text. Raises ToolFailed."""


class Server(NamedTuple):
    """What the server offers. A tuple for the sake of import time, see ``Tool``."""

    instructions: str
    """For the model."""
    tools: Mapping[str, Mapping[str, Any]]
    """By name, in the form of ``tools/list``."""
    call: Callable[[str, Mapping[str, Any]], str]
    """Calls the tool of that name with arguments and returns its text. Raises ToolFailed."""


class _InvalidMessage(Exception):
    """A message that is answered with an error. code: of JSON-RPC. data: details for programs."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def main(argv: list[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Serve until the input ends. argv: the daemon's state folder alone. environ: the run's."""
    words = sys.argv[1:] if argv is None else argv
    server = server_for(words, os.environ if environ is None else environ)
    if server is None:
        sys.stderr.write(f"Only the agent of a run can start this, with {RUN_VARIABLE} and {TOKEN_VARIABLE} set.\n")
        return 2
    serve_here(server)
    return 0


def serve_here(server: Server) -> None:
    """Serve over this process's standard input and output, until either ends."""
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, server)
    except (BrokenPipeError, KeyboardInterrupt):
        return


def server_for(words: Sequence[str], variables: Mapping[str, str]) -> Server | None:
    """Return a server that passes calls to the daemon; None: not in a run. words: the daemon's state folder alone."""
    run_id, token = variables.get(RUN_VARIABLE), variables.get(TOKEN_VARIABLE)
    if len(words) != 1 or not run_id or not token:
        return None

    def answer(tool: Tool, arguments: Mapping[str, Any]) -> str:
        # Imported late, as HTTP takes longer than everything else: a call needs it, the start of a run does not.
        from pathlib import Path

        from claudomator_py.agents.mcp_server.daemon import DaemonClient

        return tool.call(DaemonClient(Path(words[0]), run_id, token).ask, arguments)

    return run_server(answer)


def run_server(answer: Answer) -> Server:
    """Return a server with the tools of a run."""
    tools = {name: tool.described for name, tool in TOOLS.items()}
    return Server(INSTRUCTIONS, tools, lambda name, arguments: answer(TOOLS[name], arguments))


def serve(source: BinaryIO, sink: BinaryIO, server: Server) -> None:
    """Answer each line of source until it ends. Raises OSError if nobody reads the answers."""
    while line := source.readline(MAX_LINE_LENGTH + 1):
        if len(line) > MAX_LINE_LENGTH:
            while line and not line.endswith(b"\n"):
                line = source.readline(MAX_LINE_LENGTH)
            _write(sink, _error(None, INVALID_REQUEST, f"a message of more than {MAX_LINE_LENGTH} bytes"))
        elif line.strip() and (answer := reply(line, server)) is not None:
            _write(sink, answer)


def reply(line: bytes, server: Server) -> dict[str, Any] | None:
    """Return the answer to a message; None: it gets none."""
    try:
        message = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "not JSON")
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        # An answer to a request that was never made gets no answer.
        answered = isinstance(message, dict) and ("result" in message or "error" in message)
        return None if answered else _error(None, INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    if "id" not in message:
        return None
    asked = message["id"]
    if not isinstance(asked, str | int) or isinstance(asked, bool):
        return _error(None, INVALID_REQUEST, "the id is neither a string nor an integer")
    params = message.get("params")
    try:
        result = _result(message["method"], params if isinstance(params, dict) else {}, server)
    except _InvalidMessage as refused:
        return _error(asked, refused.code, str(refused), refused.data)
    return {"jsonrpc": "2.0", "id": asked, "result": result}


def _result(method: str, params: Mapping[str, Any], server: Server) -> dict[str, Any]:
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return _of_session(method, params, server)
    if meta[VERSION_KEY] != STATELESS:
        # Refused before anything is done: a client that cannot read the answer would send the call again.
        versions = {"supported": [STATELESS], "requested": str(meta[VERSION_KEY])[:100]}
        raise _InvalidMessage(UNSUPPORTED_VERSION, f"unsupported version of MCP; use {STATELESS}", versions)
    return {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}, **_of_request(method, params, server)}


def _of_request(method: str, params: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """Return the result of a request that names its version."""
    cached = {"ttlMs": CACHED_MS, "cacheScope": "private"}
    match method:
        case "server/discover":
            about = {
                "supportedVersions": [STATELESS],
                "capabilities": {"tools": {}},
                "instructions": server.instructions,
            }
            return {**about, **cached}
        case "tools/list":
            return {**_tools(server), **cached}
        case "tools/call":
            return _called(params, server)
    raise _InvalidMessage(METHOD_NOT_FOUND, f"no method {method[:100]!r}")


def _of_session(method: str, params: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """Return the result of a request in a session, whose version ``initialize`` agreed on, if at all."""
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else NEWEST,
                "capabilities": {"tools": {}},
                "serverInfo": SERVER,
                "instructions": server.instructions,
            }
        case "ping":
            return {}
        case "tools/list":
            return _tools(server)
        case "tools/call":
            return _called(params, server)
    raise _InvalidMessage(METHOD_NOT_FOUND, f"no method {method[:100]!r}")


def _tools(server: Server) -> dict[str, Any]:
    return {"tools": list(server.tools.values())}


def _called(params: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """Return the text for the model. A failure is text as well, so that the model can correct itself."""
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or name not in server.tools:
        raise _InvalidMessage(INVALID_PARAMS, f"no tool {str(name)[:100]!r}; there are {', '.join(server.tools)}")
    if not isinstance(arguments, dict):
        raise _InvalidMessage(INVALID_PARAMS, "`arguments` is not an object")
    try:
        return {"content": [{"type": "text", "text": server.call(name, arguments)}]}
    except ToolFailed as failed:
        return {"content": [{"type": "text", "text": str(failed)}], "isError": True}


def _error(asked: str | int | None, code: int, message: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": asked, "error": error}


def _write(sink: BinaryIO, message: Mapping[str, Any]) -> None:
    # ASCII, as an answer may contain a lone surrogate, which UTF-8 cannot encode.
    sink.write(json.dumps(message).encode("ascii") + b"\n")
    sink.flush()
