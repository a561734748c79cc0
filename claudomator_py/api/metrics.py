"""The metric families: the name and meaning of each, and how it is computed from a measurement.

The collector and the reference page use this list. A task's name or id is never a label: all label values come from the
configuration or from a fixed list.
"""

import math
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

from fastapi import Request, Response

from claudomator_py import __version__
from claudomator_py.api.operation import Operations
from claudomator_py.daemon.metering import BY_HAND, Measured, Meter
from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.histogram import Histogram
from claudomator_py.domain.lifecycle import STATE_NAMES
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.faults import Activity
from claudomator_py.scheduler.classification import Cause
from claudomator_py.store.metric_rows import REVOKED
from claudomator_py.surface import READ_WHOLE
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

metrics = Operations("health")

PREFIX = "claudomator_"
OTHER = "other"

_REASONS = frozenset(reason.value for reason in Reason)

Labelled = tuple[tuple[str, ...], float]
"""A value with its labels, in the family's order."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family. name: complete, with ``_total`` for a counter. values: of a gauge or counter."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    values: Callable[[Measured], Iterable[Labelled]] = lambda _: ()
    histograms: Callable[[Measured], Mapping[tuple[str, ...], Histogram]] = lambda _: {}


def _gauge(name: str, help_text: str, values: Callable[[Measured], Iterable[Labelled]], *labels: str) -> Family:
    return Family(PREFIX + name, "gauge", help_text, labels, values)


def _counter(name: str, help_text: str, values: Callable[[Measured], Iterable[Labelled]], *labels: str) -> Family:
    return Family(PREFIX + name, "counter", help_text, labels, values)


def _histogram(
    name: str, help_text: str, histograms: Callable[[Measured], Mapping[tuple[str, ...], Histogram]], *labels: str
) -> Family:
    return Family(PREFIX + name, "histogram", help_text, labels, histograms=histograms)


def _one(value: float | None) -> Iterator[Labelled]:
    if value is not None:
        yield (), value


def _tasks(measured: Measured) -> Iterator[Labelled]:
    for state in STATE_NAMES.values():
        yield (state,), measured.tasks.get(state, 0)


def _waits(measured: Measured) -> Iterator[Labelled]:
    counts = {(wait.state, wait.reason, wait.agent, wait.code): number for wait, number in measured.waits.items()}
    yield from sorted(counts.items())


def _live(measured: Measured) -> Iterator[Labelled]:
    """Yield all configured agents, idle ones included, and former ones whose runs continue."""
    live = {(agent.name, "running"): 0 for agent in measured.agents} | dict(measured.live)
    yield from sorted(live.items())


def _on_hosts(measured: Measured) -> Iterator[Labelled]:
    for host in measured.hosts:
        waiting = sum(host.waits.values())
        yield (host.name, "placed"), max(0, host.live - waiting)
        yield (host.name, "waiting"), waiting


def _hosts_up(measured: Measured) -> Iterator[Labelled]:
    for host in measured.hosts:
        yield (host.name,), host.problem is None


def _runs(measured: Measured) -> Iterator[Labelled]:
    for ended in measured.ended:
        if ended.ended_as != REVOKED:
            yield (ended.agent, ended.ended_as, _reason(ended.reason)), ended.durations.count


def _revoked(measured: Measured) -> Iterator[Labelled]:
    numbers = {agent.name: 0 for agent in measured.agents}
    for ended in measured.ended:
        if ended.ended_as == REVOKED:
            numbers[ended.agent] = numbers.get(ended.agent, 0) + ended.durations.count
    for agent, number in sorted(numbers.items()):
        yield (agent,), number


def _durations(measured: Measured) -> Mapping[tuple[str, ...], Histogram]:
    merged: dict[tuple[str, ...], Histogram] = {}
    for ended in measured.ended:
        if ended.ended_as != REVOKED:
            key = (ended.agent, ended.ended_as)
            merged[key] = merged[key].merged(ended.durations) if key in merged else ended.durations
    return merged


def _tokens(measured: Measured) -> Iterator[Labelled]:
    used: defaultdict[tuple[str, str], float] = defaultdict(float)
    for ended in measured.ended:
        used[ended.agent, "input"] += ended.input_tokens
        used[ended.agent, "output"] += ended.output_tokens
    yield from sorted(used.items())


def _cost(measured: Measured) -> Iterator[Labelled]:
    spent: defaultdict[tuple[str], float] = defaultdict(float)
    for ended in measured.ended:
        spent[ended.agent,] += ended.cost_usd
    yield from sorted(spent.items())


def _holds(measured: Measured) -> Iterator[Labelled]:
    for (agent, reason), until_ms in sorted(measured.holds.items()):
        label = reason if reason == BY_HAND else _reason(reason)
        yield (agent, label), float("inf") if until_ms is None else until_ms / SECOND_MS


def _answers(measured: Measured) -> Iterator[Labelled]:
    numbers = dict.fromkeys(("classifier", "cache", "default"), 0)
    for (source, _), number in measured.answers.items():
        numbers[source] = numbers.get(source, 0) + number
    for source, number in sorted(numbers.items()):
        yield (source,), number


def _fallbacks(measured: Measured) -> Iterator[Labelled]:
    numbers = dict.fromkeys((cause.value for cause in Cause), 0)
    for (_, cause), number in measured.answers.items():
        if cause:
            known = cause if cause in numbers else OTHER
            numbers[known] = numbers.get(known, 0) + number
    for cause, number in sorted(numbers.items()):
        yield (cause,), number


def _reason(code: str | None) -> str:
    """Return a code that this version knows; empty without one."""
    if code is None:
        return ""
    return code if code in _REASONS else OTHER


FAMILIES: tuple[Family, ...] = (
    _gauge(
        "build_info",
        "The version of the daemon, of its Python and the kind of its database. Always 1.",
        lambda measured: [((__version__, platform.python_version(), measured.database), 1)],
        "version",
        "python",
        "database",
    ),
    _gauge(
        "check_ok",
        "1 if a check of readiness (`/readyz`) passes, else 0.",
        lambda measured: [((name,), int(ok)) for name, ok in sorted(measured.checks.items())],
        "check",
    ),
    _gauge("tasks", "Tasks by state.", _tasks, "state"),
    _gauge(
        "pending_tasks",
        "Tasks that wait, and why: the reason that the API gives for each. agent: the configured agent or kind that "
        "they ask for; empty if they ask for none. code: what stands in the way; empty if nothing does.",
        _waits,
        "state",
        "reason",
        "agent",
        "code",
    ),
    _gauge("live_runs", "Runs that have not ended, by agent and state.", _live, "agent", "state"),
    _gauge(
        "host_runs",
        "Live runs by host: placed, or waiting for a node. Only if hosts are configured.",
        _on_hosts,
        "host",
        "state",
    ),
    _gauge("host_up", "1 if the host's engine answers and refuses nothing, else 0.", _hosts_up, "host"),
    _gauge(
        "slots",
        "Maximum number of concurrent runs, without those on remote agents.",
        lambda measured: _one(measured.slots),
    ),
    _gauge(
        "remote_slots",
        "Maximum number of concurrent runs on remote agents.",
        lambda measured: _one(measured.remote_slots),
    ),
    _gauge(
        "agent_slots",
        "Maximum number of concurrent runs of an agent.",
        lambda measured: [((agent.name,), agent.max_concurrent) for agent in measured.agents],
        "agent",
    ),
    _gauge(
        "agent_able",
        "1 for an agent whose program can be used, 0 for one whose program cannot.",
        lambda measured: [((agent.name,), int(agent.problem is None)) for agent in measured.agents],
        "agent",
    ),
    _gauge(
        "agent_held_until_timestamp_seconds",
        "When each hold in force ends (Unix time); +Inf: when it is released.",
        _holds,
        "agent",
        "reason",
    ),
    _gauge(
        "window_used_ratio",
        "Used share of each window, as last reported by its account, until the window resets; absent without a report.",
        lambda measured: [(labels, use.used) for labels, use in sorted(measured.windows.items())],
        "kind",
        "account",
        "window",
    ),
    _gauge(
        "window_reset_timestamp_seconds",
        "When each of these windows resets (Unix time).",
        lambda measured: [(labels, use.resets_at / SECOND_MS) for labels, use in sorted(measured.windows.items())],
        "kind",
        "account",
        "window",
    ),
    _counter(
        "runs_total",
        "Ended runs, by agent, status and reason code; the reason is empty if there is none.",
        _runs,
        "agent",
        "status",
        "reason",
    ),
    _counter(
        "revoked_runs_total", "Runs that were given up before they started; they cost nothing.", _revoked, "agent"
    ),
    _histogram("run_duration_seconds", "How long ended runs took, checks included.", _durations, "agent", "status"),
    _counter("tokens_total", "Tokens of ended runs, as far as agents report them.", _tokens, "agent", "direction"),
    _counter(
        "cost_dollars_total",
        "Cost of ended runs in US dollars, as reported by agents or by configured prices.",
        _cost,
        "agent",
    ),
    _counter(
        "classifications_total",
        "Classifications of how strong a model a task needs, by where the answer came from.",
        _answers,
        "source",
    ),
    _counter("classifier_fallbacks_total", "Times the classifier gave no usable answer.", _fallbacks, "cause"),
    _histogram(
        "tick_duration_seconds",
        "How long the scheduler's completed ticks took, since the daemon's start.",
        lambda measured: {(): measured.ticks.durations},
    ),
    _counter(
        "failed_ticks_total",
        "Ticks that failed, since the daemon's start.",
        lambda measured: _one(measured.ticks.failed),
    ),
    _gauge(
        "last_tick_timestamp_seconds",
        "When the last tick was completed (Unix time). Ticks come at least every five seconds.",
        lambda measured: _one((measured.ticks.completed_ms or 0) / SECOND_MS),
    ),
    _gauge(
        "unserved_request_timestamp_seconds",
        "When the oldest request to cancel or restart was made that the last tick did not act on (Unix time); "
        "0: there is none.",
        lambda measured: _one((measured.ticks.unserved_ms or 0) / SECOND_MS),
    ),
    _gauge(
        "failing_items",
        "Tasks, runs and directories for which something keeps failing while everything else carries on, by what is "
        "being done for them.",
        lambda measured: [((doing.name.lower(),), measured.failing.get(doing.name.lower(), 0)) for doing in Activity],
        "doing",
    ),
    _histogram(
        "store_write_seconds",
        "Time from requesting a write until it was durable, including its wait in the queue, since the daemon's start.",
        lambda measured: {(): measured.writes},
    ),
    _gauge(
        "store_pending_writes",
        "Writes that wait in the queue.",
        lambda measured: _one(measured.writes_pending),
    ),
    _gauge("inbox_refused_files", "Refused files in the inbox.", lambda measured: _one(measured.refused_files)),
    _gauge(
        "disk_free_bytes",
        "Free space on the disk of the state folder.",
        lambda measured: _one(measured.free_bytes),
    ),
    _gauge(
        "disk_reserve_bytes",
        "`limits.min_free`: below it, nothing starts.",
        lambda measured: _one(measured.least_free_bytes),
    ),
)


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Measurement:
    """One measurement as metric families, in the form of a Prometheus collector."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def collect(self) -> "Iterator[Metric]":
        for family in FAMILIES:
            yield _metric(family, self._measured)


