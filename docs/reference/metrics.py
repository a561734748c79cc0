"""The page of metrics, from the list that the daemon itself collects by."""

from claudomator_py.api.metrics import FAMILIES, Family
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
`GET /metrics` gives these in Prometheus' text format, with the operator's token. How to scrape them, and what to be
told of, is in [monitoring](../how-to/monitoring.md).

What is in the database is summed when it is asked for, once in five seconds at most: it outlives restarts of the
daemon, and runs that were removed are gone from it. What begins with the daemon's start says so. There
are also the usual `process_*` metrics: memory, processor time and open files of the daemon.

Labels never hold a task's name or id. A reason is one of the [reason codes](reason-codes.md), `other` for a code of
another version, or empty where there is none. A code is [what stands in the way](obstacles.md).
"""


def metrics() -> str:
    """The table of metric families."""
    return page("Metrics", _INTRODUCTION, table(("metric", "type", "labels", "meaning"), map(_row, FAMILIES)))


def _row(family: Family) -> list[str]:
    return [code(family.name), family.kind, ", ".join(code(label) for label in family.labels), family.help]
