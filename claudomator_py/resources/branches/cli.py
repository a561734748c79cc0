"""``branches``, ``merge`` and ``discard``: what tasks did on branches of their own, taken over or left."""

from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Format, FormatOption, fail, note, out, out_json, write_table
from claudomator_py.domain.changes import MergeMethod
from claudomator_py.domain.text import plain
from claudomator_py.domain.units import counted
from claudomator_py.resources.branches.shape import BRANCHES, DiscardRequest, MergeRequest

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="A task id, id prefix or name.", autocompletion=completion.tasks)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, without doing it.")]


@connected
def branches(
    client: "Client",
    everything: Annotated[bool, typer.Option("--all", help="Also list those that hold nothing of their own.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the branches of tasks that are not merged.

    Each as it stood after the last run in its work tree, or when it was last looked at.
    """
    found = [view for view in client.branches() if everything or not view.standing.is_spent]
    write_table(BRANCHES, found, output, "No branch of a task has anything that is not merged.")


@connected
def merge(
    client: "Client",
    task: TaskArgument,
    squash: Annotated[bool, typer.Option("--squash", help="Make one commit of all of its commits.")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", help="Repeat its commits on top of the target.")] = False,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="BRANCH", help="The target. Default: the branch that the task began at."),
    ] = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="First commit what is not committed, on the task's branch.")
    ] = False,
    dry_run: DryRunOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Merge the branch of a task.

    Nothing is changed where there would be a conflict, where the target has uncommitted changes, or while somebody
    works in it. Prints the command that takes it back.
    """
    if squash and rebase:
        fail("Only one of --squash and --rebase can be given.", "Choose one of them.")
    method = MergeMethod.SQUASH if squash else MergeMethod.REBASE if rebase else MergeMethod.MERGE
    wanted = MergeRequest(into=into, method=method, commit=commit, dry_run=dry_run)
    merged = client.merge(task, wanted)
    if output is Format.JSON:
        out_json(merged)
        return
    if not merged.commits:
        out(f"{plain(merged.into)} has all of {plain(merged.branch)} already.")
        return
    files = f"{counted(merged.files, 'file')} (+{merged.added} -{merged.removed})"
    words = "Would merge" if dry_run else "Merged"
    out(f"{words} {counted(merged.commits, 'commit')} of {plain(merged.branch)} into {plain(merged.into)}: {files}.")
    if merged.place is not None:
        out(f"The files in {plain(merged.place)} {'would follow' if dry_run else 'have followed'}.")
    for line in merged.notes:
        note(f"Note: {plain(line)}.")
    _print_undo(merged.undo)


@connected
def discard(
    client: "Client", task: TaskArgument, dry_run: DryRunOption = False, output: FormatOption = Format.TABLE
) -> None:
    """Remove the work tree and the branch of a task.

    All that is in them, committed or not, is kept in the repository. Prints the command that brings the branch back.
    """
    left = client.discard(task, DiscardRequest(dry_run=dry_run))
    if output is Format.JSON:
        out_json(left)
        return
    uncommitted = f" and {counted(left.changed, 'uncommitted file')}" if left.changed else ""
    words = "Would remove" if dry_run else "Removed"
    out(f"{words} {plain(left.branch)}: {counted(left.commits, 'commit')}{uncommitted}, in {plain(left.path)}.")
    _print_undo(left.undo)


def _print_undo(command: str | None) -> None:
    if command is not None:
        out(f"Undo: {plain(command)}")
