"""Spans from a real daemon to a real collector, over crashes of the one and silences of the other."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.trace import check_span, own_span
from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.site import REPOSITORY, Site
from tests.fakes.collector import Collector, Received
from tests.patience import PATIENCE_S, wait_until

KEY = "a-key-for-the-collector"
# What starts a daemon that has no OpenTelemetry.
WITHOUT = """
import sys

sys.modules["opentelemetry.exporter.otlp.proto.http"] = None
from claudomator_py.__main__ import main

main()
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as opened:
        yield opened


def collecting(site: Site, endpoint: str, **more: object) -> None:
    site.configure(telemetry={"endpoint": endpoint, **more})


def task_named(daemon: Daemon, name: str) -> TaskView:
    def found() -> TaskView | None:
        try:
            return daemon.client.task(name)
        except ServiceProblem:
            return None

    return wait_until(found, f"{name} to be accepted")


def root_of(collector: Collector, task: TaskView) -> Received:
    return wait_until(lambda: collector.root(task.id), f"the span of {task.name}")


def the(spans: dict[str, Received], name: str) -> Received:
    (received,) = (span for span in spans.values() if span.name == name)
    return received


def telemetry_check(daemon: Daemon) -> CheckView:
    return next(check for check in daemon.client.readiness().checks if check.name == "telemetry")


def test_a_task_is_a_trace_from_acceptance_to_outcome(site: Site, collector: Collector) -> None:
    collecting(site, collector.endpoint)
    daemon = site.start().ready()
    text = site.root / "told"
    site.drop(
        "good.yaml",
        f"instructions: |\n  do: echo $TRACEPARENT > {text}\n  the-word-that-stays-here\nagent: {{type: sh}}\n"
        f"check: [[sh, -c, 'echo $TRACEPARENT >> {text}']]\n",
    )
    task = task_named(daemon, "good")
    root = root_of(collector, task)
    (run,) = daemon.client.runs(task.id)
    spans = collector.of_task(task.id)
    assert root.name == "task"
    assert root.parent == ""
    assert root.attributes["claudomator.task.id"] == task.id
    assert root.attributes["claudomator.task.state"] == "COMPLETED"
    assert root.attributes["claudomator.task.name"] == "good"
    invoked = the(spans, "invoke_agent sh")
    assert invoked.parent == root.span_id
    assert invoked.span_id == run.id.replace("-", "")[:16]
    assert invoked.attributes["claudomator.run.id"] == run.id
    assert invoked.attributes["claudomator.run.status"] == "succeeded"
    assert invoked.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert invoked.attributes["gen_ai.agent.name"] == "sh"
    assert root.start <= invoked.start <= invoked.end <= root.end
    check = the(spans, "check")
    assert check.parent == invoked.span_id
    assert check.attributes["claudomator.check.status"] == "passed"
    (decision,) = (
        item for item in daemon.client.decisions(DecisionFilter(task=task.id)).items if item.kind == "placement"
    )
    placed = the(spans, "decide placement")
    assert placed.attributes["claudomator.decision.id"] == decision.id == invoked.attributes["claudomator.decision.id"]
    assert placed.attributes["claudomator.decision.agent"] == "sh"
    assert text.read_text().split() == [
        own_span(task.id, run.id).traceparent,
        check_span(task.id, run.id).traceparent,
    ]
    assert check_span(task.id, run.id).traceparent.split("-")[2] == check.span_id
    assert collector.resources[0]["service.name"] == "claudomator"
    assert not any(b"the-word-that-stays-here" in body for body in collector.bodies)


def test_a_failed_run_is_an_error_and_what_was_waited_for_is_seen(site: Site, collector: Collector) -> None:
    collecting(site, collector.endpoint)
    daemon = site.start().ready()
    site.drop("bad.yaml", 'instructions: "do: exit 3"\nagent: {type: sh}\nretry: {max_attempts: 2, backoff: 100ms}\n')
    task = task_named(daemon, "bad")
    root = root_of(collector, task)
    spans = collector.of_task(task.id)
    first, second = sorted(
        (span for span in spans.values() if span.name == "invoke_agent sh"), key=lambda span: span.start
    )
    assert [span.status for span in (root, first, second)] == [2, 2, 2]
    assert [span.attributes["error.type"] for span in (root, first, second)] == ["agent_error"] * 3
    assert root.attributes["claudomator.task.runs"] == 2
    waited = the(spans, "waiting")
    assert waited.attributes["claudomator.wait.reason"] == "backoff"
    assert first.end <= waited.end <= second.start
    assert sum(span.name == "decide placement" for span in spans.values()) == 2


