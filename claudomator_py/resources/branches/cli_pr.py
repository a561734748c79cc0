"""``pr``: open a pull request from a task's branch, with git and gh run as the person who typed it."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import fail, note, out
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.text import plain
from claudomator_py.domain.units import counted
from claudomator_py.resources.branches import BranchView
from claudomator_py.resources.branches.cli import DryRunOption, TaskArgument

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

MAX_BODY = 20_000
"""Of the result, in the text of a pull request."""
_DESIGNATIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")


@connected
def pr(
    client: "Client",
    task: TaskArgument,
    into: Annotated[
        str | None, typer.Option("--into", metavar="BRANCH", help="The target. Default: where the task began.")
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
    found = client.task(task)
    branch = next((view for view in client.branches() if view.task_id == found.id), None)
    if branch is None:
        fail(
            f"{found.name} has no branch of its own, or no longer has one.",
            f"See what it changed: claudomator diff {found.name}",
        )
    target = into or branch.onto
    _require_ready(branch, target)
    last = client.changes(found.id).runs
    subjects = [commit.subject for view in last if view.changes is not None for commit in view.changes.commits]
    own = title or (subjects[0] if len(subjects) == 1 and branch.commits == 1 else found.name)
    body = plain(found.result_text or "")[:MAX_BODY]
    push = ["git", "-C", branch.repository, "push", "--set-upstream", remote, branch.branch]
    create = ["gh", "pr", "create", *_options(branch.branch, str(target), plain(own), draft=draft)]
    if dry_run:
        commits = f"{counted(branch.commits, 'commit')} of {plain(branch.branch)}"
        out(f"Would push {commits}, and open a pull request into {plain(str(target))}.")
        out(f"{plain(shlex.join(push))}\n{plain(shlex.join(create))}")
        if body:
            note(f"Its text: {body}")
        return
    if shutil.which("gh") is None:
        fail(
            "gh is not installed, or not on PATH.",
            f"Install GitHub's command line tool, or push by hand: {shlex.join(push)}",
        )
    environ = {key: value for key, value in os.environ.items() if key not in _DESIGNATIONS}
    for command, text in ((push, ""), (create, body)):
        done = subprocess.run(command, cwd=branch.repository, env=environ, input=text, text=True, check=False)
        if done.returncode:
            after = "The branch is already pushed. " if command is create else "Nothing was pushed. "
            fail(f"{command[0]} exited with {done.returncode}.", f"{after}Correct what it says above, and try again.")


def _options(head: str, base: str, title: str, *, draft: bool) -> list[str]:
    options = ["--head", head, "--base", base, "--title", title, "--body-file", "-"]
    return [*options, "--draft"] if draft else options


def _require_ready(branch: BranchView, target: str | None) -> None:
    """End the command if there is nothing to open a pull request from."""
    name = branch.task_name
    if branch.state not in ENDED:
        fail(f"{name} is {branch.state}, and may still work on its branch.", "Wait for it to end, or cancel it.")
    if branch.changed:
        are = "is" if branch.changed == 1 else "are"
        files = f"{counted(branch.changed, 'file')} in {plain(branch.path)}"
        fail(f"{files} {are} not committed.", "Commit or remove them there.")
    if not branch.commits:
        fail(f"{name} has committed nothing.", f"See what it changed: claudomator diff {name}")
    if target is None:
        fail("No branch was checked out where it began.", "Name one with --into BRANCH.")
    if not Path(branch.repository).is_dir():
        fail(f"{plain(branch.repository)} is not on this machine.", "Run this where the daemon runs.")
