"""``diff``, ``branches``, ``merge``, ``discard`` and ``pr``: show what tasks changed, take over or drop their branches,
and open pull requests from them with git and gh, run as the person who typed it."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import ExitCode, completion
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import (
    confirm,
    fail,
    heading,
    json_text,
    note,
    out,
    out_json,
    out_part,
    table_text,
    wants_json,
    write_table,
    wrote_json,
)
from claudomator_py.cli.times import ago, now_ms
from claudomator_py.client import ServiceProblem
from claudomator_py.domain.changes import FileChange, MergeMethod, RunChanges
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.units import are, counted
from claudomator_py.domain.worktree import HEADS
from claudomator_py.resources.branches import (
    BRANCHES,
    BranchView,
    ChangesView,
    DiscardRequest,
    MergeRequest,
    MergeView,
    undos_of,
)
from claudomator_py.resources.tasks.cli import TaskArgument
from claudomator_py.resources.tasks.cli_change import TasksArgument, YesOption
from claudomator_py.surface.table import Column, Table
from claudomator_py.texts import plain
from claudomator_py.values import dataclass

FILES = Table[FileChange](
    Column("FILE", lambda file: file.path, flexible=True),
    Column("CHANGE", lambda file: plain(file.words)),
    Column("+", lambda file: file.added, right=True),
    Column("-", lambda file: file.removed, right=True),
)
MAX_SHOWN = 20
"""Names in a list that is not a table."""


@connected
def diff(
    client: Client,
    task: TaskArgument,
    stat: Annotated[bool, typer.Option("--stat", help="Show commits, branches and files, not their lines.")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Show only the names of changed files.")] = False,
    run: Annotated[int | None, typer.Option("--run", min=1, metavar="N", help="Show only the task's N-th run.")] = None,
) -> None:
    """Show what a task's runs changed.

    Prints a patch of each run, from recordings before and after it. Changes that were there before are not included.
    """
    if stat and name_only:
        fail("Only one of --stat and --name-only can be given.", "Choose one of them.")
    changes = client.changes(task)
    chosen = [view for view in changes.runs if run is None or view.number == run]
    if not chosen:
        if changes.runs:
            fail(f"{changes.task_name} has no run {run}.", f"It has {counted(len(changes.runs), 'run')}.")
        fail(f"{changes.task_name} has not run.", f"See `claudomator why {changes.task_name}`.")
    if wants_json():
        out_json(changes.model_copy(update={"runs": tuple(chosen)}))
    elif name_only:
        _print_names(chosen)
    elif stat:
        out("\n\n".join(map(_stat, chosen)))
    else:
        _print_patches(client, chosen)


def _print_names(views: Iterable[ChangesView]) -> None:
    files = (file for view in views if view.changes is not None for file in view.changes.files)
    for path in dict.fromkeys(file.path for file in files):
        out(plain(path))


def _print_patches(client: Client, views: Sequence[ChangesView]) -> None:
    for view in views:
        patch = client.patch(view.run_id)
        if patch.text:
            out_part(plain(patch.text))
            if not patch.is_whole:
                note(f"Run {view.number} changed more than is kept; --stat names the files.")
        elif view.changes is not None and view.changes.file_count:
            note(f"Run {view.number}: {view.summary}; there is no patch of it. See --stat.")
        else:
            note(f"Run {view.number}: {view.summary}.")


def _stat(view: ChangesView) -> str:
    parts = [heading(f"RUN {view.number} ({view.agent}, {ago(view.started_at, now_ms())})"), f"  {plain(view.summary)}"]
    if view.changes is not None:
        parts += _details(view.changes)
    return "\n".join(parts)


def _details(changes: RunChanges) -> list[str]:
    lines = [f"  in {', '.join(map(plain, filter(None, (changes.place, changes.checked_out))))}"]
    lines += [f"  {commit.id[:8]} {plain(commit.subject)} ({plain(commit.author)})" for commit in changes.commits]
    lines += _more(len(changes.commits), changes.commit_count)
    lines += [f"  {plain(name)}: {plain(words)}" for name, words in changes.ref_changes]
    lines += _more(len(changes.refs), changes.ref_count)
    if changes.files:
        lines.append(table_text(FILES, changes.files, indent=2))
        lines += _more(len(changes.files), changes.file_count)
    for word, names, count in (
        ("not committed", changes.uncommitted, changes.uncommitted_count),
        ("not known to git", changes.untracked, changes.untracked_count),
    ):
        if count:
            shown = ", ".join(map(plain, names[:MAX_SHOWN]))
            rest = f" and {count - MAX_SHOWN} more" if count > MAX_SHOWN else ""
            lines.append(f"  {word}: {shown}{rest}")
    if changes.left_as_before:
        lines.append(f"  of these, unchanged by the run: {changes.left_as_before}")
    return lines


def _more(shown: int, count: int) -> list[str]:
    return [f"  and {count - shown} more"] if count > shown else []


DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, without doing it.")]


@connected
def branches(
    client: Client,
    everything: Annotated[bool, typer.Option("--all", help="Also list those with nothing of their own.")] = False,
) -> None:
    """List the unmerged branches of tasks.

    Each as it was after the last run in its work tree, or when it was last examined.
    """
    branches = [view for view in client.branches() if everything or not view.standing.is_spent]
    write_table(BRANCHES, branches, "No task has an unmerged branch.")


@connected
def merge(
    client: Client,
    tasks: TasksArgument = None,
    ready: Annotated[
        bool, typer.Option("--ready", help="Merge every branch that `branches` lists as ready: proved by a check.")
    ] = False,
    squash: Annotated[bool, typer.Option("--squash", help="Squash its commits into one.")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", help="Rebase its commits onto the target.")] = False,
    into: Annotated[
        str | None,
        completion.BRANCHES.option("The target. Default: the branch the task began at.", "--into", metavar="BRANCH"),
    ] = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="First commit uncommitted changes, on the task's branch.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Merge the branches of tasks.

    Nothing is changed if there would be a conflict, if the target has uncommitted changes, or while somebody works in
    it. Prints the command that undoes it. Several are merged one after the other; if one is refused, the others are
    not affected, and the exit code is 1.
    """
    if bool(tasks) == ready:
        raise typer.BadParameter(f"name tasks, or choose them with --ready{', not both' if tasks else ''}")
    if squash and rebase:
        fail("Only one of --squash and --rebase can be given.", "Choose one of them.")
    method = MergeMethod.SQUASH if squash else MergeMethod.REBASE if rebase else MergeMethod.MERGE
    wanted = MergeRequest(into=into, method=method, commit=commit, dry_run=dry_run)
    if not tasks or len(tasks) > 1:
        _merge_each(client, tasks, wanted, yes=yes)
        return
    merged = client.merge(tasks[0], wanted)
    if wrote_json(merged):
        return
    if not merged.commits:
        out(f"{plain(merged.into)} already has all of {plain(merged.branch)}.")
        return
    files = f"{counted(merged.files, 'file')} (+{merged.added} -{merged.removed})"
    words = "Would merge" if dry_run else "Merged"
    out(f"{words} {counted(merged.commits, 'commit')} of {plain(merged.branch)} into {plain(merged.into)}: {files}.")
    if merged.place is not None:
        out(f"The files in {plain(merged.place)} {'would be' if dry_run else 'are'} updated too.")
    for line in merged.notes:
        note(f"Note: {plain(line)}.")
    _print_undo(merged.undo)


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What came of merging the branch of one task: what was merged, or the refusal."""

    task_name: str
    merged: MergeView | None = None
    refusal: ServiceProblem | None = None

    @property
    def problem(self) -> str | None:
        """Why it was refused, and the remedy."""
        return None if self.refusal is None else f"{self.refusal.detail} {self.refusal.remedy}".rstrip()

    @property
    def verdict(self) -> str:
        """Whether it was merged."""
        if self.merged is None:
            return "no"
        if not self.merged.commits:
            return "already"
        return "yes" if self.merged.after is not None else "could be"


_MERGES = Table[MergeOutcome](
    Column("TASK", lambda outcome: outcome.task_name, flexible=True, least=20),
    Column("MERGED", lambda outcome: outcome.verdict),
    Column("INTO", lambda outcome: None if outcome.merged is None else outcome.merged.into),
    Column("COMMITS", lambda outcome: None if outcome.merged is None else outcome.merged.commits, right=True),
    Column("FILES", lambda outcome: None if outcome.merged is None else outcome.merged.files, right=True),
    Column("+", lambda outcome: None if outcome.merged is None else outcome.merged.added, right=True),
    Column("-", lambda outcome: None if outcome.merged is None else outcome.merged.removed, right=True),
)


def _merge_each(client: Client, refs: Sequence[str] | None, wanted: MergeRequest, *, yes: bool) -> None:
    """Merge the branches of these tasks, or all that are ready, one request each. Raises Exit if any was refused."""
    if not refs:
        names = {view.task_id: view.task_name for view in client.branches() if view.unready is None}
    else:
        names = {task.id: task.name for task in map(client.task, refs)}
    if not names:
        note("No branch is ready; `claudomator branches` says why not.")
    elif not yes and not wanted.dry_run:
        confirm(f"Merge {counted(len(names), 'branch')}?")
    outcomes = [_merged(client, task_id, name, wanted) for task_id, name in names.items()]
    refused = sum(outcome.merged is None for outcome in outcomes)
    if wants_json():
        out(json_text([_as_json(outcome) for outcome in outcomes]))
    elif outcomes:
        out(table_text(_MERGES, outcomes))
        for outcome in outcomes:
            remarks = () if outcome.merged is None else outcome.merged.notes
            for line in (outcome.problem,) if outcome.problem else remarks:
                note(f"{plain(outcome.task_name)}: {plain(line)}")
        for command in undos_of([outcome.merged for outcome in outcomes if outcome.merged is not None]):
            _print_undo(command)
        merged = sum(outcome.merged is not None and outcome.merged.commits > 0 for outcome in outcomes)
        would = "would be " if wanted.dry_run else ""
        alone = ", each if it were the only one" if wanted.dry_run else ""
        note(f"{merged} {would}merged, {refused} {would}refused{alone}.")
    if refused:
        raise typer.Exit(ExitCode.FAILURE)


def _merged(client: Client, task_id: str, name: str, wanted: MergeRequest) -> MergeOutcome:
    try:
        return MergeOutcome(name, client.merge(task_id, wanted))
    except ServiceProblem as refusal:
        return MergeOutcome(name, refusal=refusal)


def _as_json(outcome: MergeOutcome) -> dict[str, object]:
    merged = None if outcome.merged is None else outcome.merged.model_dump(mode="json")
    return {"task_name": outcome.task_name, "problem": outcome.problem, "merged": merged}


@connected
def discard(client: Client, task: TaskArgument, dry_run: DryRunOption = False) -> None:
    """Remove the work tree and the branch of a task.

    Everything in them, committed or not, is kept in the repository. Prints the command that brings the branch back.
    """
    left = client.discard(task, DiscardRequest(dry_run=dry_run))
    if wrote_json(left):
        return
    uncommitted = f" and {counted(left.changed, 'uncommitted file')}" if left.changed else ""
    words = "Would remove" if dry_run else "Removed"
    out(f"{words} {plain(left.branch)}: {counted(left.commits, 'commit')}{uncommitted}, in {plain(left.path)}.")
    for line in left.notes:
        note(f"Note: {plain(line)}.")
    _print_undo(left.undo)


def _print_undo(command: str | None) -> None:
    if command is not None:
        out(f"Undo: {plain(command)}")


MAX_BODY = 20_000
"""Maximum length of the result in the text of a pull request."""
_DESIGNATIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")


@with_client
def pr(
    client: Client,
    task: TaskArgument,
    into: Annotated[
        str | None, completion.BRANCHES.option("The target. Default: where the task began.", "--into", metavar="BRANCH")
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Its title. Default: the subject of the only commit, or the task's name.")
    ] = None,
    remote: Annotated[str, typer.Option(help="Where to push the branch.")] = "origin",
    draft: Annotated[bool, typer.Option("--draft", help="Make it a draft.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Open a pull request from a task's branch, with `gh`.
    The branch is pushed first, and the text is the task's result. git and gh run here, in the task's repository, as if
    typed by hand.
    """
    current = client.task(task)
    branch = next((view for view in client.branches() if view.task_id == current.id), None)
    if branch is None:
        fail(
            f"{current.name} has no branch of its own, or no longer has one.",
            f"See what it changed: claudomator diff {current.name}",
        )
    target = into or branch.onto
    commits = _commits_ready(branch, target, remote)
    last = client.changes(current.id).runs
    subjects = [commit.subject for view in last if view.changes is not None for commit in view.changes.commits]
    own = title or (subjects[0] if len(subjects) == 1 and commits == 1 else current.name)
    body = plain(current.result_text or "")[:MAX_BODY]
    push = ["git", "-C", branch.repository, "push", "--set-upstream", remote, branch.branch]
    create = ["gh", "pr", "create", *_options(branch.branch, str(target), plain(own), draft=draft)]
    if dry_run:
        pushed = f"{counted(commits, 'commit')} of {plain(branch.branch)}"
        out(f"Would push {pushed}, and open a pull request into {plain(str(target))}.")
        out(f"{plain(shlex.join(push))}\n{plain(shlex.join(create))}")
        if body:
            note(f"Its text: {body}")
        return
    if shutil.which("gh") is None:
        fail(
            "gh is not installed, or not on PATH.",
            f"Install GitHub's command line tool, or push by hand: {shlex.join(push)}",
        )
    for command, text in ((push, ""), (create, body)):
        done = subprocess.run(command, cwd=branch.repository, env=_environ(), input=text, text=True, check=False)
        if done.returncode:
            after = "The branch is already pushed. " if command is create else "Nothing was pushed. "
            fail(f"{command[0]} exited with {done.returncode}.", f"{after}Correct what it says above, and try again.")


