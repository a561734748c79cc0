"""Waking an agent of the hub that is not connected: one POST to the address that its card names."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.remote import is_loopback
from claudomator_py.log import get_logger

log = get_logger("claudomator.hub")

Knock = Callable[[str, Mapping[str, Any]], None]
"""See ``knock``."""

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


async def wake(agent: Registration, task_id: str, knock: Knock, again_s: float, wanted: Callable[[], bool]) -> None:
    """Send its wake-up for that task, and again after so many seconds where it does not arrive, as long as wanted."""
    url, document = str(agent.card.wake_url), {"agent_id": agent.card.id, "task_id": task_id}
    while wanted():
        try:
            if not _may_be_woken(agent):
                raise NotWoken("only a specialist of the operator's may be woken on this machine")
            await asyncio.to_thread(knock, url, document)
            return
        except NotWoken as error:
            log.warning("not_woken", agent=agent.card.id, problem=str(error))
            await asyncio.sleep(again_s)


def _may_be_woken(agent: Registration) -> bool:
    """A wake-up on this machine could reach what is open to nobody else: the operator alone may ask for that."""
    host = urlsplit(str(agent.card.wake_url)).hostname or ""
    return not is_loopback(host) or agent.creator == OPERATOR.id
