"""The command ``claudomator``: the commands of ``cli``, and those that need the agents or are the daemon itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import diagnose
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


def readers() -> dict[str, Callable[[], diagnose.Reader]]:
    """The readers of every kind of agent."""
    from claudomator_py.agents.catalogue import AGENT_KINDS  # only ``diagnose`` reads what agents wrote

    return {name: kind.reader for name, kind in AGENT_KINDS.items()}


def main() -> None:
    """Run the command line."""
    app = build()
    app.command()(diagnose.command(readers))
    app.command()(serve)
    run(app)


if __name__ == "__main__":
    main()
