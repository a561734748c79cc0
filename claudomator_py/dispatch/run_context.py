"""The input of a run: its task, the conversation that it continues, and what earlier runs left."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime

from pydantic import ValidationError
from sqlalchemy import Connection

from claudomator_py.dispatch.heads import QueuedTask
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import Spending, Unit, left
from claudomator_py.domain.card import Card
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
    SlashText,
    SlashUse,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.routing import Constraints, Risk
from claudomator_py.domain.task import OnInput, TaskSpec
from claudomator_py.domain.transcript import extracted, intent_of
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.domain.worktree import WorktreeRequest
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.worktrees import tree_request
from claudomator_py.ports import RunHost, Transcript
from claudomator_py.prompts import (
    as_command,
    as_text,
    check_note,
    cleaned,
    compose,
    compose_confirmation,
    compose_further,
    compose_next,
    follow_note,
    handoff_note,
    left_by,
    role_of,
)
from claudomator_py.prompts.conversations import ResumePolicy, scratch_of
from claudomator_py.prompts.slash import SlashPlace, slash_text
from claudomator_py.routing.role import done_by, escalation_of
from claudomator_py.scheduler.records import HandoffRecord, Record
from claudomator_py.schema.validation import first_problem
from claudomator_py.store import decision_rows, run_rows, spending_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.handing_on import accepted_handoffs
from claudomator_py.texts import cut
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class RunContext:
    """A task that is about to start, with the input of its next run."""

    task: Task
    spec: TaskSpec
    known: TaskSpec
    """The content that the continued conversation has already been given."""
    earlier: Run | None = None
    """The run whose conversation is continued; None for a new conversation."""
    obstacle: str | None = None
    """Why it cannot continue the conversation."""
    tree: WorktreeRequest | None = None
    """The work tree that it needs."""
    left: Run | None = None
    """The run whose work it takes over in a new conversation."""
    follows: Run | None = None
    """The run of the predecessor task."""
    card: Card | None = None
    """The specialist's card."""
    before: tuple[Run, ...] = ()
    """Earlier runs of this generation, oldest first."""
    hops: tuple[HandoffRecord, ...] = ()
    """Handoffs in this generation, in order."""
    decisions: Sequence[decision_rows.Reference] = ()
    """Decisions on the task in this generation, oldest first."""
    spending: Spending = field(default_factory=Spending)
    """The task's usage so far, if it has a budget."""

    @property
    def timeout_ms(self) -> int:
        """Timeout of the next run: what the runs that handed the task on have left of it, but at least a minute."""
        handed = {hop.run_id for hop in self.hops}
        used_ms = sum((run.ended_ms or 0) - run.started_ms for run in self.before if run.id in handed)
        whole_ms = self.spec.timeout
        return max(whole_ms - used_ms, min(whole_ms, MINUTE_MS))

    def slash(self, handoff: str | None, place: Callable[[], SlashPlace]) -> SlashText | None:
        """Return how the prompt gives a text that begins with a slash; None if the text does not, or is not in the
        prompt. handoff: see ``prompt``. place: returns where the agent looks for commands."""
        if not self.spec.instructions.lstrip().startswith("/"):
            return None
        resumption = resumption_of(self.task)
        if self.earlier is not None and (resumption is None or not resumption.is_next_turn):
            return None
        by_card = None if self.card is None else self.card.expected_output
        more = [handoff, self.spec.expected_output if self.spec.expected_output != by_card else None]
        if resumption is not None:
            more += [resumption.words, *(exchange.asked for exchange in resumption.heard if self.earlier is None)]
        return slash_text(self.spec.instructions, place(), alone=not any(more))

    def prompt(self, handoff: str | None, *, converses: bool, slash: SlashText | None = None) -> str:
        """Return the prompt. handoff: the note on the run that it takes over from, if any. converses: whether the
        agent's questions can be answered. slash: how it gives a text that begins with a slash."""
        if slash is None:
            return self._prompt(handoff, converses=converses)
        if slash.use is SlashUse.COMMAND:
            return as_command(self.spec)
        return as_text(self._prompt(handoff, converses=converses))

    def _prompt(self, handoff: str | None, *, converses: bool) -> str:
        resumption = resumption_of(self.task)
        words = None if resumption is None else resumption.words
        if self.earlier is None:
            heard = () if resumption is None else resumption.heard
            may_ask = converses and self.spec.on_input is OnInput.WAIT
            role = "" if self.card is None else role_of(self.card, self.task.skill, self.task.organisation)
            return compose(self.spec, words, handoff, role=role, heard=heard, converses=converses, may_ask=may_ask)
        if resumption is not None and resumption.answering:
            # What was added to an earlier request is known to the conversation.
            added = words if resumption.asked else None
            return compose_further(self.spec, self.known, added, answered=resumption.heard[-1])
        if resumption is not None and resumption.confirms:
            return compose_confirmation()
        if resumption is not None and resumption.follows is not None:
            return compose_next(self.spec, words, again=not resumption.is_next_turn)
        return compose_further(self.spec, self.known, words, note=handoff)


