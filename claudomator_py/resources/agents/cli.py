"""``agents``, ``hold`` and ``release``: show agents and their holds, and set and end holds."""

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, ConfigOption, StateDirOption, connect, connected
from claudomator_py.cli.output import (
    formatted,
    is_wide,
    note,
    table_section,
    table_text,
    wants_json,
    write,
    write_table,
)
from claudomator_py.cli.times import clock, duration_option, now_ms, short_duration
from claudomator_py.client.discovery import configuration
from claudomator_py.domain.budget import with_unknown
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.units import SECOND_MS, parse_instant, short_id
from claudomator_py.domain.wording import worded
from claudomator_py.resources.agents import AgentView, HoldView, NearLimitView, WindowView
from claudomator_py.schema.agent_settings import KnownAgent, known_agents
from claudomator_py.surface import table
from claudomator_py.surface.table import Column, Table, Time, figure
from claudomator_py.values import regex

AGENTS = Table[AgentView](
    Column("NAME", lambda agent: agent.name),
    Column("KIND", lambda agent: agent.kind, wide=True),
    Column("ACCOUNT", lambda agent: agent.account, wide=True),
    Column("SLOTS", lambda agent: f"{agent.active}/{agent.max_concurrent}", right=True),
    Column("STATE", lambda agent: agent.condition),
    Column("WHY", lambda agent: _why(agent), flexible=True),
    Column("UNTIL", lambda agent: table.until(agent.limited_until or _spent_until(agent))),
    Column("TODAY", lambda agent: _spent(agent)),
    Column("TIER", lambda agent: agent.default_tier, wide=True),
    Column("MODELS", lambda agent: " ".join(f"{tier}={m.model}" for tier, m in agent.models.items()), wide=True),
    Column("VERSION", lambda agent: agent.version),
    Column("PROGRAM", lambda agent: agent.program, wide=True),
)
_HOLDS = Table[Sequence[HoldView]](
    Column("HELD", lambda holds: holds[0].bucket, flexible=True),
    Column("AGENTS", lambda holds: ", ".join(hold.agent for hold in holds), flexible=True),
    Column("WHAT", lambda holds: holds[0].cause, flexible=True),
    Column("UNTIL", lambda holds: _until(holds[0])),
    Column("KNOWN FROM", lambda holds: _read(holds[0]), flexible=True),
    Column("AT", lambda holds: table.at(holds[0].until), wide=True),
    Column("SINCE", lambda holds: table.ago(holds[0].since), wide=True),
)
_WARNINGS = Table[tuple[NearLimitView, Sequence[str]]](
    Column("AGENTS", lambda row: ", ".join(row[1]), flexible=True),
    Column("WINDOW", lambda row: None if row[0].window is None else window_text(row[0].window), flexible=True),
    Column("USED", lambda row: figure(row[0].used, ".0%"), right=True),
    Column("UNTIL", lambda row: clock(row[0].until, now_ms())),
    Column("KNOWN FROM", lambda row: f"run {short_id(row[0].run_id)}" if row[0].run_id else None),
    Column("AT", lambda row: table.at(row[0].until), wide=True),
    Column("SINCE", lambda row: table.ago(row[0].since), wide=True),
)
WINDOWS = Table[WindowView](
    Column("ACCOUNT", lambda window: window.account, flexible=True),
    Column("WINDOW", lambda window: window.title, flexible=True),
    Column("USED", lambda window: "not known" if window.used is None else f"{window.used:.0%}", right=True),
    Column("RESETS", lambda window: Time(window.resets_at, "until" if window.used is not None else "ago")),
    Column("READ", lambda window: table.ago(window.said_at)),
    Column("FORECAST", lambda window: forecast_text(window, now_ms()), flexible=True),
    Column("RUN", lambda window: short_id(window.run_id or ""), wide=True),
)


def forecast_text(window: WindowView, now: int) -> str | None:
    """Return when the window will be full and the readings behind that: ``full at 02:10 CET (31% to 48% in 40m)``."""
    forecast = window.forecast
    if forecast is None or window.used is None:
        return None
    full = "not before its reset" if forecast.full_at is None else f"full at {clock(forecast.full_at, now)}"
    span = short_duration(parse_instant(window.said_at) - parse_instant(forecast.since))
    return f"{full} ({forecast.used_then:.0%} to {window.used:.0%} in {span})"


def hold_tables(agents: Sequence[AgentView], *, indent: int = 0) -> list[str]:
    """Return tables with headings: holds by bucket, windows of accounts, and warnings about limits."""
    buckets: dict[str, list[HoldView]] = {}
    warnings: dict[NearLimitView, list[str]] = {}
    for agent in agents:
        for hold in agent.holds:
            buckets.setdefault(hold.bucket, []).append(hold)
        if agent.near_limit is not None:
            warnings.setdefault(agent.near_limit, []).append(agent.name)
    windows = list(dict.fromkeys(window for agent in agents for window in agent.windows))
    return [
        *table_section("HOLDS", _HOLDS, list(buckets.values()), indent=indent),
        *table_section("WINDOWS", WINDOWS, windows, indent=indent),
        *table_section("NEAR LIMITS", _WARNINGS, list(warnings.items()), indent=indent),
    ]


def _until(hold: HoldView) -> str:
    if hold.probing:
        return f"tried, {hold.may_start or 0} more now"
    return clock(hold.until, now_ms()) or "released"