def exposition(measured: Measured) -> bytes:
    """Return the measurement, and the kernel's figures about the process, in the text format."""
    # Late: only for those who scrape.
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(cast("Collector", _Measurement(measured)))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@metrics.operation(
    "GET /metrics",
    "getMetrics",
    READ_WHOLE,
    "Measurements in Prometheus' text format",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(request: Request) -> Response:
    """For Prometheus: gauges and counters of tasks, runs, agents, holds and the daemon itself."""
    meter: Meter | None = request.app.state.meter
    if meter is None:
        raise Unavailable("Metrics are not available on this server.", remedy="Scrape a running daemon.")
    return Response(exposition(meter.measure()), media_type=MEDIA_TYPE)


def _metric(family: Family, measured: Measured) -> "Metric":
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )  # see ``exposition``

    match family.kind:
        case "gauge":
            gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for labels, value in family.values(measured):
                gauge.add_metric(labels, value)
            return gauge
        case "counter":
            counter = CounterMetricFamily(family.name, family.help, labels=family.labels)
            for labels, value in family.values(measured):
                counter.add_metric(labels, value)
            return counter
        case "histogram":
            histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
            for labels, seen in family.histograms(measured).items():
                buckets = [
                    ("+Inf" if math.isinf(bound) else repr(bound), number) for bound, number in seen.cumulative()
                ]
                histogram.add_metric(labels, buckets, seen.total)
            return histogram
