"""``agents``, ``hold`` and ``release``: the agents as they are now, and what an operator does to their holds."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.cli.times import now_ms, until
from claudomator_py.core.units import parse_duration
from claudomator_py.core.views import AgentView, HoldRequest, HoldView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_COLUMNS = (
    Column("NAME"),
    Column("KIND", wide=True),
    Column("ACCOUNT", wide=True),
    Column("SLOTS", right=True),
    Column("STATE"),
    Column("WHY", flexible=True),
    Column("UNTIL"),
    Column("TIER", wide=True),
    Column("MODELS", wide=True),
    Column("VERSION"),
    Column("PROGRAM", wide=True),
)


@connected
def agents(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """List the agents.

    With their slots in use, their limits, and what is wrong with them.
    """
    found = client.agents()
    if output is Format.JSON:
        out_json(found)
    elif found:
        out(agents_table(found, wide=output is Format.WIDE))
    else:
        note("No agents are configured, and none was found on the daemon's PATH. See `claudomator doctor`.")


@connected
def hold(
    client: "Client",
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    until_time: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="RFC 3339 with an offset, or a time of day here, such as 14:20."),
    ] = None,
    duration: Annotated[
        int | None, typer.Option("--for", metavar="DURATION", parser=parse_duration, help="For so long, such as 45m.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Only models with this in their name, such as opus.", metavar="NAME")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; shown to whoever asks.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Start nothing on an agent. What runs goes on.

    Without --until or --for it is held until `release`.
    """
    if until_time is not None and duration is not None:
        raise typer.BadParameter("--until and --for exclude each other")
    end = None if until_time is None else _instant(until_time)
    if duration is not None:
        end = datetime.now(UTC) + timedelta(milliseconds=duration)
    held = client.hold(agent, HoldRequest(until=end, family=family, reason=reason))
    if output is Format.JSON:
        out_json(held)
    else:
        out(agents_table([held], wide=output is Format.WIDE))


@connected
def release(
    client: "Client",
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """End all holds of an agent, and of its account. Tasks start on it again."""
    released = client.release(agent)
    if output is Format.JSON:
        out_json(released)
    else:
        out(agents_table([released], wide=output is Format.WIDE))


def agents_table(found: Sequence[AgentView], *, wide: bool = False, indent: int = 0) -> str:
    """Agents below each other, with times relative to now."""
    now = now_ms()
    rows = [
        (
            agent.name,
            agent.kind,
            agent.account,
            f"{agent.active}/{agent.max_concurrent}",
            _state(agent),
            _why(agent),
            until(agent.limited_until, now),
            agent.default_tier,
            " ".join(f"{tier}={choice.model}" for tier, choice in agent.models.items()),
            agent.version or "",
            agent.program or "",
        )
        for agent in found
    ]
    return render(_COLUMNS, rows, wide=wide, indent=indent)


def _held(hold: HoldView) -> str:
    what = hold.family or "it"
    if hold.probing:
        return f"{what} is being tried after its limit"
    return f"{what} is held until {until(hold.until, now_ms()) or 'released'}"


def _instant(text: str) -> datetime:
    """A full time, or the next such time of day here. Raises BadParameter."""
    try:
        if _CLOCK.fullmatch(text) is None:
            at = datetime.fromisoformat(text)
            if at.tzinfo is not None:
                return at
        else:
            now = datetime.now().astimezone()
            hour, minute = map(int, text.split(":"))
            at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return at if at > now else at + timedelta(days=1)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is no time; write 14:20, or 2026-12-01T08:00:00+01:00", param_hint="--until")


def _state(agent: AgentView) -> str:
    if agent.problem is not None or not agent.installed:
        return "PROBLEM"
    return "LIMITED" if agent.limited else "ok"


def _why(agent: AgentView) -> str:
    if agent.problem is not None:
        return agent.problem
    if not agent.installed:
        return "its program is not installed"
    if not agent.limited:
        held = [_held(hold) for hold in agent.holds]
        return "; ".join([*held, *([] if agent.auto_select else ["chosen by name only"])])
    source = f" ({agent.provenance})" if agent.provenance else ""
    return f"{agent.hold_reason or 'held'}{source}"
