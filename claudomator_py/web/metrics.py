"""/metrics: what Prometheus scrapes, in its text format. Needs the token, as everything else does."""

import math
from collections.abc import Iterator

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from claudomator_py.core.errors import Unavailable
from claudomator_py.service.process.metering import Measured, Meter
from claudomator_py.web.metric_families import FAMILIES, Family
from claudomator_py.web.openapi import problems

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Measurement(Collector):
    """One measurement as metric families."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Metric]:
        for family in FAMILIES:
            yield _metric(family, self._measured)


def text_of(measured: Measured) -> bytes:
    """The measurement, and what the kernel says of the process, in the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Measurement(measured))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def router(meter: Meter | None) -> APIRouter:
    """The route, on this meter; None where nothing is measured, as in front of a desk alone."""
    routes = APIRouter(tags=["health"])

    @routes.get(
        "/metrics",
        operation_id="getMetrics",
        summary="Measurements in Prometheus' text format",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems(503)},
    )
    def metrics() -> Response:
        """For Prometheus: gauges and counters of tasks, runs, agents, holds and the daemon itself."""
        if meter is None:
            raise Unavailable("Nothing is measured here.", remedy="Ask a daemon.")
        return Response(text_of(meter.measure()), media_type=MEDIA_TYPE)

    return routes


def _metric(family: Family, measured: Measured) -> Metric:
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
