"""A bundle for a bug report tells what happened, and no secret of all that were planted around it."""

import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.site import Site
from tests.patience import wait_until

PASSED = "passed-on-7Hq2mXw9"
GIVEN = "given-by-the-file-8Kd3"
OPTION = "option-of-a-command-5Tz"
ELSEWHERE = "sk-ant-" + "Zx9" * 12
WEBHOOK = "https://hooks.example.net/services/T000/B000/webhook-part-4Rf"
COLLECTOR = "http://127.0.0.1:1/part-of-a-collector-9Lp"
HEADER = "key-of-a-collector-3Vn"
OF_TASK = "variable-of-a-task-6Yb"
IN_FILE = "value-in-a-refused-file-2Wc"
PRIVATE = "our secret plan for the shop"
TOLD = "what the agent told us"


@pytest.fixture
def troubled(site: Site) -> Site:
    """A site with secrets wherever one can stand, one failed task, one refused file, and a daemon."""
    agent = f'echo "{TOLD} $PASSED_KEY $GIVEN $TASK_SECRET {ELSEWHERE}"; echo "$PASSED_KEY" >&2; exit 1'
    leaky = {
        "kind": "command",
        "command": ["sh", "-c", agent, "--api-key", OPTION, f"--auth-token={OPTION}"],
        "pass_env": ["PASSED_KEY"],
        "env": {"GIVEN": GIVEN},
    }
    site.configure(
        agents={"leaky": leaky},
        notify={"chat": {"url": WEBHOOK, "events": ["completed"]}},
        telemetry={"endpoint": COLLECTOR, "headers_env": "SPANS"},
    )
    daemon = site.start(PASSED_KEY=PASSED, SPANS=f"x-team={HEADER}").ready()
    wish = {"instructions": f"{PRIVATE} {ELSEWHERE}", "env": {"TASK_SECRET": OF_TASK}, "retry": {"max_attempts": 1}}
    site.drop("telling.yaml", json.dumps({**wish, "agent": {"type": "leaky", "strict": True}}))
    site.drop("wrong.yaml", json.dumps({"instructions": "x", "priority": IN_FILE}))
    wait_until(lambda: daemon.client.status().problems, "the task to fail")
    wait_until(lambda: daemon.client.status().inbox, "the file to be refused")
    return site


def bundle(site: Site, *arguments: str) -> tuple[Path, dict[str, str]]:
    """The bundle that doctor writes, and its files by name."""
    path = site.root / f"report{len(arguments)}.tar.gz"
    done = site.command("doctor", "--bundle", str(path), *arguments, PATH="/usr/bin:/bin", PASSED_KEY=PASSED)
    assert "written; review it" in done.stderr, done.stderr
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        assert all(member.isfile() and member.mode == 0o600 for member in members)
        files = [(member, archive.extractfile(member)) for member in members]
        return path, {Path(member.name).name: file.read().decode() for member, file in files if file is not None}


def test_no_planted_secret_and_no_text_of_people(troubled: Site) -> None:
    path, files = bundle(troubled)
    token = (troubled.state / "token").read_text().strip()
    whole = "\n".join(files.values())
    planted = (PASSED, GIVEN, OPTION, ELSEWHERE, WEBHOOK, OF_TASK, IN_FILE, COLLECTOR, HEADER, token, PRIVATE, TOLD)
    assert [secret for secret in planted if secret in whole] == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_tells_what_a_developer_needs(troubled: Site) -> None:
    _, files = bundle(troubled)
    documents: dict[str, Any] = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    assert {check["name"] for check in documents["doctor.json"]} >= {"configuration", "daemon", "agent leaky", "git"}
    assert documents["configuration.json"]["agents"]["leaky"]["env"] == {"GIVEN": "[redacted]"}
    assert documents["configuration.json"]["agents"]["leaky"]["pass_env"] == ["PASSED_KEY"]
    failed = documents["status.json"]["problems"][0]
    assert (failed["name"], failed["state"], failed["reason"]) == ("telling", "FAILED", "agent_error")
    assert documents["status.json"]["inbox"][0][0]["field"] == "priority"
    events = [event for event in documents["events.json"] if event["task_id"] == failed["id"]]
    assert events[0]["kind"]
    assert "FAILED" in json.dumps(events)
    assert {"claudomator", "python", "sqlite", "system"} <= set(documents["about.json"])
    assert "--include-tasks" not in files["README.txt"]


def test_with_tasks_it_has_texts_and_still_no_secret(troubled: Site) -> None:
    _, files = bundle(troubled, "--include-tasks")
    whole = "\n".join(files.values())
    token = (troubled.state / "token").read_text().strip()
    assert [
        secret for secret in (PASSED, GIVEN, OPTION, ELSEWHERE, WEBHOOK, COLLECTOR, HEADER, token) if secret in whole
    ] == []
    assert "reason_text" in files["status.json"]
    assert "wrong.yaml" in files["status.json"]


def test_nothing_is_overwritten(site: Site) -> None:
    path = site.root / "report0.tar.gz"
    path.write_text("mine")
    done = site.command("doctor", "--bundle", str(path))
    assert done.returncode == 1
    assert "already exists" in done.stderr
    assert path.read_text() == "mine"
