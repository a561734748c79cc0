"""Builds the view of a task from its row and its runs. Views of ended tasks are cached while these rows are unchanged,
because most tasks in a list ended long ago."""

from collections.abc import Callable, Sequence
from typing import Final

from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.lifecycle import available_actions
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.requests import Progress
from claudomator_py.domain.routing import ReachOrigin
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.resources.agents import BudgetView, HoldView
from claudomator_py.resources.runs import InputView, RunProgressView
from claudomator_py.resources.tasks import DependencyView, TaskView
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.store.reads import TaskRuns
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import state_of
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


class EndedViews:
    """Caches views of tasks that were completed or cancelled. Safe to use from any thread."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, TaskView]] = {}

    def of(
        self,
        task: Task,
        spec: TaskSpec,
        runs: TaskRuns,
        *,
        origin: ReachOrigin | None,
        conceals: bool,
        make: Callable[[], TaskView],
    ) -> TaskView:
        """Return the cached view or make it. It must depend only on the arguments: not on other rows or the time."""
        if task.state not in ("COMPLETED", "CANCELLED") or task.thread or spec.prerequisites or spec.budget.units:
            return make()
        sums = (runs.number, runs.input_tokens, runs.output_tokens, runs.cost_usd, runs.fees_usd)
        row = (vars(task), spec, sums, [vars(run) for run in runs.shown], origin, conceals)
        known = self._kept.get(task.id)
        if known is not None and known[0] == row:
            return known[1]
        made = make()
        if len(made.result_text or "") <= MAX_KEPT_TEXT:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[task.id] = row, made
        return made


def task_view(
    task: Task,
    spec: TaskSpec,
    runs: TaskRuns,
    outcome: Outcome | None,
    why: Wait,
    *,
    asks: InputView | None = None,
    dependencies: Sequence[tuple[str, str | None, str | None]] = (),
    branch: str | None = None,
    budget: BudgetView | None = None,
    origin: ReachOrigin | None = None,
    warnings: Sequence[str] = (),
    with_spec: bool = False,
    conceals: bool = False,
) -> TaskView:
    """Return the view of a task. outcome: of its last run. conceals: whether its specialist is hidden from the
    caller."""
    needs = tuple(
        DependencyView.model_validate({"name": name, "task_id": bound, "state": state})
        for name, bound, state in dependencies
    )
    return TaskView.of(
        task,
        reason=why.reason,
        reason_text=why.text,
        reason_short=why.short,
        blocked=why.blocked,
        waiting_until=why.until_ms,
        asks=asks,
        holds=why.holds,
        budget=budget,
        priority=Priority(task.priority).label,
        working_dir=spec.working_dir,
        reach=None if origin is None else origin.reach,
        reach_source=None if origin is None else origin.source,
        reach_rule=None if origin is None else origin.rule,
        branch=branch,
        agent_hint=spec.agent.type,
        attempts=task.attempt,
        available_actions=available_actions(state_of(task), begun=asks is None or asks.run_id is not None),
        depends_on=needs,
        continues=next((dependency for dependency in needs if dependency.name == spec.continues), None),
        spec=shown_document(spec) if with_spec else None,
        warnings=tuple(warnings),
        **_of_runs(runs, outcome, spec),
        **({"specialist": None} if conceals else {}),
    )


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


def _of_runs(runs: TaskRuns, outcome: Outcome | None, spec: TaskSpec) -> dict[str, object]:
    """Return the fields that come from the task's runs, or from its content if there are none."""
    fields: dict[str, object] = {
        "runs": runs.number,
        "tokens": Tokens(input=runs.input_tokens, output=runs.output_tokens),
        "cost_usd": _rounded(runs.cost_usd),
        "fees_usd": _rounded(runs.fees_usd),
    }
    if (last := runs.last) is None:
        return fields | {"agent": spec.agent.type, "tier": spec.agent.tier, "model": spec.agent.model}
    fields |= {"agent": last.agent, "tier": last.tier, "model": last.model, "started_at": last.started_ms}
    if last.live:
        progress = readable(Progress, last.progress)
        fields["progress"] = None if progress is None else RunProgressView.of(progress)
    if outcome is not None:
        fields |= {"result_text": outcome.text, "denials": outcome.denials}
        fields |= {"changes": outcome.changes_text, "is_doubtful": outcome.is_doubtful}
    return fields


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
