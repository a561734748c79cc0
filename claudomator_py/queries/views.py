"""From rows to the shapes of the API."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a task is where it is."""

    reason: str | None = None
    text: str | None = None
    short: str | None = None
    """In a clause, for lists; None: the reason says enough there."""
    until_ms: int | None = None
    """When that may change by itself."""
    holds: tuple[HoldView, ...] = ()
    """Those that keep it queued."""
    blocked: Blocked | None = None


def task_view(
    task: Task,
    spec: TaskSpec,
    runs: Sequence[Run],
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
    """Return the shape of a task. runs: all of them, oldest first. conceals: whether its specialist does not exist for
    whoever asks."""
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
        continues=next((one for one in needs if one.name == spec.continues), None),
        spec=shown_document(spec) if with_spec else None,
        warnings=tuple(warnings),
        **_of_runs(runs, spec),
        **({"specialist": None} if conceals else {}),
    )


def _of_runs(runs: Sequence[Run], spec: TaskSpec) -> dict[str, object]:
    """What a task's runs say of it; where there are none, what is asked for."""
    outcomes = [outcome for run in runs if (outcome := readable(Outcome, run.outcome)) is not None]
    told: dict[str, object] = {
        "runs": len(runs),
        "tokens": _sum_tokens(outcomes),
        "cost_usd": _sum_usd([outcome.cost_usd for outcome in outcomes]),
        "fees_usd": _sum_usd([outcome.fee.usd for outcome in outcomes if outcome.fee is not None]),
    }
    if not runs:
        return told | {"agent": spec.agent.type, "tier": spec.agent.tier, "model": spec.agent.model}
    last = runs[-1]
    told |= {"agent": last.agent, "tier": last.tier, "model": last.model, "started_at": last.started_ms}
    if last.live:
        told["progress"] = _progress(last)
    if (ended := readable(Outcome, last.outcome)) is not None:
        changes = None if ended.changes is None else ended.changes.summary
        told |= {"result_text": ended.text, "denials": ended.denials, "changes": changes}
    return told


def run_view(run: Run, host: RunHost) -> RunView:
    """Return the shape of a run. host: where it took place."""
    checked, outcome = readable(CheckResult, run.check_result), readable(Outcome, run.outcome)
    check = None if checked is None else RunCheckView.of(checked)
    shown = OutcomeView.of(outcome, detail=outcome.error) if outcome is not None else None
    return RunView.of(
        run,
        check=check,
        outcome=shown,
        changes=None if outcome is None else outcome.changes,
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
