"""``token``: create, list and revoke tokens; ``open`` and ``sessions``: log browsers in and out."""

import contextlib
import html
import os
import secrets
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import checked, json_text, note, out, table_text, wants_json, write, write_table
from claudomator_py.client import ClientError
from claudomator_py.client.state_folder import StateFolder
from claudomator_py.domain.principal import Role
from claudomator_py.domain.units import SECOND_MS, parse_duration
from claudomator_py.private_files import create_private
from claudomator_py.resources.access import NEVER, SessionView, TokenRequest, TokenView
from claudomator_py.surface.table import Column, Table, ago, until
from claudomator_py.values import regex

_TOKENS = Table[TokenView](
    Column("NAME", lambda token: token.name, flexible=True),
    Column("ROLE", lambda token: token.role),
    Column("ORGANISATION", lambda token: token.organisation, flexible=True),
    Column("CREATOR", lambda token: token.creator, flexible=True),
    Column("CREATED", lambda token: ago(token.created_at)),
    Column("EXPIRES", lambda token: until(token.expires_at) if token.active else None),
    Column("USED", lambda token: ago(token.used_at)),
    Column("STATE", lambda token: "active" if token.active else "expired" if token.revoked_at is None else "revoked"),
    Column("ID", lambda token: token.id, wide=True),
)
_DATE = regex(r"\d{4}-\d{2}-\d{2}")


def parse_role(text: str) -> Role:
    """Return the role of that name. Raises BadParameter if no token can have it."""
    given = (Role.READ, Role.OPERATE, Role.ADMIN)
    if text not in given:
        raise typer.BadParameter(f"{text!r} is not a role; write one of {', '.join(given)}")
    return Role(text)


def _expiry(text: str) -> str:
    """Return what the API accepts: a duration, or ``never``. A date means its beginning in local time."""
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
    client: Client,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the holder in the audit log. Names are never reused.")
    ],
    role: Annotated[str, typer.Option(parser=parse_role, metavar="read|operate|admin", help="What the holder may do.")],
    organisation: Annotated[
        str | None, typer.Option(metavar="ORG", help="Limit the holder to this organisation's tasks.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(parser=_expiry, metavar="30d|DATE|never", help="When it expires; 90 days by default."),
    ] = None,
) -> None:
    """Create a token and print it. It is shown only once.

    A token cannot have more rights than the one used to create it.
    """
    wanted = {"name": name, "role": role, "organisation": organisation, "expires": expires}
    made = client.create_token(checked(TokenRequest, wanted))
    write(made, lambda: made.token)
    if not wants_json():
        note(f"This is the token of {made.name}. It is not stored, and cannot be shown again.")


@connected
def list_tokens(client: Client) -> None:
    """List the tokens, newest first.

    The last use of a token is recorded once an hour at most.
    """
    write_table(_TOKENS, client.tokens(), "There are no tokens. Create one: claudomator token create NAME --role read")


@connected
def revoke(
    client: Client,
    ref: Annotated[str, completion.TOKENS.argument("ID|NAME", "The token's id or name.")],
) -> None:
    """Revoke a token, immediately and permanently.

    Its event streams and browser sessions end with it. Tokens that its holder issued stay valid: see CREATOR.
    """
    ended = client.revoke_token(ref)
    write(ended, lambda: table_text(_TOKENS, [ended]))


TOKEN_COMMANDS = {"create": create, "list": list_tokens, "revoke": revoke}


_LOGIN_PAGES = "login-*.html"
_LASTS_S = 60.0
"""How long a login code is valid."""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Claudomator</title>
<p><a href="{url}">Log in</a></p>
</html>
"""


def folder_for(state_dir: Path | None) -> Path | None:
    """Return a folder that nobody else can enter: the state folder of this user's daemon, or else that of the login
    session; None: neither.
    The daemon removes left-over pages from its state folder when it starts.
    """
    session = os.environ.get("XDG_RUNTIME_DIR")
    for folder in (state_dir, Path(session) if session else None):
        if folder is None or not folder.is_absolute():
            continue
        try:
            StateFolder(folder).close()
        except (ClientError, OSError):
            continue
        return folder
    return None


def write_login_page(folder: Path, url: str) -> Path:
    """Write a new page (0600) into the folder, and remove those with expired links. Raises OSError."""
    for old in folder.glob(_LOGIN_PAGES):
        with contextlib.suppress(FileNotFoundError):  # another command has removed it
            if time.time() - old.lstat().st_mtime > _LASTS_S:
                old.unlink()
    path = folder / f"login-{secrets.token_hex(8)}.html"
    with create_private(path) as file:
        file.write(_PAGE.format(url=html.escape(url)).encode())
    return path


_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@connected
def open_page(
    client: Client,
    browser: Annotated[
        bool | None,
        typer.Option("--browser/--no-browser", help="Start a browser (default: on a terminal with a display)."),
    ] = None,
) -> None:
    """Print a link that logs a browser in.

    It works once, within a minute, and only if it is opened directly, not followed from another page.
    """
    code = client.login_code()
    if wants_json():
        out(json_text({"url": code.url, "expires_at": code.expires_at}))
        return
    out(code.url)
    wanted = browser if browser is not None else sys.stdout.isatty() and any(map(os.environ.get, _DISPLAYS))
    if wanted:
        _start_browser(client.state_dir, code.url)


def _start_browser(state_dir: Path | None, url: str) -> None:
    """Start a browser on a file that leads to the link, which is then in no argument of a program."""
    import webbrowser

    folder = folder_for(state_dir)
    try:
        page = None if folder is None else write_login_page(folder, url)
    except OSError:
        page = None
    if page is None:
        note("No private folder for the login page was found; open the link yourself.")
    elif webbrowser.open(page.as_uri()):
        note("If the browser cannot read that page (a snap, for example), open the link yourself.")
    else:
        page.unlink(missing_ok=True)
        note("Could not start a browser; open the link yourself.")


_SESSIONS = Table[SessionView](
    Column("ID", lambda session: session.id),
    Column("BROWSER", lambda session: session.browser, flexible=True),
    Column("PRINCIPAL", lambda session: session.principal, flexible=True),
    Column("SINCE", lambda session: ago(session.created_at)),
    Column("USED", lambda session: ago(session.used_at)),
    Column("EXPIRES", lambda session: until(session.expires_at)),
    Column("HOST", lambda session: session.host, wide=True),
)


@connected
def list_sessions(client: Client) -> None:
    """List the browsers that are logged in, the last used first."""
    write_table(_SESSIONS, client.sessions(), "No browser is logged in.")


@connected
def end(
    client: Client,
    session_id: Annotated[str | None, completion.SESSIONS.argument("ID", "The session's id.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Log out everywhere.")] = False,
) -> None:
    """Log out one browser, or all of them.

    It takes effect at once: open pages show nothing new.
    """
    if (session_id is None) != everywhere:
        raise typer.BadParameter("name a session by its ID, or give --all")
    ended = client.end_sessions() if session_id is None else [client.end_session(session_id)]
    write_table(_SESSIONS, ended, "No browser was logged in.")


SESSION_COMMANDS = {"list": list_sessions, "end": end}
