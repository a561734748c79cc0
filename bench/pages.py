"""What the desk's pages take with 100,000 tasks: most are done, some failed, wait or ask, and in the last night 500
tasks had 14 runs each. Times are of whole answers to a browser that has
logged in, over a connection that stays open.

``BENCH_TASKS`` names another number of tasks, ``BENCH_ASKED`` how often each page is asked for.
"""

import http.client
import os
import statistics
import sys
import time
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from bench.grown import copy
from bench.size import opened
from bench.subjects import EXPLICIT, Claudomator, open_claudomator
from claudomator_py.api.settings import WebSettings
from tests.e2e.processes import cpu_s

TASKS = int(os.environ.get("BENCH_TASKS", "100000"))
ASKED = int(os.environ.get("BENCH_ASKED", "100"))
NIGHT, RUNS = 500, 14
READING_S = 2.0
"""Between the form of the login and its button."""
NIGHT_MS = 12 * 60 * 60 * 1_000
SHARES: Final = (("FAILED", 10), ("NEEDS_INPUT", 1_000), ("QUEUED", 50))
"""One of so many tasks; the others are COMPLETED."""
AGENT: Final[dict[str, Any]] = {"kind": "simulated", "auto_select": False, "max_concurrent": 2}
AGENTS: Final = dict.fromkeys(("claude", "codex", "held"), AGENT)
PAGES: Final = (
    "/",
    "/?state=FAILED",
    "/?q=copy-77",
    "/night",
    "/night?hours=168",
    "/report",
    "/repositories",
    "/agents",
    "/v1/status",
    "/v1/tasks?limit=50",
)
_BEGUN = {
    "COMPLETED": ("claude", 'delay=10ms tokens=900/90 cost=0.01 text="Done."'),
    "FAILED": ("codex", "delay=10ms outcome=fail"),
    "NEEDS_INPUT": ("claude", "outcome=question"),
    "QUEUED": ("held", "delay=10ms"),
}
"""The agent and the script of the first task of each state."""


def measure() -> None:
    """Print p50, p99 and the time of CPU of each page."""
    with open_claudomator({**EXPLICIT}) as subject:
        subject.site.configure(agents=AGENTS, **EXPLICIT)
        subject.start()
        subject.running.client.hold("held")
        for state, (agent, script) in _BEGUN.items():
            text = f"name: {state.lower()}\nagent: {{type: {agent}, strict: true}}\nretry: {{max_attempts: 1}}\n"
            subject.site.drop(f"{state}.yaml", f"{text}instructions: |\n  Do it.\n  simulate: {script}\n")
            subject.wait_for(lambda state=state: subject.count(f"state = '{state}'") == 1, state)  # type: ignore[misc]
        subject.stop()
        _fill(subject)
        subject.start()
        sys.stdout.write(
            "| page | KiB | p50, ms | p99, ms | longest, ms | ms of CPU |\n|---|---:|---:|---:|---:|---:|\n"
        )
        connection, browser, program = _logged_in(subject)
        for path in PAGES:
            headers = program if path.startswith("/v1/") else browser
            sys.stdout.write(f"| {path} | {' | '.join(_asked(subject, connection, headers, path))} |\n")
            sys.stdout.flush()
        subject.stop()


def _fill(subject: Claudomator) -> None:
    number = 1
    with opened(subject) as connection:
        for state, one_of in SHARES:
            copy(connection, state, range(number, number := number + TASKS // one_of), NIGHT_MS // NIGHT)
        copy(connection, "COMPLETED", range(number, TASKS), NIGHT_MS // NIGHT)
        # The last night: each of its tasks has more runs, one after another.
        columns = [row[1] for row in connection.execute("PRAGMA table_info(run)")]
        shifted = {"id": "id || '-r' || n.i", "seq": "seq + n.i", "attempt": "attempt + n.i"}
        shifted |= {"started_ms": "started_ms - 60000 * n.i", "ended_ms": "ended_ms - 60000 * n.i + 50000"}
        values = ", ".join(shifted.get(name, name) for name in columns)
        connection.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO n VALUES (?)", ((number,) for number in range(1, RUNS)))
        connection.execute(
            f"INSERT INTO run ({', '.join(columns)}) SELECT {values} FROM run, n WHERE task_id IN"  # noqa: S608 - its own tables
            " (SELECT task_id FROM run WHERE ended_ms IS NOT NULL ORDER BY started_ms DESC LIMIT ?)",
            (NIGHT,),
        )


def _logged_in(subject: Claudomator) -> tuple[http.client.HTTPConnection, dict[str, str], dict[str, str]]:
    """Return a connection, and the headers of a browser that has logged in, as a person does within seconds, and of a
    program."""
    address = urlsplit(str(subject.site.endpoint))
    token = (subject.site.state / "token").read_text().strip()
    host = WebSettings(token=token, listen=address.netloc).page_host
    code = subject.running.client.login_code().code
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)
    connection.request("GET", f"/login?code={code}", headers={"Host": host})
    connection.getresponse().read()
    time.sleep(READING_S)
    form = {"Host": host, "Origin": f"http://{host}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login", urlencode({"code": code}), form)
    answer = connection.getresponse()
    answer.read()
    browser = {"Host": host, "Cookie": str(answer.headers["Set-Cookie"]).partition(";")[0]}
    return connection, browser, {"Authorization": f"Bearer {token}"}


def _asked(
    subject: Claudomator, connection: http.client.HTTPConnection, headers: dict[str, str], path: str
) -> list[str]:
    taken, size = [], 0
    used_s = cpu_s(subject.running.pid)
    for _ in range(ASKED):
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        size = len(response.read())
        taken.append((time.perf_counter() - began) * 1000)
        if response.status != http.client.OK:
            raise ValueError(f"{path} was answered by {response.status}")
    used_ms = (cpu_s(subject.running.pid) - used_s) * 1000 / ASKED
    ninety_nine = sorted(taken)[min(ASKED - 1, int(ASKED * 0.99))]
    return [f"{size / 1024:.0f}", *(f"{ms:.0f}" for ms in (statistics.median(taken), ninety_nine, max(taken), used_ms))]
