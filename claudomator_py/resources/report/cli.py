"""``report``: what happened since, on the clock here."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import out, out_json
from claudomator_py.cli.times import clock, now_ms, past_instant
from claudomator_py.domain.text import escaped
from claudomator_py.resources.report.shape import ReportSpan
from claudomator_py.resources.report.text import markdown

if TYPE_CHECKING:
    from claudomator_py.client.http import Client


class ReportFormat(StrEnum):
    """How a report is written."""

    MARKDOWN = "markdown"
    JSON = "json"


def _instant(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(past_instant(text, now_ms()) / 1_000, UTC)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@connected
def report(
    client: "Client",
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=_instant,
            metavar="TIME",
            help="From this time on: 22:00 (the last one), 12h, 2026-11-27 or 2026-11-27T22:00. Default: 12h.",
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(parser=_instant, metavar="TIME", help="Up to this time, written likewise. Default: now."),
    ] = None,
    output: Annotated[
        ReportFormat, typer.Option("--output", "-o", help="Output format.", show_default=True)
    ] = ReportFormat.MARKDOWN,
) -> None:
    """Show what happened overnight, and what is left.

    Says what is done, what failed and why, what changed in which repository, what needs you, and what waits for what.
    """
    found = client.report(ReportSpan(since=since, until=until))
    if output is ReportFormat.JSON:
        out_json(found)
    else:
        now = now_ms()
        out(escaped(markdown(found, lambda instant: clock(instant, now))))
