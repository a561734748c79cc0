"""A run's check on a terminal."""

from claudomator_py.cli.table import Column, heading, render
from claudomator_py.cli.times import now_ms, parse_instant, short_duration
from claudomator_py.domain.views import RunCheckView

_COLUMNS = (Column("COMMAND", flexible=True), Column("RESULT", flexible=True))


def check_took(check: RunCheckView) -> str:
    """How long it took, or has taken so far."""
    ended = now_ms() if check.ended_at is None else parse_instant(check.ended_at)
    return short_duration(max(0, ended - parse_instant(check.started_at)))


def check_section(check: RunCheckView) -> str:
    """Its heading, and its commands with what came of each."""
    time = f"{'for' if check.ended_at is None else 'after'} {check_took(check)}"
    title = heading(f"CHECK {check.status.upper()} {time}", "FAILED" if check.status == "failed" else "")
    return f"{title}\n{render(_COLUMNS, check.verdicts, indent=2)}"
