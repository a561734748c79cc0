"""Runs as they are shown, and what can be asked about them and by them. Field order is the order of the JSON."""

from typing import Annotated, Literal

from pydantic import WrapValidator

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Fee, HandoffRequest, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.domain.run import CheckStatus, Command, EndedBy, LogKind, command_text, ended_text
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.wording import known_or_none
from claudomator_py.surface import OPERATE_OWN, READ_OWN, Calls, JsonBody, Key, PathText, operation
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
    """The part of the cost that its specialist's card asks for."""
    detail: str | None = None
    """The budget that it used up, and the error in the agent's own words."""
    over_budget: Annotated[SpentBudget | None, WrapValidator(known_or_none)] = None
    """The budget that it used up, as a value."""
    limit: str | None = None
    """The window that it named."""
    family: str | None = None
    """The models that the limit is for."""
    model: str | None = None
    """What its program called the model that it ran on."""
    question: str | None = None
    """What it ended with."""
    denied: tuple[Denied, ...] = ()
    """Tool calls that it was denied."""
    denials: int = 0
    """How many of these there were in all."""


class InputView(View):
    """What a person is asked."""

    kind: InputKind
    text: str
    """The question, or what permission is requested for."""
    since: Instant
    agent: str | None = None
    """Whose run asks; null: it is asked before the first run."""
    run_id: str | None = None
    """The run that asks; null: it is asked before the first run."""
    tools: tuple[Denied, ...] = ()
    """The tools it requests; approving allows the ``rule`` of each."""
    commands: tuple[str, ...] = ()
    """What its text evidently needs to run, which approving allows too."""
    kept_until: Instant | None = None
    """Until when its working directory is kept from others; null: it is not."""
    until: Instant | None = None
    """By when somebody has to act, or else the task fails with reason ``expired``; null: any time."""


class LogTextView(View):
    """A piece of what a run wrote, from the byte ``offset`` up to ``next_offset``, as text for people.

    Without terminal codes, and with ``[redacted]`` in the place of secrets.
    """

    offset: int
    next_offset: int
    text: str


class LogEntryView(View):
    """One thing that an agent said or did, made from the bytes from ``offset`` up to ``next_offset``."""

    offset: int
    next_offset: int
    kind: LogKind
    text: str
    tool: str | None = None
    """Its name, for a call and its result."""
    at: Instant | None = None
    """When, as far as the agent says."""
    omitted: int = 0
    """Characters of the text that were left out; the bytes have them."""
    partial: bool = False
    """The text continues in the next entry of this kind."""


class LogPageView(View):
    """A part of a log."""

    items: tuple[LogEntryView | LogTextView, ...]
    next_cursor: str
    """Where to continue, now or when there is more."""
    ended: bool
    """Nothing will follow."""


class LogEndView(View):
    """The run is over, and its log was told up to ``next_offset``."""

    next_offset: int
    state: RunState
    """Of the run."""
    status: OutcomeStatus | None = None
    """Of its outcome."""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a run's stream."""

    data: bytes
    offset: int
    """Where they begin."""
    next_offset: int
    """Where they end."""
    ended: bool
    """The run is over and nothing follows."""


class RunCheckView(View):
    """The check of a run: the task's ``check``, run after the agent's success."""

    status: CheckStatus
    commands: tuple[Command, ...]
    """Run in this order, up to the first that does not exit with 0."""
    step: int | None = None
    """The index of the one that ended it; null while it runs, and when no record was left."""
    exit_code: int | None = None
    """Of that command."""
    ended_by: EndedBy | None = None
    """What stopped it, if Claudomator did."""
    error: str | None = None
    """Why the command could not be started."""
    started_at: Instant
    ended_at: Instant | None = None
    output: str | None = None
    """The end of what it wrote, if it failed; the log has all of it."""

    @property
    def text(self) -> str:
        """Return what it came to besides its status: ``make lint (2 of 3) exited with 2``, or its commands."""
        if self.status == "lost":
            return "what ran it was killed before it could record the end"
        if self.step is None or self.status == "passed":
            return ", ".join(command_text(command) for command in self.commands)
        which = f" ({self.step + 1} of {len(self.commands)})" if len(self.commands) > 1 else ""
        how = ended_text(self.exit_code, self.ended_by, self.error)
        return f"{command_text(self.commands[self.step])}{which} {how}"

    @property
    def verdicts(self) -> tuple[tuple[str, str], ...]:
        """Return each command, and what came of it, in words."""
        return tuple((command_text(command), self._verdict(index)) for index, command in enumerate(self.commands))

    def _verdict(self, index: int) -> str:
        if self.step is None:
            return "" if self.status == "running" else "not known"
        if index != self.step:
            return "passed" if index < self.step else "not run"
        return "passed" if self.status == "passed" else ended_text(self.exit_code, self.ended_by, self.error)


