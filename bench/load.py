"""An operator's day beside a crowd of strangers and without it, in turns: idle WebSockets, noisy agents of the hub, and
some of these flooding the daemon with progress of their runs.

Times are those of single answers over a connection that stays open, and of tasks of ``true`` from the request to
their end.
"""

import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.subjects import Claudomator, open_claudomator
from claudomator_py.resources.access import TokenRequest
from claudomator_py.store.database import MAX_SQLITE_READERS
from tests.e2e.crowd import Orders
from tests.e2e.processes import cpu_s
from tests.patience import wait_until

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
DAY_S = float(os.environ.get("BENCH_DAY_S", "5"))
IDLE = int(os.environ.get("BENCH_IDLE", "1000"))
NOISY = int(os.environ.get("BENCH_NOISY", "50"))
FLOODS = int(os.environ.get("BENCH_FLOODS", "4"))
STRANGERS = {"acme-1": "acme", "acme-2": "acme", "globex-1": "globex", "globex-2": "globex"}
"""Tokens of the crowd, and the organisation of each."""
SLOTS = 16
LISTED = 60
"""Tasks that there are at the beginning: as many as lists show."""
PAUSE_S = 0.02
"""Between two requests."""
READS = ("/v1/status", "/v1/tasks?limit=50", "/v1/tasks/{id}", "/v1/tasks/{id}/why", "/v1/agents", "/", "/livez")
AT_ONCE = 2 * MAX_SQLITE_READERS
"""Requests of a browser with some pages open: all connections to the database that there may be are open then."""
QUIET, CROWDED = "alone", "beside the crowd"
_LEAVES_IN_S = 5.0


def measure() -> None:
    """Print the table."""
    with open_claudomator({"limits": {"min_free": "1MiB"}}, slots=SLOTS) as subject:
        subject.start()
        tokens = [_token(subject, name, organisation) for name, organisation in STRANGERS.items()]
        day = Day(subject)
        day.begin()
        with _crowd(subject, tokens, few=True):
            pass  # the threads and readers that are there from then on
        day.pass_by(QUIET, DAY_S)  # what a day without strangers takes, memory above all, is not theirs
        began = Standing.of(subject.running.pid)
        peak, done = began, ""
        for turn in range(ROUNDS):
            if turn:
                day.pass_by(QUIET, DAY_S)
            with _crowd(subject, tokens) as crowd:
                day.pass_by(CROWDED, DAY_S)
                peak = peak.most(Standing.of(subject.running.pid))
            done = crowd.done
            _wait_for_files(subject.running.pid, began.files)
        for line in day.table():
            sys.stdout.write(f"{line}\n")
        now = Standing.of(subject.running.pid)
        sys.stdout.write(
            f"\nopen files: {began.files} after a day alone, {peak.files} beside the crowd, {now.files} after; "
        )
        sys.stdout.write(f"MiB: {began.mebibytes:.0f}, {peak.mebibytes:.0f}, {now.mebibytes:.0f}\n")
        sys.stdout.write(f"the last crowd: {done}")


class Standing:
    """What a process has: open files and memory."""

    def __init__(self, files: int, mebibytes: float) -> None:
        self.files = files
        self.mebibytes = mebibytes

    @classmethod
    def of(cls, pid: int) -> "Standing":
        """Return that of the process."""
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return cls(len(list(Path(f"/proc/{pid}/fd").iterdir())), pages * os.sysconf("SC_PAGE_SIZE") / 2**20)

    def most(self, other: "Standing") -> "Standing":
        """Return the greater figures of both."""
        return Standing(max(self.files, other.files), max(self.mebibytes, other.mebibytes))


