"""Hosts: how the places are where runs happen, and whether they take new ones."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.health import DrainView
from claudomator_py.domain.host import HostView
from claudomator_py.domain.units import format_instant
from claudomator_py.ports import Clock, RunHost
from claudomator_py.resources.daemon.shape import DrainRequest
from claudomator_py.resources.hosts.shape import HostCalls
from claudomator_py.resources.session import Service
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.database import Database
from claudomator_py.surface.operation import answers
from claudomator_py.tasks.holds import drain, host_switch, undrain


class Hosts(Service):
    """What can be asked about hosts; nothing of it is any organisation's. name: a host's; of one that there is not, it
    raises NotFound."""

    def __init__(self, database: Database, host: RunHost, names: Callable[[], Sequence[str]], clock: Clock) -> None:
        super().__init__(database)
        self._host = host
        self._names = names
        self._clock = clock

    @answers(HostCalls.hosts)
    def all(self) -> list[HostView]:
        """Return all of them."""
        drained = self._read(hold_rows.drained_hosts)
        return [
            view.model_copy(update={"drained": drained[view.name] or ""}) if view.name in drained else view
            for view in self._host.hosts()
        ]

    @answers(HostCalls.drain_host)
    def drain(self, name: str, wanted: DrainRequest) -> DrainView:
        """Start nothing on it from here on; this survives restarts of the daemon. Harmless when repeated."""
        return self._switched(name, lambda connection: drain(connection, wanted.reason, self._clock(), host=name))

    @answers(HostCalls.undrain_host)
    def undrain(self, name: str) -> DrainView:
        """Start tasks on it again. Harmless when repeated."""
        return self._switched(name, lambda connection: undrain(connection, self._clock(), host=name))

    def _switched(self, name: str, switch: Callable[[Connection], None]) -> DrainView:
        if name not in self._names():
            raise NotFound.among("host", name, [*self._names()], none="no host is configured")

        def transaction(connection: Connection) -> DrainView:
            switch(connection)
            found = hold_rows.find_switch(connection, host_switch(name))
            running = sum(self._host.host_of(run.id) == name for run in run_rows.live(connection))
            if found is None:
                return DrainView(drained=False, running=running)
            return DrainView(drained=True, since=format_instant(found.since_ms), reason=found.reason, running=running)

        return self._write(transaction)
