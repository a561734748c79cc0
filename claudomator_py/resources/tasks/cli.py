"""``list``, ``show``, ``result`` and ``why``: a task, its result and the reason for its state; tables of tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import (
    fail,
    fields,
    is_wide,
    json_text,
    note,
    out,
    out_json,
    section,
    table_section,
    table_text,
    wants_json,
    width,
    write,
    wrote_json,
)
from claudomator_py.cli.times import ago, clock, localized, moment, now_ms, past_time, until, why_words
from claudomator_py.domain.blocked_words import brief_of, predicate, sentence
from claudomator_py.domain.budget import Unit, amount_text, with_unknown
from claudomator_py.domain.lifecycle import ENDED, StateName
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.principal import INBOX, OPERATOR
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.text import one_line, plain
from claudomator_py.domain.units import counted, parse_instant
from claudomator_py.domain.wording import worded
from claudomator_py.resources.decisions import CandidateView, DecisionView
from claudomator_py.resources.events.cli import EVENTS_OF_TASK
from claudomator_py.resources.runs import InputView, RunView
from claudomator_py.resources.runs.cli import check_section, runs_table
from claudomator_py.resources.tasks import TaskView, WorktreeView, said_together
from claudomator_py.surface import table
from claudomator_py.surface.table import Column, Fold, Table, folded

_INDENT = 2
_NAMED = 2
"""How many tasks a folded line names."""
NARROWEST = 80
"""Width of wrapped text, in columns, if the terminal's width is unknown."""
TaskArgument = Annotated[str, completion.TASKS.argument("TASK", "A task id, id prefix or name.")]


