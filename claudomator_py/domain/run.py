"""A run, one attempt at a task, and the conversation that it continues: values that pass between the service, an agent
and a run directory."""

import shlex
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.host import HostNeeds
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import AgentText, Outcome, Tokens
from claudomator_py.domain.task import TaskSpec
from claudomator_py.values import dataclass


class Conversations(StrEnum):
    """How a kind of agent supports conversations. NONE: not at all. GIVEN: Claudomator assigns the id. NAMED: the agent
    assigns the id and reports it."""

    NONE = "none"
    GIVEN = "given"
    NAMED = "named"


class Exchange(BaseModel, frozen=True):
    """What an agent asked and what the operator replied: an answer, or the tools it may use (allowed)."""

    kind: InputKind
    asked: str
    answer: str | None = None
    allowed: tuple[str, ...] = ()


class ResumedConversation(BaseModel, frozen=True):
    """The conversation that the next run of a task continues: that of the run ``run_id``."""

    run_id: str
    agent: str
    """The agent that has it; no other can continue it."""
    kind: str
    """Kind of that agent."""
    tier: str | None
    """Tier of the conversation's last run."""
    revision: int
    """The content revision that the conversation is certain to know."""
    words: str | None = None
    """What the operator adds to the prompt."""
    given_up: bool = False
    """True if it cannot or must not be continued after all; a fresh one starts and gets the words."""
    optional: bool = False
    """True if whoever can start first takes the task: the holder in this conversation, any other agent in a fresh
    one."""
    follows: str | None = None
    """The run of the task that this task continues; equal to run_id until a run of this task continues the
    conversation."""
    heard: tuple[Exchange, ...] = ()
    """Questions of this generation and the operator's replies, which a fresh conversation is told."""
    answering: bool = False
    """True if the last exchange is new to this conversation."""
    confirms: bool = False
    """True if a run in it succeeded while a window of its account was nearly used up, so the next run is only asked to
    finish, or to confirm that the task is done."""
    asked: bool = False
    """True if the operator requested this conversation, so no other agent takes over however long its agent is
    unavailable."""

    @property
    def is_next_turn(self) -> bool:
        """Whether the next run gives the text of a task that follows another one to that task's conversation for the
        first time."""
        return self.run_id == self.follows and not self.answering and not self.confirms

    @property
    def holder(self) -> str | None:
        """The agent that the next run waits for, though not in all circumstances; None if it waits for none."""
        return None if self.given_up or self.optional else self.agent


class Usage(BaseModel, frozen=True):
    """What a conversation has used, as far as its runs have reported. cost_usd: US dollars."""

    tokens: Tokens = Tokens(input=0, output=0)
    cost_usd: float = 0.0

    def after(self, outcome: Outcome | None) -> "Usage":
        """Return the usage plus that of the run. Anything a run has not reported counts as zero. With an agent that
        reports totals it is then counted with the next run, so that the sum over all runs is right."""
        if outcome is None:
            return self
        return Usage(
            tokens=Tokens(
                input=(self.tokens.input or 0) + (outcome.tokens.input or 0),
                output=(self.tokens.output or 0) + (outcome.tokens.output or 0),
            ),
            cost_usd=self.cost_usd + (outcome.agent_cost_usd or 0.0),
        )


Stream = Literal["stdout", "stderr"]
LogKind = Literal["message", "thinking", "tool_call", "tool_result", "usage", "notice", "error", "text"]
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt", "wind_down"]


