"""Runs: attempts at tasks."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import WrapValidator

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.coded import known_or_none
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied, Fee, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import CheckStatus, Command, EndedBy, LogKind, command_text, ended_text
from claudomator_py.domain.views.base import Instant, View

RunState = Literal["starting", "running", "checking", "ended", "revoked"]


class OutcomeView(View):
    """How a run ended. detail: the budget that it used up, and the error in the agent's own words; limit: the window
    that it named, and family: the models that it is for. model: what its program called the model that it ran on.

    over_budget: that budget as a value. question: what it ended with; denied: tool calls that it was denied; denials:
    how many in all. fee: the part of ``cost_usd`` that its specialist's card asks for.
    """

    status: OutcomeStatus
    reason: Reason | None = None
    reset_at: Instant | None = None
    provenance: Provenance | None = None
    conversation_id: str | None = None
    text: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    fee: Fee | None = None
    detail: str | None = None
    over_budget: Annotated[SpentBudget | None, WrapValidator(known_or_none)] = None
    limit: str | None = None
    family: str | None = None
    model: str | None = None
    question: str | None = None
    denied: tuple[Denied, ...] = ()
    denials: int = 0


class InputView(View):
    """What a person is asked. text: the question, or what permission is requested for. since: since when.

    agent, run_id: whose run asks; None: it is asked before the first run. tools: the tools it requests; approving
    allows the ``rule`` of each. commands: what its text evidently needs to run, which approving allows too.
    kept_until: until when its working directory is kept from others; None: it is not.
    until: by when somebody has to act, or else the task fails with reason ``expired``; None: any time.
    """

    kind: InputKind
    text: str
    since: Instant
    agent: str | None = None
    run_id: str | None = None
    tools: tuple[Denied, ...] = ()
    commands: tuple[str, ...] = ()
    kept_until: Instant | None = None
    until: Instant | None = None


class LogTextView(View):
    """A piece of what a run wrote, from the byte ``offset`` up to ``next_offset``, as text for people.

    Without terminal codes, and with ``[redacted]`` in the place of secrets.
    """

    offset: int
    next_offset: int
    text: str


class LogEntryView(View):
    """One thing that an agent said or did, made from the bytes from ``offset`` up to ``next_offset``.

    tool: its name, for a call and its result. at: when, as far as the agent says. omitted: characters of the text that
    were left out; the bytes have them. partial: the text continues in the next entry of this kind.
    """

    offset: int
    next_offset: int
    kind: LogKind
    text: str
    tool: str | None = None
    at: Instant | None = None
    omitted: int = 0
    partial: bool = False


class LogPageView(View):
    """A part of a log. next_cursor: where to continue, now or when there is more. ended: nothing will follow."""

    items: tuple[LogEntryView | LogTextView, ...]
    next_cursor: str
    ended: bool


class LogEndView(View):
    """The run is over, and its log was told up to ``next_offset``. state: the run's; status: of its outcome."""

    next_offset: int
    state: RunState
    status: OutcomeStatus | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a run's stream from ``offset``. ended: the run is over and nothing follows ``next_offset``."""

    data: bytes
    offset: int
    next_offset: int
    ended: bool


class RunCheckView(View):
    """The check of a run: the task's ``check``, run after the agent's success.

    commands: run in this order, up to the first that does not exit with 0. step: the index of the one that ended it;
    None while it runs, and when no record was left. exit_code: that command's. ended_by: what stopped it, if
    Claudomator did. error: why the command could not be started. output: the end of what it wrote, if it failed; the
    log has all of it.
    """

    status: CheckStatus
    commands: tuple[Command, ...]
    step: int | None = None
    exit_code: int | None = None
    ended_by: EndedBy | None = None
    error: str | None = None
    started_at: Instant
    ended_at: Instant | None = None
    output: str | None = None

    @property
    def text(self) -> str:
        """What it came to besides its status, in words: ``make lint (2 of 3) exited with 2``; else its commands."""
        if self.status == "lost":
            return "what ran it was killed before it could record the end"
        if self.step is None or self.status == "passed":
            return ", ".join(command_text(command) for command in self.commands)
        which = f" ({self.step + 1} of {len(self.commands)})" if len(self.commands) > 1 else ""
        how = ended_text(self.exit_code, self.ended_by, self.error)
        return f"{command_text(self.commands[self.step])}{which} {how}"

    @property
    def verdicts(self) -> tuple[tuple[str, str], ...]:
        """Each command, and what came of it, in words."""
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
    """What a run asks. questions: all of them; a person is asked once the run has ended."""

    task_id: str
    run_id: str
    questions: tuple[str, ...]


class ProgressView(View):
    """What became of a report. recorded: False: it came too soon after the one before. next_at: when one is again."""

    recorded: bool
    next_at: Instant


class SubtaskView(View):
    """A task that a run has made. subtasks: how many it has made by now; max_subtasks: how many it may."""

    task_id: str
    name: str
    run_id: str
    subtasks: int
    max_subtasks: int


class RunProgressView(View):
    """What a run said last of how far it is. at: when."""

    text: str
    percent: int | None = None
    at: Instant

    @property
    def line(self) -> str:
        """In a line: ``40%: The first coat is on.``"""
        text = " ".join(self.text.split())
        return text if self.percent is None else f"{self.percent}%: {text}"


class RunView(View):
    """One attempt at a task. resumes: the run whose conversation it continued; None: it began one.

    check: how its check went; None: it was not checked, as its task has no check or its agent did not succeed.
    progress: what its agent said last of how far it is. asked: what it asked while it ran. scratch_dir: the folder of
    its own that it worked in, while that is there; None: it worked elsewhere. output_kept: False once what it wrote was
    removed: a cleanup and ``retention`` remove what ended tasks no longer need.
    """

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
    outcome: OutcomeView | None = None
    check: RunCheckView | None = None
    resumes: str | None = None
    progress: RunProgressView | None = None
    asked: tuple[str, ...] = ()
    scratch_dir: str | None = None
    output_kept: bool = True
