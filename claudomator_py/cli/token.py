"""``token``: who else may ask this daemon, and what."""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.arguments import checked
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Column, Format, FormatOption, note, out, out_json, render
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.domain.principal import Role
from claudomator_py.domain.units import SECOND_MS, parse_duration
from claudomator_py.domain.views.access import NEVER, TokenRequest, TokenView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_COLUMNS = (
    Column("NAME", flexible=True),
    Column("ROLE"),
    Column("ORGANISATION", flexible=True),
    Column("CREATOR", flexible=True),
    Column("CREATED"),
    Column("EXPIRES"),
    Column("USED"),
    Column("STATE"),
    Column("ID", wide=True),
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _role(text: str) -> Role:
    given = (Role.READ, Role.OPERATE, Role.ADMIN)
    if text not in given:
        raise typer.BadParameter(f"{text!r} is not a role; write one of {', '.join(given)}")
    return Role(text)


def _expiry(text: str) -> str:
    """What the API takes: a duration, or ``never``. A date means its beginning, here."""
    if _DATE.match(text):
        try:
            left_ms = round((datetime.fromisoformat(text).astimezone().timestamp() - time.time()) * SECOND_MS)
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} is not a date: {error}") from None
        if left_ms <= 0:
            raise typer.BadParameter(f"{text} is in the past")
        return f"{max(1, left_ms // SECOND_MS)}s"
    if text != NEVER:
        try:
            parse_duration(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a duration, such as 30d, nor a date, nor `never`") from None
    return text


@connected
def create(
    client: "Client",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the holder in the audit log. Names are never reused.")
    ],
    role: Annotated[Role, typer.Option(parser=_role, metavar="read|operate|admin", help="What the holder may do.")],
    organisation: Annotated[
        str | None, typer.Option(metavar="ORG", help="Limit the holder to this organisation's tasks.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(parser=_expiry, metavar="30d|DATE|never", help="When it expires; 90 days by default."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Create a token and print it. It is shown only once.

    A token cannot be given more rights than the one used to create it.
    """
    wanted = {"name": name, "role": role.value, "organisation": organisation, "expires": expires}
    made = client.create_token(checked(TokenRequest, wanted))
    if output is Format.JSON:
        out_json(made)
        return
    out(made.token)
    note(f"This is the token of {made.name}. It is not stored, and cannot be shown again.")


@connected
def list_tokens(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """List the tokens, newest first.

    When one was used last is written once an hour at most.
    """
    found = client.tokens()
    if output is Format.JSON:
        out_json(found)
    elif not found:
        note("There are no tokens.")
    else:
        _write(found, output)


@connected
def revoke(
    client: "Client",
    ref: Annotated[str, typer.Argument(metavar="ID|NAME", help="The token's id or name.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Revoke a token, immediately and permanently.

    Its event streams and browser sessions end with it. Tokens that its holder issued stay valid: see CREATOR.
    """
    ended = client.revoke_token(ref)
    if output is Format.JSON:
        out_json(ended)
    else:
        _write([ended], output)


def group() -> typer.Typer:
    """The commands under ``token``."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.command()(create)
    app.command("list")(list_tokens)
    app.command()(revoke)
    return app


def _write(found: Sequence[TokenView], output: Format) -> None:
    now = now_ms()
    rows = [
        (
            one.name,
            one.role.value,
            one.organisation or "",
            one.creator,
            ago(one.created_at, now),
            until(one.expires_at, now) if one.active else "",
            ago(one.used_at, now),
            "active" if one.active else "revoked" if one.revoked_at is not None else "expired",
            one.id,
        )
        for one in found
    ]
    out(render(_COLUMNS, rows, wide=output is Format.WIDE))
