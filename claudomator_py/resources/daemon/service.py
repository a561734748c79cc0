"""The daemon itself: draining it, backing up its database, and cleaning up after it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from claudomator_py.domain.errors import NotFound, Unavailable
from claudomator_py.domain.health import DrainView, StopsView
from claudomator_py.domain.host import HostView
from claudomator_py.domain.outcome import REASON_POLICIES, Reason
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.ports import Clock, RunHost
from claudomator_py.resources.daemon import (
    BackupCalls,
    BackupView,
    CleanupCalls,
    DrainCalls,
    DrainRequest,
    HostCalls,
    ReasonCalls,
    ReasonView,
)
from claudomator_py.resources.session import Service, reading, writing
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.database import or_unavailable
from claudomator_py.store.events import record
from claudomator_py.surface import answers
from claudomator_py.tasks.holds import drain, drain_view, host_switch, undrain
from claudomator_py.values import dataclass
from claudomator_py.workers.cleanup import Cleaner

BACKUPS = "backups"
"""The directory of backups, in the state directory."""


@dataclass(eq=False, repr=False)
class DaemonService(Service):
    """The service of the daemon itself."""

    cleaner: Cleaner
    clock: Clock

    @answers(DrainCalls.drain_state)
    def drain_state(self) -> DrainView:
        """Return whether the daemon is drained, and how many runs are live."""
        return self._read(drain_view)

    @reading()
    def standing(self, connection: Connection) -> StopsView:
        """Return what the head of every page says."""
        holds = hold_rows.in_force(connection, self.clock())
        held = {hold.bucket.agent for hold in holds if hold.bucket.agent is not None and hold.reason is None}
        return StopsView(drain=drain_view(connection), held=tuple(sorted(held)))

    @answers(DrainCalls.drain)
    def drain(self, wanted: DrainRequest) -> DrainView:
        """Stop starting tasks; this survives restarts of the daemon. Repeating it changes nothing."""
        return self._switched(lambda connection: drain(connection, wanted.reason, self.clock()))

    @answers(DrainCalls.undrain)
    def undrain(self) -> DrainView:
        """Start tasks again. Repeating it changes nothing."""
        return self._switched(lambda connection: undrain(connection, self.clock()))

    @answers(BackupCalls.backup)
    def backup(self) -> BackupView:
        """Copy the database, as of one moment, to a new file (0600). Raises Unavailable if there is no room, or for
        PostgreSQL, which has its own backups."""
        made = format_instant(self.clock())
        stamp = made.translate({ord(mark): None for mark in "-:."})
        target = Path(self.database.state_dir, BACKUPS, f"claudomator-{stamp}.db")
        with or_unavailable():
            self.database.backup(target)
        data = {"path": str(target)}
        self._note(lambda connection: record(connection, self.clock(), "backup_made", data=data))
        return BackupView(path=str(target), bytes=target.stat().st_size, created_at=made)

    @answers(CleanupCalls.clean_up)
    def clean_up(self, wanted: CleanupRequest) -> CleanupView:
        """Remove what ended tasks no longer need. Raises Conflict while it is already under way."""
        with or_unavailable():
            cleanup = self.cleaner.clean(wanted)
        removed = sum(item.removed for item in cleanup.items)
        if removed and not wanted.dry_run:
            self._note(lambda connection: record(connection, self.clock(), "cleaned_up", data={"removed": removed}))
        return cleanup

    @answers(ReasonCalls.reasons)
    def reasons(self) -> list[ReasonView]:
        """Return every reason code with what follows from it."""
        return [ReasonView.of(REASON_POLICIES[reason], reason=reason) for reason in Reason]

    @writing()
    def _switched(self, connection: Connection, switch: Callable[[Connection], object]) -> DrainView:
        switch(connection)
        return drain_view(connection)

    def _note(self, note: Callable[[Connection], None]) -> None:
        """Record what has been done; failing to record it does not undo it."""
        with suppress(Unavailable):
            self._write(note)


def with_runs(
    connection: Connection, hosts: Sequence[HostView], host: RunHost, registry: AgentRegistry
) -> list[HostView]:
    """Return the hosts with the live runs and the slots of the agents on each, and whether it is drained."""
    slots = Counter[str]()
    for agent in registry.agents:
        slots.update(dict.fromkeys(agent.hosts, agent.max_concurrent))
    drained, runs = hold_rows.drained_hosts(connection), defaultdict[str, Counter[str]](Counter)
    for run in run_rows.live(connection):
        runs[host.host_of(run.id)][run.agent] += 1
    return [
        view.model_copy(
            update={
                "live": runs[view.name].total(),
                "slots": slots[view.name],
                "agents": dict(sorted(runs[view.name].items())),
                "drained": drained[view.name] or "" if view.name in drained else None,
            }
        )
        for view in hosts
    ]


def known_hosts(connection: Connection, host: RunHost, registry: AgentRegistry) -> Sequence[HostView]:
    """Return all hosts without asking their engines; none if this machine is the only one."""
    hosts = host.hosts(ask=False)
    return with_runs(connection, hosts, host, registry) if len(hosts) > 1 else ()


@dataclass(eq=False, repr=False)
class Hosts(Service):
    """The service of hosts, which belong to no organisation. name: a host's; methods raise NotFound if there is no such
    host."""

    host: RunHost
    registry: AgentRegistry
    names: Callable[[], Sequence[str]]
    clock: Clock

    @answers(HostCalls.hosts)
    def all(self) -> list[HostView]:
        """Return all hosts."""
        hosts = self.host.hosts()  # outside of the transaction: it takes time
        return self._read(lambda connection: with_runs(connection, hosts, self.host, self.registry))

    @reading()
    def last_known(self, connection: Connection) -> Sequence[HostView]:
        """Return all hosts without asking their engines; none if this machine is the only one."""
        return known_hosts(connection, self.host, self.registry)

    @answers(HostCalls.drain_host)
    def drain(self, name: str, wanted: DrainRequest) -> DrainView:
        """Stop starting tasks on it; this survives restarts of the daemon. Repeating it changes nothing."""
        return self._switched(name, lambda connection: drain(connection, wanted.reason, self.clock(), host=name))

    @answers(HostCalls.undrain_host)
    def undrain(self, name: str) -> DrainView:
        """Start tasks on it again. Repeating it changes nothing."""
        return self._switched(name, lambda connection: undrain(connection, self.clock(), host=name))

    @writing()
    def _switched(self, connection: Connection, name: str, switch: Callable[[Connection], None]) -> DrainView:
        if name not in self.names():
            raise NotFound.among("host", name, [*self.names()], none="no host is configured")
        switch(connection)
        current = hold_rows.find_switch(connection, host_switch(name))
        running = sum(self.host.host_of(run.id) == name for run in run_rows.live(connection))
        if current is None:
            return DrainView(drained=False, running=running)
        return DrainView(drained=True, since=format_instant(current.since_ms), reason=current.reason, running=running)
