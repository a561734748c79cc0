"""``drain`` and ``undrain``: start nothing new, such as before maintenance, and start again."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, error, out, out_json
from claudomator_py.cli.table import fields
from claudomator_py.domain.units import format_duration, parse_duration
from claudomator_py.domain.views import DrainView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_LOOK_S = 0.5


@connected
def drain(
    client: "Client",
    reason: Annotated[str | None, typer.Option(help="Why; shown to whoever asks.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Start tasks again; as `undrain` does.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return once nothing runs any more.")] = False,
    timeout: Annotated[
        int | None,
        typer.Option(metavar="DURATION", parser=parse_duration, help="Wait no longer than this, such as 45m."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Start nothing new; what runs goes on to its end.

    Tasks are still accepted, and queue. It holds over restarts of the daemon, until `undrain`.
    """
    if off and (wait or reason is not None):
        raise typer.BadParameter("--off takes neither --wait nor --reason")
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout goes with --wait")
    found = client.undrain() if off else client.drain(reason)
    deadline = None if timeout is None else time.monotonic() + timeout / 1_000
    while wait and found.drained and found.running:
        if deadline is not None and time.monotonic() >= deadline:
            _write(found, output)
            error(f"Not all had ended after {format_duration(timeout or 0)}.", "They go on; the daemon stays drained.")
            raise typer.Exit(exits.TIMED_OUT)
        time.sleep(_LOOK_S)
        found = client.drain_state()
    _write(found, output)


@connected
def undrain(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """Start tasks again after `drain`."""
    _write(client.undrain(), output)


def _write(found: DrainView, output: Format) -> None:
    if output is Format.JSON:
        out_json(found)
        return
    out(
        fields(
            [
                ("drained", "yes" if found.drained else "no"),
                ("since", found.since or ""),
                ("reason", found.reason or ""),
                ("running", str(found.running)),
            ]
        )
    )
