"""A client of the daemon that is meant, found as the command line finds it."""

import os
from pathlib import Path

from claudomator_py.client.discovery import Endpoint, discover
from claudomator_py.client.http import Client
from claudomator_py.client.transport import TIMEOUT_SECONDS


def connect(config: Path | None = None, state_dir: Path | None = None, *, timeout_s: float = TIMEOUT_SECONDS) -> Client:
    """A client; config and state_dir as the flags of that name, else by the environment and the configuration found.

    Raises ClientError if no daemon is announced. Nothing is asked over the network yet.
    """

    def found() -> Endpoint:
        return discover(config, state_dir, os.environ, Path.cwd())

    endpoint = found()
    return Client(
        endpoint.url,
        endpoint.token,
        timeout_s=timeout_s,
        own=endpoint.own,
        socket=endpoint.socket,
        locate=lambda: _moved(endpoint, found()),
    )


def _moved(before: Endpoint, now: Endpoint) -> str:
    """Where the daemon is by now; the same place unless what is there takes the same token."""
    return now.url if now.token == before.token else before.url