class ContextReader:
    """Reads the input of runs. secrets: to redact from notes."""

    def __init__(self, database: Database, registry: AgentRegistry, host: RunHost, secrets: Secrets) -> None:
        self._database = database
        self._registry = registry
        self._host = host
        self._secrets = secrets
        self._resuming = ResumePolicy(registry, host)

    def read(self, queued: QueuedTask, agent: str) -> RunContext:
        """Read the input for a run on the agent. The commit fails if the task has changed meanwhile."""
        return self._database.read(lambda connection: self._read(connection, queued, agent))

    def _read(self, connection: Connection, queued: QueuedTask, agent: str) -> RunContext:
        task = queued.task
        context = self._going_on(connection, queued, agent)
        resumption = resumption_of(task)
        if resumption is not None and resumption.follows is not None:
            context = _following(connection, context, resumption.follows, queued)
        before = run_rows.of_generation(connection, task.id, task.generation) if task.seq > 0 else ()
        working_dir, earlier = context.spec.isolated_dir, context.earlier or context.follows
        return replace(
            context,
            tree=None if working_dir is None else tree_request(connection, task, context.spec, working_dir, earlier),
            left=left_by(before, agent) if context.earlier is None else None,
            card=queued.card,
            before=tuple(before),
            hops=tuple(accepted_handoffs(connection, task.id, task.generation)) if task.seq > 0 else (),
            decisions=decision_rows.references(connection, task.id, task.generation),
            spending=spending_rows.of_task(connection, task.id) if context.spec.budget.units else Spending(),
        )

    def _going_on(self, connection: Connection, queued: QueuedTask, agent: str) -> RunContext:
        task, spec = queued.task, queued.spec
        resumption = resumption_of(task)
        if resumption is None or resumption.given_up or (resumption.optional and resumption.agent != agent):
            return RunContext(task, spec, known=spec)
        earlier = run_rows.find(connection, resumption.run_id)
        obstacle = self._resuming.obstacle(earlier, spec, agent, Constraints.parse(task.constraints))
        if earlier is None or obstacle is not None:
            return RunContext(task, spec, known=spec, obstacle=obstacle)
        earlier = run_rows.newest_in_conversation(connection, earlier)
        return RunContext(task, spec, _given(connection, queued, task.id, resumption.revision), earlier)

    def scratch(self, context: RunContext) -> str | None:
        """Return the run whose scratch folder the next run takes over, if any."""
        before = context.left or context.follows
        if before is None or context.spec.working_dir is not None:
            return None
        scratch = scratch_of(before)
        return scratch if self._host.scratch(scratch) is not None else None

    def note(self, context: RunContext, agent: AgentSpec) -> str | None:
        """Return the note for a new conversation on the predecessor task and the run that it takes over from, or on the
        failed check of the run whose conversation an operator has it continue."""
        resumption = resumption_of(context.task)
        if context.earlier is not None:
            if resumption is None or not resumption.asked or resumption.answering:
                return None
            return check_note(context.earlier, self._secrets.redactor(context.spec.env, context.earlier.id))
        left = context.left or context.follows
        redactor = self._secrets.redactor(context.spec.env, None if left is None else left.id)
        notes = []
        if context.follows is not None:
            transcript = self._transcript(context.follows)
            notes.append(follow_note(context.follows, context.known, self._host, transcript, redactor))
        if context.left is not None:
            transcript = self._transcript(context.left)
            notes.append(handoff_note(context.left, agent.name, self._host, transcript, redactor))
        return "\n\n".join(notes) or None

    def _transcript(self, run: Run) -> Transcript | None:
        kind = self._registry.kinds.get(run.kind)
        return None if kind is None else kind.transcript("stdout")