class HandoffView(View):
    """A task that goes to another specialist once its run has ended."""

    task_id: str
    run_id: str
    """The run that hands it on."""
    specialist: str
    """Who is to continue with it."""
    handed_on_by: str | None = None
    """Who has it until then; None: no specialist."""
    hop: int
    """How often it was handed on, this time included."""
    max_handoffs: int
    """How often it may be."""


class AskedView(View):
    """What a run asks."""

    task_id: str
    run_id: str
    questions: tuple[str, ...]
    """All of them; a person is asked once the run has ended."""


class ProgressView(View):
    """What became of a report."""

    recorded: bool
    """False: it came too soon after the one before."""
    next_at: Instant
    """When one is again."""


class SubtaskView(View):
    """A task that a run has made."""

    task_id: str
    name: str
    run_id: str
    subtasks: int
    """How many it has made by now."""
    max_subtasks: int
    """How many it may."""


class RunProgressView(View):
    """What a run said last of how far it is."""

    text: str
    percent: int | None = None
    at: Instant
    """When it said so."""

    @property
    def line(self) -> str:
        """Return it in a line: ``40%: The first coat is on.``"""
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
    """A negative one is a signal."""
    outcome: OutcomeView | None = None
    check: RunCheckView | None = None
    """How its check went; null: it was not checked, as its task has no check or its agent did not succeed."""
    resumes: str | None = None
    """The run whose conversation it continued; null: it began one."""
    progress: RunProgressView | None = None
    """What its agent said last of how far it is."""
    changes: RunChanges | None = None
    """What is other where it worked; null: that is not known."""
    asked: tuple[str, ...] = ()
    """What it asked while it ran."""
    scratch_dir: str | None = None
    """The folder of its own that it worked in, while that is there; null: it worked elsewhere."""
    host: str = LOCAL
    """The place that has its files: this machine, or a host of the configuration."""
    output_kept: bool = True
    """False once what it wrote was removed: a cleanup and ``retention`` remove what ended tasks no longer need."""


RunId = Annotated[str, PathText("A run's id, or the beginning of it, of 4 characters or more.")]
_HANDED_ON = {
    "to_a_writer": {"to": "technical-writer", "reason": "The rest is prose.", "done": "Fixed.", "left": "Document."}
}


class RunCalls(Calls):
    """Every operation on runs, as the client calls it, but for their logs."""

    @operation("GET /v1/runs/{run_id}", "getRun", READ_OWN, "One run", refuses=(404,))
    def run(self, run_id: RunId) -> RunView:
        """The run with its outcome, once it has ended."""

    @operation("POST /v1/runs/{run_id}/handoff", "handOn", OPERATE_OWN, "Hand a task on", refuses=(404, 409, 422))
    def hand_on(self, run_id: RunId, wanted: Annotated[HandoffRequest, JsonBody(_HANDED_ON)]) -> HandoffView:
        """Another specialist continues the task once the run has ended, in a conversation of its own.

        Harmless when repeated. 409 if the task cannot be handed on, as when it has been with that specialist, or too
        often: then the run keeps it.
        """

    @operation("GET /v1/runs/{run_id}/handoff", "getHandoff", READ_OWN, "What a run was told", refuses=(404,))
    def handoff(self, run_id: RunId) -> Handoff:
        """The run's handoff document: what was decided, what it may do, and what runs before it did and left."""

    @operation("POST /v1/runs/{run_id}/questions", "ask", OPERATE_OWN, "Ask a person", refuses=(404, 409, 422))
    def ask(
        self,
        run_id: RunId,
        wanted: Annotated[
            QuestionRequest, JsonBody({"a_choice": {"question": "Which database?", "choices": ["old", "new"]}})
        ],
    ) -> AskedView:
        """A person is asked once the run has ended well, and what they say continues its conversation.

        Harmless when repeated. 409 if nobody would be asked, as with `on_input: deny`.
        """

    @operation(
        "POST /v1/runs/{run_id}/progress", "reportProgress", OPERATE_OWN, "Report progress", refuses=(404, 409, 422)
    )
    def report_progress(
        self,
        run_id: RunId,
        wanted: Annotated[ProgressRequest, JsonBody({"half": {"text": "Tests are written.", "percent": 50}})],
    ) -> ProgressView:
        """Shown with the run until the next report. What comes within five seconds of the one before is dropped."""

    @operation(
        "POST /v1/runs/{run_id}/subtasks",
        "createSubtask",
        OPERATE_OWN,
        "Create a task beside the run's own",
        refuses=(404, 409, 422),
        status=201,
    )
    def create_subtask(
        self,
        run_id: RunId,
        wanted: Annotated[
            SubtaskRequest, JsonBody({"docs": {"name": "docs", "instructions": "Document the new option."}})
        ],
        *,
        idempotency_key: Key = None,
    ) -> SubtaskView:
        """It has the run's task's creator, directory, permissions, priority and tags, and what is left of its budget.

        409 if the run has created too many (`limits.subtasks`), or is itself of a task that was created so, three deep.
        """
