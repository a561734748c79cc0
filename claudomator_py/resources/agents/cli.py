"""``agents``, ``hold`` and ``release``: the agents and their holds, and what an operator does about these."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import ConfigOption, StateDirOption, connect, connected
from claudomator_py.cli.found import found_agents
from claudomator_py.cli.output import Format, FormatOption, TextColumn, heading, note, out, out_json, render, table_text
from claudomator_py.cli.times import ago, clock, moment, now_ms, short_duration, until
from claudomator_py.domain.budget import Unit, amount_text, with_unknown
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.units import parse_duration, parse_instant, short_id
from claudomator_py.domain.wording import worded
from claudomator_py.resources.agents.shape import AgentView, HoldView, NearLimitView, WindowView
from claudomator_py.surface import table
from claudomator_py.surface.table import Table, Time

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_HOLDS = (
    TextColumn("HELD", flexible=True),
    TextColumn("AGENTS", flexible=True),
    TextColumn("WHAT", flexible=True),
    TextColumn("UNTIL"),
    TextColumn("KNOWN FROM", flexible=True),
    TextColumn("AT", wide=True),
    TextColumn("SINCE", wide=True),
)
_WARNINGS = (
    TextColumn("AGENTS", flexible=True),
    TextColumn("WINDOW", flexible=True),
    TextColumn("USED", right=True),
    TextColumn("UNTIL"),
    TextColumn("KNOWN FROM"),
    TextColumn("AT", wide=True),
    TextColumn("SINCE", wide=True),
)


WINDOWS = Table[WindowView](
    table.Column("ACCOUNT", lambda window: window.account, flexible=True),
    table.Column("WINDOW", lambda window: window.title, flexible=True),
    table.Column("USED", lambda window: "not known" if window.used is None else f"{window.used:.0%}", right=True),
    table.Column("RESETS", lambda window: Time(window.resets_at, "until" if window.used is not None else "ago")),
    table.Column("READ", lambda window: table.ago(window.said_at)),
    table.Column("FORECAST", lambda window: forecast_text(window, now_ms()), flexible=True),
    table.Column("RUN", lambda window: short_id(window.run_id or ""), wide=True),
)


def forecast_text(window: WindowView, now: int) -> str | None:
    """Return when the window is full at its pace, and on what that rests: ``full at 02:10 CET (31% to 48% in 40m)``."""
    found = window.forecast
    if found is None or window.used is None:
        return None
    full = "not before its reset" if found.full_at is None else f"full at {clock(found.full_at, now)}"
    span = short_duration(parse_instant(window.said_at) - parse_instant(found.since))
    return f"{full} ({found.used_then:.0%} to {window.used:.0%} in {span})"


def hold_tables(agents: Sequence[AgentView], *, wide: bool = False, indent: int = 0) -> list[str]:
    """Return each with its heading: holds by bucket, windows of accounts, and limits that these were warned of."""
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
    windows = list(dict.fromkeys(window for agent in agents for window in agent.windows))
    if windows:
        parts.append(f"{heading('WINDOWS')}\n{table_text(WINDOWS, windows, wide=wide, indent=indent)}")
    if warnings:
        rows = [_warning(near, names, now) for near, names in warnings.items()]
        parts.append(f"{heading('NEAR LIMITS')}\n{render(_WARNINGS, rows, wide=wide, indent=indent)}")
    return parts


def _hold(holds: Sequence[HoldView], now: int) -> tuple[str, ...]:
    hold = holds[0]
    return (
        hold.bucket,
        ", ".join(one.agent for one in holds),
        hold.cause,
        _until(hold, now),
        _read(hold),
        moment(hold.until),
        ago(hold.since, now),
    )


def _until(hold: HoldView, now: int) -> str:
    if hold.probing:
        return f"tried, {hold.may_start or 0} more now"
    return clock(hold.until, now) or "released"


def _read(hold: HoldView) -> str:
    run = f"run {short_id(hold.run_id)}" if hold.run_id is not None else ""
    return ": ".join(part for part in (run, hold.read) if part)


def _warning(near: NearLimitView, names: Sequence[str], now: int) -> tuple[str, ...]:
    return (
        ", ".join(names),
        window_text(near.window) if near.window is not None else "",
        "" if near.used is None else f"{near.used:.0%}",
        clock(near.until, now),
        f"run {short_id(near.run_id)}" if near.run_id else "",
        moment(near.until),
        ago(near.since, now),
    )


_FAMILY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")


def _family(text: str) -> str:
    if _FAMILY.fullmatch(text) is None:
        raise typer.BadParameter(f"{text!r} matches no model name; write part of one, such as opus")
    return text


_COLUMNS = (
    TextColumn("NAME"),
    TextColumn("KIND", wide=True),
    TextColumn("ACCOUNT", wide=True),
    TextColumn("SLOTS", right=True),
    TextColumn("STATE"),
    TextColumn("WHY", flexible=True),
    TextColumn("UNTIL"),
    TextColumn("TODAY"),
    TextColumn("TIER", wide=True),
    TextColumn("MODELS", wide=True),
    TextColumn("VERSION"),
    TextColumn("PROGRAM", wide=True),
)


_FOUND = (
    TextColumn("NAME"),
    TextColumn("PROGRAM"),
    TextColumn("TO ADD IT", flexible=True),
    TextColumn("LOGIN", flexible=True),
)


def agents(
    found: Annotated[
        bool,
        typer.Option("--found", help="Agents whose programs are on PATH here, and how each is added. Asks no daemon."),
    ] = False,
    output: FormatOption = Format.TABLE,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """List the agents.

    Shows the slots in use, problems, and every hold: on what, until when, how that is known, and whether it is
    being tried already.
    """
    if found:
        _show_found(output)
        return
    with connect(config, state_dir) as client:
        _list(client, output)


def _show_found(output: Format) -> None:
    there = found_agents()
    if output is Format.JSON:
        out_json(there)
    elif there:
        rows = [(one.name, one.program or "", one.entry or "(used as it is)", one.login) for one in there]
        out(render(_FOUND, rows, wide=output is Format.WIDE))
        if any(one.entry for one in there):
            note("Write what is to be added below `agents:` in claudomator.yaml, with all others that are to be used.")
    else:
        note("No program of an agent that is known is on PATH.")


def _list(client: "Client", output: Format) -> None:
    found = client.agents()
    if output is Format.JSON:
        out_json(found)
    elif found:
        wide = output is Format.WIDE
        out("\n\n".join([agents_table(found, wide=wide), *hold_tables(found, wide=wide)]))
    else:
        note("No agents are configured, and none was found on the daemon's PATH. See `claudomator doctor`.")


@connected
def hold(
    client: "Client",
    agent: Annotated[str, typer.Argument(help="The agent's name.", autocompletion=completion.agents)],
    until_time: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Hold it until this time: RFC 3339 with an offset, or a local time of day, such as 14:20.",
        ),
    ] = None,
    duration: Annotated[
        int | None,
        typer.Option("--for", metavar="DURATION", parser=parse_duration, help="Hold it for this long, such as 45m."),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(parser=_family, help="Only this family of models, such as opus, or one model.", metavar="NAME"),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Also hold all agents of its kind on the same account.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Reason to show to others.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Start no tasks on an agent. Running ones continue.

    Without --until or --for, the hold lasts until `release`.
    """
    if until_time is not None and duration is not None:
        raise typer.BadParameter("--until and --for are mutually exclusive")
    end = None if until_time is None else _instant(until_time)
    if duration is not None:
        end = datetime.now(UTC) + timedelta(milliseconds=duration)
    _write(client.hold(agent, HoldRequest(until=end, family=family, account=account, reason=reason)), output)


