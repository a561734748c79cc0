"""Connect commands to the daemon: a client, the options that say where the daemon is, and its events on a thread."""

import functools
import inspect
import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Self

import typer

from claudomator_py.cli.output import formatted, note, option, with_parameters
from claudomator_py.client import ClientError
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


PATIENCE_S: Final = 60.0
"""How long a daemon may be away by default."""


class EventWatch:
    """Waits for events, of one task or any. Use it in a ``with`` block."""

    def __init__(self, client: Client, task: str | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._task = task
        self._patience_s = patience_s
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._tasks: set[str] | None = None
        self._failure: ClientError | None = None
        self._left = False
        # A daemon thread, as it may be waiting for the daemon, which cannot be interrupted.
        self._thread = threading.Thread(target=self._listen, name="changes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True

    def wait(self, seconds: float) -> bool:
        """Wait for a change since the last call; False if there was none in that time.

        The first change is that listening has begun. Raises ClientError when the daemon is gone for good.
        """
        changed = self._changed.wait(seconds)
        self._changed.clear()
        if self._failure is not None:
            raise self._failure
        return changed

    def tasks(self) -> Collection[str] | None:
        """Return the ids of the tasks with events since the last call; None: unknown, so any may have changed."""
        with self._lock:
            task_ids, self._tasks = self._tasks, set()
        return task_ids

    def _listen(self) -> None:
        try:
            for event in self._client.events(
                task=self._task, patience_s=self._patience_s, on_connect=lambda: self._note(None)
            ):
                self._note(None if event.kind == "reset" else event.task_id or "")
                if self._left:
                    return
        except ClientError as error:
            self._failure = error
            self._changed.set()
        except (RuntimeError, OSError):
            if not self._left:  # otherwise the command has ended, and with it what this thread needs
                raise

    def _note(self, task_id: str | None) -> None:
        """Note an event of that task, of no task (''), or possibly of any (None)."""
        with self._lock:
            if task_id is None:
                self._tasks = None
            elif self._tasks is not None and task_id:
                self._tasks.add(task_id)
        self._changed.set()
