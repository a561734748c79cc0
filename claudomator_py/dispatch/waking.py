"""Waking an agent of the hub that is not connected: one POST to the address that its card names."""

from collections.abc import Mapping
from typing import Any, Final

KNOCK_S: Final = 10.0
"""How long the address has to answer."""


class NotWoken(Exception):
    """The address did not take the wake-up; the message says why."""


def knock(url: str, document: Mapping[str, Any]) -> None:
    """Send it as JSON. What is answered is not read, and a redirect not followed. Raises NotWoken."""
    import httpx  # for whoever has such an agent

    try:
        with (
            httpx.Client(timeout=KNOCK_S, follow_redirects=False, trust_env=False) as client,
            client.stream("POST", url, json=dict(document)) as response,
        ):
            status = response.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotWoken(f"{url} was not reached: {type(error).__name__}") from None
    if not 200 <= status < 300:
        raise NotWoken(f"{url} answered {status}")
