"""A run: one attempt at a task. These are the values that pass between the service, an agent and a run directory."""

from dataclasses import dataclass, field
from typing import Literal

from claudomator_py.core.agent import AgentSpec, ModelChoice
from claudomator_py.core.task import TaskSpec

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What an agent needs to know to build its command line.

    conversation_id: a UUID fixed by the run's identity. resume: continue that conversation instead of starting it.
    """

    run_id: str
    agent: AgentSpec
    task: TaskSpec
    prompt: str
    model: ModelChoice | None
    conversation_id: str
    resume: bool = False


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
    ended the run. error: why the program could not be started. step: index of the command that ended the run.
    """

    exit_code: int | None
    ended_by: Literal["cancel", "timeout", "stall", "output_limit", "disk_full"] | None
    started_ms: int
    ended_ms: int
    error: str | None = None
    step: int = 0
