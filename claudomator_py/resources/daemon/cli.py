"""``hosts``, ``backup``, ``cleanup``, ``drain`` and ``undrain``: looking after the daemon."""

import os
import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import ExitCode, exists
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import error, fail, fields, note, out, table_section, table_text, write, wrote_json
from claudomator_py.cli.times import duration_option, moment
from claudomator_py.domain.health import DrainView
from claudomator_py.domain.host import NodeView
from claudomator_py.domain.retention import DEFAULT_AGE_MS, CleanupItemView, CleanupRequest
from claudomator_py.domain.units import format_duration, size_text
from claudomator_py.private_files import create_private, flush, unfinished
from claudomator_py.resources.daemon import HOSTS
from claudomator_py.surface.table import Column, Table

_NODES = Table[tuple[str, NodeView]](
    Column("HOST", lambda row: row[0]),
    Column("NODE", lambda row: row[1].name),
    Column("STATE", lambda row: row[1].state),
    Column("REASON", lambda row: row[1].reason, flexible=True),
)


@connected
def hosts(client: Client) -> None:
    """Show where runs take place.

    For a cluster: what waits for a node and why, its nodes by state, and those that take no runs.
    """
    hosts = client.hosts()
    if wrote_json(hosts):
        return
    out(table_text(HOSTS, hosts))
    unusable = [(host.name, node) for host in hosts for node in host.unusable]
    for text in table_section("NODES WITHOUT RUNS", _NODES, unusable):
        out(f"\n{text}")


def copy_to_new(source: Path, target: Path) -> None:
    """Copy a file, also across file systems, to a new one (0600) that appears complete or not at all.
    Raises FileExistsError rather than replace anything, and OSError.
    """
    partial = unfinished(target)
    try:
        with create_private(partial) as copy, source.open("rb") as original:
            shutil.copyfileobj(original, copy)
            flush(copy)
        _appear(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _appear(partial: Path, target: Path) -> None:
    try:
        os.link(partial, target, follow_symlinks=False)
    except PermissionError:
        # A file system without hard links, such as that of a USB stick.
        if os.path.lexists(target):
            raise FileExistsError(str(target)) from None
        partial.rename(target)


@connected
def backup(
    client: Client,
    to: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The file to write, which must not exist. Default: the daemon's `backups` directory."
        ),
    ] = None,
) -> None:
    """Copy the database to a file.

    The copy is a consistent snapshot; tasks continue meanwhile.
    To restore: stop the daemon, replace `claudomator.db` in the state directory with the file, and remove
    `claudomator.db-wal` and `claudomator.db-shm`.
    """
    if to is not None and exists(to):
        fail(f"{to} already exists.", "Choose another name; a backup never overwrites a file.")
    made = client.backup()
    if to is not None:
        try:
            # The daemon's own copy is removed once this one is complete.
            copy_to_new(Path(made.path), to)
            Path(made.path).unlink()
        except FileExistsError:
            fail(f"{to} already exists.", f"Name a file that does not exist; the backup is at {made.path}.")
        except OSError as error:
            fail(f"Could not write the backup to {to}: {error.strerror}.", f"The backup is at {made.path}.")
        made = made.model_copy(update={"path": str(to.absolute())})
    write(made, lambda: made.path)


_CLEANED = Table[CleanupItemView](
    Column("WHAT", lambda item: "work tree" if item.kind == "worktree" else "run"),
    Column("TASK", lambda item: item.task),
    Column("SIZE", lambda item: size_text(item.bytes) if item.removed else None, right=True),
    Column("BRANCH", lambda item: item.branch),
    Column("WHY", lambda item: item.why, flexible=True),
    Column("PATH", lambda item: item.path, wide=True),
)


@connected
def cleanup(
    client: Client,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed without removing it.")] = False,
    older_than: Annotated[
        int | None, duration_option("Only what ended longer ago than this, such as 12h (default 7d).")
    ] = None,
) -> None:
    """Remove what ended tasks no longer need.

    A work tree is removed with its branch, and only if nothing is lost: not while it has uncommitted changes or
    unmerged commits. A run's directory is removed with its output and its scratch directory.
    """
    age = DEFAULT_AGE_MS if older_than is None else older_than
    cleanup = client.clean_up(CleanupRequest.model_validate({"dry_run": dry_run, "older_than": format_duration(age)}))
    if wrote_json(cleanup):
        return
    removed = [item for item in cleanup.items if item.removed]
    kept = [item for item in cleanup.items if not item.removed]
    for title, items in (("Would be removed" if dry_run else "Removed", removed), ("Kept", kept)):
        if items:
            out(f"{title}:")
            out(table_text(_CLEANED, items, indent=2))
    would = "would be " if dry_run else ""
    out(f"{len(removed)} {would}removed, {size_text(cleanup.freed_bytes)} {would}freed; {len(kept)} kept.")
    if cleanup.more:
        note("There is more to remove; run the command again.")


_LOOK_S = 0.5
HostOption = Annotated[str | None, typer.Option("--host", metavar="NAME", help="Only this host, such as `local`.")]


@connected
def drain(
    client: Client,
    reason: Annotated[str | None, typer.Option(help="The reason to show to others.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Start tasks again; as `undrain` does.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing is running.")] = False,
    timeout: Annotated[int | None, duration_option("Wait no longer than this, such as 45m.")] = None,
    host: HostOption = None,
) -> None:
    """Stop starting tasks; running ones finish.

    Tasks are still accepted, and queue. The drain survives restarts of the daemon and lasts until `undrain`. With
    `--host`, tasks that may run on another host do.
    """
    if off and (wait or reason is not None):
        raise typer.BadParameter("--off cannot be combined with --wait or --reason")
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout requires --wait")
    if off:
        state = client.undrain() if host is None else client.undrain_host(host)
    else:
        state = client.drain(reason) if host is None else client.drain_host(host, reason)
    deadline = None if timeout is None else time.monotonic() + timeout / 1_000
    while wait and state.drained and state.running:
        if deadline is not None and time.monotonic() >= deadline:
            _write_drain(state)
            error(
                f"Runs were still live after {format_duration(timeout or 0)}.",
                "They continue; the daemon stays drained.",
            )
            raise typer.Exit(ExitCode.TIMED_OUT)
        time.sleep(_LOOK_S)
        state = client.drain_state() if host is None else client.drain_host(host, reason)
    _write_drain(state)


@connected
def undrain(client: Client, host: HostOption = None) -> None:
    """Start tasks again after `drain`."""
    _write_drain(client.undrain() if host is None else client.undrain_host(host))


def _write_drain(drain: DrainView) -> None:
    pairs = [
        ("drained", "yes" if drain.drained else "no"),
        ("since", moment(drain.since)),
        ("reason", drain.reason or ""),
        ("running", str(drain.running)),
    ]
    write(drain, lambda: fields(pairs))