def test_nothing_is_lost_over_kills_and_what_is_sent_again_is_the_same(site: Site, collector: Collector) -> None:
    collecting(site, collector.endpoint)
    daemon = site.start(crash_at="spans-sent").ready()
    site.drop("first.yaml", "instructions: hi\nagent: {type: sh}\n")
    # The collector has them, and the daemon dies before it could note that.
    daemon.wait()
    assert collector.spans
    daemon = site.start().ready()
    site.drop("second.yaml", "instructions: hi\nagent: {type: sh}\n")
    first, second = task_named(daemon, "first"), task_named(daemon, "second")
    root_of(collector, second)
    daemon.kill()
    again = site.start().ready()
    site.drop("third.yaml", "instructions: hi\nagent: {type: sh}\n")
    third = task_named(again, "third")
    for task in (first, second, third):
        root_of(collector, task)
        assert {"task", "invoke_agent sh", "decide placement"} <= {
            span.name for span in collector.of_task(task.id).values()
        }
    sent: dict[str, set[str]] = {}
    for span in collector.spans:
        sent.setdefault(span.span_id, set()).add(repr(span))
    assert len(collector.spans) > len(sent), "nothing was sent twice"
    assert {len(versions) for versions in sent.values()} == {1}


def test_a_collector_that_is_down_harms_no_run_and_gets_all_later(site: Site) -> None:
    with Collector() as gone:
        port = gone.port
    collecting(site, f"http://127.0.0.1:{port}")
    daemon = site.start().ready()
    site.drop("good.yaml", "instructions: hi\nagent: {type: sh}\n")
    task = task_named(daemon, "good")
    wait_until(lambda: daemon.client.task(task.id).state == "COMPLETED", "the task to complete")
    failing = wait_until(lambda: None if (it := telemetry_check(daemon)).ok else it, "the check to fail")
    assert "could not be reached" in failing.detail
    assert failing.remedy
    assert daemon.client.readiness().ready, "tasks are accepted and started"
    with Collector(port) as back:
        root_of(back, task)
        wait_until(lambda: telemetry_check(daemon).ok, "the check to pass")


def test_a_collector_that_never_answers_holds_up_nothing(site: Site, collector: Collector) -> None:
    collector.silent = True
    collecting(site, collector.endpoint)
    daemon = site.start().ready()
    site.drop("first.yaml", "instructions: hi\nagent: {type: sh}\n")
    assert collector.asked.acquire(timeout=PATIENCE_S)
    site.drop("second.yaml", "instructions: hi\nagent: {type: sh}\n")
    second = task_named(daemon, "second")
    wait_until(lambda: daemon.client.task(second.id).state == "COMPLETED", "the task to complete")
    assert daemon.stop() == 0
    assert collector.spans == []


def test_the_key_is_sent_and_never_shown(site: Site, collector: Collector) -> None:
    collecting(site, f"{collector.endpoint}/v1/traces", headers_env="COLLECTOR", service_name="night")
    collector.status = 401
    daemon = site.start(COLLECTOR=f"authorization=Bearer%20{KEY},x-tenant=shop").ready()
    site.drop(
        "leaks.yaml", f'instructions: "do: echo {KEY}; exit 3"\nagent: {{type: sh}}\nretry: {{max_attempts: 1}}\n'
    )
    task = task_named(daemon, "leaks")
    failing = wait_until(lambda: None if (it := telemetry_check(daemon)).ok else it, "the check to fail")
    assert "HTTP 401" in failing.detail
    collector.status = 200
    root_of(collector, task)
    assert collector.headers[-1]["authorization"] == f"Bearer {KEY}"
    assert collector.headers[-1]["x-tenant"] == "shop"
    assert collector.resources[-1]["service.name"] == "night"
    shown = [repr(collector.spans), site.log_text(), daemon.client.task(task.id).model_dump_json(), failing.detail]
    assert not any(KEY in text for text in shown)


def test_only_what_happens_from_then_on_is_sent(site: Site, collector: Collector) -> None:
    daemon = site.start().ready()
    root = site.root / "told"
    site.drop("before.yaml", f'instructions: "do: echo none$TRACEPARENT > {root}"\nagent: {{type: sh}}\n')
    before = task_named(daemon, "before")
    wait_until(lambda: daemon.client.task(before.id).state == "COMPLETED", "the task to complete")
    assert root.read_text() == "none\n"
    assert "telemetry" not in {check.name for check in daemon.client.readiness().checks}
    assert daemon.stop() == 0
    collecting(site, collector.endpoint)
    daemon = site.start().ready()
    site.drop("after.yaml", "instructions: hi\nagent: {type: sh}\n")
    root_of(collector, task_named(daemon, "after"))
    assert not collector.of_task(before.id)


def test_a_reload_says_that_a_collector_needs_a_restart(site: Site, collector: Collector) -> None:
    daemon = site.start().ready()
    collecting(site, collector.endpoint)
    daemon.send(signal.SIGHUP)

    def waits() -> bool:
        checks = {check.name: check.detail for check in daemon.client.readiness().checks}
        return checks["configuration"] == "in force, but needs a restart: telemetry"

    wait_until(waits, "the reload")


def test_without_the_extra_the_start_says_what_to_install(tmp_path: Path) -> None:
    config = tmp_path / "claudomator.yaml"
    config.write_text("state_dir: state\nhttp: {listen: 127.0.0.1:0}\ntelemetry: {endpoint: http://127.0.0.1:4318}\n")
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, "serve", "--config", str(config)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 1
    assert (
        "telemetry.endpoint: needs an extra that is not installed; pip install 'claudomator-py[otel]'" in ended.stderr
    )
