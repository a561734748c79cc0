"""/night: what ran where and when, as a picture, with its numbers in tables."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.rendering import render
from claudomator_py.api.request import DIGITS
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, counted, format_duration, format_instant
from claudomator_py.resources.report import drawing
from claudomator_py.resources.report.drawing import HOURS, bars_svg, drawn, night_url
from claudomator_py.resources.report.night import BINS, Bin, DayTotal, Lane, Nights
from claudomator_py.surface import READ
from claudomator_py.surface.table import Column, Table, Time

DEFAULT_HOURS = 12
MAX_HOURS = 31 * 24
Hours = Annotated[int, Query(ge=1, le=MAX_HOURS), DIGITS]
Ends = Annotated[int | None, Query(ge=0, le=4_000_000_000), DIGITS]

LANES = Table[Lane](
    Column("AGENT", lambda lane: lane.agent),
    Column("RUNS", lambda lane: sum(lane.counts.values()), right=True),
    Column("SUCCEEDED", lambda lane: lane.counts.get("succeeded", 0), right=True),
    Column("FAILED", lambda lane: lane.counts.get("failed", 0) + lane.counts.get("lost", 0), right=True),
    Column("LIMITED", lambda lane: lane.counts.get("limited", 0), right=True),
    Column("ASKED", lambda lane: lane.counts.get("needs_input", 0), right=True),
    Column("CANCELLED", lambda lane: lane.counts.get("cancelled", 0), right=True),
    Column("RUNNING", lambda lane: lane.counts.get("running", 0), right=True),
    Column("BUSY", lambda lane: _busy(lane.busy_ms), right=True),
    Column("COST", lambda lane: _cost_of(lane), right=True),
)
PARTS = Table[Bin](
    Column("FROM", lambda row: Time(format_instant(row.begin_ms), "at")),
    Column("SUCCEEDED", lambda row: row.done, right=True),
    Column("FAILED", lambda row: row.failed, right=True),
    Column("AT A TIME", lambda row: row.running, right=True),
    Column("OPEN TASKS", lambda row: row.open, right=True),
)
DAYS = Table[DayTotal](
    Column("DAY", lambda row: f"{row.day:%Y-%m-%d}"),
    Column("AGENT", lambda row: row.agent),
    Column("RUNS", lambda row: row.runs, right=True),
    Column("COST", lambda row: cost_text(row.cost_usd), right=True),
)

routes = UnlistedRoutes("/night")


@routes.get("", READ)
def show(granted: Allowed, hours: Hours = DEFAULT_HOURS, until: Ends = None) -> Response:
    service = granted[Nights]
    now_ms = service.clock()
    until_ms = now_ms if until is None else min(until * SECOND_MS, now_ms)
    since_ms = max(0, until_ms - hours * HOUR_MS)
    half_ms = hours * HOUR_MS // 2
    night = service.night(since_ms, max(until_ms, since_ms + 1))
    values: dict[str, Any] = {
        "picture": (picture := drawn(night, now_ms, service.names)),
        "bars": bars_svg(picture.bars),
        "drawing": drawing,
        "lanes": with_all([lane for lane in night.lanes if lane.runs or lane.holds]),
        "lane_table": LANES,
        "parts": night.bins,
        "part_table": PARTS,
        "days": night.days,
        "day_table": DAYS,
        "zone": str(night.zone),
        "each": format_duration(hours * HOUR_MS // BINS // SECOND_MS * SECOND_MS),
        "since": format_instant(since_ms),
        "until": format_instant(until_ms),
        "spans": [(span_words(span), night_url(span, until), span == hours) for span in HOURS],
        "earlier": night_url(hours, (until_ms - half_ms) // SECOND_MS) if night.has_earlier else None,
        "later": _later(hours, until_ms + half_ms, now_ms) if until_ms < now_ms else None,
        "runs": sum(len(lane.runs) for lane in night.lanes),
    }
    return render("night.html", values, granted)


def _later(hours: int, until_ms: int, now_ms: int) -> str:
    return night_url(hours, until_ms // SECOND_MS if until_ms < now_ms else None)


def with_all(lanes: Sequence[Lane]) -> Sequence[Lane]:
    """Return the agents, and their total if there are several."""
    if len(lanes) < 2:
        return lanes
    costs = [lane.cost_usd for lane in lanes if lane.cost_usd is not None]
    counts = sum((Counter(lane.counts) for lane in lanes), Counter[str]())
    busy_ms, unpriced = sum(lane.busy_ms for lane in lanes), sum(lane.unpriced for lane in lanes)
    return [*lanes, Lane("all", (), (), counts, busy_ms, sum(costs) if costs else None, unpriced)]


def span_words(hours: int) -> str:
    """Return the length of a span, in hours, in words: ``12 hours``, ``3 days``."""
    return counted(hours, "hour") if hours <= 24 else f"{hours * HOUR_MS // DAY_MS} days"


def _busy(ms: int) -> str:
    unit = SECOND_MS if ms < HOUR_MS else MINUTE_MS
    return format_duration(ms // unit * unit)


def _cost_of(lane: Lane) -> str | None:
    if lane.cost_usd is None:
        return "not known" if lane.unpriced else None
    return cost_text(lane.cost_usd, lane.unpriced)
