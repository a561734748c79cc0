"""``open`` and ``sessions``: log a browser in by a link that works once, and log browsers out."""

import contextlib
import html
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Column, Format, FormatOption, json_text, note, out, out_json, render
from claudomator_py.cli.times import ago, now_ms, until
from claudomator_py.client.errors import ClientError
from claudomator_py.client.state_folder import StateFolder
from claudomator_py.domain.views import SessionView

if TYPE_CHECKING:
    from pathlib import Path

    from claudomator_py.client.http import Client

_LOGIN_PAGES = "login-*.html"
_LASTS_S = 60.0
"""As long as a login code."""
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
    """A folder that nobody else can enter: the state folder of this user's daemon, else the session's; None: neither.

    The daemon removes what is left in its state folder when it starts.
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
    """A new file (0600) in the folder. Those whose links have expired are removed. Raises OSError."""
    for old in folder.glob(_LOGIN_PAGES):
        with contextlib.suppress(FileNotFoundError):  # another command has removed it
            if time.time() - old.lstat().st_mtime > _LASTS_S:
                old.unlink()
    path = folder / f"login-{secrets.token_hex(8)}.html"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(url=html.escape(url)))
    return path


_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@connected
def open_page(
    client: "Client",
    browser: Annotated[
        bool | None,
        typer.Option("--browser/--no-browser", help="Start a browser (default: on a terminal with a display)."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print a link that logs a browser in.

    It works once, within a minute, and only if it is opened directly, not followed from another page.
    """
    code = client.login_code()
    if output is Format.JSON:
        out(json_text({"url": code.url, "expires_at": code.expires_at}))
        return
    out(code.url)
    wanted = browser if browser is not None else sys.stdout.isatty() and any(map(os.environ.get, _DISPLAYS))
    if wanted:
        _start_browser(client.state_dir, code.url)


def _start_browser(state_dir: "Path | None", url: str) -> None:
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
    _write_sessions(client.sessions(), output, "No browser is logged in.")


@connected
def end(
    client: "Client",
    session_id: Annotated[str | None, typer.Argument(metavar="ID", help="The session's id.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Log out everywhere.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Log out one browser, or all of them.

    It takes effect at once: pages that are open show nothing new.
    """
    if (session_id is None) != everywhere:
        raise typer.BadParameter("name a session by its ID, or give --all")
    ended = client.end_sessions() if session_id is None else [client.end_session(session_id)]
    _write_sessions(ended, output, "No browser was logged in.")


def sessions_group() -> typer.Typer:
    """The commands under ``sessions``."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.command("list")(list_sessions)
    app.command()(end)
    return app


def _write_sessions(found: Sequence[SessionView], output: Format, nothing: str) -> None:
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
