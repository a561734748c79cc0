"""The handoff document of a run that is about to start, from rows alone."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import ValidationError

from claudomator_py.dispatch.run_context import RunContext
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import Spending, Unit, left
from claudomator_py.domain.extraction import extracted, intent_of
from claudomator_py.domain.handoff import (
    MAX_EARLIER,
    MAX_FIELD_LENGTH,
    MAX_FIELDS,
    MAX_OUTPUT_LENGTH,
    VERSION,
    BudgetLeft,
    DecisionReference,
    EarlierFailure,
    Evidence,
    HandedOn,
    Handoff,
    PermissionScope,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.personal import without_personal
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.routing.role import escalation_of
from claudomator_py.scheduler.decision import DecisionKind, HandoffRecord, Record
from claudomator_py.schema.validation import first_problem
from claudomator_py.store.tables import Decision, Run
from claudomator_py.values import dataclass

_ABOUT_ANOTHER_RUN = (DecisionKind.PLACEMENT.value, DecisionKind.TRIAGE.value)
_MAX_DECISIONS = 50
_WELL = (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT, OutcomeStatus.CANCELLED)


class HandoffRefused(Exception):
    """There is no valid handoff document for the run; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class HandoffSubject:
    """A run that is about to start."""

    run: Run
    spec: TaskSpec
    """The task as the run is given it, with all that a person allowed it."""
    agent: AgentSpec
    context: RunContext
    max_handoffs: int
    """How often the task may be handed on in a generation."""


def handoff_of(subject: HandoffSubject, registry: AgentRegistry, redactor: Redactor) -> Handoff:
    """Return the document, without secrets. Raises HandoffRefused."""
    run, spec, context = subject.run, subject.spec, subject.context
    ended = [one for one in context.before if one.state == "ended" and one.outcome is not None]
    last = context.hops[-1] if context.hops else None
    hop = last if last is not None and ended and ended[-1].id == last.run_id else None
    deadline_ms = run.started_ms + spec.timeout
    try:
        return Handoff(
            version=VERSION,
            task=run.task_id,
            revision=run.revision,
            run=run.id,
            specialist=run.specialist,
            skill=run.skill,
            risk=None if run.risk is None else Risk(run.risk),
            intent=intent_of(spec.instructions, redactor),
            decisions=_decisions(context.decisions, run),
            extracted=extracted(spec.instructions, redactor),
            evidence=Evidence(
                runs=tuple(one.id for one in ended[-MAX_FIELDS:]),
                branch=None if context.tree is None else context.tree.branch,
                files=_files(context.hops, redactor),
            ),
            permissions=_scope(subject, registry, redactor),
            budget_left=_budget_left(spec, context.spending),
            deadline=datetime.fromtimestamp(deadline_ms / 1000, tz=UTC),
            failures=_failures(ended, redactor),
            expected_output=None
            if spec.expected_output is None
            else _clean(spec.expected_output, redactor)[:MAX_OUTPUT_LENGTH],
            escalation=escalation_of(context.card),
            handoffs=len(context.hops),
            max_handoffs=subject.max_handoffs,
            before=None if hop is None else _handed_on(hop, redactor),
        )
    except ValidationError as error:
        problem = first_problem(Handoff, error).render()
        raise HandoffRefused(redactor.redact(f"the handoff is not valid: {problem}")) from None


def _files(hops: Sequence[HandoffRecord], redactor: Redactor) -> tuple[str, ...]:
    """Each once, in the order in which runs named them; the newest, if there are too many."""
    named = dict.fromkeys(_clean(file, redactor) for one in hops for file in one.asked.files)
    return tuple(named)[-MAX_FIELDS:]


def _decisions(decisions: Sequence[Decision], run: Run) -> tuple[DecisionReference, ...]:
    relevant = [
        decision
        for decision in decisions
        if decision.generation == run.generation and decision.kind not in _ABOUT_ANOTHER_RUN
    ]
    return tuple(
        DecisionReference(
            id=decision.id,
            kind=decision.kind,
            code=Record.model_validate(decision.data).reason.code.value,
            route=decision.data.get("route"),
        )
        for decision in relevant[-_MAX_DECISIONS:]
    )


def _scope(subject: HandoffSubject, registry: AgentRegistry, redactor: Redactor) -> PermissionScope:
    """What is allowed is told without what is forbidden: that is forbidden."""
    permissions = subject.spec.permissions
    allowed = tuple(tool for tool in permissions.allowed_tools if tool not in permissions.disallowed_tools)
    return PermissionScope(
        mode=permissions.mode,
        tools=None if permissions.tools is None else _short(permissions.tools, redactor),
        allowed_tools=_short(allowed, redactor),
        forbidden_tools=_short(permissions.disallowed_tools, redactor),
        not_enforced=tuple(registry.cannot_enforce(subject.agent)),
    )


def _budget_left(spec: TaskSpec, spending: Spending) -> BudgetLeft:
    if not spec.budget.units:
        return BudgetLeft()
    usd, tokens, runs = (left(spec.budget, spending, unit) for unit in (Unit.USD, Unit.TOKENS, Unit.RUNS))
    return BudgetLeft(usd=usd, tokens=tokens, runs=runs)


def _failures(ended: Sequence[Run], redactor: Redactor) -> tuple[EarlierFailure, ...]:
    failures = []
    for run in ended:
        outcome = Outcome.model_validate(run.outcome)
        if outcome.status in _WELL or outcome.reason is None:
            continue
        denied = _short(tuple(dict.fromkeys(one.tool for one in outcome.denied)), redactor)[:MAX_FIELDS]
        failures.append(
            EarlierFailure(
                run=run.id,
                agent=run.agent,
                specialist=run.specialist,
                reason=outcome.reason,
                denied_tools=denied,
            )
        )
    return tuple(failures[-MAX_EARLIER:])


def _handed_on(hop: HandoffRecord, redactor: Redactor) -> HandedOn:
    request = hop.asked
    return HandedOn(
        run=hop.run_id,
        specialist=hop.by,
        reason=_clean(request.reason, redactor),
        done=_clean(request.done, redactor),
        left=_clean(request.left, redactor),
    )


def _clean(text: str, redactor: Redactor) -> str:
    return without_personal(redactor.redact(text))


def _short(tools: Sequence[str], redactor: Redactor) -> tuple[str, ...]:
    """A rule may name a command with all its arguments."""
    words = (redactor.redact(tool) for tool in tools)
    return tuple(word if len(word) <= MAX_FIELD_LENGTH else f"{word[: MAX_FIELD_LENGTH - 3]}..." for word in words)
