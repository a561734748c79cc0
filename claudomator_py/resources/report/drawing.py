"""The geometry of the night's picture. The template turns all of it into SVG except the bars."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from claudomator_py.api.page.rows import RUN_TONES
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS, counted, format_duration, short_id
from claudomator_py.resources.report.night import RUNNING, Bin, Night
from claudomator_py.store.report_rows import DrawnRun
from claudomator_py.texts import plain
from claudomator_py.values import dataclass

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH = 1_200
"""Of the picture, in its own units; the page scales it."""
LEFT = 130
"""Where the plot begins; the names of agents are to its left."""
ROW = 14
BAR = 11
GAP = 10
"""Between lanes."""
MAX_ROWS = 8
"""Of a lane; further runs share the last one."""
MIN_BAR = 3.0
"""The width of a column of the picture: narrower bars that begin in the same one are merged."""
HOURS = (1, 3, 6, 12, 24, 72, 168)
"""The spans to choose from."""
CHART = 90
_WORST = ("failed", "lost", "needs_input", "limited")
"""What of several runs is shown, whatever the others are."""
_STEPS_MS = (
    *(minutes * MINUTE_MS for minutes in (5, 15, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 6, 12, 24, 168)),
)
_MAX_TICKS = 13
_LABEL = 40
"""The width of a time's label, so none is cut off at the edge."""


class Bar(NamedTuple):
    """A run, or several that are too short to be drawn separately."""

    x: float
    y: float
    width: float
    tone: str
    words: str
    """The tooltip."""
    url: str


@dataclass(frozen=True, slots=True)
class Band:
    """Something that spans a whole lane, or a moment across all lanes (width 0)."""

    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the axis."""

    x: float
    words: str


@dataclass(frozen=True, slots=True)
class LaneLabel:
    """The name of a lane."""

    y: float
    words: str


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """A part of the span in the chart below: heights from the bottom of the chart."""

    x: float
    width: float
    done: float
    failed: float
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole picture."""

    height: float
    labels: Sequence[LaneLabel]
    bars: Sequence[Bar]
    holds: Sequence[Band]
    starts: Sequence[Band]
    ticks: Sequence[Tick]
    columns: Sequence[ChartColumn]
    running: str
    """The line of runs at a time, as the path of an SVG."""
    open: str
    """The line of open tasks."""
    max_ended: int
    """What the tallest column stands for."""
    max_running: int
    max_open: int


def drawn(night: Night, now_ms: int, names_of: Callable[[Collection[str]], Mapping[str, str]]) -> Picture:
    """Return the picture of a span. names_of: returns the names of tasks by id; only those shown are asked for."""
    top = 0.0
    labels: list[LaneLabel] = []
    bars: list[Bar] = []
    holds: list[Band] = []
    rows_of = [_rows(night, lane.runs, now_ms) for lane in night.lanes]
    single = {span.runs[0].task_id for rows in rows_of for row in rows for span in row if len(span.runs) == 1}
    names = names_of(single) if single else {}
    for lane, rows in zip(night.lanes, rows_of, strict=True):
        height = max(1, len(rows)) * ROW
        labels.append(LaneLabel(top + ROW - 3, lane.agent))
        for hold in lane.holds:
            begin, end = _x(night, hold.begin_ms), _x(night, hold.end_ms or night.until_ms)
            words = f"{hold.bucket.label}: {hold.reason or 'held by the operator'}"
            holds.append(Band(begin, top, max(end - begin, 1.0), height, words))
        for place, spans in enumerate(rows):
            bars += [_bar(night, span, top + place * ROW, now_ms, names) for span in spans]
        top += height + GAP
    starts = [Band(_x(night, at), 0, 0, top, f"daemon started at {_clock(night, at)}") for at in night.starts]
    max_ended = max((column.done + column.failed for column in night.bins), default=0)
    max_running = max((column.running for column in night.bins), default=0)
    max_open = max((column.open for column in night.bins), default=0)
    columns = [_column(night, column, max_ended) for column in night.bins]
    lines = _line([column.running for column in night.bins]), _line([column.open for column in night.bins])
    return Picture(
        top, labels, bars, holds, starts, list(_ticks(night)), columns, *lines, max_ended, max_running, max_open
    )


