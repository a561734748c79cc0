"""The settings of the web server, the hosts that clients may address it by, and those where browsers log in.

Cookies ignore ports: a cookie that our page sets on 127.0.0.1 would be sent to every server there, whoever runs it, and
could be replayed from there. So browsers log in only at a name that no other server has: one that nobody else can guess
and that resolves to this machine, or that of a proxy.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import field

from claudomator_py.api.endpoint import parse_listen
from claudomator_py.api.guard.limits import RequestLimits
from claudomator_py.domain.fields import is_wildcard
from claudomator_py.domain.remote import is_loopback
from claudomator_py.values import dataclass

MIN_TOKEN_LENGTH = 16
_HTTP_PORT = 80
_PURPOSE = b"claudomator page name"
_NAME_DIGITS = 16
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The settings.

    token: the operator's. listen: host and port as bound, such as ``127.0.0.1:8484``. allowed_hosts: further names by
    which clients may address the daemon, such as that of a proxy; with a port, that port only. limits: how much a
    client may ask for. Raises ValueError for a short token, and for a wildcard address among the names.
    """

    token: str
    listen: str
    allowed_hosts: tuple[str, ...] = ()
    limits: RequestLimits = field(default_factory=RequestLimits)

    def __post_init__(self) -> None:
        if len(self.token) < MIN_TOKEN_LENGTH or not self.token.isascii():
            raise ValueError(
                f"the token needs {MIN_TOKEN_LENGTH} ASCII characters or more; remove its file to get a new one"
            )
        parse_listen(self.listen)
        for name in self.allowed_hosts:
            if is_wildcard(_without_port(name)):
                raise ValueError(f"{name} means every address and can never be a Host; name the host itself")

    @property
    def cookie(self) -> str:
        """The name of the session's cookie. It has the port, as all ports of a host share cookies."""
        return f"claudomator_{parse_listen(self.listen)[1]}"

    @property
    def page_host(self) -> str:
        """The host of the pages, with its port: derived from the token, and unknown to whoever lacks the token."""
        digest = hmac.digest(self.token.encode("ascii"), _PURPOSE, hashlib.sha256).hex()
        port = parse_listen(self.listen)[1]
        name = f"claudomator-{digest[:_NAME_DIGITS]}.localhost"
        return name if port == _HTTP_PORT else f"{name}:{port}"

    def page_hosts(self) -> frozenset[str]:
        """Return the hosts where browsers can log in, in lower case: the host of the pages, and the allowed ones that
        are not loopback."""
        allowed = {name for name in self.allowed_hosts if not is_loopback(_without_port(name))}
        return frozenset(name.lower() for name in (self.page_host, *self._with_port(allowed)))

    def authorities(self) -> frozenset[str]:
        """Return the valid values of a Host header, in lower case."""
        host, port = parse_listen(self.listen)
        names = set(_LOOPBACK_NAMES)
        if not is_wildcard(host) and not is_loopback(host):
            names.add(f"[{host}]" if ":" in host else host)
        known = {f"{name}:{port}" for name in names}
        if port == _HTTP_PORT:
            known |= names
        known |= self._with_port(self.allowed_hosts)
        return frozenset(name.lower() for name in known) | self.page_hosts()

    def _with_port(self, names: Iterable[str]) -> set[str]:
        """Return the names, and those without a port also with the server's own."""
        port = parse_listen(self.listen)[1]
        return {*names, *(f"{name}:{port}" for name in names if name == _without_port(name))}


def _without_port(name: str) -> str:
    head, separator, tail = name.rpartition(":")
    return head if separator and tail.isdigit() and not head.endswith(":") else name
