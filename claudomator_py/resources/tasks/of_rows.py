"""Builds the view of a task from its row and its runs. Views of ended tasks are cached while these rows are unchanged,
because most tasks in a list ended long ago."""

from collections.abc import Callable
from typing import Final

from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.requests import Progress
from claudomator_py.domain.routing import ReachOrigin
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.agents import HoldView
from claudomator_py.resources.runs import RunProgressView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.store.reads import TaskRuns
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Task
from claudomator_py.values import dataclass

MAX_KEPT: Final = 256
MAX_KEPT_TEXT: Final = 8 * 1024
"""Characters of a result; views with longer ones are not cached."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a task is in its state."""

    reason: str | None = None
    text: str | None = None
    short: str | None = None
    """A clause for lists; None if the reason is enough."""
    until_ms: int | None = None
    """When the state may change by itself."""
    holds: tuple[HoldView, ...] = ()
    """Holds that keep it queued."""
    blocked: Blocked | None = None


@dataclass(frozen=True, slots=True)
class TaskRows:
    """A task with what its view is made from."""

    task: Task
    spec: TaskSpec
    runs: TaskRuns
    origin: ReachOrigin | None
    """The reach of its runs; None if there is none, or if it does not bind the last run's agent."""
    conceals: bool
    """Whether its specialist is hidden from the caller."""


class EndedViews:
    """Caches views of tasks that were completed or cancelled. Safe to use from any thread."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, TaskView]] = {}

    def of(self, rows: TaskRows, make: Callable[[], TaskView]) -> TaskView:
        """Return the cached view or make it. It must depend only on these rows: not on others or the time."""
        task, spec, runs = rows.task, rows.spec, rows.runs
        if task.state not in ("COMPLETED", "CANCELLED") or task.thread or spec.prerequisites or spec.budget.units:
            return make()
        sums = (runs.number, runs.input_tokens, runs.output_tokens, runs.cost_usd, runs.fees_usd, runs.unpriced)
        row = (vars(task), spec, sums, [vars(run) for run in runs.shown], rows.origin, rows.conceals)
        known = self._kept.get(task.id)
        if known is not None and known[0] == row:
            return known[1]
        made = make()
        if len(made.result_text or "") <= MAX_KEPT_TEXT:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[task.id] = row, made
        return made


def unreadable_view(task: Task) -> TaskView:
    """Return the view of a task whose row cannot be read."""
    text = "Its row in the database cannot be read: somebody has changed it by hand."
    return TaskView.of(
        None,
        id=task.id,
        name=task.name,
        version=0,
        state="FAILED",
        reason_text=text,
        reason_short="its row in the database cannot be read",
        priority="normal",
        created_at=task.created_ms,
        updated_at=task.updated_ms,
    )


def run_fields(runs: TaskRuns, outcome: Outcome | None, spec: TaskSpec) -> dict[str, object]:
    """Return the fields that come from the task's runs, or from its content if there are none."""
    fields: dict[str, object] = {
        "runs": runs.number,
        "tokens": Tokens(input=runs.input_tokens, output=runs.output_tokens),
        "cost_usd": _rounded(runs.cost_usd),
        "fees_usd": _rounded(runs.fees_usd),
        "unpriced": runs.unpriced,
    }
    if (last := runs.last) is None:
        return fields | {"agent": spec.agent.type, "tier": spec.agent.tier, "model": spec.agent.model}
    fields |= {"agent": last.agent, "tier": last.tier, "model": last.model, "started_at": last.started_ms}
    if last.live:
        progress = readable(Progress, last.progress)
        fields["progress"] = None if progress is None else RunProgressView.of(progress)
    if outcome is not None:
        fields |= {"result_text": outcome.text, "denials": outcome.denials}
        fields |= {"changes": outcome.task_changes_text, "is_doubtful": outcome.is_doubtful}
    return fields


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
