"""From rows to the shapes of the API."""

from collections.abc import Sequence

from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.lifecycle import available_actions
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.routing import ReachOrigin
from claudomator_py.domain.run import CheckResult
from claudomator_py.domain.run_requests import Progress
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.ports import RunHost
from claudomator_py.prompts.conversations import scratch_of
from claudomator_py.resources.agents.shape import BudgetView, HoldView
from claudomator_py.resources.runs.shape import InputView, OutcomeView, RunCheckView, RunProgressView, RunView
from claudomator_py.resources.tasks.shape import DependencyView, TaskView
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import state_of


def task_view(
    task: Task,
    spec: TaskSpec,
    runs: Sequence[Run],
    *,
    reason: str | None,
    blocked: Blocked | None,
    reason_text: str | None,
    reason_short: str | None,
    until_ms: int | None,
    holds: tuple[HoldView, ...] = (),
    asks: InputView | None = None,
    dependencies: Sequence[tuple[str, str | None, str | None]] = (),
    branch: str | None = None,
    budget: BudgetView | None = None,
    origin: ReachOrigin | None = None,
    warnings: Sequence[str] = (),
    with_spec: bool = False,
    conceals: bool = False,
) -> TaskView:
    """A task. runs: all of them, oldest first. reason to until_ms, and holds: why it is where it is. conceals: whether
    its specialist does not exist for whoever asks."""
    last = runs[-1] if runs else None
    needs = [
        DependencyView.model_validate({"name": name, "task_id": bound, "state": state})
        for name, bound, state in dependencies
    ]
    outcomes = [outcome for run in runs if (outcome := readable(Outcome, run.outcome)) is not None]
    last_outcome = None if last is None else readable(Outcome, last.outcome)
    return TaskView.of(
        task,
        reason=reason,
        reason_text=reason_text,
        reason_short=reason_short,
        blocked=blocked,
        waiting_until=until_ms,
        asks=asks,
        holds=holds,
        budget=budget,
        priority=Priority(task.priority).label,
        working_dir=spec.working_dir,
        reach=None if origin is None else origin.reach,
        reach_source=None if origin is None else origin.source,
        reach_rule=None if origin is None else origin.rule,
        branch=branch,
        agent_hint=spec.agent.type,
        agent=last.agent if last is not None else spec.agent.type,
        tier=last.tier if last is not None else spec.agent.tier,
        model=last.model if last is not None else spec.agent.model,
        attempts=task.attempt,
        runs=len(runs),
        result_text=last_outcome.text if last_outcome is not None else None,
        denials=last_outcome.denials if last_outcome is not None else 0,
        tokens=_sum_tokens(outcomes),
        cost_usd=_sum_usd([outcome.cost_usd for outcome in outcomes]),
        fees_usd=_sum_usd([outcome.fee.usd for outcome in outcomes if outcome.fee is not None]),
        started_at=last.started_ms if last is not None else None,
        available_actions=available_actions(state_of(task), begun=asks is None or asks.run_id is not None),
        depends_on=tuple(needs),
        continues=next((one for one in needs if one.name == spec.continues), None),
        progress=_progress(last) if last is not None and last.live else None,
        spec=shown_document(spec) if with_spec else None,
        warnings=tuple(warnings),
        **({"specialist": None} if conceals else {}),
    )


def run_view(run: Run, host: RunHost) -> RunView:
    """Return the shape of a run. host: where it took place."""
    checked, outcome = readable(CheckResult, run.check_result), readable(Outcome, run.outcome)
    check = None if checked is None else RunCheckView.of(checked)
    shown = OutcomeView.of(outcome, detail=outcome.error) if outcome is not None else None
    return RunView.of(
        run,
        check=check,
        outcome=shown,
        progress=_progress(run),
        asked=tuple(run.asked or ()),
        scratch_dir=host.scratch(scratch_of(run)),
        output_kept=run.live or host.has_directory(run.id),
    )


def _progress(run: Run) -> RunProgressView | None:
    progress = readable(Progress, run.progress)
    return None if progress is None else RunProgressView.of(progress)


def _sum_tokens(outcomes: Sequence[Outcome]) -> Tokens:
    inputs = [outcome.tokens.input for outcome in outcomes if outcome.tokens.input is not None]
    outputs = [outcome.tokens.output for outcome in outcomes if outcome.tokens.output is not None]
    return Tokens(input=sum(inputs) if inputs else None, output=sum(outputs) if outputs else None)


def _sum_usd(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return round(sum(known), 6) if known else None
