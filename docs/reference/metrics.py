"""The page of metrics, from the list that the daemon itself collects by."""

from claudomator_py.api.metrics import FAMILIES, Family
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
`GET /metrics` returns these in Prometheus' text format, with the operator's token.
[Monitoring](../how-to/monitoring.md) shows how to scrape them, and useful alerts.

Sums over the database are computed on request, at most once every five seconds. They outlive restarts of the daemon,
and do not include runs that were removed. Metrics that begin with the daemon's start say so. There are also the usual
`process_*` metrics: memory, processor time and open files of the daemon.

No label contains a task's name or id. `reason` is one of the [reason codes](reason-codes.md), `other` for a code of
another version, or empty. `code` is [what keeps the task from starting](obstacles.md).
"""


def metrics() -> str:
    """The table of metric families."""
    return page("Metrics", _INTRODUCTION, table(("metric", "type", "labels", "meaning"), map(_row, FAMILIES)))


def _row(family: Family) -> list[str]:
    return [code(family.name), family.kind, ", ".join(code(label) for label in family.labels), family.help]
