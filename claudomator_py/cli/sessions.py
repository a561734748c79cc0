"""``sessions``: the browsers that are logged in, and logging them out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.domain.views import SessionView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_COLUMNS = (
    Column("ID"),
    Column("BROWSER", flexible=True),
    Column("PRINCIPAL", flexible=True),
    Column("SINCE"),
    Column("USED"),
    Column("EXPIRES"),
    Column("HOST", wide=True),
)


@connected
def list_sessions(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """List the browsers that are logged in, the last used first."""
    _write(client.sessions(), output, "No browser is logged in.")


@connected
def end(
    client: "Client",
    session_id: Annotated[str | None, typer.Argument(metavar="ID", help="The session's id.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Log out everywhere.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Log a browser out, or all of them.

    It takes effect at once: pages that are open show nothing new.
    """
    if (session_id is None) != everywhere:
        raise typer.BadParameter("name a session by its ID, or take --all")
    ended = client.end_sessions() if session_id is None else [client.end_session(session_id)]
    _write(ended, output, "No browser was logged in.")


def group() -> typer.Typer:
    """The commands under ``sessions``."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.command("list")(list_sessions)
    app.command()(end)
    return app


def _write(found: Sequence[SessionView], output: Format, nothing: str) -> None:
    if output is Format.JSON:
        out_json(found)
        return
    if not found:
        note(nothing)
        return
    now = now_ms()
    rows = [
        (
            one.id,
            one.browser,
            one.principal,
            ago(one.created_at, now),
            ago(one.used_at, now),
            until(one.expires_at, now),
            one.host,
        )
        for one in found
    ]
    out(render(_COLUMNS, rows, wide=output is Format.WIDE))
