"""Whoever only looks starts nothing: no GET runs a program, be it git in a work tree that leads somewhere else."""

import os
import shutil
from collections import defaultdict
from pathlib import Path

import httpx

from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.agent_settings import FOUND_KINDS
from claudomator_py.schema.taskfile import parse_task
from tests.e2e.repositories import git
from tests.e2e.site import Site
from tests.fakes.daemon import openapi_document
from tests.patience import PATIENCE_S

PAGES = (
    "/",
    "/tasks",
    "/schedules",
    "/specialists",
    "/routing",
    "/decisions",
    "/policy",
    *(f"/tasks/{{ref}}{end}" for end in ("", "/cancel", "/restart", "/answer")),
)
PROGRAMS = ("git", "sh", *FOUND_KINDS, "systemctl", "env", "python3")


def recording(folder: Path, calls: Path) -> Path:
    """A folder for the front of PATH, in which each program writes down that it was started."""
    folder.mkdir()
    for name in PROGRAMS:
        real = shutil.which(name)
        then = "exit 127" if real is None else f'exec {real} "$@"'
        (folder / name).write_text(f'#!{shutil.which("dash") or "/bin/sh"}\necho "{name} $*" >> {calls}\n{then}\n')
        (folder / name).chmod(0o755)
    return folder


def test_no_get_starts_a_program(site: Site) -> None:
    shop, calls = site.root / "shop", site.root / "calls"
    shop.mkdir()
    git(shop, "init", "-q", "-b", "main")
    git(shop, "commit", "-q", "--allow-empty", "-m", "first")
    recorder = recording(site.root / "recorder", calls)
    daemon = site.start(PATH=f"{recorder}:{os.environ['PATH']}").ready()
    fields = {"name": "fix", "working_dir": str(shop), "isolation": "worktree", "instructions": "do: touch new"}
    spec = parse_task(fields)
    assert isinstance(spec, TaskSpec)
    daemon.client.submit(spec)
    (view,) = site.drain(daemon).values()
    assert view.state == "COMPLETED", view.reason_text
    task = daemon.client.task(view.id)
    assert task.worktree is not None
    assert (task.worktree.standing, task.worktree.changed) == ("dirty", 1)
    assert task.worktree.seen_at is not None
    evil = site.root / "evil"
    git(shop, "init", "-q", "--bare", str(evil))
    git(evil, "config", "core.fsmonitor", f"touch {site.root / 'ran'}")
    pointer = Path(task.worktree.path) / ".git"
    pointer.write_text(f"gitdir: {evil}\n")
    (run,) = daemon.client.runs(view.id)
    before = calls.read_text()
    assert "status" in before, "the recorder records"
    document = openapi_document()
    paths = [*PAGES, *(path for path, methods in document["paths"].items() if "get" in methods)]
    values = {"ref": view.id, "run_id": run.id, "name": "simulated", "stream": "stdout", "delivery_id": "1"}
    headers = {"Authorization": f"Bearer {(site.state / 'token').read_text().strip()}"}
    answers = {}
    with httpx.Client(base_url=str(site.endpoint), headers=headers, timeout=PATIENCE_S) as client:
        for path in paths:
            filled = path.format_map(defaultdict(lambda: "x", values))
            with client.stream("GET", filled) as answer:
                answers[path] = answer.status_code
                if "event-stream" not in answer.headers.get("content-type", ""):
                    answer.read()
    assert calls.read_text() == before, answers
    assert not (site.root / "ran").exists()
    assert sum(code == httpx.codes.OK for code in answers.values()) > len(answers) * 2 / 3, answers
    assert "/v1/tasks/{ref}" in answers