def _read(hold: HoldView) -> str:
    run = f"run {short_id(hold.run_id)}" if hold.run_id is not None else ""
    return ": ".join(part for part in (run, hold.read) if part)


_FAMILY = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CLOCK = regex(r"\d{1,2}:\d{2}")


def _family(text: str) -> str:
    if _FAMILY.fullmatch(text) is None:
        raise typer.BadParameter(f"{text!r} matches no model name; write part of one, such as opus")
    return text


_FOUND = Table[KnownAgent](
    Column("NAME", lambda agent: agent.name),
    Column("PROGRAM", lambda agent: agent.program),
    Column("TO ADD IT", lambda agent: _to_add(agent), flexible=True),
    Column("LOGIN", lambda agent: agent.login, flexible=True),
)


@formatted
def agents(
    found: Annotated[
        bool,
        typer.Option("--found", help="List agents found on PATH here, and how to add each. Asks no daemon."),
    ] = False,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """List the agents.

    Shows the slots in use, problems, and every hold: on what, until when, how that is known, and whether it is
    already being tried.
    """
    if found:
        _show_found(config)
        return
    with connect(config, state_dir) as client:
        nothing = "No agents are configured, and none was found on the daemon's PATH. See `claudomator doctor`."
        listed = client.agents()
        write(listed, lambda: _text(listed), nothing)


def _show_found(config: Path | None) -> None:
    settings = configuration(config, os.environ, Path.cwd()).settings
    there = installed_agents()
    if settings.agents_configured:
        there = [agent.among(settings.agents) for agent in there]
    nothing = "No program of a known agent is on PATH. Install one, or add a program of your own: kind `command`."
    write_table(_FOUND, there, nothing)
    if not wants_json() and any(agent.entry and not agent.configured for agent in there):
        note("To use them, write these entries below `agents:` in claudomator.yaml, with all others to be used.")


def _to_add(agent: KnownAgent) -> str:
    if agent.configured:
        return f"(configured: {', '.join(agent.configured)})"
    return agent.entry or "(used as it is)"


@connected
def hold(
    client: Client,
    agent: Annotated[str, completion.AGENTS.argument("AGENT", "The agent's name.")],
    until_time: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Hold it until this time: RFC 3339 with an offset, or a local time of day, such as 14:20.",
        ),
    ] = None,
    duration: Annotated[int | None, duration_option("Hold it for this long, such as 45m.", "--for")] = None,
    family: Annotated[
        str | None,
        typer.Option(parser=_family, help="Only this family of models, such as opus, or one model.", metavar="NAME"),
    ] = None,
    account: Annotated[
        bool, typer.Option("--account", help="Also hold all agents of its kind on the same account.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Reason to show to others.")] = None,
) -> None:
    """Start no tasks on an agent. Running ones continue.

    Without --until or --for, the hold lasts until `release`.
    """
    if until_time is not None and duration is not None:
        raise typer.BadParameter("--until and --for are mutually exclusive")
    end = None if until_time is None else _instant(until_time)
    if duration is not None:
        end = datetime.now(UTC) + timedelta(milliseconds=duration)
    held = client.hold(agent, HoldRequest(until=end, family=family, account=account, reason=reason))
    write(held, lambda: _text([held]))
    if end is not None and family is None and _is_held_beyond(held, end):
        lasts = "" if held.limited_until is None else f" until {clock(held.limited_until, now_ms())}"
        note(f"It stays held{lasts} by an earlier hold; `claudomator release {agent}` ends both.")


def _is_held_beyond(agent: AgentView, end: datetime) -> bool:
    """Return whether the whole agent is held for longer than that."""
    until_ms = None if agent.limited_until is None else parse_instant(agent.limited_until)
    return agent.limited and (until_ms is None or until_ms > round(end.timestamp() * SECOND_MS))


@connected
def release(
    client: Client,
    names: Annotated[list[str], completion.AGENTS.argument("AGENT", "Names of agents.")],
    family: Annotated[
        str | None,
        typer.Option(parser=_family, help="Only holds on this family of models, such as opus.", metavar="NAME"),
    ] = None,
) -> None:
    """End the holds of agents, and of their accounts. Tasks start on them again."""
    before = {agent.name: agent.holds for agent in client.agents()}
    released = [client.release(name, ReleaseRequest(family=family)) for name in names]
    for agent in released:
        if agent.holds == before.get(agent.name):
            note(f"Nothing was held on {agent.name}{'' if family is None else f' for {family}'}.")
    write(released[0] if len(released) == 1 else released, lambda: _text(released))


def _text(agents: Sequence[AgentView]) -> str:
    return "\n\n".join([table_text(AGENTS, agents), *hold_tables(agents)])


def _instant(text: str) -> datetime:
    """Return a full time, or the next such local time of day. Raises BadParameter."""
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


def _spent_until(agent: AgentView) -> str | None:
    return agent.budget.until if agent.budget is not None and agent.budget.reached is not None else None


def _spent(agent: AgentView) -> str:
    """Return what the agent has spent today: of its budget, if it has one."""
    if agent.budget is not None and agent.budget.text:
        return with_unknown(agent.budget.text, agent.budget.unknown)
    return agent.spent_today.words if is_wide() else ""


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


def installed_agents() -> list[KnownAgent]:
    """Return the known agents whose programs are on PATH."""
    path = os.environ.get("PATH", os.defpath)
    there = ((agent, shutil.which(agent.command[0], path=path)) for agent in known_agents())
    return [agent.model_copy(update={"program": program}) for agent, program in there if program is not None]
