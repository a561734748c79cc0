"""Holds and warnings below each other: what they are on, until when, how that is known and where it was read."""

from collections.abc import Sequence

from claudomator_py.cli.table import Column, heading, render
from claudomator_py.cli.times import ago, clock, now_ms
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.text import clause
from claudomator_py.domain.views import AgentView, HoldView, NearLimitView

_RUN = 8
"""Characters of a run's id that are enough for people."""
_HOLDS = (
    Column("BUCKET", flexible=True),
    Column("AGENTS", flexible=True),
    Column("WHAT", flexible=True),
    Column("UNTIL"),
    Column("KNOWN"),
    Column("READ", flexible=True),
    Column("AT", wide=True),
    Column("SINCE", wide=True),
)
_WARNINGS = (
    Column("AGENTS", flexible=True),
    Column("WINDOW", flexible=True),
    Column("USED", right=True),
    Column("UNTIL"),
    Column("READ"),
    Column("AT", wide=True),
    Column("SINCE", wide=True),
)


def hold_tables(agents: Sequence[AgentView], *, wide: bool = False, indent: int = 0) -> list[str]:
    """Each with its heading: the holds by bucket, and the limits that accounts were warned of; none where empty."""
    parts = []
    buckets: dict[str, list[HoldView]] = {}
    warnings: dict[NearLimitView, list[str]] = {}
    for agent in agents:
        for hold in agent.holds:
            buckets.setdefault(hold.bucket, []).append(hold)
        if agent.near_limit is not None:
            warnings.setdefault(agent.near_limit, []).append(agent.name)
    now = now_ms()
    if buckets:
        rows = [_hold(holds, now) for holds in buckets.values()]
        parts.append(f"{heading('HOLDS')}\n{render(_HOLDS, rows, wide=wide, indent=indent)}")
    if warnings:
        rows = [_warning(near, names, now) for near, names in warnings.items()]
        parts.append(f"{heading('NEAR LIMITS')}\n{render(_WARNINGS, rows, wide=wide, indent=indent)}")
    return parts


def _hold(holds: Sequence[HoldView], now: int) -> tuple[str, ...]:
    hold = holds[0]
    return (
        hold.bucket,
        ", ".join(one.agent for one in holds),
        _what(hold),
        _until(hold, now),
        hold.provenance,
        _read(hold),
        hold.until or "",
        ago(hold.since, now),
    )


def _what(hold: HoldView) -> str:
    if hold.reason is None:
        return "held by hand"
    return window_text(hold.window) if hold.window is not None else hold.reason.value


def _until(hold: HoldView, now: int) -> str:
    if hold.probing:
        return f"tried, {hold.may_start or 0} more now"
    return clock(hold.until, now) or "released"


def _read(hold: HoldView) -> str:
    run = f"run {hold.run_id[:_RUN]}" if hold.run_id is not None else ""
    source = clause(hold.source) if hold.source not in (hold.window, hold.reason) else ""
    return ": ".join(part for part in (run, source) if part)


def _warning(near: NearLimitView, names: Sequence[str], now: int) -> tuple[str, ...]:
    return (
        ", ".join(names),
        window_text(near.window) if near.window is not None else "",
        "" if near.used is None else f"{near.used:.0%}",
        clock(near.until, now),
        f"run {near.run_id[:_RUN]}" if near.run_id else "",
        near.until,
        ago(near.since, now),
    )
