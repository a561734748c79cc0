"""``notifications``: what was sent to whom, sending it again, and sending a test."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import error, note, write_table
from claudomator_py.domain.notice import DeliveryState
from claudomator_py.resources.notifications import DeliveryView
from claudomator_py.surface.table import Column, Table, at

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_LISTED = 200
_DELIVERIES = Table[DeliveryView](
    Column("ID", lambda delivery: delivery.id or None, right=True),
    Column("STATE", lambda delivery: delivery.state),
    Column("TO", lambda delivery: delivery.target),
    Column("AT", lambda delivery: at(delivery.created_at), wide=True),
    Column("WHAT", lambda delivery: delivery.notice.title, flexible=True),
    Column("ATTEMPTS", lambda delivery: delivery.attempts, right=True),
    Column("ERROR", lambda delivery: delivery.error, flexible=True),
)


@connected
def notifications(
    client: Client,
    state: Annotated[DeliveryState | None, typer.Option(help="Only notifications in this state.")] = None,
    retry: Annotated[int | None, typer.Option(metavar="ID", help="Retry this dead notification.")] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="Retry all dead notifications.")] = False,
    test: Annotated[
        str | None, typer.Option(metavar="TARGET", help="Send a test notification to this target now.")
    ] = None,
) -> None:
    """List notifications and their delivery.
    Can also retry undeliverable ones, and test a target.
    """
    if sum((retry is not None, retry_all, test is not None)) > 1:
        raise typer.BadParameter("use only one of --retry, --retry-all and --test")
    if test is not None:
        tried = client.test_notification(test)
        _write([tried])
        if tried.state is not DeliveryState.DELIVERED:
            error(f"The test notification did not reach {test}: {tried.error}.", "Fix `notify` in the configuration.")
            raise typer.Exit(ExitCode.FAILURE)
        return
    if retry is not None:
        _write([client.retry_notification(retry)])
        return
    if retry_all:
        dead = client.notifications(DeliveryState.DEAD, limit=_MAX_LISTED).items
        _write([client.retry_notification(delivery.id) for delivery in dead])
        return
    notices = client.notifications(state, limit=_MAX_LISTED)
    _write(notices.items)
    if notices.next_cursor is not None:
        note(f"Showing the newest {_MAX_LISTED}; the API has the rest.")


def _write(deliveries: "Sequence[DeliveryView]") -> None:
    write_table(_DELIVERIES, deliveries, "There are no notifications.")
