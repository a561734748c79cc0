"""Repositories in which tasks work, each in a work tree of its own."""

import os
import subprocess
from pathlib import Path

from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.taskfile import parse_task
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site

COMMIT = "git -c user.name=n -c user.email=n@example.org commit -q -m work"


def git(folder: Path | str, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@example.org", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A new repository with a commit on ``main``."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "readme").write_text("hello\n")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def spec(folder: Path, name: str, does: str, **more: object) -> TaskSpec:
    fields = {"name": name, "working_dir": str(folder), "isolation": "worktree", "instructions": f"do: {does}", **more}
    parsed = parse_task(fields)
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


def done(site: Site, daemon: Daemon, *specs: TaskSpec) -> list[TaskView]:
    """The tasks after their end, by name."""
    for spec in specs:
        daemon.client.submit(spec)
    return sorted(site.drain(daemon).values(), key=lambda view: view.name)
