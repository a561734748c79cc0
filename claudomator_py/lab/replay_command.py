"""The ``replay`` command: repeat recorded placements, and show what another configuration would have decided."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.output import formatted, note, out, table_text, wrote_json
from claudomator_py.cli.times import moment, time_option
from claudomator_py.lab.replay_shape import ChangedTaskView, ChangeView, CostView, OtherView, ReplayView, ShareView
from claudomator_py.surface.table import Column, Table

if TYPE_CHECKING:
    from claudomator_py.schema.routing_settings import RoutingSettings
    from claudomator_py.schema.settings import Settings
    from claudomator_py.store.database import Database

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


@formatted
def replay(
    since: Annotated[
        int | None, time_option("Only decisions at or after this time, such as 22:00, 12h or 2026-11-27.")
    ] = None,
    until: Annotated[int | None, time_option("Only those before it.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show what this configuration would decide differently.")
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Show what the shadow configuration has decided differently.")
    ] = False,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", metavar="DIR", help="The state folder.")] = None,
) -> None:
    """Replay recorded placements from their snapshots."""
    if shadow:
        if config is not None:
            raise typer.BadParameter(
                "cannot be combined with --config: the shadow configuration is used", param_hint="--shadow"
            )
        other = _shadowed(state_dir, since, until)
        if not wrote_json(other):
            _print_shadow(other)
        return
    result = _replayed(state_dir, config, since, until)
    if not wrote_json(result):
        _print(result)
    if result.differing:
        raise typer.Exit(ExitCode.FAILURE)


def _replayed(state_dir: Path | None, against: Path | None, since_ms: int | None, until_ms: int | None) -> ReplayView:
    """Replay from the database of the discovered configuration, next to its daemon. Raises ClientError."""
    from claudomator_py.imports import bulk_import

    with bulk_import():
        from claudomator_py.daemon import calibrations
        from claudomator_py.lab.replay import Replay, Window
    from claudomator_py.client import DiscoveryFailed
    from claudomator_py.client.discovery import configuration

    other = None if against is None else configuration(against, os.environ, Path.cwd()).settings
    with _recorded(state_dir) as (database, own, state):
        if other is not None and _has_other_cards(other.routing, own.routing):
            note(f"The cards that {against} would read are not used: replay takes the cards registered today.")
        replay = Replay(database, own, other, os.environ, calibrations.read(state))
        try:
            return replay.run(Window(since_ms, until_ms))
        except (ValueError, RecursionError) as error:
            if against is not None:
                raise DiscoveryFailed(
                    f"{against} cannot be tried: {error}.", remedy="Correct it, and retry."
                ) from error
            remedy = "Choose a time span without it, or restore the database from a backup."
            raise DiscoveryFailed(f"What was recorded cannot be read: {error}.", remedy=remedy) from error


def _has_other_cards(other: "RoutingSettings", own: "RoutingSettings") -> bool:
    """Return whether daemons of the two configurations would read different cards."""
    added = [folder for folder in other.specialists if folder not in own.specialists and Path(folder).is_dir()]
    return bool(added) or other.shipped != own.shipped


def _shadowed(state_dir: Path | None, since_ms: int | None, until_ms: int | None) -> OtherView:
    """Return what the shadow configuration decided differently. Raises ClientError."""
    from claudomator_py.imports import bulk_import

    with bulk_import():
        from claudomator_py.lab.replay import Window, shadowed

    with _recorded(state_dir) as (database, _, _):
        return shadowed(database, Window(since_ms, until_ms))


@contextmanager
def _recorded(state_dir: Path | None) -> Iterator[tuple["Database", "Settings", Path]]:
    """Yield the database of the discovered configuration, the settings and the state folder. Raises ClientError.

    If a daemon runs with its database in the state folder, a faulty configuration is only a warning, as it is for
    commands that ask the daemon.
    """
    from claudomator_py.client import DiscoveryFailed
    from claudomator_py.client.discovery import configuration, state_in_use
    from claudomator_py.schema.configfile import resolve_state_dir
    from claudomator_py.schema.settings import Settings
    from claudomator_py.store.database import FILE_NAME, Database, StoreUnavailable
    from claudomator_py.store.migrations import is_current

    running = state_in_use(None, state_dir, os.environ, Path.cwd())
    try:
        loaded = configuration(None, os.environ, Path.cwd())
    except DiscoveryFailed as error:
        if running is None or not (running / FILE_NAME).is_file():
            raise
        note(f"Warning: {error.detail}")
        settings, state = Settings(), running
    else:
        settings = loaded.settings
        state = running or resolve_state_dir(state_dir, settings, os.environ, loaded.base_dir)
    try:
        if not state.is_dir():
            raise StoreUnavailable(f"There is no state folder {state}.", "Start the daemon once, or name another one.")
        with Database.open(settings.database, state_dir=state) as database:
            if not is_current(database):
                raise StoreUnavailable("The database is of another version.", "Start this version's daemon once.")
            yield database, settings, state
    except StoreUnavailable as error:
        raise DiscoveryFailed(error.reason, remedy=error.remedy) from error


def _print(result: ReplayView) -> None:
    again = result.placements - result.gone
    out(f"{result.identical} of {again} placements are reproduced exactly.")
    if result.gone:
        note(f"{result.gone} more cannot be replayed: their snapshots were removed (retention.snapshots).")
    for record in result.differing:
        out(f"{moment(record.decided_at)}  {record.decision_id}  {record.at}")
    if result.other is not None:
        out("")
        _print_other(result.other)


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
    rows = [(what, change) for what, kinds in changes.items() for change in kinds]
    if rows:
        out("\n" + table_text(_CHANGES, rows))
    if other.tasks:
        out("\n" + table_text(_TASKS, other.tasks))
    if other.undecided:
        note(f"{other.undecided} more tasks cannot be compared: they were removed, or restarted since.")


def _share(share: ShareView) -> str:
    return f"{share.number} of {share.total} ({share.share:.1%}; 95% interval {share.low:.1%} to {share.high:.1%})"


def _cost(cost: CostView) -> str:
    interval = f"95% interval {cost.low_usd:+.2f} to {cost.high_usd:+.2f}"
    own, other = f"{cost.own_usd:.2f} USD with this configuration", f"{cost.other_usd:.2f} with the other"
    return f"Expected cost of {cost.placements} placements: {own}, {other}: {cost.difference_usd:+.2f} ({interval})."
