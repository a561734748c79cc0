"""A bad night on real daemons: 300 tasks in three repositories, three accounts that run out of quota, a daemon that is
killed. It is played in minutes and then stretched: the times of the past in the database are moved back, so that the
night is as long as it would have been with real agents.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import HOUR_MS, SECOND_MS
from claudomator_py.hosts.shim import record
from claudomator_py.store.database import FILE_NAME
from tests.browser import fake_agents
from tests.e2e.daemon import Daemon
from tests.e2e.repositories import git
from tests.e2e.site import Site
from tests.fakes.steps import from_document
from tests.patience import wait_until

NIGHT_MS: Final = 9 * HOUR_MS
ZONE: Final = "Europe/Berlin"
"""Of the daemon, and of the browser that shows the night."""
STUCK_S: Final = 300.0
PHASES: Final = (80, 200)
"""How many tasks have ended when the daemon is killed, and when the night nears its end."""
STAYING: Final = 2
"""How many tasks run until the morning."""
DURATIONS: Final = frozenset({"latency_ms"})
"""Columns that are no instants, although their names end like one."""
DATA: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


def configuration(folder: Path) -> dict[str, Any]:
    """Return the settings of the night's daemons."""

    def agent(kind: str, slots: int, **more: Any) -> dict[str, Any]:
        program = [sys.executable, fake_agents.__file__, kind, str(folder / "scripts.json")]
        return {"kind": kind, "command": program, "max_concurrent": slots, "auto_select": True, **more}

    return {
        "agents": {
            "claude": agent("claude", 3, account="personal"),
            "claude-work": agent("claude", 2, account="work"),
            "codex": agent("codex", 2),
            "make": {"kind": "command", "command": ["sh", "-c", "cat > /dev/null"], "max_concurrent": 2},
        },
        "concurrency": {"total": 7},
        "balancing": {"prefer_wait": "0s"},
        "routing": {"encoder": {"kind": "hashed"}},
        "policy": [{"name": "releases", "when": '"release" in task.tags', "approve": {"within": "12h"}}],
        "notify": {
            "phone": {"url": "http://127.0.0.1:9/notify", "format": "ntfy", "events": ["needs_input", "agent_held"]},
            "log": {"kind": "command", "command": ["true"], "events": ["failed", "needs_input", "agent_held"]},
        },
    }


class BadNight:
    """The night on a site that is configured for it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._scripts: dict[str, list[dict[str, Any]]] = {}
        self._daemon: Daemon
        for name, files in DATA["repositories"].items():
            _repository(site.root / "src" / name, files)

    def play(self) -> Daemon:
        """Play the night. Return the daemon of the morning, which is ready."""
        began_ms = round(time.time() * SECOND_MS)
        tasks, schedules = list(self.tasks()), list(_schedules())
        (self.site.root / "scripts.json").write_text(json.dumps(self._scripts))
        self._daemon = self.site.start(TZ=ZONE).ready()
        self._daemon.client.drain("the night's work is being handed in")
        for task in tasks:
            self._daemon.client.submit(task)
        for schedule in schedules:
            self._daemon.client.add_schedule(schedule)
        self.site.drop("broken.yaml", "instructions: Tidy the logs.\ntimeout: soon\n")
        self._daemon.client.undrain()
        self._until(PHASES[0], "a third of the night")
        wait_until(lambda: self._running() > STAYING, "runs that will end", STUCK_S)
        self._daemon.kill()
        ended = self._ended_runs()
        wait_until(lambda: self._ended_runs() > ended, "a run to end while there is no daemon", STUCK_S)
        self._daemon = self.site.start(TZ=ZONE).ready()
        self._until(PHASES[1], "most of the night")
        wait_until(self._is_over, "all accounts to be used up", STUCK_S)
        # Nothing runs in the repositories themselves any more.
        for merged in ("feed-in-atom", "cart-tests"):
            self._daemon.client.merge(merged)
        assert self._daemon.stop() == 0
        stretch(self.site.state / FILE_NAME, began_ms)
        return self.site.start(TZ=ZONE).ready()

    def _ended_runs(self) -> int:
        return sum((run / record.EXIT).exists() for run in (self.site.state / "runs").iterdir())

    def _running(self) -> int:
        return self._daemon.client.status().counts.get("RUNNING", 0)

    def _until(self, number: int, what: str) -> None:
        def ended() -> bool:
            counts = self._daemon.client.status().counts
            return sum(counts.get(state, 0) for state in ("COMPLETED", "FAILED", "CANCELLED")) >= number

        wait_until(ended, what, STUCK_S)

    def _is_over(self) -> bool:
        status = self._daemon.client.status()
        limited = [agent.limited for agent in status.agents if agent.auto_select]
        return status.counts.get("RUNNING", 0) == STAYING and all(limited)

    def tasks(self) -> Iterator[TaskSpec]:
        """Yield the tasks of the night, and note what their runs do."""
        for task in DATA["tasks"]:
            yield self._task(task)
        for series in DATA["series"]:
            for number in range(1, series["count"] + 1):
                yield self._task(_nth(series, number))

    def _task(self, task: Mapping[str, Any]) -> TaskSpec:
        given = {key: value for key, value in task.items() if key not in ("repository", "steps", "count")}
        self._scripts[task["instructions"]] = task["steps"]
        more = {"working_dir": str(self.site.root / "src" / task["repository"]), "specialist": "generalist"}
        return from_document({"permissions": {"mode": "acceptEdits"}, **more, **given})


def _nth(series: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a task of a series. Without steps, one in five commits something, and one in eleven fails at first."""
    name = series["name"].format(number)
    task = {**series, "name": name, "instructions": series["instructions"].format(number)}
    if "steps" in series:
        return task
    step: dict[str, Any] = {"takes_s": 0.5 + number % 7 / 4, "tokens": 8_000 + 613 * (number % 17)}
    step["text"] = "Everything was in order."
    if number % 5 == 0:
        step |= {"files": {f"notes/{name}.md": f"# {name}\n"}, "commit": f"{name}: mend what was wrong"}
        step |= {"text": "Mended and committed."}
        task["isolation"] = "worktree"
    steps = [{"fails": "the test database cannot be reached"}] if number % 11 == 0 else []
    return {**task, "steps": [*steps, step]}


def _schedules() -> Iterator[TaskSpec]:
    """Yield the schedules, one of which was due while the stretched night had no daemon."""
    due = datetime.now(UTC) - timedelta(hours=2)
    missed = {"name": "nightly-backup", "instructions": "Back up the databases.", "schedule": f"{due:%M %H} * * *"}
    for schedule in (*DATA["schedules"], missed):
        with_agent = {**schedule, "agent": {"type": "make", "strict": True}}
        yield from_document({"catch_up": "skip", "timezone": "Etc/UTC", **with_agent})


def _repository(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in files.items():
        (folder / name).write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "begin")


def stretch(file: Path, began_ms: int) -> None:
    """Move all times of the past back, so that what began then began NIGHT_MS ago. No daemon may use the file."""
    now_ms = round(time.time() * SECOND_MS)
    factor = NIGHT_MS / (now_ms - began_ms)
    with closing(sqlite3.connect(file)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for column in columns:
                if column.endswith("_ms") and column not in DURATIONS:
                    moved = f"CAST({now_ms} - ({now_ms} - {column}) * {factor} AS INTEGER)"
                    connection.execute(f"UPDATE {table} SET {column} = {moved} WHERE {column} < {now_ms}")
