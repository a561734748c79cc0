"""What can be asked about hosts; their shape is ``domain.host.HostView``."""

from typing import Annotated

from claudomator_py.domain.health import DrainView
from claudomator_py.domain.host import HostView
from claudomator_py.resources.daemon.shape import DRAINED, DrainRequest
from claudomator_py.surface.operation import ADMIN_WHOLE, READ, Calls, JsonField, PathText, operation

HostName = Annotated[str, PathText("The host's name, such as `local`.")]


class HostCalls(Calls):
    """Every operation on hosts, as the client calls it."""

    @operation("GET /v1/hosts", "listHosts", READ, "Where runs take place")
    def hosts(self) -> list[HostView]:
        """This machine, and the hosts of the configuration. Their engines are asked, for half a minute at most."""

    @operation(
        "POST /v1/hosts/{name}/drain",
        "drainHost",
        ADMIN_WHOLE,
        "Start nothing on a host; running ones finish",
        refuses=(404,),
    )
    def drain_host(
        self, name: HostName, reason: Annotated[str | None, JsonField(DrainRequest, DRAINED, required=False)] = None
    ) -> DrainView:
        """What may run elsewhere does; the rest waits, and says so. Harmless when repeated. It survives restarts of the
        daemon and lasts until `undrain`. The number of runs is that of the host."""

    @operation(
        "POST /v1/hosts/{name}/undrain", "undrainHost", ADMIN_WHOLE, "Start tasks on a host again", refuses=(404,)
    )
    def undrain_host(self, name: HostName) -> DrainView:
        """Harmless when repeated."""
