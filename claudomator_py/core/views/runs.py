"""Runs: attempts at tasks."""

from typing import Literal

from claudomator_py.core.agent import Tier
from claudomator_py.core.check import CheckResult, CheckStatus, Command, command_text, ended_text
from claudomator_py.core.run import EndedBy
from claudomator_py.core.units import format_instant
from claudomator_py.core.view import Instant, View
from claudomator_py.core.views.outcomes import OutcomeView

RunState = Literal["starting", "running", "checking", "ended", "revoked"]


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

    @classmethod
    def of(cls, result: CheckResult) -> "RunCheckView":
        """The shape of a check."""
        return cls(
            status=result.status,
            commands=result.commands,
            step=result.step,
            exit_code=result.exit_code,
            ended_by=result.ended_by,
            error=result.error,
            started_at=format_instant(result.started_ms),
            ended_at=None if result.ended_ms is None else format_instant(result.ended_ms),
            output=result.output,
        )

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


class RunView(View):
    """One attempt at a task. resumes: the run whose conversation it went on in; None: it began one.

    check: how its check went; None: it was not checked, as its task has no check or its agent did not succeed.
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
