"""A run: one attempt at a task. These are the values that pass between the service, an agent and a run directory."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import AgentText, Tokens
from claudomator_py.domain.task import TaskSpec

Stream = Literal["stdout", "stderr"]
LogKind = Literal["message", "thinking", "tool_call", "tool_result", "usage", "notice", "error", "text"]
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt"]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What an agent needs to know to build its command line.

    conversation_id: a UUID fixed by the run's identity, or, with ``resume``, what the agent calls the conversation that
    is to go on.
    prompt_file: where the agent finds the prompt as a file; its standard input is one. prior_tokens, prior_cost_usd:
    what a resumed conversation had used before this run, where known; an agent that reports totals is read by the
    difference. usd_left: US dollars that the run may cost, for an agent that can keep to that; None: any number.
    """

    run_id: str
    agent: AgentSpec
    task: TaskSpec
    prompt: str
    model: ModelChoice | None
    conversation_id: str
    resume: bool = False
    prompt_file: str = "/dev/stdin"
    prior_tokens: Tokens = field(default_factory=Tokens)
    prior_cost_usd: float | None = None
    usd_left: float | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the agent: argv, the variables it gets beyond the base ones, and what is on its stdin (a file)."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits that the shim enforces without the daemon. Times in milliseconds, output in bytes; None: no limit."""

    timeout_ms: int | None
    stall_ms: int | None
    grace_ms: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """The shim's record of how the process ended.

    exit_code: negative for a signal; None when the program never started. ended_by: what the shim itself did, if it
    ended the run; ``interrupt`` when it was told to by a signal, as when the machine goes down. error: why the program
    could not be started. step: index of the command that ended the run.
    """

    exit_code: int | None
    ended_by: EndedBy | None
    started_ms: int
    ended_ms: int
    error: str | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a folder may lie, in real paths.

    roots: under one of these; empty: anywhere. reserved: neither in nor around one of these.
    """

    roots: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run directory is made of. Values of variables are handed over at the spawn and are in no file.

    commands: argv after argv, until one does not exit 0. cwd: None for a scratch folder. roots: where cwd may lie;
    empty: anywhere. stdin: the text that each command reads. scratch_of: the run whose scratch folder it works in;
    None: its own. handoff: what the agent left that had the task before; kept for people, as the prompt has it, too.
    reserved: where cwd may not lie. folders: further ones that the agent was given, real paths, and where they may lie.
    """

    run_id: str
    commands: tuple[tuple[str, ...], ...]
    cwd: str | None
    roots: tuple[str, ...]
    env_names: tuple[str, ...]
    stdin: str
    limits: RunLimits
    scratch_of: str | None = None
    handoff: str | None = None
    reserved: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    folder_bounds: Bounds = Bounds()


class RunConflict(Exception):
    """The run directory belongs to a run that was started before, of which the store knows nothing."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What was done about a run directory that no row knows.

    name: of the directory. action: ``removed``; ``cancelled``: its run was alive and has been asked to end;
    ``unkillable``: some of its processes cannot be ended; ``stuck``: it cannot be removed. All but the first are left
    for the next sweep. error: what it is stuck on.
    """

    name: str
    action: Literal["removed", "cancelled", "unkillable", "stuck"]
    error: OSError | None = field(default=None, compare=False)


class RunFate(StrEnum):
    """What a look at a run directory says of its run.

    STARTING: a shim holds the lock, and nothing has started. ALIVE: it runs. ENDED: there is an exit record.
    ORPHANED: it started, its shim is gone without a record, and the agent itself is alive. UNFINISHED: the agent is
    gone as well, or not known. REVOKED: it can never start any more. MISSING: there is no directory.
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
    """The fate, and the exit record where there is one."""

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
}


class CheckResult(BaseModel):
    """The check of one run, from its start to its end. Times in epoch milliseconds.

    step: the index of the command that ended it; those before it exited with 0, those after it were not run; None
    while it runs, and when no record was left. exit_code: that command's, negative for a signal; None: it was not
    started. ended_by: what the supervisor did, if it stopped it. error: why the command could not be started.
    output: the end of what it wrote, if it failed.
    """

    model_config = ConfigDict(frozen=True)

    commands: tuple[Command, ...]
    started_ms: int
    status: CheckStatus = "running"
    step: int | None = None
    exit_code: int | None = None
    ended_by: EndedBy | None = None
    error: str | None = None
    ended_ms: int | None = None
    output: AgentText | None = None

    def ended(
        self, record: ExitRecord | None, *, cancelled: bool, now_ms: int, output: str | None = None
    ) -> "CheckResult":
        """It, with how it ended. record: None: its supervisor left none. cancelled: the task was to stop."""
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
    """The command on one line, as a shell would be given it."""
    return shlex.join(command)


def ended_text(exit_code: int | None, ended_by: EndedBy | None, error: str | None) -> str:
    """How a command ended: ``exited with 2``."""
    if error is not None:
        return error
    if ended_by is not None:
        return _STOPPED[ended_by]
    if exit_code is None:
        return "left no record of its end"
    return f"was ended by signal {-exit_code}" if exit_code < 0 else f"exited with {exit_code}"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a line of output says. at_ms: epoch milliseconds, as far as it says; partial: it goes on."""

    kind: LogKind
    text: str
    tool: str | None = None
    at_ms: int | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A part, and the bytes that it was made from."""

    offset: int
    next_offset: int
    part: Part
