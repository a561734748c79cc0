"""A task as a row of the front page."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from zlib import crc32

from claudomator_py.api.page.formatting import model_text, short_line, took
from claudomator_py.domain.blocked_words import brief_of, wait_of
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.wording import Piece, Sentence, said, worded
from claudomator_py.resources.tasks import TaskView, said_together, wider_reason
from claudomator_py.surface.table import Fold, folded
from claudomator_py.values import dataclass

# How a state looks. Its word is always shown as well, as some people cannot see the colour.
TONES = {
    "WAITING": "idle",
    "QUEUED": "idle",
    "RUNNING": "busy",
    "NEEDS_INPUT": "ask",
    "COMPLETED": "good",
    "FAILED": "bad",
    "CANCELLED": "off",
}
RUN_TONES = {
    "succeeded": "good",
    "failed": "bad",
    "lost": "bad",
    "limited": "ask",
    "needs_input": "ask",
    "cancelled": "off",
    "running": "busy",
}
"""How a run looks that ended so, or is running."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the API offers for this task. id: of its link, by which the link keeps the focus when the page is
    refreshed.
    """

    id: str
    label: str
    url: str
    grave: bool


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task, and what one line of a list says of it in words."""

    task: TaskView
    url: str
    state: str
    label: str
    """The state, or something more specific."""
    tone: str
    place: str | None
    """The name of its working directory."""
    branch: str
    """Its branch there, preceded by a dot; empty: none."""
    is_own_branch: bool
    """Whether the branch is named after the task, and so tells nothing new."""
    agent: str | None
    model: str | None
    wait: Sentence | None
    code: str | None
    line: str | None
    stamp: str
    """When it got into this state."""
    since: bool
    """Whether it is in this state since then."""
    took: str | None
    """The duration of its last run, once the task has ended."""
    cost: str | None
    is_doubtful: bool
    """Whether it claims changes that it did not make."""
    priority: str | None
    actions: tuple[Action, ...]
    """What can be done if it needs a person, runs or has failed."""
    answers: bool
    """Whether the row has a field for an answer."""
    folds: str | None
    """Its words as one of several tasks with the same reason; None: it always stands alone."""
    wider: str | None
    """The reason without the names in it; None: it has none."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are one line until it is opened."""

    id: str
    rows: tuple[TaskRow, ...]
    words: str | None = None
    """The words of that line; None: a single row."""
    wait: Sentence | None = None
    """Their common reason."""
    unlisted: int = 0
    """How many more tasks there are that have no row."""

    @property
    def size(self) -> int:
        """The number of tasks."""
        return len(self.rows) + self.unlisted


def grouped(rows: Sequence[TaskRow], unlisted: Mapping[str, int]) -> tuple[RowGroup, ...]:
    """Return the rows in order, with those of equal reasons together at the place of the first. unlisted: the number of
    further tasks like one of these, by its id."""
    return tuple(map(_group, folded(rows, _reason, lambda row: row.task.id, unlisted, _wider)))


def _group(fold: Fold[TaskRow]) -> RowGroup:
    first = fold.rows[0]
    if fold.key is None:
        return RowGroup(first.task.id, fold.rows)
    words = f"{fold.size:,} {first.folds}"
    wait = said(first.wider) if first.wider is not None and fold.key == _wider(first) else first.wait
    return RowGroup(f"fold-{crc32(repr(fold.key).encode()):x}", fold.rows, words, wait, fold.unlisted)


def _reason(row: TaskRow) -> tuple[str | None, ...] | None:
    """What makes rows alike; None: it stands by itself."""
    wording = None if row.wait is None else worded(row.wait)
    return (row.folds, row.code, wording) if row.folds and (row.code or wording) else None


def _wider(row: TaskRow) -> tuple[str | None, ...] | None:
    """What makes rows alike whose reasons name different tasks; None: nothing."""
    return (row.folds, row.code, row.wider) if row.folds and row.wider else None


def row_of(task: TaskView) -> TaskRow:
    """Return the row of a task."""
    running, asks = task.state == "RUNNING", task.state == "NEEDS_INPUT"
    line = short_line(task.result_text) if task.state == "COMPLETED" else None
    if running and task.progress is not None:
        line = short_line(task.progress.line)
    # A question may have many lines, which are all on the task's own page.
    wait = brief_of(task.blocked, short_line(task.reason_text) if asks else task.reason_short)
    code = task.reason if task.state in ("FAILED", "QUEUED", "WAITING") else None
    if wait is None and task.blocked is not None:  # no column here names the agent whose limit it is
        wait, code = wait_of(task.blocked, None), None
    if wait is None and task.waiting_until is not None:
        wait = (Piece("until "), Piece(instant=task.waiting_until))
    label = (task.phase if running else task.reason if asks else None) or words_of(task.state)
    is_doubtful = task.is_doubtful and task.state == "COMPLETED"
    # Its next agent is not decided yet, wherever it ran before.
    undecided = task.state in ("QUEUED", "WAITING") and task.runs > 0
    return TaskRow(
        task=task,
        url=f"/tasks/{task.id}",
        state=words_of(task.state),
        label=label,
        tone=TONES[task.state],
        place=PurePath(task.working_dir).name if task.working_dir else None,
        branch=f" · {task.branch}" if task.branch else "",
        is_own_branch=task.branch is not None and task.name in task.branch,
        agent=task.agent_hint if undecided else task.agent,
        model=None if undecided else model_text(task.tier, task.model),
        wait=wait,
        code=code,
        line=line,
        stamp=(task.started_at or task.updated_at) if running else task.updated_at,
        since=running or task.state in ("WAITING", "QUEUED", "NEEDS_INPUT"),
        took=took(task.started_at, task.updated_at) if task.started_at and task.state in ENDED else None,
        cost=cost_text(task.cost_usd, task.unpriced),
        is_doubtful=is_doubtful,
        priority=task.priority if task.priority != "normal" else None,
        actions=_row_actions(task),
        answers="answer" in task.available_actions and task.asks is not None and task.asks.kind == "question",
        folds=said_together(task),
        wider=wider_reason(task),
    )


def _row_actions(task: TaskView) -> tuple[Action, ...]:
    """Return the actions offered in a list: what asks or has failed needs one, what runs may have to be stopped."""
    if task.state == "RUNNING":
        return tuple(action for action in actions_of(task) if action.id == "do-cancel")
    return actions_of(task) if task.state in ("NEEDS_INPUT", "FAILED") else ()


def words_of(state: str, number: int = 1) -> str:
    """Return the state of that number of tasks in words: ``needs input``, ``need input``."""
    words = state.replace("_", " ").lower()
    return words if number == 1 else words.replace("needs", "need")


def actions_of(task: TaskView) -> tuple[Action, ...]:
    """Return the actions that the API offers, as far as this page knows them."""
    base = f"/tasks/{task.id}"
    known = {
        "answer": Action("do-answer", "Answer…", f"{base}/answer", grave=False),
        "approve": Action("do-approve", "Approve…", f"{base}/approve", grave=False),
        "reject": Action("do-reject", "Reject…", f"{base}/reject", grave=True),
        "cancel": Action("do-cancel", "Cancel…", f"{base}/cancel", grave=True),
        "restart": Action("do-restart", "Restart…", f"{base}/restart", grave=False),
        "restart_force": Action("do-restart", "Cancel and restart…", f"{base}/restart", grave=True),
    }
    return tuple(known[action] for action in task.available_actions if action in known)
