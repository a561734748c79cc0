"""Reserved hours: a share of an account's windows that tasks leave to the person who also uses the account.

What counts is whether the window lasts into reserved hours: what a task uses at night from a window that resets at noon
is missing in the morning.
"""

import re
from datetime import date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import Percent
from claudomator_py.domain.cron import BadCron, parse_cron
from claudomator_py.domain.errors import shown
from claudomator_py.domain.fields import Line, Name, Strict, refusal
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.values import regex

_HOURS = regex(r"([01]?[0-9]|2[0-3]):([0-5][0-9])-([01]?[0-9]|2[0-4]):([0-5][0-9])", re.ASCII)
_DAY = timedelta(days=1)
_EVERY_DAY = "mon-sun"


def _hours(value: object) -> object:
    match = _HOURS.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
    if match is None or (match[3] == "24" and match[4] != "00") or match[1].zfill(2) + match[2] == match[3] + match[4]:
        raise refusal(
            f"`{shown(str(value))}` is not a span of hours", "write 08:00-20:00, or 22:00-06:00 over midnight"
        )
    return f"{match[1].zfill(2)}:{match[2]}-{match[3].zfill(2)}:{match[4]}"


def _days(value: object) -> object:
    text = value.replace(" ", "").lower() if isinstance(value, str) else str(value)
    try:
        parse_cron(f"0 0 * * {text}" if text and " " not in text else "")
    except BadCron as error:
        raise refusal(f"`{shown(str(value))}` names no days of the week", "write mon-fri, or sat,sun") from error
    return text


class Reserve(Strict):
    """A share of windows that tasks leave unused if the window lasts into certain hours."""

    share: Percent = Field(description="Share of each window that no run is started into, such as 20%.")
    hours: Annotated[Line, BeforeValidator(_hours)] = Field(
        description="Time of day from which to which it is reserved, such as 08:00-20:00."
    )
    days: Annotated[Line, BeforeValidator(_days)] = Field(
        _EVERY_DAY, description="Days of the week on which these hours begin, as in a schedule, such as mon-fri."
    )
    agents: tuple[Name, ...] = Field((), description="Agents or kinds that it is about. Default: all.")
    timezone: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="Time zone of the hours. Default: that of `budget`, or of this machine."
    )

    def is_about(self, agent: AgentSpec) -> bool:
        """Return whether it applies to that agent's windows."""
        return not self.agents or agent.name in self.agents or agent.kind in self.agents

    def ends(self, now_ms: int, resets_ms: int, zone: ZoneInfo) -> int | None:
        """Return until when to hold back a window that resets at that time: the end of the last reserved hours that
        begin before the reset, but no later than the reset; None if no such hours are left. In epoch milliseconds."""
        first, _, last = self.hours.partition("-")
        begins, lasts = _clock(first), _clock(last)
        days = parse_cron(f"0 0 * * {self.days}")
        day = datetime.fromtimestamp(now_ms / SECOND_MS, zone).date() - _DAY
        match = None
        while _instant(day, begins, zone) < resets_ms:
            over = lasts if lasts > begins else lasts + _DAY
            if days.has_day(day) and (end_ms := _instant(day, over, zone)) > now_ms:
                match = min(end_ms, resets_ms)
            day += _DAY
        return match


def _clock(text: str) -> timedelta:
    hour, _, minute = text.partition(":")
    return timedelta(hours=int(hour), minutes=int(minute))


def _instant(day: date, clock: timedelta, zone: ZoneInfo) -> int:
    """Return when the clock in that zone shows that time after midnight of the day, in epoch milliseconds."""
    at = datetime.combine(day, time()) + clock
    return round(at.replace(tzinfo=zone).timestamp() * SECOND_MS)
