"""``logs``: what a run wrote, and what it goes on to write."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.changes import Changes
from claudomator_py.cli.connect import connected
from claudomator_py.cli.entries import EntryLines
from claudomator_py.cli.output import Format, FormatOption, fail, note, out, out_bytes, out_part
from claudomator_py.client.errors import ServiceProblem
from claudomator_py.core.run import Stream
from claudomator_py.core.views import LogEntryView, RunView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_PAUSE_S = 0.3
_LOOK_S = 5.0
_PLAIN_KINDS = ("command",)
"""Kinds of agents whose output is made for people as it is."""


@connected
def logs(
    client: "Client",
    task: Annotated[str, typer.Argument(metavar="TASK|RUN", help="A task, which means its last run; or a run's id.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="What it wrote to stderr.")] = False,
    text: Annotated[bool, typer.Option("--text", help="The agent's output itself, for people.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Every byte as it is: terminal codes and secrets, too.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print what a run wrote.

    Of an agent that writes events: what it said and did. With -o json, an entry a line. Secrets are taken out.
    """
    run = _find_run(client, task, follow=follow)
    stream: Stream = "stderr" if stderr else "stdout"
    as_json = output is Format.JSON
    if raw:
        _write_bytes(client, run, stream, follow=follow)
    elif as_json or not (text or stderr or _is_plain(client, run)):
        _write_entries(client.follow_log(run.id, stream) if follow else client.log_entries(run.id, stream), as_json)
    else:
        for part in client.follow_text(run.id, stream) if follow else client.log_text(run.id, stream):
            out_part(part)


def _write_entries(entries: Iterator[LogEntryView], as_json: bool) -> None:
    if as_json:
        for entry in entries:
            out(entry.model_dump_json())
        return
    lines = EntryLines()
    for entry in entries:
        out_part(lines.text(entry))
    out_part(lines.end())


def _write_bytes(client: "Client", run: RunView, stream: Stream, *, follow: bool) -> None:
    offset = 0
    while True:
        chunk = client.log(run.id, stream, offset)
        offset = chunk.next_offset
        out_bytes(chunk.data)
        if chunk.ended or (not follow and not chunk.data):
            return
        if not chunk.data:
            time.sleep(_PAUSE_S)


def _is_plain(client: "Client", run: RunView) -> bool:
    """Whether its agent writes text; one that is no longer known is taken to."""
    kinds = {agent.name: agent.kind for agent in client.agents()}
    return kinds.get(run.agent, _PLAIN_KINDS[0]) in _PLAIN_KINDS


def _find_run(client: "Client", ref: str, *, follow: bool) -> RunView:
    """The run of that id, else the task's last; waits for its first one when following."""
    try:
        task = client.task(ref)
    except ServiceProblem as problem:
        if problem.code != "not_found":
            raise
        try:
            return client.run(ref)
        except ServiceProblem:
            raise problem from None
    runs = client.runs(task.id)
    if not runs and follow and "cancel" in task.available_actions:
        note(f"{task.name} has not run yet; waiting for its start.")
        with Changes(client, task.id) as changes:
            while not (runs := client.runs(task.id)) and "cancel" in client.task(task.id).available_actions:
                changes.wait(_LOOK_S)
    if not runs:
        fail(f"{task.name} has not run.", f"See `claudomator why {task.name}`.")
    return runs[-1]
