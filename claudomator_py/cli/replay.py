"""``replay``: recorded placements, decided again; and what another configuration would have done with those tasks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json, table_text
from claudomator_py.cli.times import moment, now_ms
from claudomator_py.domain.units import parse_duration, parse_instant
from claudomator_py.domain.views.replay import ChangedTaskView, ChangeView, CostView, OtherView, ReplayView, ShareView
from claudomator_py.surface.table import Column, Table

Replayer = Callable[[Path | None, Path | None, int | None, int | None], ReplayView]
"""Given the state folder, the other configuration and the window. Raises ClientError."""

Shadowed = Callable[[Path | None, int | None, int | None], OtherView]
"""Given the state folder and the window. Raises ClientError."""

_TASKS = Table[ChangedTaskView](
    Column("TASK", lambda task: task.task_name or task.task_id),
    Column("WHAT", lambda task: task.what),
    Column("BEFORE", lambda task: task.before, flexible=True),
    Column("AFTER", lambda task: task.after, flexible=True),
    Column("WHY", lambda task: task.reason, flexible=True),
)
_CHANGES = Table[tuple[str, ChangeView]](
    Column("WHAT", lambda row: row[0]),
    Column("BEFORE", lambda row: row[1].before, flexible=True),
    Column("AFTER", lambda row: row[1].after, flexible=True),
    Column("TIMES", lambda row: row[1].number, right=True),
)


def command(replayer: Replayer, shadowed: Shadowed) -> Callable[..., None]:
    """The command, with what decides, and what reads what the shadow configuration has decided."""

    def replay(
        since: Annotated[
            str | None,
            typer.Option(metavar="TIME", help="Start of the time span: RFC 3339, or how long ago, such as 7d."),
        ] = None,
        until: Annotated[str | None, typer.Option(metavar="TIME", help="End of the time span.")] = None,
        config: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Show what this configuration would decide differently.")
        ] = None,
        shadow: Annotated[
            bool, typer.Option("--shadow", help="Show what the shadow configuration has decided differently.")
        ] = False,
        state_dir: Annotated[Path | None, typer.Option("--state-dir", metavar="DIR", help="The state folder.")] = None,
        output: FormatOption = Format.TABLE,
    ) -> None:
        """Replay recorded placements from their snapshots."""
        window = _time(since, "--since"), _time(until, "--until")
        if shadow:
            if config is not None:
                raise typer.BadParameter(
                    "cannot be combined with --config: the shadow configuration is used", param_hint="--shadow"
                )
            other = shadowed(state_dir, *window)
            if output is Format.JSON:
                out_json(other)
            else:
                _print_shadow(other)
            return
        found = replayer(state_dir, config, *window)
        if output is Format.JSON:
            out_json(found)
        else:
            _print(found)
        if found.differing:
            raise typer.Exit(exits.FAILURE)

    return replay


def _time(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    for read in (parse_instant, lambda given: now_ms() - parse_duration(given)):
        try:
            return read(text)
        except ValueError:
            continue
    raise typer.BadParameter("write RFC 3339, such as 2026-11-16T00:00:00Z, or 7d", param_hint=option)


def _print(found: ReplayView) -> None:
    again = found.placements - found.gone
    out(f"{found.identical} of {again} placements are reproduced exactly.")
    if found.gone:
        note(f"{found.gone} more cannot be replayed: their snapshots were removed (retention.snapshots).")
    for one in found.differing:
        out(f"{moment(one.decided_at)}  {one.decision_id}  {one.at}")
    if found.other is not None:
        out("")
        _print_other(found.other)


def _print_shadow(other: OtherView) -> None:
    if not (other.placements.total or other.policy.total):
        note("There are no shadow decisions in that time. Set `shadow` to another configuration file.")
        return
    _print_other(other)


def _print_other(other: OtherView) -> None:
    out(f"Placements that differ: {_share(other.placements)}; {other.waits} of them would wait.")
    out(f"Policy verdicts that differ: {_share(other.policy)}.")
    out(f"Specialists or routes that differ: {_share(other.specialists)}.")
    out("Expected cost: unknown, as no past run reports one." if other.cost is None else _cost(other.cost))
    changes = {"agent": other.agents, "tier": other.tiers, "verdict": other.verdicts, "specialist": other.routes}
    rows = [(what, change) for what, found in changes.items() for change in found]
    if rows:
        out("\n" + table_text(_CHANGES, rows))
    if other.tasks:
        out("\n" + table_text(_TASKS, other.tasks))
    if other.undecided:
        note(f"Of {other.undecided} more tasks nothing can be told: they were removed, or restarted since.")


def _share(share: ShareView) -> str:
    return f"{share.number} of {share.total} ({share.share:.1%}; 95% interval {share.low:.1%} to {share.high:.1%})"


def _cost(cost: CostView) -> str:
    interval = f"95% interval {cost.low_usd:+.2f} to {cost.high_usd:+.2f}"
    own, other = f"{cost.own_usd:.2f} USD with this configuration", f"{cost.other_usd:.2f} with the other"
    told = f"{own}, {other}: {cost.difference_usd:+.2f} ({interval})"
    return f"Expected cost of {cost.placements} placements: {told}."
