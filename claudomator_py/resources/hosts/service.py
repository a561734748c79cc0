"""Hosts: how the places are where runs happen."""

from claudomator_py.domain.host import HostView
from claudomator_py.ports import RunHost
from claudomator_py.resources.hosts.shape import HostCalls
from claudomator_py.resources.session import Service
from claudomator_py.store.database import Database
from claudomator_py.surface.operation import answers


class Hosts(Service):
    """What can be asked about hosts; nothing of it is any organisation's."""

    def __init__(self, database: Database, host: RunHost) -> None:
        super().__init__(database)
        self._host = host

    @answers(HostCalls.hosts)
    def all(self) -> list[HostView]:
        """Return all of them."""
        return self._host.hosts()
