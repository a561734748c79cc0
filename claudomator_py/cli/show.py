"""``show``, ``result`` and ``why``: one task, what it handed back, and why it is where it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Column, Format, FormatOption, fail, fields, heading, note, out, out_json, render
from claudomator_py.cli.times import ago, clock, localized, moment, now_ms, short_duration, until, why_words
from claudomator_py.domain.blocked_words import predicate
from claudomator_py.domain.budget import Unit, amount_text, with_unknown
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.principal import INBOX, OPERATOR
from claudomator_py.domain.text import plain
from claudomator_py.domain.units import parse_instant, short_id
from claudomator_py.domain.wording import worded
from claudomator_py.resources.decisions.shape import CandidateView, DecisionView
from claudomator_py.resources.events.cli import events_of_task
from claudomator_py.resources.runs.shape import InputView, RunCheckView, RunView
from claudomator_py.resources.tasks.shape import TaskView, WorktreeView

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

_COLUMNS = (Column("COMMAND", flexible=True), Column("RESULT", flexible=True))


def check_took(check: RunCheckView) -> str:
    """How long it took, or has taken so far."""
    ended = now_ms() if check.ended_at is None else parse_instant(check.ended_at)
    return short_duration(max(0, ended - parse_instant(check.started_at)))


def check_section(check: RunCheckView) -> str:
    """Its heading, and its commands with what came of each."""
    time = f"{'for' if check.ended_at is None else 'after'} {check_took(check)}"
    title = heading(f"CHECK {check.status.upper()} {time}", "FAILED" if check.status == "failed" else "")
    return f"{title}\n{render(_COLUMNS, check.verdicts, indent=2)}"


TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="A task id, id prefix or name.", autocompletion=completion.tasks)
]
_RUN_COLUMNS = (
    Column("RUN", wide=True),
    Column("ATTEMPT", right=True),
    Column("RESTARTS", wide=True, right=True),
    Column("AGENT"),
    Column("MODEL"),
    Column("TIER", wide=True),
    Column("STATE"),
    Column("REASON", flexible=True),
    Column("EXIT", right=True),
    Column("CHECK"),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("TOKENS", wide=True, right=True),
    Column("USD", wide=True, right=True),
)
_RESUMED_COLUMNS = (Column("ID"), Column("RESUMES"))


@connected
def show(client: "Client", task: TaskArgument, output: FormatOption = Format.TABLE) -> None:
    """Show one task and its runs."""
    found = client.task(task)
    if output is Format.JSON:
        out_json(found)
        return
    runs = client.runs(found.id)
    parts = [_summary(found, runs)]
    if found.asks is not None:
        parts.append(f"{heading('ASKS', found.state)}\n{_asks(found, found.asks)}")
    if runs:
        parts.append(f"{heading('RUNS')}\n{_runs_table(runs, wide=output is Format.WIDE)}")
    if (check := next((run.check for run in reversed(runs) if run.check is not None), None)) is not None:
        parts.append(check_section(check) + (f"\n\n{plain(check.output).rstrip()}" if check.output else ""))
    instructions = (found.spec or {}).get("instructions")
    if isinstance(instructions, str):
        parts.append(f"{heading('INSTRUCTIONS')}\n{plain(instructions).rstrip()}")
    if found.result_text:
        parts.append(f"{heading('RESULT')}\n{plain(found.result_text).rstrip()}")
    out("\n\n".join(parts))


@connected
def result(client: "Client", task: TaskArgument, output: FormatOption = Format.TABLE) -> None:
    """Print the result of a task. Exits with 1 unless it completed."""
    found = client.task(task)
    if output is Format.JSON:
        out_json(found)
    elif found.result_text:
        out(plain(found.result_text))
    if found.worktree is not None and output is not Format.JSON:
        note(f"On branch {found.branch}: {tree_text(found.worktree)}.")
    if found.working_dir is None and output is not Format.JSON:
        scratch = scratch_folder(client.runs(found.id))
        if scratch is not None and not _is_empty(Path(scratch)):
            note(f"Its files: {scratch}")
    if found.state not in ENDED:
        fail(f"{found.name} has not ended; it is {found.state}.", f"See `claudomator why {found.name}`.")
    if found.state == "FAILED":
        meaning = f" {found.reason_text}" if found.reason_text else ""
        fail(f"{found.name} failed: {found.reason}.{meaning}", f"See `claudomator logs {found.name}`.")
    if found.state == "CANCELLED":
        fail(f"{found.name} was cancelled.", f"Run it again with `claudomator restart {found.name}`.")


def _is_empty(folder: Path) -> bool:
    """Return whether nothing is in it but what agents keep for themselves, in hidden files; False also where it cannot
    be seen from here."""
    try:
        return all(path.name.startswith(".") for path in folder.iterdir())
    except OSError:
        return False


def _asks(task: TaskView, asks: InputView) -> str:
    """What a person is asked, and what allows what its agent was denied."""
    lines = [plain(asks.text).rstrip()]
    for one in asks.tools:
        lines += _allowed(one)
    lines += [f"approving also allows it to run exactly: {plain(one)}" for one in asks.commands]
    if asks.until is not None:
        lines.append(f"it fails if nobody acts by then: {until(asks.until, now_ms())}")
    if asks.kept_until is not None:
        lines.append(f"its directory is kept for it ({until(asks.kept_until, now_ms())})")
    actions = [action for action in task.available_actions if action in ("answer", "approve", "reject")]
    lines += [f"claudomator {action} {task.name}{' TEXT' if action == 'answer' else ''}" for action in actions]
    return "\n".join(lines)


def _allowed(call: Denied) -> list[str]:
    """What approving it allows: of a call beyond the reach all of it, word for word."""
    if call.rule is None:
        return []
    if call.beyond is None:
        return [f"approving allows {plain(call.rule)}"]
    shown = [f"  {line}" for line in plain(call.input).splitlines()]
    return [f"approving allows exactly this call of {plain(call.tool)}:", *shown, f"because {plain(call.beyond)}"]


def tree_text(tree: WorktreeView) -> str:
    """What is in a work tree that its repository does not have, in words, and when that was so."""
    words = [plain(tree.detail)] if tree.standing == "unknown" and tree.detail else []
    if tree.commits:
        words.append("1 commit" if tree.commits == 1 else f"{tree.commits} commits")
    if tree.changed:
        words.append(f"{'1 file' if tree.changed == 1 else f'{tree.changed} files'} not committed")
    seen = "" if tree.seen_at is None else f", seen {ago(tree.seen_at, now_ms())}"
    return (f"{tree.standing} ({', '.join(words)})" if words else str(tree.standing)) + seen


def scratch_folder(runs: Sequence[RunView]) -> str | None:
    """Return the scratch folder that the last run worked in, if it is there."""
    return runs[-1].scratch_dir if runs else None


def _directory(task: TaskView, runs: Sequence[RunView]) -> str:
    if task.working_dir is not None:
        return task.working_dir
    if not runs:
        return "a scratch folder of each run"
    return scratch_folder(runs) or "a scratch folder, which was removed"


def _summary(task: TaskView, runs: Sequence[RunView]) -> str:
    now = now_ms()
    waits = f" ({until(task.waiting_until, now)})" if task.waiting_until else ""
    others = [one for one in task.depends_on if one != task.continues]
    needs = ", ".join(f"{one.name} ({one.state or 'not seen yet'})" for one in others)
    goes_on = "" if task.continues is None else f"{task.continues.name} ({task.continues.state or 'not seen yet'})"
    used = [f"{task.tokens.input or 0} in, {task.tokens.output or 0} out"] if task.tokens.output is not None else []
    ran_on = "last ran on" if task.state in ("QUEUED", "WAITING") and task.runs else "agent"
    fees = "" if task.fees_usd is None else f", {amount_text(Unit.USD, task.fees_usd)} of it for the specialist"
    used += [f"{amount_text(Unit.USD, task.cost_usd)} USD{fees}"] if task.cost_usd is not None else []
    return fields(
        [
            ("name", task.name),
            ("id", task.id),
            ("state", task.state + (f", {task.phase}" if task.phase else "") + waits),
            ("why", why_words(task, now)),
            ("progress", "" if task.progress is None else f"{task.progress.line} ({ago(task.progress.at, now)})"),
            ("until", clock(task.waiting_until, now)),
            (ran_on, " ".join(part for part in (task.agent, task.model, task.tier and f"({task.tier})") if part)),
            ("specialist", task.specialist or ""),
            ("priority", task.priority),
            ("tags", ", ".join(task.tags)),
            ("directory", _directory(task, runs)),
            ("reach", "" if task.reach_origin is None else task.reach_origin.text),
            ("branch", task.branch or ""),
            ("work tree", "" if task.worktree is None else f"{tree_text(task.worktree)}: {task.worktree.path}"),
            ("changes", "" if task.changes is None else f"{plain(task.changes)} (see `claudomator diff {task.name}`)"),
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
            ("you can", ", ".join(task.available_actions).replace("restart_force", "restart --force")),
        ]
    )


def _attempts(task: TaskView) -> str:
    if task.generation == 1:
        return str(task.attempts)
    return f"{task.attempts} since restart {task.generation - 1}; {_runs(task.runs)} in all"


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _runs_table(runs: Sequence[RunView], *, wide: bool) -> str:
    now = now_ms()
    rows = []
    # A run's id is shown where another one continues in its conversation.
    resumed = any(run.resumes is not None for run in runs)
    for number, run in enumerate(runs, 1):
        outcome = run.outcome
        ended = now if run.ended_at is None else parse_instant(run.ended_at)
        tokens = None if outcome is None else outcome.tokens.output
        cost = None if outcome is None else outcome.cost_usd
        rows.append(
            (
                run.id,
                str(number),
                str(run.generation - 1),
                run.agent,
                run.model or "",
                run.tier or "",
                run.state if outcome is None else outcome.status,
                "" if outcome is None or outcome.reason is None else outcome.reason,
                "" if run.exit_code is None else str(run.exit_code),
                "" if run.check is None else run.check.status,
                ago(run.started_at, now),
                short_duration(max(0, ended - parse_instant(run.started_at))),
                "" if tokens is None else str(tokens),
                "" if cost is None else amount_text(Unit.USD, cost),
                *([short_id(run.id), short_id(run.resumes or "")] if resumed else []),
            )
        )
    return render((*_RUN_COLUMNS, *(_RESUMED_COLUMNS if resumed else ())), rows, wide=wide)


_CANDIDATES = (
    Column("AGENT"),
    Column("SLOTS", right=True),
    Column("LIMITED"),
    Column("VERDICT", flexible=True),
)


@connected
def why(client: "Client", task: TaskArgument, output: FormatOption = Format.TABLE) -> None:
    """Explain why a task is where it is."""
    found = client.why(task)
    if output is Format.JSON:
        out_json(found)
        return
    wide = output is Format.WIDE
    now = now_ms()
    parts = ["\n".join(localized(plain(sentence), now) for sentence in found.sentences)]
    for decision in found.decisions if wide else found.decisions[:1]:
        if decision.agents:
            title = f"AGENTS AT THE DECISION, {ago(decision.at, now)}"
            parts.append(f"{heading(title)}\n{_candidates_table(decision, wide=wide)}")
    if wide and found.events:
        parts.append(f"{heading('EVENTS')}\n{events_of_task(found.events)}")
    out("\n\n".join(parts))


def _candidates_table(decision: DecisionView, *, wide: bool) -> str:
    rows = [
        (
            candidate.agent,
            f"{candidate.active}/{candidate.max_concurrent}",
            _limited(candidate),
            _verdict(candidate, decision),
        )
        for candidate in decision.agents
    ]
    return render(_CANDIDATES, rows, wide=wide)


def _limited(candidate: CandidateView) -> str:
    if not candidate.limited:
        return "no"
    return until(candidate.limited_until, now_ms()) or "until released"


def _verdict(candidate: CandidateView, decision: DecisionView) -> str:
    if candidate.agent == decision.agent:
        return f"picked: {decision.reason}"
    if candidate.rejected is not None:
        now = now_ms()
        return worded(predicate(candidate.rejected), lambda instant: clock(instant, now))
    if candidate.rejected_because:
        return localized(candidate.rejected_because, now_ms())
    return "eligible" if candidate.eligible else "not eligible"
