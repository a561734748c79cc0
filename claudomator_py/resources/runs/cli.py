"""The command ``logs``, and the tables of runs and of checks."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from claudomator_py.agents.kinds import info_of
from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, EventWatch, connected
from claudomator_py.cli.output import (
    fail,
    heading,
    note,
    out,
    out_bytes,
    out_json_line,
    out_part,
    painted,
    table_text,
    wants_json,
)
from claudomator_py.cli.times import now_ms
from claudomator_py.client import ServiceProblem
from claudomator_py.domain.budget import Unit, amount_text
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.run import LogKind, Stream
from claudomator_py.domain.units import parse_instant, short_id
from claudomator_py.domain.wording import time_between
from claudomator_py.resources.runs import LogEntryView, RunCheckView, RunView
from claudomator_py.surface import table
from claudomator_py.surface.table import Column, Table
from claudomator_py.texts import plain

_INDENT = "  "
_MARKS: dict[LogKind, str] = {"tool_call": "> ", "usage": "- ", "notice": "- ", "error": "! "}

_STYLES: dict[LogKind, str] = {
    "thinking": "dim italic",
    "tool_call": "cyan",
    "tool_result": "dim",
    "usage": "dim",
    "notice": "dim",
    "error": "bold red",
}

_CHECKS = Table[tuple[str, str]](
    Column("COMMAND", lambda verdict: verdict[0], flexible=True),
    Column("RESULT", lambda verdict: verdict[1], flexible=True),
)


class EntryLines:
    """Formats entries in sequence. An entry that continues in the next one stays on its line."""

    def __init__(self) -> None:
        self._open: LogKind | None = None

    def text(self, entry: LogEntryView) -> str:
        """Return the text of the next entry, with a line end unless it continues."""
        going_on = self._open == entry.kind
        before = "\n" if self._open is not None and not going_on else ""
        self._open = entry.kind if entry.partial else None
        shown = plain(entry.text) if going_on else _marked(entry)
        return before + painted([(shown, _STYLES.get(entry.kind, ""))]) + ("" if entry.partial else "\n")

    def end(self) -> str:
        """Return the text to write when nothing follows."""
        return "\n" if self._open is not None else ""


def _marked(entry: LogEntryView) -> str:
    text = plain(entry.text)
    if entry.omitted:
        text += f"\n[{entry.omitted} characters more]"
    tool = plain(entry.tool) if entry.tool else ""
    match entry.kind:
        case "message" | "text":
            return text
        case "thinking" | "tool_result":
            return "\n".join(_INDENT + line for line in text.rstrip("\n").split("\n"))
        case "tool_call":
            return f"{_MARKS[entry.kind]}{tool}: {text}" if text else f"{_MARKS[entry.kind]}{tool}"
    words = f"{tool}: {text}" if tool else text
    return _MARKS[entry.kind] + words


_PAUSE_S = 0.3
_LOOK_S = 5.0


@connected
def logs(
    client: Client,
    task: Annotated[str, completion.TASKS.argument("TASK|RUN", "A task (its last run) or a run id.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the run ends.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Show stderr instead of stdout.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Show the agent's raw output, made safe for terminals.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Show the check's output and result.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print every byte unchanged, including terminal codes and secrets.")
    ] = False,
) -> None:
    """Print the output of a run.

    For an agent that writes events, shows its messages and actions; with -o json, one entry per line. Secrets are
    redacted. With --check, shows both output streams of the last check, and its result.
    """
    run = run_of(client, task, follow=follow, check=check)
    if not run.output_kept:
        remedy = "A cleanup, or `retention.runs`, removes what ended tasks no longer need; `show` has the result."
        fail(f"The output of run {short_id(run.id)} was removed with its directory.", remedy)
    stream: Stream = "stderr" if stderr else "stdout"
    as_json = wants_json()
    if raw:
        _write_bytes(client, run, stream, follow=follow, check=check)
    elif check and not (as_json or text or stderr):
        _write_check(client, run, follow=follow)
    elif check and as_json:
        entries = client.follow_log if follow else client.log_entries
        _write_entries(entries(run.id, stream, check=True), as_json)
    elif check:
        _write_text(client, run, stream, follow=follow, check=True)
    elif as_json or not (text or stderr or _is_plain(client, run)):
        entries = client.follow_log if follow else client.log_entries
        if not _write_entries(entries(run.id, stream), as_json) and not as_json:
            _note_silence(client, run, stream)
    elif not _write_text(client, run, stream, follow=follow):
        _note_silence(client, run, stream)


def _write_text(client: Client, run: RunView, stream: Stream, *, follow: bool, check: bool = False) -> str:
    """Print the output, and return the last part that was printed."""
    last = ""
    parts = client.follow_text if follow else client.log_text
    for part in parts(run.id, stream, check=check):
        out_part(part)
        last = part or last
    return last


def _write_check(client: Client, run: RunView, *, follow: bool) -> None:
    """Print both output streams of the check, and then its result."""
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    for stream in streams:
        last = _write_text(client, run, stream, follow=follow, check=True)
        if last and not last.endswith("\n"):
            out("")
    ended = client.run(run.id)
    if ended.check is not None:
        out(check_section(ended.check))


def _write_entries(entries: Iterator[LogEntryView], as_json: bool) -> bool:
    """Print the entries, and return whether there were any."""
    lines, any_entry = EntryLines(), False
    for entry in entries:
        any_entry = True
        if as_json:
            out_json_line(entry)
        else:
            out_part(lines.text(entry))
    out_part(lines.end())
    return any_entry


def _note_silence(client: Client, run: RunView, stream: Stream) -> None:
    """Say that the run has written nothing to this stream, and where to look if it wrote to stderr."""
    yet = "" if run.state in ("ended", "revoked") else " yet"
    wrote_stderr = stream == "stdout" and client.log(run.id, "stderr", 0).data
    more = f" What it wrote to stderr: `claudomator logs {short_id(run.id)} --stderr`." if wrote_stderr else ""
    note(f"Run {short_id(run.id)} has written nothing to {stream}{yet}.{more}")


def _write_bytes(client: Client, run: RunView, stream: Stream, *, follow: bool, check: bool) -> None:
    offset = 0
    while True:
        chunk = client.log(run.id, stream, offset, check=check)
        offset = chunk.next_offset
        out_bytes(chunk.data)
        if chunk.ended or (not follow and not chunk.data):
            return
        if not chunk.data:
            time.sleep(_PAUSE_S)


def _is_plain(client: Client, run: RunView) -> bool:
    """Return whether its agent writes plain text, which is assumed for an unknown agent."""
    kinds = {agent.name: agent.kind for agent in client.agents()}
    return run.agent not in kinds or info_of(kinds[run.agent]).plain_output


def run_of(client: Client, ref: str, *, follow: bool, check: bool) -> RunView:
    """Return the run with that id, or else the task's last run. With ``follow``, wait for the first run. check: return
    the last checked run instead."""
    try:
        task = client.task(ref)
    except ServiceProblem as problem:
        if problem.code != "not_found":
            raise
        try:
            run = client.run(ref)
            return _checked([run], f"Run {run.id}", follow=follow) if check else run
        except ServiceProblem:
            raise problem from None
    runs = client.runs(task.id)
    if not runs and follow and "cancel" in task.available_actions:
        note(f"{task.name} has not run yet; waiting for it to start.")
        with EventWatch(client, task.id) as changes:
            while not runs and "cancel" in task.available_actions:
                changes.wait(_LOOK_S)
                # Fetch the task first: if it has ended by then, its runs are complete.
                task, runs = client.task(task.id), client.runs(task.id)
    if not runs:
        fail(f"{task.name} has not run.", f"See `claudomator why {task.name}`.")
    return _checked(runs, task.name, follow=follow) if check else runs[-1]


def _checked(runs: Sequence[RunView], named: str, *, follow: bool) -> RunView:
    """Return the last run that was checked; with ``follow``, also a live run that may still be checked."""
    if follow and runs[-1].state not in ("ended", "revoked"):
        return runs[-1]
    checked = next((run for run in reversed(runs) if run.check is not None), None)
    if checked is None:
        fail(f"{named} has not been checked.", "A check runs after the agent's success, if the task has a `check`.")
    return checked


def _took(view: RunView | RunCheckView) -> str:
    """Return the duration of the run or check so far."""
    ended = now_ms() if view.ended_at is None else parse_instant(view.ended_at)
    return time_between(parse_instant(view.started_at), ended)


def check_section(check: RunCheckView) -> str:
    """Return the section on the check: a heading, and its commands with their results."""
    time = f"{'for' if check.ended_at is None else 'after'} {_took(check)}"
    title = heading(f"CHECK {check.status.upper()} {time}", "FAILED" if check.status == "failed" else "")
    return f"{title}\n{table_text(_CHECKS, check.verdicts, indent=2)}"


def _cost(run: RunView) -> str | None:
    cost = None if run.outcome is None else run.outcome.cost_usd
    return None if cost is None else amount_text(Unit.USD, cost)


NumberedRun = tuple[int, RunView]
"""A run with its number within the task."""
_RUNS = Table[NumberedRun](
    Column("RUN", lambda row: row[1].id, wide=True),
    Column("ATTEMPT", lambda row: row[0], right=True),
    Column("RESTARTS", lambda row: row[1].generation - 1, wide=True, right=True),
    Column("AGENT", lambda row: row[1].agent),
    Column("MODEL", lambda row: row[1].model),
    Column("HOST", lambda row: None if row[1].host == LOCAL else row[1].host),
    Column("TIER", lambda row: row[1].tier, wide=True),
    Column("STATE", lambda row: row[1].state if row[1].outcome is None else row[1].outcome.status),
    Column("REASON", lambda row: None if row[1].outcome is None else row[1].outcome.reason, flexible=True),
    Column("EXIT", lambda row: row[1].exit_code, right=True),
    Column("CHECK", lambda row: None if row[1].check is None else row[1].check.status),
    Column("STARTED", lambda row: table.ago(row[1].started_at)),
    Column("TOOK", lambda row: _took(row[1]), right=True),
    Column(
        "TOKENS",
        lambda row: None if row[1].outcome is None else row[1].outcome.tokens.output,
        wide=True,
        right=True,
    ),
    Column("USD", lambda row: _cost(row[1]), wide=True, right=True),
)
_RESUMED = Table[NumberedRun](
    Column("ID", lambda row: short_id(row[1].id)),
    Column("RESUMES", lambda row: short_id(row[1].resumes or "")),
)


def runs_table(runs: Sequence[RunView]) -> Table[NumberedRun]:
    """Return the columns of the table of a task's runs, each with its number; ids only if a run continues the
    conversation of another."""
    resumed = _RESUMED.columns if any(run.resumes is not None for run in runs) else ()
    return Table(*_RUNS.columns, *resumed)
