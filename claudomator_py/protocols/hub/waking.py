"""Wake an agent of the hub that is not connected, by a POST to its card's ``wake_url``."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from claudomator_py.domain.card import Registration
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.remote import is_elsewhere
from claudomator_py.log import get_logger

log = get_logger("claudomator.hub")

Knock = Callable[[str, Mapping[str, Any], bool], None]
"""The type of ``wake_remote_agent``."""

KNOCK_S: Final = 10.0
"""Timeout of the request."""


class NotWoken(Exception):
    """The wake-up request failed; the message says why."""


def wake_remote_agent(url: str, document: Mapping[str, Any], anywhere: bool) -> None:
    """Post the document as JSON, ignoring the response's body and redirects. Raises NotWoken.

    anywhere: allow addresses of this machine and its network. Otherwise the resolved address is checked, not the
    name: ``127.1``, the machine's own name and any name that resolves to it are this machine.
    """
    import httpx  # loaded only when an agent has to be woken

    from claudomator_py.outgoing import client

    try:
        target, headers, extensions = httpx.URL(url), {}, {}
        if not anywhere:
            host, port = target.host, target.port or (443 if target.scheme == "https" else 80)
            target = target.copy_with(host=_address_elsewhere(host, port))
            headers, extensions = {"Host": httpx.URL(url).netloc.decode()}, {"sni_hostname": host}
        with (
            client(KNOCK_S) as asking,
            asking.stream("POST", target, json=dict(document), headers=headers, extensions=extensions) as response,
        ):
            status = response.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotWoken(f"{url} was not reached: {type(error).__name__}") from None
    if not 200 <= status < 300:
        raise NotWoken(f"{url} answered {status}")


async def wake(
    agent: Registration, task_id: str, wake_remote_agent: Knock, again_s: float, wanted: Callable[[], bool]
) -> None:
    """Send the agent's wake-up for the task, repeated every ``again_s`` seconds until it succeeds or is not wanted."""
    url, document = str(agent.card.wake_url), {"agent_id": agent.card.id, "task_id": task_id}
    while wanted():
        try:
            await asyncio.to_thread(wake_remote_agent, url, document, agent.creator == OPERATOR.id)
            return
        except NotWoken as error:
            log.warning("not_woken", agent=agent.card.id, problem=str(error))
            await asyncio.sleep(again_s)


def _address_elsewhere(host: str, port: int) -> str:
    """Return the host's first address. Raises NotWoken if any is on this machine or in its network."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise NotWoken(f"{host} has no address: {error}") from None
    for family, kind, protocol, _, address in addresses:
        if not is_elsewhere(str(address[0])) or _is_own(family, kind, protocol, address):
            raise NotWoken(
                f"{host} is on this machine or in its network, where only the operator's specialists are woken"
            )
    return str(addresses[0][4][0])


def _is_own(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> bool:
    """Return whether the address is this machine's: then the system would also send from it. Nothing is sent."""
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False  # no route
        return bool(probe.getsockname()[0] == address[0])
