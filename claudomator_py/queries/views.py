"""From rows to the shapes of the API."""

from collections.abc import Sequence
from typing import Any

from claudomator_py.domain.agent import AgentSpec, Tier
from claudomator_py.domain.lifecycle import available_actions
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.run import CheckResult
from claudomator_py.domain.task import Priority, TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import (
    AgentView,
    BudgetView,
    CandidateView,
    ClassificationView,
    ConstraintsView,
    DecisionView,
    DependencyView,
    EventView,
    HoldView,
    InputView,
    NearLimitView,
    OutcomeView,
    PolicyCheckView,
    RunCheckView,
    RunView,
    SpendingView,
    TaskView,
    VersionsView,
)
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.scheduler.decision import Candidate, DecisionRecord
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.store.tables import Decision, Event, Run, Task
from claudomator_py.store.task_rows import state_of

__all__ = ["agent_view", "decision_view", "event_view", "run_view", "task_view"]


def task_view(
    task: Task,
    spec: TaskSpec,
    runs: Sequence[Run],
    *,
    reason: str | None,
    reason_text: str | None,
    reason_short: str | None,
    until_ms: int | None,
    holds: tuple[HoldView, ...] = (),
    asks: InputView | None = None,
    dependencies: Sequence[tuple[str, str | None, str | None]] = (),
    branch: str | None = None,
    budget: BudgetView | None = None,
    warnings: Sequence[str] = (),
    with_spec: bool = False,
) -> TaskView:
    """A task. runs: all of them, oldest first. reason to until_ms, and holds: why it is where it is."""
    last = runs[-1] if runs else None
    needs = [
        DependencyView.model_validate({"name": name, "task_id": bound, "state": state})
        for name, bound, state in dependencies
    ]
    outcomes = [Outcome.model_validate(run.outcome) for run in runs if run.outcome is not None]
    last_outcome = Outcome.model_validate(last.outcome) if last is not None and last.outcome is not None else None
    tier = last.tier if last is not None else spec.agent.tier
    return TaskView.model_validate(
        {
            "id": task.id,
            "name": task.name,
            "version": task.version,
            "state": task.state,
            "phase": task.phase,
            "reason": reason,
            "reason_text": reason_text,
            "reason_short": reason_short,
            "agent_hint": spec.agent.type,
            "waiting_until": _instant(until_ms),
            "asks": asks,
            "holds": holds,
            "budget": budget,
            "priority": Priority(task.priority).label,
            "tags": tuple(task.tags),
            "working_dir": spec.working_dir,
            "branch": branch,
            "specialist": task.specialist,
            "agent": last.agent if last is not None else spec.agent.type,
            "tier": tier,
            "model": last.model if last is not None else spec.agent.model,
            "attempts": task.attempt,
            "runs": len(runs),
            "result_text": last_outcome.text if last_outcome is not None else None,
            "tokens": _sum_tokens(outcomes),
            "cost_usd": _sum_cost(outcomes),
            "created_at": format_instant(task.created_ms),
            "updated_at": format_instant(task.updated_ms),
            "started_at": format_instant(last.started_ms) if last is not None else None,
            "available_actions": available_actions(state_of(task), begun=asks is None or asks.run_id is not None),
            "generation": task.generation,
            "revision": task.revision,
            "depends_on": tuple(needs),
            "continues": next((one for one in needs if one.name == spec.continues), None),
            "thread": task.thread,
            "source": task.source,
            "file_path": task.file_path,
            "spec": shown_document(spec) if with_spec else None,
            "creator": task.creator,
            "organisation": task.organisation,
            "warnings": tuple(warnings),
        }
    )


def run_view(run: Run) -> RunView:
    """A run."""
    return RunView.model_validate(
        {
            "id": run.id,
            "task_id": run.task_id,
            "generation": run.generation,
            "attempt": run.attempt,
            "agent": run.agent,
            "model": run.model,
            "tier": run.tier,
            "state": run.state,
            "started_at": format_instant(run.started_ms),
            "ended_at": _instant(run.ended_ms),
            "exit_code": run.exit_code,
            "outcome": OutcomeView.of(Outcome.model_validate(run.outcome)) if run.outcome is not None else None,
            "check": RunCheckView.of(CheckResult.model_validate(run.check_result)) if run.check_result else None,
            "resumes": run.resumes,
        }
    )


