"""Views of runs, and the operations on them and for them. The order of fields is the order in JSON."""

from typing import Annotated, Literal

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Fee, HandoffRequest, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.domain.run import CheckStatus, Command, EndedBy, LogKind, command_text, ended_text, ending_of
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.wording import Known
from claudomator_py.surface import OPERATE_OWN, READ_OWN, Calls, InPath, JsonBody, Key, operation
from claudomator_py.values import dataclass

RunState = Literal["starting", "running", "checking", "ended", "revoked"]


class OutcomeView(View):
    """How a run ended."""

    status: OutcomeStatus
    reason: Reason | None = None
    reset_at: Instant | None = None
    provenance: Provenance | None = None
    conversation_id: str | None = None
    text: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    fee: Fee | None = None
    """The specialist's fee, which the cost includes."""
    detail: str | None = None
    """The agent's error message, and the budget that the run used up."""
    over_budget: Known[SpentBudget] = None
    """The budget that the run used up, as a value."""
    limit: str | None = None
    """The limit's window, as the agent named it."""
    family: str | None = None
    """The family of models that the limit applies to."""
    model: str | None = None
    """The model that the run used, as the agent named it."""
    question: str | None = None
    """The question that the run ended with."""
    denied: tuple[Denied, ...] = ()
    """Denied tool calls."""
    denials: int = 0
    """Number of all denied tool calls."""


class InputView(View):
    """A request for a person's input."""

    kind: InputKind
    text: str
    """The question, or what it requests permission for."""
    since: Instant
    agent: str | None = None
    """The agent whose run asks; null before the first run."""
    run_id: str | None = None
    """The run that asks; null before the first run."""
    tools: tuple[Denied, ...] = ()
    """Requested tools. Approval allows the ``rule`` of each."""
    commands: tuple[str, ...] = ()
    """Commands that the task's text evidently needs. Approval allows them too."""
    specialist: str | None = None
    """The specialist that does the task once its first run is approved; null if none does, or a run asks."""
    kept_until: Instant | None = None
    """When its working directory becomes free for other tasks; null if it is free."""
    until: Instant | None = None
    """Deadline after which the task fails with reason ``expired``; null if there is none."""


class LogTextView(View):
    """Output of a run from the byte ``offset`` up to ``next_offset``, as text for people: without terminal codes, and
    with secrets replaced by ``[redacted]``."""

    offset: int
    next_offset: int
    text: str


class LogEntryView(View):
    """A message or action of an agent, from the bytes from ``offset`` up to ``next_offset``."""

    offset: int
    next_offset: int
    kind: LogKind
    text: str
    tool: str | None = None
    """The tool's name, for a call or its result."""
    at: Instant | None = None
    """The time, if the agent reports it."""
    omitted: int = 0
    """Number of characters omitted from the text; the raw bytes contain them."""
    partial: bool = False
    """True if the text continues in the next entry of this kind."""


class LogPageView(View):
    """A part of a log."""

    items: tuple[LogEntryView | LogTextView, ...]
    next_cursor: str
    """Where to continue, at once or when there is more."""
    ended: bool
    """True if nothing will follow."""


class LogEndView(View):
    """The end of a run's log, after the byte ``next_offset``."""

    next_offset: int
    state: RunState
    """State of the run."""
    status: OutcomeStatus | None = None
    """Status of its outcome."""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a run's stream."""

    data: bytes
    offset: int
    """Position of the first byte."""
    next_offset: int
    """Position after the last byte."""
    ended: bool
    """True if the run has ended and nothing follows."""


class RunCheckView(View):
    """The check of a run: the task's ``check``, run after the agent's success."""

    status: CheckStatus
    commands: tuple[Command, ...]
    """Commands, run in order until one exits with a code other than 0."""
    step: int | None = None
    """Index of the command that ended the check; null while it runs, and if it left no record."""
    exit_code: int | None = None
    """Exit code of that command."""
    ended_by: EndedBy | None = None
    """Why Claudomator stopped it, if it did."""
    error: str | None = None
    """Why the command could not be started."""
    started_at: Instant
    ended_at: Instant | None = None
    output: str | None = None
    """The end of its output, if it failed; the log has all of it."""

    @property
    def text(self) -> str:
        """Return the details of its result, such as ``make lint (2 of 3) exited with 2``, or its commands."""
        if self.status == "lost":
            return "its supervisor was killed before it could record the end"
        if self.step is None or self.status == "passed":
            return ", ".join(command_text(command) for command in self.commands)
        which = f" ({self.step + 1} of {len(self.commands)})" if len(self.commands) > 1 else ""
        command = f"{command_text(self.commands[self.step])}{which}"
        return ending_of(command, self.exit_code, self.ended_by, self.error)

    @property
    def verdicts(self) -> tuple[tuple[str, str], ...]:
        """Return each command with its result in words."""
        return tuple((command_text(command), self._verdict(index)) for index, command in enumerate(self.commands))

    def _verdict(self, index: int) -> str:
        if self.step is None:
            return "" if self.status == "running" else "not known"
        if index != self.step:
            return "passed" if index < self.step else "not run"
        return "passed" if self.status == "passed" else ended_text(self.exit_code, self.ended_by, self.error)


