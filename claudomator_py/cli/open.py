"""``open``: let a browser in, by a link that works once and for a minute."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, json_text, note, out

if TYPE_CHECKING:
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
        import webbrowser

        if not webbrowser.open(code.url):
            note("No browser could be started; open the link yourself.")
