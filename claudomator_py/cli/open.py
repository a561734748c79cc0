"""``open``: let a browser in, by a link that works once and for a minute."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, json_text, note, out

if TYPE_CHECKING:
    from pathlib import Path

    from claudomator_py.client.http import Client

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

    It works once, within a minute, and only where it is opened by hand.
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

    from claudomator_py.cli import login_page

    folder = login_page.folder_for(state_dir)
    try:
        page = None if folder is None else login_page.write(folder, url)
    except OSError:
        page = None
    if page is None:
        note("There is no private folder for a page that leads a browser to it; open the link yourself.")
    elif webbrowser.open(page.as_uri()):
        note("If the browser may not read that page, as one in a snap, open the link yourself.")
    else:
        page.unlink(missing_ok=True)
        note("No browser could be started; open the link yourself.")
