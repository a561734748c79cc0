"""``report``: what happened in a span of time, in local time."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from claudomator_py.cli.connect import Client, with_client
from claudomator_py.cli.output import note, out, out_json
from claudomator_py.cli.times import clock, now_ms, time_option
from claudomator_py.domain.units import counted
from claudomator_py.resources.report import ReportSpan
from claudomator_py.resources.report.text import markdown
from claudomator_py.texts import escaped


class ReportFormat(StrEnum):
    """The format of a report."""

    MARKDOWN = "markdown"
    JSON = "json"


@with_client
def report(
    client: Client,
    since: Annotated[
        int | None,
        time_option("From this time on: 22:00 (the last one), 12h, 2026-11-27 or 2026-11-27T22:00. Default: 12h."),
    ] = None,
    until: Annotated[int | None, time_option("Up to this time, written the same way. Default: now.")] = None,
    output: Annotated[
        ReportFormat, typer.Option("--output", "-o", help="Output format.", show_default=True)
    ] = ReportFormat.MARKDOWN,
) -> None:
    """Show what happened overnight, and what is left.

    Says what was done, what failed and why, what changed in which repository, what needs you, and what waits for what.
    """
    ends = {"since": since, "until": until}
    span = {name: datetime.fromtimestamp(at_ms / 1_000, UTC) for name, at_ms in ends.items() if at_ms is not None}
    report = client.report(ReportSpan(**span))
    if output is ReportFormat.JSON:
        out_json(report)
    else:
        now = now_ms()
        out(escaped(markdown(report, lambda instant: clock(instant, now))))
        if ready := sum(branch.unready is None for branch in client.branches()):
            note(f"{counted(ready, 'branch')} ready to merge: claudomator merge --ready")
