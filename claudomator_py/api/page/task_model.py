"""The model of the page of one task."""

from collections.abc import Mapping, Sequence

from claudomator_py.api.page.formatting import meaning_of, model_text, short_line, tokens_text
from claudomator_py.api.page.rows import RUN_TONES, TONES, Action, TaskRow, actions_of, row_of, words_of
from claudomator_py.domain.blocked_words import wait_of
from claudomator_py.domain.budget import cost_text, with_unknown
from claudomator_py.domain.principal import INBOX, OPERATOR
from claudomator_py.domain.units import counted, format_instant
from claudomator_py.domain.wording import Piece, Sentence
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.events import EventView, event_detail, event_title
from claudomator_py.resources.routing import RouteView
from claudomator_py.resources.runs import OutcomeView, RunView
from claudomator_py.resources.specialists.page import url_of
from claudomator_py.resources.tasks import DependencyView, TaskView, WhyView
from claudomator_py.surface.table import Link
from claudomator_py.values import dataclass

_CHECK_TONES = {"passed": "good", "failed": "bad", "lost": "bad", "running": "busy"}
_ELSEWHERE = frozenset({"name", "instructions"})


@dataclass(frozen=True, slots=True)
class Moment:
    """One event."""

    at: str
    """An instant."""
    title: str
    tone: str
    detail: str | None
    until: str | None
    """An instant, where the event names one."""


@dataclass(frozen=True, slots=True)
class BranchEnd:
    """What became of the task's branch last, and the command that reverts it."""

    at: str
    """An instant."""
    words: str
    undo: str | None


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run, and what the page says of it in words."""

    run: RunView
    title: str
    tone: str
    outcome: str
    meaning: str | None
    detail: str | None
    reset: Sentence | None
    check_tone: str


@dataclass(frozen=True, slots=True)
class TaskPage:
    """The whole page."""

    task: TaskView
    row: TaskRow
    title: str
    wait: Sentence | None
    actions: tuple[Action, ...]
    facts: Sequence[tuple[str, str | Sequence[Link] | None]]
    specialist: Link | None
    sentences: tuple[str, ...]
    route: RouteView | None
    restart_url: str | None
    decision: DecisionView | None
    """The last decision."""
    runs: tuple[RunEntry, ...]
    moments: tuple[Moment, ...]
    shown: RunView | None
    """The run whose log is shown."""
    log_title: str
    check: bool
    """Whether the log of its check is shown instead."""
    instructions: str | None
    content: tuple[tuple[str, str], ...]
    risk: str | None
    branch_end: BranchEnd | None

    @property
    def settings(self) -> dict[str, str]:
        """The task's content besides its instructions, in words."""
        return dict(self.content)


def task_page_of(why: WhyView, runs: Sequence[RunView], run_id: str | None, *, check: bool = False) -> TaskPage:
    """Return the page. run_id: the run whose log is shown; None: the last one. check: show the log of its check."""
    task = why.task
    row = row_of(task)
    shown = next((run for run in runs if run.id == run_id), runs[-1] if runs else None)
    check = check and shown is not None and shown.check is not None
    spec = task.spec or {}
    instructions = spec.get("instructions")
    actions = actions_of(task)
    return TaskPage(
        task=task,
        row=row,
        title=f"{task.name}: {row.state}",
        wait=wait_of(task.blocked, task.reason_text),
        actions=actions,
        facts=_facts(task, shown),
        specialist=_specialist(why),
        sentences=why.sentences,
        route=why.routing if why.routing is not None and why.routing.candidates else None,
        restart_url=next((action.url for action in actions if action.url.endswith("/restart")), None),
        decision=why.decisions[0] if why.decisions else None,
        runs=tuple(_entry(number, run) for number, run in reversed(list(enumerate(runs, 1)))),
        moments=tuple(map(_moment, reversed(why.events))),
        shown=shown,
        log_title="" if shown is None else _log_title(runs.index(shown) + 1, shown, check=check),
        check=check,
        instructions=instructions if isinstance(instructions, str) else None,
        content=tuple(
            (key, _worded(value)) for key, value in spec.items() if key not in _ELSEWHERE and not _empty(value)
        ),
        risk=None if why.routing is None or why.routing.risk is None else why.routing.risk.value,
        branch_end=_branch_end(why.events),
    )