class Day:
    """What an operator asks, over one connection that stays open, and how long each answer takes."""

    def __init__(self, subject: Claudomator) -> None:
        self._subject = subject
        address = urlsplit(str(subject.site.endpoint))
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)
        token = (subject.site.state / "token").read_text().strip()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._numbers = itertools.count()
        self.samples: dict[str, list[float]] = defaultdict(list)
        """By kind of day, in milliseconds."""
        self._cpu: dict[str, list[float]] = defaultdict(list)
        self._task_ms: dict[str, list[float]] = defaultdict(list)

    def begin(self) -> None:
        """Fill the lists that it looks at, and do what is done once."""
        for _ in range(LISTED):
            self._submit([])
        self.pass_by(QUIET, 1.0)
        with ThreadPoolExecutor(AT_ONCE) as browser:
            client = self._subject.running.client
            list(browser.map(lambda _: list(client.all_tasks()), range(4 * AT_ONCE)))
        for kept in (self.samples, self._cpu, self._task_ms):
            kept.clear()

    def pass_by(self, kind: str, seconds: float) -> None:
        """Submit tasks and look at them for so long."""
        self._connection.close()  # on a busy machine it was silent for too long meanwhile
        times: list[float] = []
        pid = self._subject.running.pid
        start, used_s = time.perf_counter(), cpu_s(pid)
        while time.perf_counter() < start + seconds:
            began = time.perf_counter()
            task = self._submit(times)
            for path in READS:
                self._timed(times, "GET", path.format(id=task))
            wait_until(lambda: self._is_over(task), "the task to end")  # noqa: B023 - asked at once
            self._task_ms[kind].append((time.perf_counter() - began) * 1000)
        self.samples[kind] += times
        self._cpu[kind].append((cpu_s(pid) - used_s) / (time.perf_counter() - start))

    def table(self) -> Iterator[str]:
        """Return the lines of the table, in Markdown."""
        yield "| the operator's day | answers | p50, ms | p99, ms | longest, ms | a task, p50, ms | CPU, % |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for kind, times in self.samples.items():
            cells = (
                f"{len(times):,}",
                f"{_part(times, 0.5):.1f}",
                f"{_part(times, 0.99):.1f}",
                f"{max(times):.0f}",
                f"{statistics.median(self._task_ms[kind]):.0f}",
                f"{statistics.median(self._cpu[kind]) * 100:.0f}",
            )
            yield f"| {kind} | {' | '.join(cells)} |"

    def _submit(self, times: list[float]) -> str:
        body = {"name": f"day-{next(self._numbers)}", "instructions": "Nothing", "agent": {"type": "cmd"}}
        return str(json.loads(self._timed(times, "POST", "/v1/tasks", body))["id"])

    def _timed(self, times: list[float], method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        time.sleep(PAUSE_S)
        began = time.perf_counter()
        answer = self._ask(method, path, body)
        times.append((time.perf_counter() - began) * 1000)
        return answer

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, body=content, headers=self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status < 400, (method, path, response.status, answer[:500])
        return answer

    def _is_over(self, task: str) -> bool:
        return bool(json.loads(self._ask("GET", f"/v1/tasks/{task}"))["state"] == "COMPLETED")


def _part(samples: list[float], share: float) -> float:
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))]


def _token(subject: Claudomator, name: str, organisation: str) -> str:
    asked = {"name": name, "role": "operate", "organisation": organisation}
    return subject.running.client.create_token(TokenRequest.model_validate(asked)).token


class _Guests:
    """A crowd that has come."""

    done = ""


@contextmanager
def _crowd(subject: Claudomator, tokens: list[str], *, few: bool = False) -> Iterator[_Guests]:
    """A crowd that is there, and at work; it is gone afterwards, and so are its tasks."""
    address = str(subject.site.endpoint).replace("http://", "ws://") + "/v1/hub"
    orders = Orders(address, tokens, 10 if few else IDLE, FLOODS if few else NOISY, FLOODS)
    process = subprocess.Popen([sys.executable, "-m", "tests.e2e.crowd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    guests = _Guests()
    try:
        process.stdin.write(orders.as_line())
        process.stdin.flush()
        assert process.stdout.readline() == b"here\n", "the crowd did not come"
        yield guests
        guests.done = process.communicate(timeout=60)[0].decode()
        for task in subject.running.client.all_tasks():
            if task.name.startswith("noisy-") and task.state in ("QUEUED", "RUNNING"):
                subject.running.client.cancel(task.id)
    finally:
        process.kill()
        process.wait()


def _wait_for_files(pid: int, files: int) -> None:
    with suppress(AssertionError):  # the figures tell
        wait_until(lambda: Standing.of(pid).files <= files, f"the open files to be {files} again", _LEAVES_IN_S)