def decision_view(decision: Decision) -> DecisionView:
    """A decision to start a run."""
    record = DecisionRecord.model_validate(decision.data)
    classification = record.classification
    return DecisionView(
        id=decision.id,
        kind=decision.kind,
        generation=decision.generation or 1,
        supersedes=decision.supersedes,
        route=record.route,
        specialist=record.specialist,
        agent=record.agent,
        tier=record.tier,
        model=record.model,
        confidence=record.confidence,
        reason=record.reason,
        risk=record.risk,
        required_capabilities=record.required_capabilities,
        policy_checks=tuple(PolicyCheckView(**check.model_dump()) for check in record.policy_checks),
        fallback=record.fallback,
        classification=ClassificationView.model_validate(classification.model_dump()),
        candidates=tuple(_candidate_view(candidate) for candidate in record.candidates),
        overridden_hint=record.overridden_hint,
        overridden_model=record.overridden_model,
        skill=record.skill,
        intent=record.intent,
        topic=record.topic,
        threshold=record.threshold,
        constraints=ConstraintsView(**record.constraints.model_dump()),
        versions=VersionsView(**record.versions.model_dump()),
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
        run_id=str(decision.run_id),
        at=format_instant(decision.at_ms),
    )


def agent_view(
    agent: AgentSpec,
    registry: AgentRegistry,
    active: int,
    holds: tuple[HoldView, ...],
    near_limit: NearLimitView | None,
    spent_today: SpendingView,
    budget: BudgetView | None,
) -> AgentView:
    """An agent as it is now. holds: its own that are not closed, the longest first."""
    hold = next((hold for hold in holds if hold.family is None and not hold.probing), None)
    health = registry.health(agent.name)
    return AgentView(
        name=agent.name,
        kind=agent.kind,
        account=agent.account,
        program=health.program,
        version=health.version,
        installed=health.installed,
        problem=health.problem,
        active=active,
        max_concurrent=agent.max_concurrent,
        auto_select=agent.auto_select,
        limited=hold is not None,
        limited_until=hold.until if hold is not None else None,
        hold_reason=_why_held(hold) if hold is not None else None,
        provenance=hold.provenance if hold is not None else None,
        models=agent.models,
        default_tier=Tier(agent.default_tier),
        cannot_enforce=tuple(registry.cannot_enforce(agent)),
        holds=holds,
        near_limit=near_limit,
        spent_today=spent_today,
        budget=budget,
    )


def _why_held(hold: HoldView) -> str:
    named = window_text(hold.window) if hold.window is not None else hold.source
    return f"{hold.reason or 'by hand'}: {named}" if named else "by hand"


def event_view(event: Event) -> EventView:
    """An event."""
    return EventView(
        id=event.id or 0,
        at=format_instant(event.at_ms),
        task_id=event.task_id,
        run_id=event.run_id,
        kind=event.kind,
        by=event.by,
        data=event.data,
    )


def _candidate_view(candidate: Candidate) -> CandidateView:
    values: dict[str, Any] = candidate.model_dump()
    return CandidateView(**(values | {"limited_until": _instant(candidate.limited_until)}))


def _instant(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else format_instant(epoch_ms)


def _sum_tokens(outcomes: Sequence[Outcome]) -> Tokens:
    inputs = [outcome.tokens.input for outcome in outcomes if outcome.tokens.input is not None]
    outputs = [outcome.tokens.output for outcome in outcomes if outcome.tokens.output is not None]
    return Tokens(input=sum(inputs) if inputs else None, output=sum(outputs) if outputs else None)


def _sum_cost(outcomes: Sequence[Outcome]) -> float | None:
    costs = [outcome.cost_usd for outcome in outcomes if outcome.cost_usd is not None]
    return round(sum(costs), 6) if costs else None
