"""What the simulated agents talk to: accounts with quota windows, logins and outages, behind HTTP on loopback.

It is the truth of the night: what was really asked for, what was refused, and what was done. The daemon has no part in
it, and kills of the daemon do not touch it.
"""

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self

from tests.simulation.accounts import Account

Verdict = Literal["work", "success", "fail", "limited", "auth", "overloaded", "network"]
Trouble = Literal["overloaded", "network"]
_WORK = re.compile(r"units=(\d+) fails=(\d+)")


def now_ms() -> int:
    """The time, as the daemon has it."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a run. number: 1 is its first. reset_at: of a limit, whether it was told (reported) or not."""

    at_ms: int
    service: str
    run_id: str
    task_id: str
    attempt: int
    number: int
    verdict: Verdict
    reset_at: int | None = None
    reported: bool = False


@dataclass
class Service:
    """What one agent talks to. silent: of which of its limits, by number from 0, it does not say when they reset."""

    account: Account
    silent: frozenset[int] = frozenset()
    logged_in: bool = True
    trouble: Trouble | None = None
    resets: list[int] = field(default_factory=list)

    def refuse(self, now: int) -> tuple[int, bool] | None:
        """Take a unit, or be refused: when it resets, and whether that is told."""
        refusal = self.account.take(now)
        if refusal is None:
            return None
        if refusal.reset_at not in self.resets:
            self.resets.append(refusal.reset_at)
        return refusal.reset_at, self.resets.index(refusal.reset_at) not in self.silent


class Outside:
    """All services on one server; in a ``with`` block. effects: where each task that is done writes its name, once."""

    def __init__(self, services: Mapping[str, Service], unit_ms: int, effects: Path) -> None:
        self.services = services
        self.turns: list[Turn] = []
        self.done = 0
        self._unit_ms = unit_ms
        self._effects = effects
        self._left: dict[str, int] = {}
        self._failing: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._effects.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, service: str) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_port}/{service}"

    def effects(self) -> list[str]:
        """The tasks that were done, by id, as often as they were."""
        return self._effects.read_text().split()

    def answer(self, name: str, sent: Mapping[str, Any]) -> str | None:
        """The line to go on with; None: no answer."""
        with self._lock:
            now, service = now_ms(), self.services[name]
            verdict, reset_at, reported = self._judge(service, sent, now)
            self.turns.append(
                Turn(
                    now,
                    name,
                    str(sent["run"]),
                    str(sent["task"]),
                    int(sent["attempt"]),
                    int(sent["turn"]),
                    verdict,
                    reset_at,
                    reported,
                )
            )
            match verdict:
                case "work":
                    return f"delay={self._unit_ms}ms service={self.url(name)}"
                case "network":
                    return None
                case "limited" if reset_at is not None and reported:
                    return f"outcome=limited(reset={max(0, reset_at - now)}ms)"
                case "success":
                    with self._effects.open("a") as effects:
                        effects.write(f"{sent['task']}\n")
                    self.done += 1
            return f"outcome={verdict}"

    def _judge(self, service: Service, sent: Mapping[str, Any], now: int) -> tuple[Verdict, int | None, bool]:
        if not service.logged_in:
            return "auth", None, False
        if service.trouble is not None:
            return service.trouble, None, False
        conversation = str(sent["conversation"])
        if conversation not in self._left:
            match = _WORK.search(str(sent["prompt"]))
            assert match is not None, f"a conversation began without its task: {sent['prompt']!r}"
            self._left[conversation], self._failing[conversation] = int(match[1]), int(match[2])
        if self._left[conversation] > 0:
            refused = service.refuse(now)
            if refused is not None:
                return "limited", *refused
            self._left[conversation] -= 1
            return "work", None, False
        return "fail" if int(sent["attempt"]) <= self._failing[conversation] else "success", None, False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        line = self.server.outside.answer(self.path.strip("/"), sent)
        if line is None:
            self.close_connection = True
            return
        body = line.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the turns say it all."""
