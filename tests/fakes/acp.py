"""A scripted agent that speaks ACP, started as a program: ``python acp.py [SCRIPT LOG]``.

The script is a JSON document: what it answers to each request, or how it misbehaves there, and the steps of its turn.
What it hears goes to the log, a line each. The standard library alone, and what takes long to import where it is used:
hundreds are started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SESSION = "session-1"
INITIALIZED = {
    "protocolVersion": 1,
    "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
    "agentInfo": {"name": "scripted", "version": "1.0"},
}
OFFERED = {
    "configOptions": [
        {
            "id": "model",
            "category": "model",
            "type": "select",
            "currentValue": "usual",
            "options": [{"value": "usual", "name": "Usual"}, {"value": "a-model", "name": "A model"}],
        }
    ]
}
ASKED = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Scripted:
    """The agent. script: see ``turn`` for the steps; by request, ``answers`` and ``faults``."""

    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self._script = script
        self._log = log
        self._prompt: object = None

    def run(self) -> None:
        """Serve until the input ends, or later."""
        if self._script.get("ignores_term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for line in self._script.get("noise", []):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        while (message := self._hear()) is not None:
            self._take(message)
        if self._script.get("ignores_eof"):
            time.sleep(3600)

    def _hear(self) -> dict[str, Any] | None:
        line = sys.stdin.readline()
        if not line:
            return None
        with self._log.open("a") as log:
            log.write(line)
        results: dict[str, Any] = json.loads(line)
        return results

    def _say(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "session/cancel":
            if (answer := self._script.get("on_cancel")) is not None:
                self._say({"id": self._prompt, **answer})
            return
        if not isinstance(method, str) or "id" not in message:
            return
        fault = self._script.get("faults", {}).get(method)
        if fault == "hang":
            return
        if fault == "die":
            sys.stderr.write("it could not go on\n")
            os._exit(7)
        for step in self._script.get("before", {}).get(method, []):
            self._step(step)
        if method == "session/prompt":
            self._prompt = message["id"]
            for step in self._script.get("turn", [{"say": "Done."}, {"end": {}}]):
                self._step(step)
            return
        answer = self._script.get("answers", {}).get(method) or {"result": self._usual(method)}
        self._say({"id": self._as_sent(message["id"]), **answer})
        for step in self._script.get("after", {}).get(method, []):
            self._step(step)

    def _as_sent(self, number: object) -> object:
        return str(number) if self._script.get("ids_as_text") else number

    def _usual(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            return {**INITIALIZED, **self._script.get("initialized", {})}
        if method in ("session/new", "session/load", "session/resume"):
            session = {"sessionId": SESSION} if method == "session/new" else {}
            return {**session, **self._script.get("session", OFFERED)}
        return {}

    def _step(self, step: dict[str, Any]) -> None:
        match next(iter(step)):
            case "say":
                piece = {"content": {"type": "text", "text": step["say"]}, **step.get("more", {})}
                self._update("agent_message_chunk", piece)
            case "big":
                self._update("agent_message_chunk", {"content": {"type": "text", "text": "x" * int(step["big"])}})
            case "think":
                self._update("agent_thought_chunk", {"content": {"type": "text", "text": step["think"]}})
            case "update":
                payload = dict(step["update"])
                self._update(payload.pop("sessionUpdate"), payload)
            case "tell":
                self._say({"method": step["tell"], "params": step.get("params", {})})
            case "raw":
                sys.stdout.write(f"{step['raw']}\n")
                sys.stdout.flush()
            case "request":
                self._request(step["request"], step.get("id", "a1"), step.get("params", {}))
            case "ask":
                self._ask(step)
            case "write":
                path = Path(step["write"])
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write("".join(f"{json.dumps(line)}\n" for line in step["lines"]))
            case "wait":
                time.sleep(step["wait"])
            case "until_cancelled":
                while (message := self._hear()) is not None:
                    self._take(message)
                    if message.get("method") == "session/cancel":
                        break
            case "start":
                import subprocess

                subprocess.Popen(step["start"], start_new_session=bool(step.get("apart")))
            case "die":
                os._exit(int(step["die"]))
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "error":
                self._say({"id": self._prompt, "error": step["error"]})
            case "end":
                self._say({"id": self._as_sent(self._prompt), "result": {"stopReason": "end_turn", **step["end"]}})

    def _update(self, kind: str, payload: dict[str, Any]) -> None:
        update = {"sessionUpdate": kind, **payload}
        self._say({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})

    def _request(self, method: str, request: object, params: dict[str, Any]) -> dict[str, Any]:
        self._say({"id": request, "method": method, "params": params})
        while (message := self._hear()) is not None:
            if "method" not in message and message.get("id") == request:
                return message
            self._take(message)
        sys.exit(3)

    def _ask(self, step: dict[str, Any]) -> None:
        """Ask for leave, and do it if it is given: ``does`` is what is made then."""
        params = {"sessionId": SESSION, "toolCall": step["ask"], "options": step.get("options", ASKED)}
        answer = self._request("session/request_permission", step.get("id", 0), params)
        chosen = answer["result"]["outcome"].get("optionId")
        if chosen in ("yes", "always") and "does" in step:
            Path(step["does"]).write_text("made\n")


if __name__ == "__main__":
    script, log = sys.argv[1:] or ("", os.devnull)
    Scripted(json.loads(Path(script).read_text()) if script else {}, Path(log)).run()