class HandoffView(View):
    """The handoff of a task to another specialist, once its run has ended."""

    task_id: str
    run_id: str
    """The run that hands the task on."""
    specialist: str
    """The specialist that continues it."""
    handed_on_by: str | None = None
    """The specialist that hands it on, if any."""
    hop: int
    """Number of handoffs so far, including this one."""
    max_handoffs: int
    """Maximum number of handoffs."""


class AskedView(View):
    """The questions of a run."""

    task_id: str
    run_id: str
    questions: tuple[str, ...]
    """All questions so far. A person is asked once the run has ended."""


class ProgressView(View):
    """The result of reporting progress."""

    recorded: bool
    """False if it came too soon after the previous report."""
    next_at: Instant
    """When the next report will be recorded."""


class SubtaskView(View):
    """A task that a run has created."""

    task_id: str
    name: str
    run_id: str
    subtasks: int
    """Number of tasks that the run has created."""
    max_subtasks: int
    """Maximum number of tasks that it may create."""


class RunProgressView(View):
    """The latest progress report of a run."""

    text: str
    percent: int | None = None
    at: Instant
    """Time of the report."""

    @property
    def line(self) -> str:
        """Return the report in one line: ``40%: The first coat is on.``"""
        text = " ".join(self.text.split())
        return text if self.percent is None else f"{self.percent}%: {text}"


class RunView(View):
    """One attempt at a task."""

    id: str
    task_id: str
    generation: int
    attempt: int
    agent: str
    model: str | None = None
    tier: Tier | None = None
    state: RunState
    started_at: Instant
    ended_at: Instant | None = None
    exit_code: int | None = None
    """The agent's exit code; a negative number is a signal."""
    outcome: OutcomeView | None = None
    check: RunCheckView | None = None
    """Its check; null if its task has none or its agent did not succeed."""
    resumes: str | None = None
    """The run whose conversation it continued; null if it began a new one."""
    progress: RunProgressView | None = None
    """The latest progress report."""
    changes: RunChanges | None = None
    """Changes to its working directory; null if unknown."""
    asked: tuple[str, ...] = ()
    """Questions that it asked while running."""
    scratch_dir: str | None = None
    """Its scratch folder, if it worked in one that still exists."""
    host: str = LOCAL
    """The host that has its files: this machine, or one from the configuration."""
    output_kept: bool = True
    """False once its output was removed, by a cleanup or by ``retention``."""


RunId = Annotated[str, InPath("A run's id, or a prefix of it of at least 4 characters.", ambiguous=True)]
_HANDED_ON = {
    "to_a_writer": {"to": "technical-writer", "reason": "The rest is prose.", "done": "Fixed.", "left": "Document."}
}


class RunCalls(Calls):
    """Every operation on runs except their logs, as the client calls it."""

    @operation("GET /v1/runs/{run_id}", "getRun", READ_OWN, "One run")
    def run(self, run_id: RunId) -> RunView:
        """Return the run, with its outcome once it has ended."""

    @operation("POST /v1/runs/{run_id}/handoff", "handOn", OPERATE_OWN, "Hand a task on")
    def hand_on(self, run_id: RunId, wanted: Annotated[HandoffRequest, JsonBody(_HANDED_ON)]) -> HandoffView:
        """Have another specialist continue the task in a new conversation, once the run has ended.

        Harmless when repeated. 409 if the task cannot be handed on, for example because that specialist has had it
        before, or because it was handed on too often. The run then keeps it.
        """

    @operation("GET /v1/runs/{run_id}/handoff", "getHandoff", READ_OWN, "A run's handoff document")
    def handoff(self, run_id: RunId) -> Handoff:
        """Return the run's handoff document: decisions, permissions, and what earlier runs did and left."""

    @operation("POST /v1/runs/{run_id}/questions", "ask", OPERATE_OWN, "Ask a person")
    def ask(
        self,
        run_id: RunId,
        wanted: Annotated[
            QuestionRequest, JsonBody({"a_choice": {"question": "Which database?", "choices": ["old", "new"]}})
        ],
    ) -> AskedView:
        """Ask a person once the run has succeeded; the answer continues its conversation.

        Harmless when repeated. 409 if nobody would be asked, for example with `on_input: deny`.
        """

    @operation("POST /v1/runs/{run_id}/progress", "reportProgress", OPERATE_OWN, "Report progress")
    def report_progress(
        self,
        run_id: RunId,
        wanted: Annotated[ProgressRequest, JsonBody({"half": {"text": "Tests are written.", "percent": 50}})],
    ) -> ProgressView:
        """Report progress, which is shown with the run until the next report. A report within five seconds of the
        previous one is dropped."""

    @operation("POST /v1/runs/{run_id}/subtasks", "createSubtask", OPERATE_OWN, "Create a subtask", status=201)
    def create_subtask(
        self,
        run_id: RunId,
        wanted: Annotated[
            SubtaskRequest, JsonBody({"docs": {"name": "docs", "instructions": "Document the new option."}})
        ],
        *,
        idempotency_key: Key = None,
    ) -> SubtaskView:
        """Create a task with the creator, directory, permissions, priority and tags of the run's own task, and the rest
        of its budget.

        409 if the run has created too many (`limits.subtasks`), or if its own task is nested three levels deep.
        """
