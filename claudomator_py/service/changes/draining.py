"""Draining: nothing is started until an operator says so; what runs goes on to its end. Kept over restarts."""

from sqlalchemy import Connection

from claudomator_py.core.units import format_instant
from claudomator_py.core.views import CheckView, DrainView
from claudomator_py.store import run_rows, switch_rows
from claudomator_py.store.events import record


def drain(connection: Connection, reason: str | None, now_ms: int) -> None:
    """Start nothing from here on. Harmless when repeated: the first time and its reason stay."""
    if switch_rows.turn_on(connection, switch_rows.DRAIN, reason, now_ms):
        record(connection, now_ms, "drained", data={} if reason is None else {"reason": reason})


def undrain(connection: Connection, now_ms: int) -> None:
    """Start again. Harmless when repeated."""
    if switch_rows.turn_off(connection, switch_rows.DRAIN):
        record(connection, now_ms, "undrained")


def drain_view(connection: Connection) -> DrainView:
    """Whether the daemon is drained, and how many runs are left."""
    switch = switch_rows.find(connection, switch_rows.DRAIN)
    running = len(run_rows.live(connection))
    if switch is None:
        return DrainView(drained=False, running=running)
    return DrainView(drained=True, since=format_instant(switch.since_ms), reason=switch.reason, running=running)


def drain_check(found: DrainView) -> CheckView:
    """The same for readiness."""
    if not found.drained:
        return CheckView(name="drain", ok=True, detail="tasks are started")
    why = f" ({found.reason})" if found.reason else ""
    detail = f"drained since {found.since}{why}: nothing is started; live runs: {found.running}"
    return CheckView(name="drain", ok=False, detail=detail, remedy="to start tasks again: claudomator undrain")
