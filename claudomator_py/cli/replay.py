"""``replay``: recorded placements, decided again; and what another configuration would have done with those tasks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import exits
from claudomator_py.cli.output import Format, FormatOption, TextColumn, note, out, out_json, render
from claudomator_py.cli.times import moment, now_ms
from claudomator_py.domain.text import one_line
from claudomator_py.domain.units import parse_duration, parse_instant
from claudomator_py.domain.views.replay import ChangeView, CostView, OtherView, ReplayView, ShareView

Replayer = Callable[[Path | None, Path | None, int | None, int | None], ReplayView]
"""Given the state folder, the other configuration and the window. Raises ClientError."""

Shadowed = Callable[[Path | None, int | None, int | None], OtherView]
"""Given the state folder and the window. Raises ClientError."""

_TASKS = (
    TextColumn("TASK"),
    TextColumn("WHAT"),
    TextColumn("BEFORE", flexible=True),
    TextColumn("AFTER", flexible=True),
    TextColumn("WHY", flexible=True),
)
_CHANGES = (
    TextColumn("WHAT"),
    TextColumn("BEFORE", flexible=True),
    TextColumn("AFTER", flexible=True),
    TextColumn("TIMES", right=True),
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
                _tell_shadowed(other)
            return
        found = replayer(state_dir, config, *window)
        if output is Format.JSON:
            out_json(found)
        else:
            _tell(found)
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


def _tell(found: ReplayView) -> None:
    again = found.placements - found.gone
    out(f"{found.identical} of {again} placements are reproduced exactly.")
    if found.gone:
        note(f"{found.gone} more cannot be replayed: their snapshots were removed (retention.snapshots).")
    for one in found.differing:
        out(f"{moment(one.decided_at)}  {one.decision_id}  {one.at}")
    if found.other is not None:
        out("")
        _tell_other(found.other)


def _tell_shadowed(other: OtherView) -> None:
    if not (other.placements.total or other.policy.total):
        note("There are no shadow decisions in that time. Set `shadow` to another configuration file.")
        return
    _tell_other(other)


def _tell_other(other: OtherView) -> None:
    out(f"Placements that differ: {_share(other.placements)}; {other.waits} of them would wait.")
    out(f"Policy verdicts that differ: {_share(other.policy)}.")
    out(f"Specialists or routes that differ: {_share(other.specialists)}.")
    out("Expected cost: unknown, as no past run reports one." if other.cost is None else _cost(other.cost))
    changes = {"agent": other.agents, "tier": other.tiers, "verdict": other.verdicts, "specialist": other.routes}
    rows = [_row(what, one) for what, found in changes.items() for one in found]
    if rows:
        out("\n" + render(_CHANGES, rows, wide=False))
    if other.tasks:
        named = [
            (one.task_name or one.task_id, one.what, one.before, one.after, one_line(one.reason or ""))
            for one in other.tasks
        ]
        out("\n" + render(_TASKS, named))
    if other.undecided:
        note(f"Of {other.undecided} more tasks nothing can be told: they were removed, or restarted since.")


def _share(share: ShareView) -> str:
    return f"{share.number} of {share.total} ({share.share:.1%}; 95% interval {share.low:.1%} to {share.high:.1%})"


def _cost(cost: CostView) -> str:
    interval = f"95% interval {cost.low_usd:+.2f} to {cost.high_usd:+.2f}"
    own, other = f"{cost.own_usd:.2f} USD with this configuration", f"{cost.other_usd:.2f} with the other"
    told = f"{own}, {other}: {cost.difference_usd:+.2f} ({interval})"
    return f"Expected cost of {cost.placements} placements: {told}."


def _row(what: str, change: ChangeView) -> tuple[str, str, str, str]:
    return what, change.before, change.after, str(change.number)
