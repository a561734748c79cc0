"""The metric families: how each is computed from a measurement. Names and meanings are in ``metrics.toml``.

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
from claudomator_py.domain.lifecycle import STATE_NAMES
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.units import SECOND_MS, Histogram
from claudomator_py.faults import Activity
from claudomator_py.scheduler.classification import Cause
from claudomator_py.store.metric_rows import REVOKED
from claudomator_py.surface import READ_WHOLE, Operation
from claudomator_py.values import dataclass, toml_data

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


def _unlabelled(value: float | None) -> Iterator[Labelled]:
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


_VALUES: Mapping[str, Callable[[Measured], Iterable[Labelled]]] = {
    "build_info": lambda measured: [((__version__, platform.python_version(), measured.database), 1)],
    "check_ok": lambda measured: [((name,), int(ok)) for name, ok in sorted(measured.checks.items())],
    "tasks": _tasks,
    "pending_tasks": _waits,
    "live_runs": _live,
    "host_runs": _on_hosts,
    "host_up": _hosts_up,
    "slots": lambda measured: _unlabelled(measured.slots),
    "remote_slots": lambda measured: _unlabelled(measured.remote_slots),
    "agent_slots": lambda measured: [((agent.name,), agent.max_concurrent) for agent in measured.agents],
    "agent_able": lambda measured: [((agent.name,), int(agent.problem is None)) for agent in measured.agents],
    "agent_held_until_timestamp_seconds": _holds,
    "window_used_ratio": lambda measured: [(labels, use.used) for labels, use in sorted(measured.windows.items())],
    "window_reset_timestamp_seconds": lambda measured: [
        (labels, use.resets_at / SECOND_MS) for labels, use in sorted(measured.windows.items())
    ],
    "runs_total": _runs,
    "revoked_runs_total": _revoked,
    "tokens_total": _tokens,
    "cost_dollars_total": _cost,
    "classifications_total": _answers,
    "classifier_fallbacks_total": _fallbacks,
    "failed_ticks_total": lambda measured: _unlabelled(measured.ticks.failed),
    "last_tick_timestamp_seconds": lambda measured: _unlabelled((measured.ticks.completed_ms or 0) / SECOND_MS),
    "unserved_request_timestamp_seconds": lambda measured: _unlabelled((measured.ticks.overdue_ms or 0) / SECOND_MS),
    "failing_items": lambda measured: [
        ((activity.name.lower(),), measured.failing.get(activity.name.lower(), 0)) for activity in Activity
    ],
    "store_pending_writes": lambda measured: _unlabelled(measured.writes_pending),
    "inbox_refused_files": lambda measured: _unlabelled(measured.refused_files),
    "disk_free_bytes": lambda measured: _unlabelled(measured.free_bytes),
    "disk_reserve_bytes": lambda measured: _unlabelled(measured.least_free_bytes),
}
_HISTOGRAMS: Mapping[str, Callable[[Measured], Mapping[tuple[str, ...], Histogram]]] = {
    "run_duration_seconds": _durations,
    "tick_duration_seconds": lambda measured: {(): measured.ticks.durations},
    "store_write_seconds": lambda measured: {(): measured.writes},
}


def _families() -> Iterator[Family]:
    for name, entry in toml_data("claudomator_py.api", "metrics.toml").items():
        computed = {"histograms": _HISTOGRAMS[name]} if name in _HISTOGRAMS else {"values": _VALUES[name]}
        yield Family(PREFIX + name, entry["kind"], entry["help"], tuple(entry.get("labels", ())), **computed)


FAMILIES = tuple(_families())
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
    Operation("getMetrics", "GET", "/metrics", READ_WHOLE, "Measurements in Prometheus' text format"),
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

    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for labels, seen in family.histograms(measured).items():
            buckets = [("+Inf" if math.isinf(bound) else repr(bound), number) for bound, number in seen.cumulative()]
            histogram.add_metric(labels, buckets, seen.total)
        return histogram
    form = GaugeMetricFamily if family.kind == "gauge" else CounterMetricFamily
    metric: GaugeMetricFamily | CounterMetricFamily = form(family.name, family.help, labels=family.labels)
    for labels, value in family.values(measured):
        metric.add_metric(labels, value)
    return metric