def _x(night: Night, at_ms: int) -> float:
    share = (at_ms - night.since_ms) / (night.until_ms - night.since_ms)
    return round(LEFT + (0.0 if share < 0 else 1.0 if share > 1 else share) * (WIDTH - LEFT), 1)


@dataclass(slots=True)
class _Span:
    """The time of a run, or of several that are drawn as one."""

    begin_ms: int
    end_ms: int
    runs: list[DrawnRun]


def _rows(night: Night, runs: Sequence[DrawnRun], now_ms: int) -> Sequence[Sequence[_Span]]:
    """Return the spans of a lane in rows in which they do not overlap, as far as there are enough rows."""
    narrow_ms = _narrow_ms(night)
    rows: list[list[_Span]] = []
    ends: list[int] = []
    for span in _spans(night, runs, now_ms):
        for place, end in enumerate(ends):
            if end <= span.begin_ms:
                rows[place].append(span)
                ends[place] = span.end_ms
                break
        else:
            if len(rows) < MAX_ROWS:
                rows.append([span])
                ends.append(span.end_ms)
                continue
            last = rows[-1][-1]
            if span.begin_ms - last.begin_ms < narrow_ms:
                last.runs += span.runs
                last.end_ms = max(last.end_ms, span.end_ms)
            else:
                rows[-1].append(span)
            ends[-1] = max(ends[-1], span.end_ms)
    return rows


def _spans(night: Night, runs: Sequence[DrawnRun], now_ms: int) -> Sequence[_Span]:
    """Return what is drawn of a lane, by start. Runs too narrow to be seen share a span if they began in the same
    column of the picture."""
    since_ms, until_ms, narrow_ms = night.since_ms, night.until_ms, _narrow_ms(night)
    spans: list[_Span] = []
    column, narrow = -1.0, _Span(0, 0, [])
    for run in runs:
        begin_ms, end_ms = run.started_ms, run.ended_ms or now_ms
        if begin_ms < since_ms:
            begin_ms = since_ms
        if end_ms > until_ms:
            end_ms = until_ms
        if end_ms - begin_ms >= narrow_ms:
            spans.append(_Span(begin_ms, end_ms, [run]))
        elif begin_ms // narrow_ms == column:
            narrow.runs.append(run)
            if end_ms > narrow.end_ms:
                narrow.end_ms = end_ms
        else:
            column, narrow = begin_ms // narrow_ms, _Span(begin_ms, end_ms, [run])
            spans.append(narrow)
    return spans


def _narrow_ms(night: Night) -> float:
    return MIN_BAR * (night.until_ms - night.since_ms) / (WIDTH - LEFT)


def _bar(night: Night, span: _Span, y: float, now_ms: int, names: Mapping[str, str]) -> Bar:
    first, begin = span.runs[0], _x(night, span.begin_ms)
    width = max(round(_x(night, span.end_ms) - begin, 1), MIN_BAR - 0.5)
    if len(span.runs) > 1:
        counts = Counter([run.ended_as or RUNNING for run in span.runs]).most_common()
        ended = next((name for name in _WORST if name in dict(counts)), counts[0][0])
        tally = ", ".join([f"{number} {name.replace('_', ' ')}" for name, number in counts])
        words = f"{len(span.runs)} runs from {_clock(night, first.started_ms)}: {tally}"
        worst = next(run for run in span.runs if (run.ended_as or RUNNING) == ended)
        return Bar(begin, y, width, RUN_TONES.get(ended, "off"), words, _url(night, span, worst))
    ended = first.ended_as or RUNNING
    lasted = ((first.ended_ms or now_ms) - first.started_ms) // SECOND_MS * SECOND_MS
    reason = f" ({first.reason})" if first.reason else ""
    cost = "" if first.cost_usd is None else f", {cost_text(first.cost_usd)}"
    when = f"{_clock(night, first.started_ms)}, {format_duration(lasted)}"
    words = f"{names.get(first.task_id, short_id(first.task_id))}, {ended.replace('_', ' ')}{reason}, {when}{cost}"
    return Bar(begin, y, width, RUN_TONES.get(ended, "off"), words, f"/tasks/{first.task_id}")


