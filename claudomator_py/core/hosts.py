"""Names by which a daemon may be addressed, as they stand in a Host header."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from claudomator_py.core.fields import Distinct, Line, OneOrMore, refusal
from claudomator_py.core.problem import shown

_HOST = re.compile(
    r"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
)


def _allowed_host(value: str) -> str:
    text = shown(value)
    if "://" in value or "/" in value:
        raise refusal(f"`{text}` is a URL or a path", "write the host alone, such as box.example or box.example:8443")
    match = _HOST.fullmatch(value)
    name = match["name"] if match is not None else value.partition(":")[0]
    if name in ("*", "0") or _unspecified(name):
        raise refusal(f"`{text}` stands for every host, which would let any page in", "name each host itself")
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        raise refusal(f"`{text}` is not a host", "write it as in a URL, such as box.example or [fd00::1]:8443")
    return value.lower()


def _unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


Hosts = Annotated[
    tuple[Annotated[Line, AfterValidator(_allowed_host)], ...], Field(max_length=100), OneOrMore, Distinct
]