def _given(connection: Connection, queued: QueuedTask, task_id: str, revision: int) -> TaskSpec:
    """Return a task's content as the queued task's specialist is given it."""
    spec = task_rows.spec_of(connection, task_id, revision)
    return done_by(spec, queued.card, Constraints.parse(queued.task.constraints))


def _following(connection: Connection, context: RunContext, run_id: str, queued: QueuedTask) -> RunContext:
    """Return the context with the predecessor's run, and that run's content if a new conversation begins."""
    run = run_rows.find(connection, run_id)
    if run is None or context.earlier is not None:
        return replace(context, follows=run)
    return replace(context, follows=run, known=_given(connection, queued, run.task_id, run.revision))


_MAX_DECISIONS = 50
_WELL = (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT, OutcomeStatus.CANCELLED)


class HandoffRefused(Exception):
    """The run has no valid handoff document; the message says why."""


@dataclass(frozen=True, slots=True)
class HandoffSubject:
    """A run that is about to start."""

    run: Run
    spec: TaskSpec
    """The task as given to the run, with everything that a person has allowed."""
    agent: AgentSpec
    context: RunContext
    max_handoffs: int
    """How often the task may be handed on in a generation."""


def handoff_of(subject: HandoffSubject, registry: AgentRegistry, redactor: Redactor) -> Handoff:
    """Return the handoff document with secrets redacted. Raises HandoffRefused."""
    run, spec, context = subject.run, subject.spec, subject.context
    ended = [run for run in context.before if run.state == "ended" and run.outcome is not None]
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
            decisions=_decisions(context.decisions),
            extracted=extracted(spec.instructions, redactor),
            evidence=Evidence(
                runs=tuple(run.id for run in ended[-MAX_FIELDS:]),
                branch=None if context.tree is None else context.tree.branch,
                files=_files(context.hops, redactor),
            ),
            permissions=_scope(subject, registry, redactor),
            budget_left=_budget_left(spec, context.spending),
            deadline=datetime.fromtimestamp(deadline_ms / 1000, tz=UTC),
            failures=_failures(ended, redactor),
            expected_output=None
            if spec.expected_output is None
            else cleaned(spec.expected_output, redactor)[:MAX_OUTPUT_LENGTH],
            escalation=escalation_of(context.card),
            handoffs=len(context.hops),
            max_handoffs=subject.max_handoffs,
            before=None if hop is None else _handed_on(hop, redactor),
        )
    except ValidationError as error:
        problem = first_problem(Handoff, error).render()
        raise HandoffRefused(redactor.redact(f"the handoff is not valid: {problem}")) from None


def _files(hops: Sequence[HandoffRecord], redactor: Redactor) -> tuple[str, ...]:
    """Return the files that handoffs name, without duplicates and in order: the newest, if there are too many."""
    named = dict.fromkeys(cleaned(file, redactor) for hop in hops for file in hop.asked.files)
    return tuple(named)[-MAX_FIELDS:]


def _decisions(decisions: Sequence[decision_rows.Reference]) -> tuple[DecisionReference, ...]:
    return tuple(
        DecisionReference(
            id=decision.id,
            kind=decision.kind,
            code=Record.model_validate({"reason": decision.reason}).reason.code.value,
            route=decision.route,
        )
        for decision in decisions[-_MAX_DECISIONS:]
    )


def _scope(subject: HandoffSubject, registry: AgentRegistry, redactor: Redactor) -> PermissionScope:
    """Return the permissions. A tool that is both allowed and forbidden is forbidden."""
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
        denied = _short(tuple(dict.fromkeys(call.tool for call in outcome.denied)), redactor)[:MAX_FIELDS]
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
        reason=cleaned(request.reason, redactor),
        done=cleaned(request.done, redactor),
        left=cleaned(request.left, redactor),
    )


def _short(tools: Sequence[str], redactor: Redactor) -> tuple[str, ...]:
    """Return the tools with long names cut: a rule may name a command with all of its arguments."""
    return tuple(cut(redactor.redact(tool), MAX_FIELD_LENGTH) for tool in tools)
