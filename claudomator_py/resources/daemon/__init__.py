"""The shapes and operations of the daemon itself and of hosts: health, drain, backups and cleanup."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from claudomator_py.domain.fields import Strict
from claudomator_py.domain.health import CheckView, DrainView
from claudomator_py.domain.host import HostView
from claudomator_py.domain.outcome import HoldKind, Reason
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.shape import Instant, View
from claudomator_py.surface import ADMIN_WHOLE, OPEN, READ, Calls, InPath, JsonBody, JsonField, operation
from claudomator_py.surface.table import Column, Table


class DrainRequest(Strict):
    """Why no tasks are to be started."""

    reason: str | None = Field(default=None, max_length=2_000)


class BackupView(View):
    """A copy of the database."""

    path: str
    """On the daemon's machine."""
    bytes: int
    created_at: Instant


class ReasonView(View):
    """What a reason code means, and what follows from it; see ``domain.outcome.ReasonPolicy``."""

    reason: Reason
    meaning: str
    counts_attempt: bool
    retries: bool
    escalates: bool
    hold: HoldKind
    needs_person: bool
    falls_back: bool


class LivenessView(View):
    """The process answers."""

    alive: Literal[True] = True


class ReadinessView(View):
    """Whether tasks are accepted and started."""

    ready: bool
    checks: tuple[CheckView, ...] = ()
    """Empty without a token."""


DRAINED = {"without_a_reason": {}, "with_a_reason": {"reason": "The machine is restarted at six."}}
_CLEANED = {"look_first": {"dry_run": True}, "at_once": {"older_than": "0s"}}


class DrainCalls(Calls):
    """The operations on draining, as the client calls them."""

    @operation("GET /v1/drain", "getDrain", READ, "Whether the daemon is drained, and how many runs are live")
    def drain_state(self) -> DrainView:
        """As in readiness, with the number of live runs still to wait for."""

    @operation("POST /v1/drain", "drain", ADMIN_WHOLE, "Stop starting tasks; running ones finish")
    def drain(
        self, reason: Annotated[str | None, JsonField(DrainRequest, DRAINED, required=False)] = None
    ) -> DrainView:
        """Repeating it changes nothing. It survives restarts of the daemon and lasts until `undrain`."""

    @operation("POST /v1/undrain", "undrain", ADMIN_WHOLE, "Start tasks again")
    def undrain(self) -> DrainView:
        """Repeating it changes nothing."""


class BackupCalls(Calls):
    """The operation that copies the database, as the client calls it."""

    @operation("POST /v1/backups", "makeBackup", ADMIN_WHOLE, "Copy the database", status=201)
    def backup(self) -> BackupView:
        """A consistent copy, in `backups` in the state directory; tasks continue meanwhile. SQLite only."""


class CleanupCalls(Calls):
    """The operation that cleans up, as the client calls it."""

    @operation(
        "POST /v1/cleanup",
        "cleanUp",
        ADMIN_WHOLE,
        "Remove spent work trees and the directories of old runs",
        refuses=(409,),
    )
    def clean_up(self, wanted: Annotated[CleanupRequest | None, JsonBody(_CLEANED)] = None) -> CleanupView:
        """Only of tasks that have ended. A work tree is removed with its branch, and only if nothing is lost: it is
        unchanged, or committed and merged. The answer says what is kept, and why."""


class ReasonCalls(Calls):
    """The operation on reason codes, as the client calls it."""

    @operation("GET /v1/reasons", "listReasons", READ, "The reason codes, and what follows from each")
    def reasons(self) -> list[ReasonView]:
        """The codes are stable, and the same here, in tasks, in logs and in metrics."""


class HealthCalls(Calls):
    """The operations that need no token, as the client calls them."""

    @operation("GET /livez", "getLiveness", OPEN, "Whether the daemon answers")
    def liveness(self) -> LivenessView:
        """Needs no token. It does not say whether tasks are accepted."""

    @operation("GET /readyz", "getReadiness", OPEN, "Whether tasks are accepted", also={503: "Not ready"})
    def readiness(self) -> ReadinessView:
        """Needs no token; with one, the answer lists every check, and what to do about those that failed."""


class DaemonCalls(DrainCalls, BackupCalls, CleanupCalls, ReasonCalls, HealthCalls):
    """The operations on the daemon itself, as the client calls them."""


HostName = Annotated[str, InPath("The host's name, such as `local`.")]


def numbers_text(counts: Mapping[str, int]) -> str | None:
    """Return ``2 idle, 1 down``; None if nothing is counted."""
    return ", ".join(f"{number} {what}" for what, number in counts.items()) or None


HOSTS = Table[HostView](
    Column("HOST", lambda host: host.name),
    Column("KIND", lambda host: host.kind, wide=True),
    Column("SLOTS", lambda host: f"{host.live}/{host.slots}", right=True),
    Column("AGENTS", lambda host: numbers_text(host.agents), flexible=True),
    Column("CPUS", lambda host: None if host.cpus is None else f"{host.cpus_used}/{host.cpus}", right=True),
    Column("WAITING", lambda host: numbers_text(host.waits), flexible=True),
    Column("NODES", lambda host: numbers_text(host.nodes), flexible=True),
    Column("DRAINED", lambda host: None if host.drained is None else host.drained or "yes", flexible=True),
    Column("PROBLEM", lambda host: host.problem, flexible=True),
    Column("CLOCK", lambda host: f"{host.clock_skew:+.1f} s" if host.clock_skew else None, right=True),
    Column("VERSION", lambda host: host.version, wide=True),
)


class HostCalls(Calls):
    """The operations on hosts, as the client calls them."""

    @operation("GET /v1/hosts", "listHosts", READ, "Where runs take place")
    def hosts(self) -> list[HostView]:
        """This machine, and the hosts of the configuration. Their engines are asked, for at most half a minute."""

    @operation("POST /v1/hosts/{name}/drain", "drainHost", ADMIN_WHOLE, "Start nothing on a host; running ones finish")
    def drain_host(
        self, name: HostName, reason: Annotated[str | None, JsonField(DrainRequest, DRAINED, required=False)] = None
    ) -> DrainView:
        """Tasks that may run elsewhere do; the others wait, and say so. Repeating it changes nothing. It survives
        restarts of the daemon and lasts until `undrain`. The number of runs is that of the host."""

    @operation("POST /v1/hosts/{name}/undrain", "undrainHost", ADMIN_WHOLE, "Start tasks on a host again")
    def undrain_host(self, name: HostName) -> DrainView:
        """Repeating it changes nothing."""
