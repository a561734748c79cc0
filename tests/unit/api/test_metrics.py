"""The text that Prometheus reads: well-formed, as declared, by its conventions, and bounded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from claudomator_py.api.metrics import FAMILIES, exposition
from claudomator_py.daemon.loop import Ticks
from claudomator_py.daemon.metering import Measured, Meter, WaitCount
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.units import Histogram
from claudomator_py.scheduler.snapshot import AgentState
from claudomator_py.store.metric_rows import EndedRuns
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService

ONCE = Histogram.empty((1.0, 60.0)).plus(45.0)
NASTY = 'a"b\\c\nd'

MEASURED = Measured(
    database="sqlite",
    tasks={"QUEUED": 3},
    waits={
        WaitCount("QUEUED", "slots", code="agents_full"): 2,
        WaitCount("QUEUED", "limited", "claude", "agents_limited"): 1,
    },
    agents=[
        AgentState(name="claude", kind="claude", active=1, max_concurrent=2, auto_select=True),
        AgentState(name=NASTY, kind="command", active=0, max_concurrent=1, auto_select=True, problem="gone"),
    ],
    slots=4,
    remote_slots=16,
    live={("claude", "checking"): 1, ("removed", "running"): 1},
    ended=[
        EndedRuns("claude", "succeeded", None, ONCE, 1000, 20, 0.25),
        EndedRuns("claude", "failed", "timeout", ONCE, 10, 2, 0.5),
        EndedRuns("claude", "failed", "of_a_later_version", ONCE, 0, 0, 0),
        EndedRuns("claude", "revoked", None, ONCE, 0, 0, 0),
    ],
    holds={("claude", "rate_limited"): 1_790_000_000_500, ("claude", "auth"): None},
    windows={("claude", "default", "five_hour"): WindowUse(used=0.25, resets_at=1_790_000_000_500)},
    answers={("classifier", ""): 5, ("default", "timeout"): 2, ("default", "of_a_later_version"): 1},
    ticks=Ticks(ONCE, completed_ms=1_790_000_000_250, failed=1),
    writes=ONCE,
    writes_pending=1,
    refused_files=2,
    free_bytes=2**40,
    least_free_bytes=2**29,
    checks={"disk": True, "scheduler": False},
)


class _Meter(Meter):
    def __init__(self) -> None:
        pass

    def measure(self) -> Measured:
        return MEASURED


def families_of(text: bytes) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    value = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    assert len(value) == 1, f"{name}{labels}: {value}"
    return value[0]


@pytest.fixture(scope="module")
def families() -> dict[str, Metric]:
    return families_of(exposition(MEASURED))


def test_what_is_declared_is_there_and_nothing_else(families: dict[str, Metric]) -> None:
    ours = {name: family for name, family in families.items() if name.startswith("claudomator_")}
    declared = {family.name.removesuffix("_total"): family for family in FAMILIES}
    assert set(ours) == set(declared)
    for name, family in ours.items():
        assert (family.type, family.documentation) == (declared[name].kind, declared[name].help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(declared[name].labels), sample
    assert {name.partition("_")[0] for name in families} == {"claudomator", "process"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_named_by_the_conventions(family: object) -> None:
    from claudomator_py.api.metrics import Family

    assert isinstance(family, Family)
    assert family.name.endswith("_total") == (family.kind == "counter")
    if family.kind == "histogram":
        assert family.name.endswith("_seconds")
    assert not {"id", "task", "name", "run", "path"} & set(family.labels)
    assert family.help.endswith(".")


def test_values_are_what_was_measured(families: dict[str, Metric]) -> None:
    def of(name: str, **labels: str) -> float:
        return value(families, f"claudomator_{name}", **labels)

    assert [of("tasks", state="QUEUED"), of("tasks", state="FAILED")] == [3, 0]
    assert of("pending_tasks", state="QUEUED", reason="limited", agent="claude", code="agents_limited") == 1
    assert [of("live_runs", agent="claude", state=state) for state in ("running", "checking")] == [0, 1]
    assert of("live_runs", agent="removed", state="running") == 1
    assert [of("slots"), of("remote_slots"), of("agent_slots", agent="claude")] == [4, 16, 2]
    assert [of("agent_able", agent="claude"), of("agent_able", agent=NASTY)] == [1, 0]
    assert of("runs_total", agent="claude", status="failed", reason="timeout") == 1
    assert of("runs_total", agent="claude", status="failed", reason="other") == 1
    assert of("runs_total", agent="claude", status="succeeded", reason="") == 1
    assert of("revoked_runs_total", agent="claude") == 1
    assert of("run_duration_seconds_count", agent="claude", status="failed") == 2
    assert of("run_duration_seconds_bucket", agent="claude", status="failed", le="1.0") == 0
    assert of("run_duration_seconds_bucket", agent="claude", status="failed", le="+Inf") == 2
    assert of("run_duration_seconds_sum", agent="claude", status="failed") == 90
    assert [of("tokens_total", agent="claude", direction=way) for way in ("input", "output")] == [1010, 22]
    assert of("cost_dollars_total", agent="claude") == 0.75
    assert of("agent_held_until_timestamp_seconds", agent="claude", reason="rate_limited") == 1_790_000_000.5
    assert of("agent_held_until_timestamp_seconds", agent="claude", reason="auth") == float("inf")
    assert [of("classifications_total", source=source) for source in ("classifier", "cache", "default")] == [5, 0, 3]
    assert [of("classifier_fallbacks_total", cause=cause) for cause in ("timeout", "garbage", "other")] == [2, 0, 1]
    assert of("last_tick_timestamp_seconds") == 1_790_000_000.25
    assert [of("tick_duration_seconds_count"), of("failed_ticks_total")] == [1, 1]
    assert [of("store_write_seconds_count"), of("store_pending_writes")] == [1, 1]
    assert [of("inbox_refused_files"), of("disk_free_bytes"), of("disk_reserve_bytes")] == [2, 2**40, 2**29]
    assert [of("check_ok", check="disk"), of("check_ok", check="scheduler")] == [1, 0]


def test_reasons_are_the_codes_of_the_table(families: dict[str, Metric]) -> None:
    known = {reason.value for reason in Reason} | {"", "other"}
    for name in ("claudomator_runs", "claudomator_agent_held_until_timestamp_seconds"):
        assert {sample.labels["reason"] for sample in families[name].samples} <= known


@pytest.fixture(scope="module")
def measured_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(PreparedService(), tmp_path_factory.mktemp("measured"), meter=_Meter()) as daemon:
        yield daemon


def test_it_needs_the_token_like_everything_else(measured_daemon: Daemon) -> None:
    assert measured_daemon.ask("GET", "/metrics", headers={"Authorization": None}).status == 401
    answer = measured_daemon.ask("GET", "/metrics")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert value(families_of(answer.body), "claudomator_slots") == 4


def test_where_nothing_is_measured_it_says_so(tmp_path: Path) -> None:
    with running(PreparedService(), tmp_path / "state") as daemon:
        assert daemon.ask("GET", "/metrics").status == 503