@connected
def tasks(
    client: Client,
    state: Annotated[StateName | None, typer.Option(help="Only tasks in this state.", case_sensitive=False)] = None,
    repo: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only tasks that work in this directory, or below it.")
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            parser=past_time, metavar="TIME", help="Only tasks changed since, such as 22:00, 12h or 2026-11-27."
        ),
    ] = None,
    tag: Annotated[str | None, completion.TAGS.option("Only tasks with this tag.")] = None,
    agent: Annotated[str | None, completion.AGENTS.option("Only tasks that ran on this agent.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="List this many at most.")] = 50,
    json_fields: Annotated[
        str | None,
        typer.Option("--json", metavar="FIELDS", help="Print these fields as JSON, such as name,state,cost_usd."),
    ] = None,
) -> None:
    """List tasks, newest first, one line each."""
    wanted = json_fields.replace(" ", "").split(",") if json_fields is not None else []
    if unknown := [field for field in wanted if field not in TaskView.model_fields]:
        raise typer.BadParameter(f"a task has no {', '.join(unknown)}; it has {', '.join(TaskView.model_fields)}")
    listed = _listed(client, TaskFilter(state=state, tag=tag, agent=agent), repo, since)
    views = list(islice(listed, limit))
    if wanted:
        out(json_text([view.model_dump(mode="json", include=set(wanted)) for view in views]))
    else:
        write(views, lambda: list_text(views), "No task matches.")
    if views and next(listed, None) is not None:
        note(f"There are more than {limit}: narrow the list, or ask for more with --limit.")


def _listed(client: Client, wanted: TaskFilter, repo: Path | None, since: int | None) -> Iterator[TaskView]:
    place = None if repo is None else repo.expanduser().resolve()
    for view in client.all_tasks(wanted):
        if since is not None and parse_instant(view.updated_at) < since:
            continue
        if place is None or (view.working_dir is not None and _is_below(Path(view.working_dir), place)):
            yield view


def _is_below(folder: Path, place: Path) -> bool:
    try:
        return folder.expanduser().resolve().is_relative_to(place)
    except (OSError, RuntimeError):  # a loop of links
        return False


def list_text(views: Sequence[TaskView]) -> str:
    """Return one line per task."""
    now = now_ms()
    columns = Table[TaskView](
        Column("STATE", lambda view: view.state),
        Column("NAME", lambda view: view.name, flexible=True, least=40),
        Column("ID", lambda view: view.id or None, wide=True),
        Column("REPO", lambda view: view.working_dir and Path(view.working_dir).name, flexible=True, spare=4),
        Column("BRANCH", lambda view: view.branch, flexible=True, wide=True),
        Column("AGENT", lambda view: view.agent, spare=2),
        Column("AGE", lambda view: table.age(view.created_at), spare=1),
        Column("CHANGES", lambda view: view.changes, wide=True),
        Column("COST", lambda view: None if view.cost_usd is None else f"${view.cost_usd:.2f}", right=True, spare=3),
        Column("DETAIL", lambda view: _detail(view, now, with_changes=not is_wide()), flexible=True, least=44),
    )
    return table_text(columns, views)


def _detail(view: TaskView, now: int, *, with_changes: bool) -> str:
    """The changes of a completed task; otherwise the reason for its state."""
    detail = _why(view, now, whole=False)
    if with_changes and view.state == "COMPLETED" and view.changes is not None:
        return f"{view.changes}: {detail}" if detail else view.changes
    waits = view.waiting_until if view.state in ("WAITING", "QUEUED") else None
    at = "" if waits is None else clock(waits, now)
    return detail if at in detail else f"{detail} until {at}"


@connected
def show(client: Client, task: TaskArgument) -> None:
    """Show one task and its runs."""
    view = client.task(task)
    if wrote_json(view):
        return
    runs = client.runs(view.id)
    parts = [_summary(view, runs)]
    if view.asks is not None:
        parts += section("ASKS", _asks(view, view.asks), view.state)
    parts += table_section("RUNS", runs_table(runs), list(enumerate(runs, 1)))
    if (check := next((run.check for run in reversed(runs) if run.check is not None), None)) is not None:
        parts.append(check_section(check) + (f"\n\n{plain(check.output).rstrip()}" if check.output else ""))
    instructions = (view.spec or {}).get("instructions")
    if isinstance(instructions, str):
        parts += section("INSTRUCTIONS", plain(instructions).rstrip())
    parts += section("RESULT", plain(view.result_text or "").rstrip())
    out("\n\n".join(parts))


@connected
def result(client: Client, task: TaskArgument) -> None:
    """Print the result of a task. Exits with 1 unless it completed."""
    view = client.task(task)
    if wants_json():
        out_json(view)
    elif view.result_text:
        out(plain(view.result_text))
    if view.worktree is not None and not wants_json():
        note(f"On branch {view.branch}: {tree_text(view.worktree)}.")
    if view.working_dir is None and not wants_json():
        scratch = scratch_folder(client.runs(view.id))
        if scratch is not None and not _is_empty(Path(scratch)):
            note(f"Its files: {scratch}")
    if view.state not in ENDED:
        fail(f"{view.name} has not ended; it is {view.state}.", f"See `claudomator why {view.name}`.")
    if view.state == "FAILED":
        meaning = f" {view.reason_text}" if view.reason_text else ""
        why = f": {view.reason}" if view.reason else ""
        fail(f"{view.name} failed{why}.{meaning}", f"See `claudomator logs {view.name}`.")
    if view.state == "CANCELLED":
        fail(f"{view.name} was cancelled.", f"Run it again with `claudomator restart {view.name}`.")


def _is_empty(folder: Path) -> bool:
    """Return whether it has only hidden files, which agents keep for themselves; False if it cannot be read from
    here."""
    try:
        return all(path.name.startswith(".") for path in folder.iterdir())
    except OSError:
        return False


def _asks(task: TaskView, asks: InputView) -> str:
    """The question, and what an approval allows."""
    lines = [plain(asks.text).rstrip()]
    for call in asks.tools:
        lines += _allowed(call)
    lines += [] if asks.specialist is None else [f"approving gives it to {asks.specialist}"]
    lines += [f"approving also allows it to run exactly: {plain(command)}" for command in asks.commands]
    if asks.until is not None:
        lines.append(f"it fails if nobody acts by then: {until(asks.until, now_ms())}")
    if asks.kept_until is not None:
        lines.append(f"its directory is kept for it ({until(asks.kept_until, now_ms())})")
    actions = [action for action in task.available_actions if action in ("answer", "approve", "reject")]
    lines += [f"claudomator {action} {task.name}{' TEXT' if action == 'answer' else ''}" for action in actions]
    return "\n".join(lines)


def _allowed(call: Denied) -> list[str]:
    """What approving it allows. A call beyond the reach is shown in full, verbatim."""
    if call.rule is None:
        return []
    if call.beyond is None:
        return [f"approving allows {plain(call.rule)}"]
    shown = [f"  {line}" for line in plain(call.input).splitlines()]
    return [f"approving allows exactly this call of {plain(call.tool)}:", *shown, f"because {plain(call.beyond)}"]


def tree_text(tree: WorktreeView) -> str:
    """Return in words what a work tree has that its repository lacks, and when this was checked."""
    words = [plain(tree.detail)] if tree.standing == "unknown" and tree.detail else []
    if tree.commits:
        words.append(counted(tree.commits, "commit"))
    if tree.changed:
        words.append(f"{counted(tree.changed, 'file')} not committed")
    seen = "" if tree.seen_at is None else f", seen {ago(tree.seen_at, now_ms())}"
    return (f"{tree.standing} ({', '.join(words)})" if words else str(tree.standing)) + seen


def scratch_folder(runs: Sequence[RunView]) -> str | None:
    """Return the scratch folder of the last run, if it exists."""
    return runs[-1].scratch_dir if runs else None


def _agent(task: TaskView) -> str:
    parts = [part for part in (task.model, task.tier and f"({task.tier})") if part]
    return " ".join([task.agent or "any", *parts]) if task.agent or parts else ""


def _changes(task: TaskView) -> str:
    if task.changes is None:
        return ""
    # The remark on a doubtful result has parentheses of its own.
    diff = "" if task.is_doubtful else f" (see `claudomator diff {task.name}`)"
    return f"{plain(task.changes)}{diff}"


def _directory(task: TaskView, runs: Sequence[RunView]) -> str:
    if task.working_dir is not None:
        return task.working_dir
    if not runs:
        return "a scratch folder of each run"
    return scratch_folder(runs) or "a scratch folder, which was removed"


def _summary(task: TaskView, runs: Sequence[RunView]) -> str:
    now = now_ms()
    waits = f" ({until(task.waiting_until, now)})" if task.waiting_until else ""
    others = [dependency for dependency in task.depends_on if dependency != task.continues]
    needs = ", ".join(f"{dependency.name} ({dependency.state or 'not seen yet'})" for dependency in others)
    goes_on = "" if task.continues is None else f"{task.continues.name} ({task.continues.state or 'not seen yet'})"
    used = [f"{task.tokens.input or 0:,} in, {task.tokens.output or 0:,} out"] if task.tokens.output is not None else []
    ran_on = "last ran on" if task.state in ("QUEUED", "WAITING") and task.runs else "agent"
    fees = "" if task.fees_usd is None else f", ${amount_text(Unit.USD, task.fees_usd)} of it for the specialist"
    used += [f"${amount_text(Unit.USD, task.cost_usd)}{fees}"] if task.cost_usd is not None else []
    return fields(
        [
            ("name", task.name),
            ("id", task.id),
            ("state", task.state + (f", {task.phase}" if task.phase else "") + waits),
            ("why", why_words(task, now)),
            ("progress", "" if task.progress is None else f"{task.progress.line} ({ago(task.progress.at, now)})"),
            ("until", clock(task.waiting_until, now)),
            (ran_on, _agent(task)),
            ("specialist", task.specialist or ""),
            ("priority", task.priority),
            ("tags", ", ".join(task.tags)),
            ("directory", _directory(task, runs)),
            ("reach", "" if task.reach_origin is None else task.reach_origin.text),
            ("branch", task.branch or ""),
            ("work tree", "" if task.worktree is None else f"{tree_text(task.worktree)}: {task.worktree.path}"),
            ("changes", _changes(task)),
            ("continues", goes_on),
            ("depends on", needs),
            ("source", task.file_path or task.source),
            ("created by", "" if task.parent_run is None else f"run {task.parent_run}"),
            ("creator", "" if task.creator in (OPERATOR.id, INBOX.id) else task.creator),
            ("organisation", task.organisation or ""),
            ("attempts", _attempts(task)),
            ("used", "; ".join(used)),
            ("budget", "" if task.budget is None else with_unknown(task.budget.text, task.budget.unknown)),
            ("created", f"{moment(task.created_at)} ({ago(task.created_at, now)})"),
            ("changed", f"{moment(task.updated_at)} ({ago(task.updated_at, now)})"),
            ("version", str(task.version)),
            ("you can", ", ".join(_offers(task))),
        ]
    )


def _offers(task: TaskView) -> list[str]:
    """The commands that it allows."""
    offers = ["restart --force" if action == "restart_force" else action for action in task.available_actions]
    if task.state not in ("RUNNING", *ENDED):
        return [*offers, "edit"]
    return offers if task.state == "RUNNING" else [*offers, "edit (on its page)"]


def _attempts(task: TaskView) -> str:
    if task.generation == 1:
        return str(task.attempts)
    return f"{task.attempts} since restart {task.generation - 1}; {counted(task.runs, 'run')} in all"


@connected
def why(client: Client, task: TaskArgument) -> None:
    """Explain why a task is where it is."""
    explanation = client.why(task)
    if wrote_json(explanation):
        return
    now = now_ms()
    parts = ["\n".join(localized(plain(sentence), now) for sentence in explanation.sentences)]
    for decision in explanation.decisions if is_wide() else explanation.decisions[:1]:
        title = f"AGENTS AT THE DECISION, {ago(decision.at, now)}"
        parts += table_section(title, _candidates(decision), decision.agents)
    if is_wide():
        parts += table_section("EVENTS", EVENTS_OF_TASK, explanation.events)
    out("\n\n".join(parts))


def _verdict(candidate: CandidateView, decision: DecisionView) -> str:
    if candidate.agent == decision.agent:
        return f"picked: {decision.reason}"
    if candidate.rejected is not None:
        now = now_ms()
        return worded(predicate(candidate.rejected), lambda instant: clock(instant, now))
    if candidate.rejected_because:
        return localized(candidate.rejected_because, now_ms())
    return "eligible" if candidate.eligible else "not eligible"


def tasks_table(tasks: Sequence[TaskView], *, ids: Mapping[str, str] | None = None, known_state: bool = False) -> str:
    """Return a table of tasks, with times relative to now.

    ids: the short form of each id; in full if absent. known_state: show the state only when wide, as it is printed
    elsewhere.
    """
    now, short, wide = now_ms(), ids or {}, is_wide()
    columns = Table[TaskView](
        Column("NAME", lambda task: task.name, flexible=True, least=40),
        Column("ID", lambda task: task.id if wide else short.get(task.id, task.id)),
        Column("STATE", lambda task: None if known_state and not wide else task.state),
        Column("AGENT", lambda task: task.agent_hint if _undecided(task) else task.agent, spare=2),
        Column("MODEL", lambda task: None if _undecided(task) else task.model, wide=True),
        Column("PRIORITY", lambda task: task.priority, wide=True),
        Column("TAGS", lambda task: ",".join(task.tags), wide=True),
        Column("WHY", lambda task: _why(task, now, whole=wide), flexible=True, least=40),
        Column("UNTIL", lambda task: table.until(task.waiting_until)),
        Column("CHANGED", lambda task: table.ago(task.updated_at), spare=1),
        Column("DIRECTORY", lambda task: task.working_dir, wide=True),
    )
    return table_text(columns, tasks, indent=_INDENT)


def folds_text(folds: Iterable[Fold[TaskView]], now: int) -> list[str]:
    """Return a line for each group of similar tasks: ``58 wait: claude is limited (a, b and 56 more)``.

    now: epoch milliseconds.
    """
    lines: list[str] = []
    for fold in folds:
        first = fold.rows[0]
        named = [task.name for task in fold.rows[:_NAMED]]
        names = f"{', '.join(named)} and {fold.size - len(named):,} more"
        line = one_line(f"{fold.size:,} {said_together(first)}: {_reason(first, now)} ({names})")
        lines += wrapped(line, width() or NARROWEST)
    return lines


def wrapped(line: str, columns: int) -> list[str]:
    """Return the line in as many as are needed for that width, indented below a heading."""
    first, others = " " * _INDENT, " " * 2 * _INDENT
    return wrap(
        line, columns, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def folded_tasks(tasks: Sequence[TaskView], unlisted: Mapping[str, int], now: int) -> tuple[Fold[TaskView], ...]:
    """Return the tasks grouped by reason. unlisted: task id to the number of similar tasks that are not listed. now:
    epoch milliseconds."""

    def key(task: TaskView) -> tuple[str, str] | None:
        verb = said_together(task)
        return (verb, reason) if verb and (reason := _reason(task, now)) else None

    return folded(tasks, key, lambda task: task.id, unlisted)


def _reason(task: TaskView, now: int) -> str:
    """Why it is in its state, if no column shows until when."""
    if task.blocked is not None:
        text = brief_of(task.blocked, None) or sentence(task.blocked)
        return worded(text, lambda instant: clock(instant, now))
    return _why(task, now, whole=False)


def _undecided(task: TaskView) -> bool:
    """Whether its next agent is still to be decided, wherever it ran before."""
    return task.state in ("QUEUED", "WAITING") and task.runs > 0


def _why(task: TaskView, now: int, *, whole: bool) -> str:
    """Why it is in its state: in a clause, or in full."""
    if task.state == "RUNNING":
        if task.reason_text is not None:
            return task.reason_text
        return task.phase or "" if task.progress is None else task.progress.line
    if task.state == "NEEDS_INPUT":
        # The question comes first, and shows its kind by itself.
        return task.reason_text or task.reason or ""
    if task.state == "COMPLETED":
        return (task.reason_text if whole else task.reason_short) or ""
    wordy = task.state in ("WAITING", "QUEUED", "FAILED") and task.reason != "ready"
    return why_words(task, now, whole=whole) if wordy else task.reason or ""


def _candidates(decision: DecisionView) -> Table[CandidateView]:
    now = now_ms()
    return Table(
        Column("AGENT", lambda candidate: candidate.agent),
        Column("SLOTS", lambda candidate: f"{candidate.active}/{candidate.max_concurrent}", right=True),
        Column(
            "LIMITED",
            lambda candidate: (until(candidate.limited_until, now) or "until released") if candidate.limited else "no",
        ),
        Column("VERDICT", lambda candidate: _verdict(candidate, decision), flexible=True),
    )
