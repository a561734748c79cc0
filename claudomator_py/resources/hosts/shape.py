"""What can be asked about hosts; their shape is ``domain.host.HostView``."""

from claudomator_py.domain.host import HostView
from claudomator_py.surface.operation import READ, Calls, operation


class HostCalls(Calls):
    """Every operation on hosts, as the client calls it."""

    @operation("GET /v1/hosts", "listHosts", READ, "Where runs take place")
    def hosts(self) -> list[HostView]:
        """This machine, and the hosts of the configuration. Their engines are asked, for half a minute at most."""
