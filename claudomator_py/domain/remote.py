"""An agent reached over HTTP: its address, its protocol, and how requests authenticate."""

import ipaddress
import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, AnyUrl, Field, ValidationError, field_validator

from claudomator_py.domain.errors import shown
from claudomator_py.domain.fields import Flag, Line, Strict, refusal
from claudomator_py.values import regex


class Protocol(StrEnum):
    """The protocol of a remote agent."""

    AUTO = "auto"
    """A2A, in the version and at the address given by its card."""
    A2A_1_0 = "1.0"
    """A2A 1.0, JSON-RPC, at the address itself."""
    A2A_0_3 = "0.3"
    """A2A 0.3, JSON-RPC, at the address itself."""
    POST = "post"
    """A single JSON request; its response ends the task."""


class Scheme(StrEnum):
    """How a request to a remote agent authenticates."""

    NONE = "none"
    BEARER = "bearer"
    """``Authorization: Bearer SECRET``."""
    API_KEY = "apiKey"
    """A separate header, named by ``header``."""


class Authentication(Strict):
    """How to authenticate with a remote agent: never the secret, only where the daemon finds it."""

    scheme: Scheme = Field(Scheme.NONE, description="How the secret is sent.")
    secret: Line | None = Field(None, description="Name of the environment variable of the daemon that holds it.")
    header: Line | None = Field(None, description="Header of scheme `apiKey`. Default: X-API-Key.")

    @field_validator("secret")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not value.replace("_", "").isalnum():
            raise refusal("is not the name of a variable", "put the secret into the daemon's environment, and name it")
        return value


def is_loopback(host: str) -> bool:
    """Return whether a URL's host, or an address, is this machine, judging by its name."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses routed between networks; what else Python calls global is translated, site-local or reserved."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")


def is_elsewhere(address: str) -> bool:
    """Return whether the IP address belongs neither to this machine nor to a network that only it and its neighbours
    can reach.

    An IPv6 address that stands for an IPv4 address (mapped, 6to4 of RFC 3056, NAT64 of RFC 6052) is judged by the
    latter.
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(known, ipaddress.IPv6Address):
        inner = known.ipv4_mapped or known.sixtofour
        if inner is None and known in _NAT64:
            inner = ipaddress.IPv4Address(int(known) & 0xFFFFFFFF)
        if inner is not None:
            return is_elsewhere(str(inner))
        return known.is_global and known in _UNICAST
    return known.is_global and not known.is_multicast and known not in _PROTOCOLS


_HTTP = regex(r"https?://[^/?#\\\s][^\\\s]*", re.IGNORECASE)
"""URLs that every client parses alike: AnyUrl would also repair `https:x.example` and blanks."""


def http_url(value: str, remedy: str = "write https://HOST/PATH") -> str:
    """Return the address of an agent reached over HTTP, unchanged. Raises ValueError if it is not valid."""
    try:
        url = AnyUrl(value)
    except ValidationError:
        raise refusal(f"`{shown(value)}` is not an address", remedy) from None
    if not _HTTP.fullmatch(value) or not url.host:
        raise refusal(f"`{shown(value)}` is not an address", remedy)
    if url.username or url.password:
        raise refusal("contains credentials", "name the variable that holds them under `authentication`")
    if url.scheme == "http" and not is_loopback(url.host):
        raise refusal("would be sent unencrypted", "write https://; http:// is for this machine alone")
    if url.fragment is not None:
        raise refusal("has a fragment, which is never sent", "leave out what follows `#`")
    return value


RemoteUrl = Annotated[Line, AfterValidator(http_url)]


class RemoteSettings(Strict):
    """What a file says about a remote agent."""

    url: RemoteUrl | None = Field(
        None, description="Kind `a2a` only: https:// address of the remote agent, or of the host that its card is on."
    )
    protocol: Protocol = Field(
        Protocol.AUTO,
        description="Kind `a2a` only: what is spoken. Default: the version of A2A that the agent's card names.",
    )
    authentication: Authentication = Field(
        Authentication(), description="Kind `a2a` only: how requests to `url` prove who sends them."
    )
    deduplicates: Flag = Field(
        False,
        description="Kind `a2a` only: the agent does a message once that it is sent twice under one id, so one whose "
        "fate is unknown may be sent again.",
    )
    skill: Line | None = Field(None, description="Kind `a2a` only: id of the skill that the agent is asked to use.")


class Remote(RemoteSettings):
    """Everything that the client of a remote agent needs to know."""

    url: RemoteUrl
