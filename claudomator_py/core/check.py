"""A run's check: the commands that decide whether the agent's work is a success, and how they ended."""

import shlex
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from claudomator_py.core.outcome import AgentText
from claudomator_py.core.run import EndedBy, ExitRecord

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