def _options(head: str, base: str, title: str, *, draft: bool) -> list[str]:
    options = ["--head", head, "--base", base, "--title", title, "--body-file", "-"]
    return [*options, "--draft"] if draft else options


def _commits_ready(branch: BranchView, target: str | None, remote: str) -> int:
    """Return how many commits a pull request would have. End the command if there is nothing to open one from.

    git is asked here, as somebody may have committed since the daemon looked.
    """
    name, tree, head = branch.task_name, branch.path, f"{HEADS}{branch.branch}"
    if branch.state not in ENDED:
        fail(f"{name} has not ended; it is {branch.state}.", "Wait for it to end, or cancel it.")
    if target is None:
        fail("No branch was checked out where it began.", "Name one with --into BRANCH.")
    if not Path(branch.repository).is_dir():
        fail(f"{plain(branch.repository)} is not on this machine.", "Run this where the daemon runs.")
    targets = (f"{HEADS}{target}", f"refs/remotes/{remote}/{target}")
    known = _git(branch.repository, "for-each-ref", "--format=^%(refname)", *targets).split()
    if Path(tree).is_dir():
        options = ("--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
        status = _git(tree, "status", *options)
        left = [entry[3:] for entry in status.split("\0") if entry and entry[3:] not in branch.by_check]
        if left:
            listed = f"{are(len(left), 'file')} not committed in {plain(tree)}: {', '.join(map(plain, left[:5]))}"
            fail(f"{listed}.", "Commit or remove them there.")
        if beside := int(_git(tree, "rev-list", "--count", "HEAD", f"^{head}", *known)):
            words = f"{are(beside, 'commit')} checked out in {plain(tree)}, and not on {plain(branch.branch)}"
            fail(f"{words}.", f"See how to put them there: claudomator merge {name} --dry-run")
    commits = int(_git(branch.repository, "rev-list", "--count", head, *known))
    if not commits:
        words = f"{plain(branch.branch)} has no commit that {plain(target)} lacks"
        fail(f"{words}.", f"See what the task changed: claudomator diff {name}")
    return commits


def _git(folder: str, *arguments: str) -> str:
    command = ("git", "-C", folder, *arguments)
    done = subprocess.run(command, env=_environ(), capture_output=True, check=False)
    if done.returncode:
        words = plain(" ".join(done.stderr.decode(errors="replace").split()))
        fail(f"{shlex.join(command)} exited with {done.returncode}: {words}.", "Correct it, and try again.")
    return done.stdout.decode(errors="replace")


def _environ() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _DESIGNATIONS}
