"""``cleanup``: remove what ended tasks have left, by the daemon, and see why the rest is kept."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.domain.retention import DEFAULT_AGE_MS, CleanupItemView, CleanupRequest
from claudomator_py.domain.units import format_duration, parse_duration

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_COLUMNS = (
    Column("WHAT"),
    Column("TASK"),
    Column("SIZE", right=True),
    Column("BRANCH"),
    Column("WHY", flexible=True),
    Column("PATH", wide=True),
)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@connected
def cleanup(
    client: "Client",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")] = False,
    older_than: Annotated[
        int | None,
        typer.Option(
            metavar="DURATION", parser=parse_duration, help="Only what ended longer ago, such as 12h; else 7d."
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Remove what ended tasks have left and nobody misses.

    Work trees go with their branches, and only if nothing in them would be lost: one is kept while it has changes that
    are not committed, or commits that are not merged. A run's directory goes with its output and its scratch folder.
    """
    age = DEFAULT_AGE_MS if older_than is None else older_than
    found = client.clean_up(CleanupRequest.model_validate({"dry_run": dry_run, "older_than": format_duration(age)}))
    if output is Format.JSON:
        out_json(found)
        return
    removed = [item for item in found.items if item.removed]
    kept = [item for item in found.items if not item.removed]
    for title, items in (("Would be removed" if dry_run else "Removed", removed), ("Kept", kept)):
        if items:
            out(f"{title}:")
            out(render(_COLUMNS, [_row(item) for item in items], wide=output is Format.WIDE, indent=2))
    would = "would be " if dry_run else ""
    out(f"{len(removed)} {would}removed, {_size(found.freed_bytes)} {would}freed; {len(kept)} kept.")
    if found.more:
        note("There is more: run it again.")


def _row(item: CleanupItemView) -> tuple[str, ...]:
    what = "work tree" if item.kind == "worktree" else "run"
    return (what, item.task or "", _size(item.bytes) if item.removed else "", item.branch or "", item.why, item.path)


def _size(count: int) -> str:
    value, unit = float(count), 0
    while value >= 1_024 and unit < len(_UNITS) - 1:
        value, unit = value / 1_024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
