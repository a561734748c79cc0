"""What the scenarios share: tasks as text, waiting for states, programs that misbehave."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from claudomator_py.hosts.shim import procfs
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

ENDED = ("COMPLETED", "FAILED", "CANCELLED")


def document(name: str | None, *instructions: str, agent: object = "sh", **fields: object) -> str:
    """A task file. agent: the agent's name, which the task insists on; or the whole key; None: none."""
    hint = {"type": agent, "strict": True} if isinstance(agent, str) else agent
    given = {"name": name, "instructions": "\n".join(instructions) or "Do nothing.", "agent": hint, **fields}
    # JSON is YAML.
    return json.dumps({key: value for key, value in given.items() if value is not None}, indent=1)


def in_state(daemon: Daemon, ref: str, *states: str, deadline_s: float = PATIENCE_S) -> TaskView:
    """Wait until the task is in one of these states."""

    return _seen(daemon, ref, lambda task: task.state in states, f"be {' or '.join(states)}", deadline_s)


def waits_for(daemon: Daemon, ref: str, reason: str) -> TaskView:
    """Wait until the task is queued for this reason. Before it has another: each task is routed first."""

    def wanted(task: TaskView) -> bool:
        return (task.state, task.reason) == ("QUEUED", reason)

    return _seen(daemon, ref, wanted, f"be QUEUED, reason {reason}", PATIENCE_S)


def _seen(daemon: Daemon, ref: str, wanted: Callable[[TaskView], bool], what: str, deadline_s: float) -> TaskView:
    def look() -> TaskView | None:
        return next((task for task in daemon.client.all_tasks() if ref in (task.id, task.name) and wanted(task)), None)

    try:
        return wait_until(look, f"{ref} to {what}", deadline_s)
    except AssertionError as failure:
        seen = {task.name: (task.state, task.reason, task.reason_text) for task in daemon.client.all_tasks()}
        raise AssertionError(f"{failure}; instead {seen}") from None


def ended(daemon: Daemon, ref: str, deadline_s: float = PATIENCE_S) -> TaskView:
    """Wait until the task has ended."""
    return in_state(daemon, ref, *ENDED, deadline_s=deadline_s)


def last_run(daemon: Daemon, ref: str) -> RunView:
    """The newest run of the task."""
    return daemon.client.runs(ref)[-1]


def started(site: Site, count: int = 1, deadline_s: float = PATIENCE_S) -> list[str]:
    """Wait until so many runs of ``sh`` have begun to work; their ids, in order."""

    def look() -> list[str] | None:
        ids = [entry.run_id for entry in site.ledger.entries() if entry.what == "start"]
        return ids if len(ids) >= count else None

    return wait_until(look, f"{count} runs to begin", deadline_s)


def why(daemon: Daemon, ref: str) -> str:
    """The explanation, as one text."""
    return "\n".join(daemon.client.why(ref).sentences)


@contextmanager
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run, and that any signal would end."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def shim_file(site: Site, run_id: str) -> Path:
    """Where a run's shim says who it is."""
    return site.state / "runs" / run_id / "shim.json"


def agent_file(site: Site, run_id: str) -> Path:
    """Where a run's shim says who the agent is."""
    return site.state / "runs" / run_id / "agent.json"


def kill_run(site: Site, run_id: str) -> None:
    """Kill a run's shim, and then its agent, which it would outlive; nothing of either is left."""
    agent = agent_file(site, run_id)
    wait_until(agent.exists, "the run's agent")
    for file in (shim_file(site, run_id), agent):
        pid = int(json.loads(file.read_text())["pid"])
        os.kill(pid, signal.SIGKILL)
        wait_until(partial(is_over, pid), "its end")


def is_over(pid: int) -> bool:
    """Whether there is no such process any more, or only a zombie."""
    process = procfs.read(pid)
    return process is None or not process.alive