def _branch_end(events: Sequence[EventView]) -> BranchEnd | None:
    last = next((event for event in reversed(events) if event.kind in ("merged", "discarded")), None)
    if last is None:
        return None
    undo, branch, into = last.data.get("undo"), last.data.get("branch"), last.data.get("into")
    words = f"Merged into {into}" if last.kind == "merged" else f"Discarded {branch}; its contents are kept"
    return BranchEnd(last.at, words, undo if isinstance(undo, str) else None)


def _facts(task: TaskView, shown: RunView | None) -> Sequence[tuple[str, str | Sequence[Link] | None]]:
    return [
        ("Last ran on" if task.state in ("QUEUED", "WAITING") and task.runs else "Agent", task.agent),
        ("Tier and model", model_text(task.tier, task.model)),
        ("Reach", None if task.reach_origin is None else task.reach_origin.text),
        ("Directory", task.working_dir or (shown.scratch_dir if shown is not None else None)),
        ("Branch", task.branch),
        ("Continues", None if task.continues is None else [_needed(task.continues)]),
        ("Depends on", [_needed(other) for other in task.depends_on if other != task.continues]),
        ("Priority", task.priority if task.priority != "normal" else None),
        ("From", task.file_path or task.source),
        ("By", None if task.creator in (OPERATOR.id, INBOX.id) else task.creator),
        ("Organisation", task.organisation),
        ("Tokens", tokens_text(task.tokens)),
        ("Cost", cost_text(task.cost_usd, task.unpriced)),
        ("Budget", None if task.budget is None else with_unknown(task.budget.text, task.budget.unknown)),
        ("Restarts", f"{task.generation - 1}, {counted(task.runs, 'run')} in all" if task.generation > 1 else None),
    ]


def _specialist(why: WhyView) -> Link | None:
    name, routing = why.task.specialist, why.routing
    if name is None:
        return None
    return Link(name, url_of(name) if routing is not None and routing.specialist == name else None)


def _needed(dependency: DependencyView) -> Link:
    words = f"{dependency.name} ({words_of(dependency.state) if dependency.state else 'not seen yet'})"
    return Link(words, None if dependency.task_id is None else f"/tasks/{dependency.task_id}")


def _entry(number: int, run: RunView) -> RunEntry:
    outcome = run.outcome
    status = outcome.status if outcome is not None else run.state
    again = f", after restart {run.generation - 1}" if run.generation > 1 else ""
    return RunEntry(
        run=run,
        title=f"Run {number}{again}",
        tone=RUN_TONES.get(status, "busy" if outcome is None and run.state not in ("ended", "revoked") else "off"),
        outcome="given up before it started" if run.state == "revoked" else words_of(status),
        meaning=meaning_of(outcome.reason) if outcome is not None else None,
        detail=_failure_text(run),
        reset=_reset(outcome),
        check_tone="off" if run.check is None else _CHECK_TONES.get(run.check.status, "off"),
    )


def _failure_text(run: RunView) -> str | None:
    """Return the agent's error, or the end of a failed check's output."""
    if run.check is not None and run.check.status == "failed":
        return run.check.output
    return run.outcome.detail if run.outcome is not None else None


def _reset(outcome: OutcomeView | None) -> Sentence | None:
    if outcome is None or outcome.reset_at is None:
        return None
    named = ", ".join(part for part in (outcome.limit, outcome.provenance) if part)
    return (Piece("Resets "), Piece(instant=outcome.reset_at), Piece(f" ({named})" if named else ""))


def _log_title(number: int, run: RunView, *, check: bool) -> str:
    return f"Check of run {number}" if check else f"Run {number} on {run.agent}"


def _empty(value: object) -> bool:
    return value is None or value in ("", [], {}, ())


def _worded(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key}: {_worded(item)}" for key, item in value.items() if not _empty(item))
        case list() | tuple():
            return ", ".join(_worded(item) for item in value)
    return str(value)


def _moment(event: EventView) -> Moment:
    until, state = event.data.get("until"), event.data.get("state")
    tone = TONES.get(state, "off") if event.kind == "state" and isinstance(state, str) else "off"
    # What was asked for says who asked; what follows from it does not name them again.
    who = [f"by {event.by}"] if event.by is not None and event.kind != "state" else []
    detail = short_line(", ".join([part for part in (event_detail(event.data), *who) if part]))
    at = format_instant(until) if isinstance(until, int) else None
    return Moment(event.at, event_title(event.kind, event.data), tone, detail, at)
