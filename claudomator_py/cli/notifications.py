"""``notifications``: who was told of what, and trying it again."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, error, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.domain.notice import DeliveryState, DeliveryView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_MOST = 200
_COLUMNS = (
    Column("ID", right=True),
    Column("STATE"),
    Column("TO"),
    Column("AT", wide=True),
    Column("WHAT", flexible=True),
    Column("ATTEMPTS", right=True),
    Column("ERROR", flexible=True),
)


@connected
def notifications(
    client: "Client",
    state: Annotated[DeliveryState | None, typer.Option(help="Only those in this state.")] = None,
    retry: Annotated[int | None, typer.Option(metavar="ID", help="Send this one again, which is dead.")] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="Send all again that are dead.")] = False,
    test: Annotated[str | None, typer.Option(metavar="TARGET", help="Send this target a test now.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show who was told of what.

    Send again what could not be delivered; test a target.
    """
    if sum((retry is not None, retry_all, test is not None)) > 1:
        raise typer.BadParameter("take one of --retry, --retry-all and --test")
    if test is not None:
        tried = client.test_notification(test)
        _write([tried], output)
        if tried.state is not DeliveryState.DELIVERED:
            error(f"The test did not get to {test}: {tried.error}.", "Correct `notify` in the configuration.")
            raise typer.Exit(exits.FAILURE)
        return
    if retry is not None:
        _write([client.retry_notification(retry)], output)
        return
    if retry_all:
        dead = client.notifications(DeliveryState.DEAD, limit=_MOST).items
        _write([client.retry_notification(delivery.id) for delivery in dead], output)
        return
    found = client.notifications(state, limit=_MOST)
    _write(list(found.items), output)
    if found.next_cursor is not None:
        note(f"These are the newest {_MOST}; the API has the others.")


def _write(deliveries: list[DeliveryView], output: Format) -> None:
    if output is Format.JSON:
        out_json(deliveries)
    elif not deliveries:
        note("There are none.")
    else:
        rows = [
            (
                str(one.id or ""),
                one.state.value,
                one.target,
                one.created_at,
                one.notice.title,
                str(one.attempts),
                one.error or "",
            )
            for one in deliveries
        ]
        out(render(_COLUMNS, rows, wide=output is Format.WIDE))
