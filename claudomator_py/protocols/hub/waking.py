"""Waking an agent of the hub that is not connected: one POST to the address that its card names."""

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
"""See ``wake_remote_agent``."""

KNOCK_S: Final = 10.0
"""How long the address has to answer."""


class NotWoken(Exception):
    """The address did not take the wake-up; the message says why."""


def wake_remote_agent(url: str, document: Mapping[str, Any], anywhere: bool) -> None:
    """Send it as JSON. What is answered is not read, and a redirect not followed. Raises NotWoken.

    anywhere: also on this machine and in its network. Otherwise the address that is connected to is judged, not the
    name: ``127.1``, the machine's own name and a name that somebody has made point here are all this machine.
    """
    import httpx  # for whoever has such an agent

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
    """Send its wake-up for that task, and again after so many seconds where it does not arrive, as long as wanted."""
    url, document = str(agent.card.wake_url), {"agent_id": agent.card.id, "task_id": task_id}
    while wanted():
        try:
            await asyncio.to_thread(wake_remote_agent, url, document, agent.creator == OPERATOR.id)
            return
        except NotWoken as error:
            log.warning("not_woken", agent=agent.card.id, problem=str(error))
            await asyncio.sleep(again_s)


def _address_elsewhere(host: str, port: int) -> str:
    """Return the first address of the host, which must not be on this machine or in its network. Raises NotWoken."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise NotWoken(f"{host} has no address: {error}") from None
    for family, kind, protocol, _, address in found:
        if not is_elsewhere(str(address[0])) or _is_own(family, kind, protocol, address):
            raise NotWoken(
                f"{host} is on this machine or in its network, where only a specialist of the operator's is woken"
            )
    return str(found[0][4][0])


def _is_own(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> bool:
    """Whether it is an address of this machine's own: the system would reach it from that address. Nothing is sent."""
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False  # there is no way there
        return bool(probe.getsockname()[0] == address[0])
