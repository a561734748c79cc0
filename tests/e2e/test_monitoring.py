"""What monitoring sees of a whole daemon: metrics that agree with the database, a log that says which task and run."""

import json
import sqlite3
import urllib.request
from collections import Counter
from contextlib import closing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from claudomator_py import __version__
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
SECRET = "correct-horse-battery-staple"
TASKS = {
    "good": "simulate: outcome=success",
    "bad": "simulate: outcome=fail",
    "held": "simulate: outcome=limited(reset=1h)",
    "busy": "simulate: outcome=hang",
}


def scrape(site: Site) -> Samples:
    token = (site.state / "token").read_text().strip()
    request = urllib.request.Request(f"{site.endpoint}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("claudomator_"), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def drop(site: Site, name: str, text: str, agent: str = "simulated", **fields: object) -> None:
    wish = {"instructions": text, "agent": {"type": agent, "strict": True}, "retry": {"max_attempts": 1}, **fields}
    site.drop(f"{name}.yaml", json.dumps(wish))


def reached(daemon: Daemon, name: str, state: str) -> None:
    """Wait until the task is in that state."""

    def there() -> bool:
        return any(task.name == name and task.state == state for task in daemon.client.all_tasks())

    wait_until(there, f"{name} to be {state}")


def test_metrics_agree_with_the_rows(site: Site) -> None:
    daemon = site.start().ready()
    expected = {"good": "COMPLETED", "bad": "FAILED", "busy": "RUNNING", "held": "QUEUED"}
    for name, state in expected.items():
        drop(site, name, TASKS[name])
        reached(daemon, name, state)
    drop(site, "after", TASKS["good"], depends_on=["busy"])
    reached(daemon, "after", "WAITING")
    wait_until(lambda: daemon.client.task("held").reason == "limited", "held to wait for its limit")
    site.drop("wrong.yaml", "no-such-key: 1\n")
    wait_until(lambda: daemon.client.status().inbox, "the refusal")
    wait_until(lambda: daemon.client.runs("busy")[0].state == "running", "busy to run")

    results = scrape(site)

    with closing(sqlite3.connect(site.state / "claudomator.db")) as rows:
        states = dict(rows.execute("SELECT state, count(*) FROM task GROUP BY state"))
        runs = rows.execute(
            "SELECT agent, json_extract(outcome, '$.status'), coalesce(json_extract(outcome, '$.reason'), '')"
            " FROM run WHERE state = 'ended'"
        ).fetchall()
        took = rows.execute("SELECT sum(ended_ms - started_ms) / 1000.0 FROM run WHERE state = 'ended'").fetchone()[0]
        until = rows.execute("SELECT max(until_ms) / 1000.0 FROM hold").fetchone()[0]
    assert {state: of(results, "tasks", state=state) for state in states} == states
    ended = {labels: value for (name, labels), value in results.items() if name == "runs_total"}
    assert ended == {
        frozenset({"agent": agent, "status": status, "reason": reason}.items()): number
        for (agent, status, reason), number in Counter(runs).items()
    }
    durations = sum(value for (name, _), value in results.items() if name == "run_duration_seconds_sum")
    assert durations == pytest.approx(took)
    assert of(results, "pending_tasks", state="QUEUED", reason="limited", agent="simulated", code="agents_limited") == 1
    assert of(results, "pending_tasks", state="WAITING", reason="dependency", agent="", code="dependency") == 1
    assert of(results, "live_runs", agent="simulated", state="running") == 1
    assert of(results, "agent_slots", agent="sh") == 4
    assert of(results, "agent_held_until_timestamp_seconds", agent="simulated", reason="rate_limited") == until
    assert of(results, "inbox_refused_files") == 1
    assert of(results, "disk_reserve_bytes") == 2**20
    assert of(results, "tick_duration_seconds_count") >= 1
    assert of(results, "store_write_seconds_count") >= len(runs)
    assert of(results, "check_ok", check="scheduler") == 1
    build = next(dict(labels) for name, labels in results if name == "build_info")
    assert (build["version"], build["database"]) == (__version__, "sqlite")


def logged(site: Site) -> list[dict[str, object]]:
    """The lines of the log, each an object."""
    return [json.loads(line) for line in site.log_text().splitlines()]


def test_the_log_says_which_task_and_run_and_no_secret(site: Site) -> None:
    agent = f'echo "$MY_KEY $OTHER_KEY" >&2; echo "$MY_KEY {SECRET}-own"; exit 1'
    leaky = {
        "kind": "command",
        "command": ["sh", "-c", agent],
        "pass_env": ["MY_KEY"],
        "env": {"OTHER_KEY": f"{SECRET}-own"},
    }
    site.configure(log={"format": "json", "level": "debug"}, agents={"leaky": leaky})
    daemon = site.start(MY_KEY=SECRET).ready()
    drop(site, "telling", "do it", agent="leaky")
    reached(daemon, "telling", "FAILED")
    run = daemon.client.runs("telling")[0]
    wait_until(lambda: any(line["event"] == "run_ended" for line in logged(site)), "the end to be logged")
    assert daemon.stop() == 0

    lines = logged(site)

    assert all({"ts", "level", "logger", "event"} <= set(line) for line in lines)
    by_event = {line["event"]: line for line in lines}
    for event in ("run_started", "run_ended"):
        payload = by_event[event]
        assert (payload["task"], payload["task_id"], payload["run_id"]) == ("telling", run.task_id, run.id)
        assert (payload["agent"], payload["attempt"]) == ("leaky", 1)
    assert (by_event["run_ended"]["status"], by_event["run_ended"]["reason"]) == ("failed", "agent_error")
    assert {"listening", "agent_ready", "stopped"} <= set(by_event)
    assert SECRET not in site.log_text()
    assert (site.state / "token").read_text().strip() not in site.log_text()


def test_a_hold_is_logged_with_its_end(site: Site) -> None:
    daemon = site.start().ready()
    drop(site, "held", TASKS["held"])
    wait_until(lambda: "agent_held" in site.log_text(), "the hold to be logged")
    line = next(line for line in site.log_text().splitlines() if "agent_held" in line)
    until = daemon.client.agents()[1].limited_until
    assert "agent=simulated reason=rate_limited" in line
    assert f"until={until}" in line