MCP_VARIABLES = ("CLAUDOMATOR_RUN", "CLAUDOMATOR_RUN_TOKEN")
"""Variables that tell an MCP server which run it acts for."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What an agent needs to know to build its command line."""

    run_id: str
    agent: AgentSpec
    task: TaskSpec
    prompt: str
    model: ModelChoice | None
    conversation_id: str
    """A UUID derived from the run's identity or, with ``resume``, the agent's id of the conversation to continue."""
    resume: bool = False
    prompt_file: str = "/dev/stdin"
    """Where the agent finds the prompt as a file; its standard input is one."""
    prior_tokens: Tokens = Tokens()
    """What a resumed conversation had used before this run, if known; for an agent that reports totals, the run's share
    is the difference."""
    prior_cost_usd: float | None = None
    """The same in US dollars."""
    mcp_command: tuple[str, ...] = ()
    """Command with which the agent's CLI starts the MCP server ``claudomator``, in addition to its own servers as
    ``agent.mcp`` says; empty for none. It needs the variables in ``MCP_VARIABLES``, which the run has."""
    usd_left: float | None = None
    """US dollars that the run may cost, for an agent that can enforce this; None if unlimited."""
    reach: Reach | None = None
    """How far the run may act; None if nothing determines it, and then there is no fence."""
    granted_acts: tuple[str, ...] = ()
    """Digests of calls beyond that reach which a person has allowed; see ``acts.tool_calls``."""
    granted_commands: tuple[str, ...] = ()
    """Commands beyond it that a person has allowed before the first run; see ``acts.reading``."""
    skill: str | None = None
    """The specialist's skill that was named or fits the task best, for a remote specialist; None if there is none."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the agent: argv, the variables it gets beyond the base ones, and the contents of its stdin (a
    file)."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    over: dict[str, str] = field(default_factory=dict)
    """Variables computed from those set by agent and task, which they replace."""
    idle_share: float | None = None
    """Share of a processor below which its own process counts as waiting; None: the usual one."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits that the shim enforces without the daemon. Times in milliseconds, output in bytes; None for no limit."""

    timeout_ms: int | None
    stall_ms: int | None
    grace_ms: int
    output_bytes: int
    idle_share: float | None = None
    """Share of a processor below which the agent counts as waiting; None: the shim's default."""


@dataclass(frozen=True, slots=True)
class WindDown:
    """How to end a run that has said its last word, unless it first exits or prints something that may be an event."""

    stdout: int
    """Bytes of standard output printed so far."""
    after_ms: int
    """How long it may stay from now on."""
    idle: bool
    """True if only time counts during which it neither writes nor uses the processor."""


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """The shim's record of how the process ended."""

    exit_code: int | None
    """Negative for a signal; None if the program never started."""
    ended_by: EndedBy | None
    """What the shim did, if it ended the run; ``interrupt`` if a signal told the shim to stop, as when the machine
    shuts down."""
    started_ms: int
    ended_ms: int
    error: str | None = None
    """Why the program could not be started."""
    step: int = 0
    """Index of the command that ended the run."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a folder may be, as real paths. roots: below one of these; empty for anywhere. reserved: neither inside one
    of these nor containing one."""

    roots: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run directory is made from. Values of variables are passed when the run is spawned and are in no file."""

    run_id: str
    commands: tuple[tuple[str, ...], ...]
    """Argv lists, executed in order until one does not exit with 0."""
    cwd: str | None
    """None for a scratch folder."""
    roots: tuple[str, ...]
    """Folders below which cwd must be; empty for anywhere."""
    env_names: tuple[str, ...]
    stdin: str
    """The text that each command reads."""
    limits: RunLimits
    scratch_of: str | None = None
    """The run whose scratch folder it works in; None for its own."""
    handoff: str | None = None
    """The handoff document as JSON, see ``domain.handoff``; None for a check."""
    note: str | None = None
    """What the agent that had the task before left behind; stored for people, as the prompt contains it, too."""
    reserved: tuple[str, ...] = ()
    """Folders that cwd must stay out of."""
    folders: tuple[str, ...] = ()
    """Additional folders given to the agent, as real paths; their permitted places are in ``folder_bounds``."""
    folder_bounds: Bounds = Bounds()
    hosts: tuple[str, ...] = ("local",)
    """Hosts on which it may run."""
    needs: HostNeeds | None = None
    """What its node must have; only an engine can guarantee this."""
    agent: str | None = None
    """The agent whose run it is; None for a check."""
    resumes: str | None = None
    """The run whose conversation it continues."""


class RunConflict(Exception):
    """The run directory belongs to a run that was started earlier and is unknown to the store."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What was done about a run directory that no row refers to.

    name: of the directory. action: ``removed``; ``cancelled``: its run was alive and was asked to end; ``unkillable``:
    some of its processes cannot be ended; ``stuck``: it cannot be removed. All but the first are left for the next
    sweep. error: why it is stuck.
    """

    name: str
    action: Literal["removed", "cancelled", "unkillable", "stuck"]
    error: OSError | None = field(default=None, compare=False)


class RunFate(StrEnum):
    """What a run directory shows about its run.

    STARTING: a shim holds the lock, and nothing has started. ALIVE: it runs. ENDED: there is an exit record. ORPHANED:
    it started, its shim is gone without a record, and the agent itself is alive. UNFINISHED: the agent is gone as well,
    or unknown. REVOKED: it can no longer start. MISSING: there is no directory.
    """

    STARTING = "starting"
    ALIVE = "alive"
    ENDED = "ended"
    ORPHANED = "orphaned"
    UNFINISHED = "unfinished"
    REVOKED = "revoked"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The fate, and the exit record if there is one."""

    fate: RunFate
    exit: ExitRecord | None = None


