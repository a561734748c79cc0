"""Connect commands to the daemon: each gets a client, and the options that say where the daemon is."""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate

import typer

from claudomator_py.cli.output import formatted, note, option, with_parameters
from claudomator_py.imports import bulk_import, hiding

if TYPE_CHECKING:
    from claudomator_py.client.http import Client as Client
else:
    Client = Any  # its module imports an HTTP library, which `--help` does not need

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration file.", rich_help_panel="Daemon"),
]
StateDirOption = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="The daemon's state folder.", rich_help_panel="Daemon"),
]


def connect(config: Path | None, state_dir: Path | None) -> Client:
    """Return a client of the daemon, after a warning if the daemon's configuration file has a problem.

    Raises ClientError.
    """
    with hiding("click"), bulk_import():  # httpx imports click, and with it rich, for its own command line
        from claudomator_py.client import discovery, http

    client = http.connect(config, state_dir)
    problem = None if client.state_dir is None else discovery.configuration_problem(client.state_dir, os.environ)
    if problem is not None:
        note(f"Warning: {problem}\nThe daemon continues with the configuration that it read before.")
    return client


def with_client(command: Callable[Concatenate[Client, ...], None]) -> Callable[..., None]:
    """Return the command with a client as its first argument, and the options ``--config`` and ``--state-dir``."""

    @functools.wraps(command)
    def run(*args: object, config: Path | None, state_dir: Path | None, **options: object) -> None:
        with connect(config, state_dir) as client:
            command(client, *args, **options)

    options = [option("config", ConfigOption), option("state_dir", StateDirOption)]
    return with_parameters(run, [*list(inspect.signature(command).parameters.values())[1:], *options])


def connected(command: Callable[Concatenate[Client, ...], None]) -> Callable[..., None]:
    """Return the command as ``with_client`` does, and with the option ``--output``."""
    return with_client(formatted(command))
