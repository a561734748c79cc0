"""``agents`` and ``release``: the agents as they are now, and the end of their holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.cli.times import now_ms, until
from claudomator_py.core.views import AgentView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

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
def release(
    client: "Client",
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """End all holds of an agent. Tasks start on it again."""
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
        held = [f"{hold.family} is held until {until(hold.until, now_ms()) or 'released'}" for hold in agent.holds]
        return "; ".join([*held, *([] if agent.auto_select else ["chosen by name only"])])
    source = f" ({agent.provenance})" if agent.provenance else ""
    return f"{agent.hold_reason or 'held'}{source}"