def _url(night: Night, span: _Span, worst: DrawnRun) -> str:
    """Return where several runs can be told apart: closer up, or on their task's page if that is not possible."""
    hours = (night.until_ms - night.since_ms) // HOUR_MS
    closer = max((span for span in HOURS if span < hours), default=None)
    if closer is None or all(run.task_id == worst.task_id for run in span.runs):
        return f"/tasks/{worst.task_id}"
    return night_url(closer, (span.begin_ms + closer * HOUR_MS // 2) // SECOND_MS)


def night_url(hours: int, until: int | None) -> str:
    """Return the address of that many hours up to that time, in epoch seconds; None: up to now."""
    return f"/night?hours={hours}" + ("" if until is None else f"&until={until}")


def bars_svg(bars: Sequence[Bar]) -> "Markup":
    """Return the bars as SVG, here because there are thousands of them and a template is slow."""
    from markupsafe import Markup  # comes with the templates, which a daemon without open pages does not load

    drawn_bars = []
    for bar in bars:
        words = escape(plain(bar.words))
        place = f'x="{bar.x}" y="{bar.y}" width="{bar.width}" height="{BAR}"'
        link = f'<a href="{escape(bar.url)}" aria-label="{words}">'
        drawn_bars.append(f'{link}<rect class="bar {bar.tone}" {place}><title>{words}</title></rect></a>')
    return Markup("\n".join(drawn_bars))  # noqa: S704 - escaped above


def _clock(night: Night, at_ms: int) -> str:
    return _clock_at(at_ms // MINUTE_MS, night.zone)


@lru_cache(maxsize=4096)
def _clock_at(minute: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(minute * MINUTE_MS / SECOND_MS, zone):%H:%M}"


def _ticks(night: Night) -> Iterator[Tick]:
    """Yield round times in the operator's time zone."""
    span_ms = night.until_ms - night.since_ms
    step_ms = next((step for step in _STEPS_MS if span_ms / step <= _MAX_TICKS), _STEPS_MS[-1])
    at = datetime.fromtimestamp(night.since_ms / SECOND_MS, night.zone).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    end = datetime.fromtimestamp(night.until_ms / SECOND_MS, night.zone)
    while at < end:
        at_ms = round(at.timestamp() * SECOND_MS)
        if at_ms >= night.since_ms and _x(night, at_ms) <= WIDTH - _LABEL:
            words = f"{at:%d %b}" if step_ms >= 24 * HOUR_MS or (at.hour, at.minute) == (0, 0) else f"{at:%H:%M}"
            yield Tick(_x(night, at_ms), words)
        at += timedelta(milliseconds=step_ms)


def _line(values: Sequence[int]) -> str:
    """Return the steps of a curve that has a value in each part of the span."""
    width, per_one = (WIDTH - LEFT) / max(1, len(values)), CHART / max(1, max(values, default=0))
    steps = [
        f"V{round(CHART - value * per_one, 1)}H{round(LEFT + (place + 1) * width, 1)}"
        for place, value in enumerate(values)
    ]
    return f"M{LEFT} {CHART}" + "".join(steps)


def _column(night: Night, bin_: Bin, max_ended: int) -> ChartColumn:
    left = _x(night, bin_.begin_ms)
    width = (WIDTH - LEFT) / max(1, len(night.bins))
    per_ended = CHART / max(1, max_ended)
    words = (
        f"{_clock(night, bin_.begin_ms)}: {bin_.done} succeeded, {bin_.failed} failed, at most {bin_.running} at once, "
    )
    words += f"{counted(bin_.open, 'task')} left open"
    return ChartColumn(
        left,
        round(width - 1, 1),
        round(bin_.done * per_ended, 1),
        round(bin_.failed * per_ended, 1),
        words,
    )
