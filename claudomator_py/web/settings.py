"""What the web needs to know, and the authorities that may stand in a Host header."""

from dataclasses import dataclass, field

from claudomator_py.web.endpoint import is_loopback, is_wildcard, parse_listen
from claudomator_py.web.limits import Limits

MIN_TOKEN_LENGTH = 16
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class WebSettings:
    """token: the operator's. listen: host and port as bound, such as ``127.0.0.1:8484``.

    allowed_hosts: further names by which clients may address the daemon, such as that of a proxy; with a port, that
    port only. limits: how much one client may ask. Raises ValueError for a short token, and for a wildcard address
    among the names.
    """

    token: str
    listen: str
    allowed_hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if len(self.token) < MIN_TOKEN_LENGTH or not self.token.isascii():
            raise ValueError(
                f"the token needs {MIN_TOKEN_LENGTH} ASCII characters or more; remove its file, and one is made"
            )
        parse_listen(self.listen)
        for name in self.allowed_hosts:
            if is_wildcard(_without_port(name)):
                raise ValueError(f"{name} stands for every address and can never be a Host; name the host itself")

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: cookies are shared by all ports of a host."""
        return f"claudomator_{parse_listen(self.listen)[1]}"

    def authorities(self) -> frozenset[str]:
        """What a Host header may say, exactly, in lower case."""
        host, port = parse_listen(self.listen)
        names = set(_LOOPBACK_NAMES)
        if not is_wildcard(host) and not is_loopback(host):
            names.add(f"[{host}]" if ":" in host else host)
        known = {f"{name}:{port}" for name in names}
        if port == 80:
            known |= names
        for name in self.allowed_hosts:
            known.add(name)
            if name == _without_port(name):
                known.add(f"{name}:{port}")
        return frozenset(name.lower() for name in known)


def _without_port(name: str) -> str:
    head, separator, tail = name.rpartition(":")
    return head if separator and tail.isdigit() and not head.endswith(":") else name