CheckStatus = Literal["running", "passed", "failed", "cancelled", "lost"]
Command = tuple[str, ...]

_STOPPED: dict[EndedBy, str] = {
    "cancel": "was cancelled",
    "timeout": "was stopped at its timeout",
    "stall": "was stopped: it neither wrote nor computed anything",
    "output_limit": "was stopped: it wrote more output than allowed",
    "disk_full": "was stopped: there was no space left on the disk",
    "interrupt": "was interrupted",
    "wind_down": "was stopped: it did not exit after its last word",
}


class CheckResult(BaseModel, frozen=True):
    """The check of one run, from start to end. Times in epoch milliseconds."""

    commands: tuple[Command, ...]
    started_ms: int
    status: CheckStatus = "running"
    step: int | None = None
    """Index of the command that ended the check; those before it exited with 0, those after it were not run. None while
    it runs, and if no record was left."""
    exit_code: int | None = None
    """Exit code of that command, negative for a signal; None if it was not started."""
    ended_by: EndedBy | None = None
    """What the supervisor did, if it stopped the check."""
    error: str | None = None
    """Why the command could not be started."""
    ended_ms: int | None = None
    output: AgentText | None = None
    """Tail of the check's output; None unless the check failed."""

    def ended(
        self, record: ExitRecord | None, *, cancelled: bool, now_ms: int, output: str | None = None
    ) -> "CheckResult":
        """Return the result with how the check ended. record: None if its supervisor left none. cancelled: the task was
        to stop."""
        if record is None:
            status: CheckStatus = "cancelled" if cancelled else "lost"
            return self.model_copy(update={"status": status, "ended_ms": now_ms})
        passed = record.exit_code == 0 and record.ended_by is None
        return CheckResult(
            commands=self.commands,
            started_ms=record.started_ms,
            status="cancelled" if record.ended_by == "cancel" else "passed" if passed else "failed",
            step=min(record.step, len(self.commands) - 1),
            exit_code=record.exit_code,
            ended_by=record.ended_by,
            error=record.error,
            ended_ms=record.ended_ms,
            output=output,
        )


def command_text(command: Sequence[str]) -> str:
    """Return the command on one line, quoted for a shell."""
    return shlex.join(command)


def ended_text(exit_code: int | None, ended_by: EndedBy | None, error: str | None) -> str:
    """Return how a command ended: ``exited with 2``."""
    if error is not None:
        return error
    if ended_by is not None:
        return _STOPPED[ended_by]
    if exit_code is None:
        return "left no record of its end"
    return f"was ended by signal {-exit_code}" if exit_code < 0 else f"exited with {exit_code}"


def ending_of(command: str, exit_code: int | None, ended_by: EndedBy | None, error: str | None) -> str:
    """Return the command with how it ended: ``make lint exited with 2``, ``make: make cannot be started: ...``."""
    return f"{command}{' ' if error is None else ': '}{ended_text(exit_code, ended_by, error)}"


@dataclass(frozen=True, slots=True)
class Part:
    """One item that a line of output contains."""

    kind: LogKind
    text: str
    tool: str | None = None
    at_ms: int | None = None
    """Epoch milliseconds, if the line says so."""
    partial: bool = False
    """True if the text continues in the next part."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part, and the range of bytes that it was made from."""

    offset: int
    next_offset: int
    part: Part
