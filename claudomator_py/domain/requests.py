"""Requests of people, as far as the engine needs to know them: which tasks and decisions to list, holds, restarts."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import Budget
from claudomator_py.domain.fields import Flag, Line, Name, Prose, Strict
from claudomator_py.domain.inputs import MAX_QUESTION
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.outcome import AgentText, Reason
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import Instant
from claudomator_py.values import regex

MAX_QUESTIONS: Final = 5
"""Maximum number of questions per run; a person is asked all of them at once."""
MAX_SUBTASK_DEPTH: Final = 3
"""Maximum depth of subtasks below a task that was not created by a run."""
PROGRESS_EVERY_MS: Final = 5_000
"""Progress that a run reports more often than this is not recorded, in milliseconds."""
MAX_PROGRESS_EVENTS: Final = 200
"""Maximum number of progress events per run. Later reports are only shown as the latest progress."""


class QuestionRequest(BaseModel, frozen=True, extra="forbid"):
    """A question to a person."""

    question: Annotated[AgentText, Field(min_length=1, max_length=MAX_QUESTION, pattern=r"\S")] = Field(
        description="The question, with all that a person needs to answer it."
    )
    choices: tuple[Annotated[AgentText, Field(min_length=1, max_length=200)], ...] = Field(
        (), max_length=10, description="Answers to choose from, the one that the agent would choose first."
    )

    @property
    def text(self) -> str:
        """The text shown to a person."""
        return "\n".join((self.question.strip(), *(f"- {choice}" for choice in self.choices)))


class ProgressRequest(BaseModel, frozen=True, extra="forbid"):
    """Progress of a run."""

    text: Annotated[AgentText, Field(min_length=1, max_length=500)] = Field(
        description="What it has done, or is about to do."
    )
    percent: Annotated[int, Field(strict=True, ge=0, le=100)] | None = Field(
        None, description="How much of the task is done."
    )


class SubtaskRequest(Strict):
    """A task created by a run. Anything not given here is as in the run's own task."""

    name: Name = Field(description="Lower-case letters, digits, `-`, `_` and `.`.")
    instructions: Prose = Field(min_length=1, max_length=20_000, pattern=r"\S", description="What to do.")
    specialist: Name | None = Field(
        None, description="Who does it, by the id of its card. Default: it is routed by its text."
    )
    skill: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="The skill asked of the specialist, by its id."
    )
    expected_output: Prose | None = Field(None, max_length=20_000, description="What to hand back.")


class Progress(BaseModel, frozen=True):
    """The latest progress that a run reported."""

    text: str
    percent: int | None = None
    at_ms: int
    """Time of the report, in epoch milliseconds."""
    events: int = 0
    """Number of reports that were recorded as events."""


class TaskFilter(Strict):
    """Which tasks to list; all conditions must match, None matches any."""

    state: StateName | None = Field(default=None, description="Only tasks in this state.")
    name: str | None = Field(default=None, description="Only tasks of this name.")
    text: str | None = Field(default=None, max_length=200, description="Only tasks whose name contains this.")
    tag: str | None = Field(default=None, description="Only tasks with this tag.")
    agent: str | None = Field(default=None, description="Only tasks whose last run was on this agent.")
    specialist: str | None = Field(
        default=None, max_length=128, description="Only tasks for this specialist, by its id."
    )
    creator: str | None = Field(default=None, max_length=100, description="Only tasks submitted by this principal.")
    source: str | None = Field(
        default=None, description="Only tasks from this source: `file`, `api`, `schedule` or `run`."
    )


class StateSelection(Strict):
    """The tasks in a state that also meet the other conditions."""

    state: StateName
    begun: bool | None = None
    """True if a run of the task has started; None for either."""
    rejected: bool | None = None
    """True if rejection is the task's reason; None for either."""

    def includes(self, state: StateName, *, runs: int, reason: str | None) -> bool:
        """Return whether a task in that situation matches."""
        return (
            state == self.state
            and self.begun in (None, runs > 0)
            and self.rejected in (None, reason == Reason.REJECTED)
        )


class LatestFilter(Strict):
    """Which tasks to list by their latest change; all conditions must match, None matches any."""

    context: str | None = None
    """The caller's name for a conversation, or the id of the task that began it."""
    standings: tuple[StateSelection, ...] | None = None
    """Matches one of these."""
    since_ms: int | None = None
    """Changed at this time or later, in epoch milliseconds."""


DecisionKindName = Literal["placement", "tier", "specialist", "policy", "handoff", "triage", "shadow"]
"""What was decided; see ``scheduler.records.DecisionKind``."""
RouteName = Literal["specialist", "default", "clarify", "human_review", "reject"]
"""Where a task went; see ``scheduler.records.Route``."""
_RFC_3339 = regex(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def _written_out(value: object) -> object:
    if isinstance(value, str) and not _RFC_3339.fullmatch(value):
        raise ValueError("is not a time of RFC 3339 such as 2026-11-23T09:00:00Z")
    return value


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


Time = Annotated[AwareDatetime, BeforeValidator(_written_out), AfterValidator(_in_utc)]


class DecisionFilter(Strict):
    """Which decisions to list; all conditions must match, None matches any."""

    kind: DecisionKindName | None = Field(None, description="Only decisions of this kind.")
    task: str | None = Field(
        None, max_length=128, description="Only those about this task: its id, the beginning of it, or its name."
    )
    specialist: str | None = Field(None, max_length=128, description="Only those for this specialist.")
    agent: str | None = Field(None, max_length=128, description="Only those whose run was on this agent.")
    route: RouteName | None = Field(None, description="Only those with this route, such as `human_review`.")
    reason: RationaleCode | None = Field(None, description="Only those with this reason code.")
    risk: Risk | None = Field(None, description="Only those about tasks of this risk.")
    overridden: bool | None = Field(None, description="Only those that an operator has overridden, or has not.")
    since: Time | None = Field(None, description="Only those from this time on.")
    until: Time | None = Field(None, description="Only those from before this time.")


Family = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""A family of models, or a single model."""


class HoldRequest(Strict):
    """A request to start nothing on an agent."""

    until: Instant | None = Field(default=None, description="RFC 3339, with an offset. Default: until released.")
    family: Family | None = Field(
        default=None, description="Only models of this family, such as `opus`, or this one model. Default: all models."
    )
    account: Flag = Field(default=False, description="Also hold all agents of its kind on the same account.")
    reason: str | None = Field(default=None, max_length=500, description="Reason to show to others.")


class ReleaseRequest(Strict):
    """Which of an agent's holds to end."""

    family: Family | None = Field(default=None, description="Only holds on this family of models. Default: all holds.")


class RestartRequest(Strict):
    """What a restart changes. Where a field is null, whatever the task's content pins stays pinned."""

    agent: str | None = None
    specialist: str | None = None
    tier: Tier | None = None
    model: str | None = None
    budget: Budget | None = Field(default=None, description="What it names replaces what the content has.")
    force: Flag = Field(default=False, description="Cancel a running task first.")
    resume: Flag = Field(
        default=False,
        description="Continue the last conversation instead of a fresh one, on the agent that has it.",
    )
    reason: str | None = Field(
        default=None,
        max_length=2_000,
        description="Reason to store with the task; a continued conversation receives it.",
    )

    @property
    def pins(self) -> bool:
        """True if it changes what the task's content specifies."""
        return any(value is not None for value in (self.agent, self.specialist, self.tier, self.model, self.budget))