@connected
def release(
    client: "Client",
    names: Annotated[
        list[str], typer.Argument(metavar="AGENT", help="Names of agents.", autocompletion=completion.agents)
    ],
    family: Annotated[
        str | None,
        typer.Option(parser=_family, help="Only holds on this family of models, such as opus.", metavar="NAME"),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """End the holds of agents, and of their accounts. Tasks start on them again."""
    released = [client.release(name, ReleaseRequest(family=family)) for name in names]
    if len(released) == 1:
        _write(released[0], output)
    elif output is Format.JSON:
        out_json(released)
    else:
        wide = output is Format.WIDE
        out("\n\n".join([agents_table(released, wide=wide), *hold_tables(released, wide=wide)]))


def _write(agent: AgentView, output: Format) -> None:
    wide = output is Format.WIDE
    if output is Format.JSON:
        out_json(agent)
    else:
        out("\n\n".join([agents_table([agent], wide=wide), *hold_tables([agent], wide=wide)]))


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
            until(agent.limited_until or _spent_until(agent), now),
            _spent(agent, wide=wide),
            agent.default_tier,
            " ".join(f"{tier}={choice.model}" for tier, choice in agent.models.items()),
            agent.version or "",
            agent.program or "",
        )
        for agent in found
    ]
    return render(_COLUMNS, rows, wide=wide, indent=indent)


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
    raise typer.BadParameter(f"{text!r} is not a time; write 14:20, or 2026-12-01T08:00:00+01:00", param_hint="--until")


def _state(agent: AgentView) -> str:
    if agent.problem is not None or not agent.installed:
        return "PROBLEM"
    if agent.limited:
        return "LIMITED"
    return "SPENT" if agent.budget is not None and agent.budget.reached is not None else "ok"


def _spent_until(agent: AgentView) -> str | None:
    return agent.budget.until if agent.budget is not None and agent.budget.reached is not None else None


def _spent(agent: AgentView, *, wide: bool) -> str:
    """What it has spent today: of its budget, if it has one."""
    if agent.budget is not None and agent.budget.text:
        return with_unknown(agent.budget.text, agent.budget.unknown)
    spent = agent.spent_today
    return f"{amount_text(Unit.USD, spent.usd)} USD, {amount_text(Unit.TOKENS, spent.tokens)} tokens" if wide else ""


def _why(agent: AgentView) -> str:
    if agent.problem is not None:
        return agent.problem
    if not agent.installed:
        return "its program is not installed"
    if not agent.limited:
        now = now_ms()
        holds = [worded(hold.words, lambda instant: clock(instant, now)) for hold in agent.holds]
        budget = agent.budget
        spent = (
            [f"budget: {budget.reached}"] if budget is not None and budget.reached not in (None, budget.text) else []
        )
        near = ["near its limit"] if agent.near_limit is not None else []
        by_name = [] if agent.auto_select else ["only when named explicitly"]
        return "; ".join([*spent, *holds, *near, *by_name])
    return agent.hold.cause if agent.hold is not None else agent.hold_reason or ""
