"""A client of the daemon that is meant, found as the command line finds it."""

import os
from pathlib import Path

from claudomator_py.client.discovery import discover
from claudomator_py.client.http import Client
from claudomator_py.client.transport import TIMEOUT_SECONDS


def connect(config: Path | None = None, state_dir: Path | None = None, *, timeout_s: float = TIMEOUT_SECONDS) -> Client:
    """A client; config and state_dir as the flags of that name, else by the environment and the configuration found.

    Raises ClientError if no daemon is announced. Nothing is asked over the network yet.
    """
    found = discover(config, state_dir, os.environ, Path.cwd())
    return Client(found.url, found.token, timeout_s=timeout_s)
