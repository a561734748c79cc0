"""Creation of the configured span exporter. OpenTelemetry is imported only if there is one."""

import importlib.util
from collections.abc import Mapping

from claudomator_py.ports import SpanExporter
from claudomator_py.schema.settings import TelemetrySettings

_NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http", "requests")
INSTALL = "pip install 'claudomator-py[otel]'"


def span_exporter(settings: TelemetrySettings, environ: Mapping[str, str]) -> SpanExporter | None:
    """Return the exporter, or None if no endpoint is configured. environ: has the headers. Raises ValueError, with the
    remedy, if the extra is not installed."""
    if settings.endpoint is None:
        return None
    if not all(map(_is_installed, _NEEDED)):
        raise ValueError(f"telemetry.endpoint: needs an extra that is not installed; {INSTALL}")
    from claudomator_py.telemetry.otlp import OtlpExporter

    return OtlpExporter(settings, environ)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
