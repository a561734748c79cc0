"""The command ``claudomator``: the commands of ``cli``, and ``serve``, which is the daemon itself."""

from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli.app import build, run
from claudomator_py.cli.connect import ConfigOption


def serve(
    config: ConfigOption = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", metavar="DIR", help="The state folder.")] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where the API listens.")] = None,
) -> None:
    """Run the daemon in the foreground."""
    from claudomator_py import bootstrap  # the daemon and all that it needs; no other command pays for it

    raise typer.Exit(bootstrap.serve(config, state_dir, listen))


def main() -> None:
    """Run the command line."""
    app = build()
    app.command()(serve)
    run(app)


if __name__ == "__main__":
    main()
