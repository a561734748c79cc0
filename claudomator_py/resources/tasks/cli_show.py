"""``show``, ``result`` and ``why``: a task, its result and the reason for its state."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from claudomator_py.cli.connect import Client, connected
from claudomator_py.cli.output import (
    fail,
    fields,
    is_wide,
    note,
    out,
    out_json,
    section,
    table_section,
    wants_json,
    wrote_json,
)
from claudomator_py.cli.times import ago, clock, localized, moment, now_ms, until, why_words
from claudomator_py.domain.budget import cost_text, with_unknown
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.principal import INBOX, OPERATOR
from claudomator_py.domain.units import counted
from claudomator_py.domain.wording import worded
from claudomator_py.resources.decisions import CandidateView, DecisionView
from claudomator_py.resources.events.cli import EVENTS_OF_TASK
from claudomator_py.resources.runs import InputView, RunView
from claudomator_py.resources.runs.cli import check_section, runs_table
from claudomator_py.resources.tasks import TaskView, WorktreeView
from claudomator_py.resources.tasks.cli import TaskArgument
from claudomator_py.surface.table import Column, Table
from claudomator_py.texts import plain


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
        note(f"On branch {view.branch}: {_tree_text(view.worktree)}.")
    if view.working_dir is None and not wants_json():
        scratch = _scratch_folder(client.runs(view.id))
        if scratch is not None and not _is_empty(Path(scratch)):
            note(f"Its files: {scratch}")
    if view.state not in ENDED:
        fail(f"{view.name} has not ended; it is {view.state}.", f"See `claudomator why {view.name}`.")
    if view.state == "FAILED":
        meaning = f" {view.reason_text}" if view.reason_text else ""
        why = f": {view.reason}" if view.reason else ""
        fail(f"{view.name} failed{why}.{meaning}", f"See `claudomator why {view.name}`.")
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


def _tree_text(tree: WorktreeView) -> str:
    """Return in words what a work tree has that its repository lacks, and when this was checked."""
    words = [plain(tree.detail)] if tree.standing == "unknown" and tree.detail else []
    if tree.commits:
        words.append(counted(tree.commits, "commit"))
    if tree.changed:
        words.append(f"{counted(tree.changed, 'file')} not committed")
    seen = "" if tree.seen_at is None else f", seen {ago(tree.seen_at, now_ms())}"
    return (f"{tree.standing} ({', '.join(words)})" if words else str(tree.standing)) + seen


def _scratch_folder(runs: Sequence[RunView]) -> str | None:
    """Return the scratch folder of the last run, if it exists."""
    return runs[-1].scratch_dir if runs else None


def _agent(task: TaskView) -> str:
    parts = [part for part in (task.model, task.tier and f"({task.tier})") if part]
    return " ".join([task.agent or "any", *parts]) if task.agent or parts else ""


def _changes(task: TaskView) -> str:
    if task.changes is None:
        return ""
    # The remark on a doubtful result has parentheses of its own.
    diff = "" if task.is_doubtful or task.changes == "no changes" else f" (see `claudomator diff {task.name}`)"
    return f"{plain(task.changes)}{diff}"


def _check(task: TaskView) -> str:
    """What decides success, as long as no run says what came of it."""
    commands = (task.spec or {}).get("check")
    return "; ".join(plain(shlex.join(command)) for command in commands) if isinstance(commands, list) else ""


def _directory(task: TaskView, runs: Sequence[RunView]) -> str:
    if task.working_dir is not None:
        return task.working_dir
    if not runs:
        return "a scratch folder of each run"
    return _scratch_folder(runs) or "a scratch folder, which was removed"


def _summary(task: TaskView, runs: Sequence[RunView]) -> str:
    now = now_ms()
    waits = f" ({until(task.waiting_until, now)})" if task.waiting_until else ""
    others = [dependency for dependency in task.depends_on if dependency != task.continues]
    needs = ", ".join(f"{dependency.name} ({dependency.state or 'not seen yet'})" for dependency in others)
    goes_on = "" if task.continues is None else f"{task.continues.name} ({task.continues.state or 'not seen yet'})"
    used = [f"{task.tokens.input or 0:,} in, {task.tokens.output or 0:,} out"] if task.tokens.output is not None else []
    ran_on = "last ran on" if task.state in ("QUEUED", "WAITING") and task.runs else "agent"
    fees = "" if task.fees_usd is None else f", {cost_text(task.fees_usd)} of it for the specialist"
    used += [f"{cost}{fees}"] if (cost := cost_text(task.cost_usd, task.unpriced)) else []
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
            ("check", "" if any(run.check for run in runs) else _check(task)),
            ("branch", task.branch or ""),
            ("work tree", "" if task.worktree is None else f"{_tree_text(task.worktree)}: {task.worktree.path}"),
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


def _candidates(decision: DecisionView) -> Table[CandidateView]:
    now = now_ms()
    return Table(
        Column("AGENT", lambda candidate: candidate.agent),
        Column("SLOTS", lambda candidate: f"{candidate.active}/{candidate.max_concurrent}", right=True),
        Column(
            "LIMITED",
            lambda candidate: (until(candidate.limited_until, now) or "until released") if candidate.limited else "no",
        ),
        Column("VERDICT", lambda candidate: localized(worded(decision.verdict_on(candidate)), now), flexible=True),
    )
