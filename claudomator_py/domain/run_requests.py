"""What a run asks of the daemon while it lives: a question, a word on its progress, a task beside its own."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.fields import Line, Name, Prose, Strict
from claudomator_py.domain.inputs import MAX_QUESTION
from claudomator_py.domain.outcome import AgentText

MAX_QUESTIONS: Final = 5
"""Questions that one run can ask; a person is asked all of them at once."""
MAX_SUBTASK_DEPTH: Final = 3
"""A task that nobody's run has made can have such a line of subtasks below it."""
PROGRESS_EVERY_MS: Final = 5_000
"""What a run says of its progress more often is not recorded, in milliseconds."""
MAX_PROGRESS_EVENTS: Final = 200
"""Of one run. What it says after that is shown as its newest, and is no event any more."""


class QuestionRequest(BaseModel):
    """A question to a person."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[AgentText, Field(min_length=1, max_length=MAX_QUESTION, pattern=r"\S")] = Field(
        description="The question, with all that a person needs to answer it."
    )
    choices: tuple[Annotated[AgentText, Field(min_length=1, max_length=200)], ...] = Field(
        (), max_length=10, description="Answers to choose from, the one that the agent would choose first."
    )

    @property
    def text(self) -> str:
        """As a person reads it."""
        return "\n".join((self.question.strip(), *(f"- {choice}" for choice in self.choices)))


class ProgressRequest(BaseModel):
    """How far a run is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Annotated[AgentText, Field(min_length=1, max_length=500)] = Field(
        description="What it has done, or is about to do."
    )
    percent: Annotated[int, Field(strict=True, ge=0, le=100)] | None = Field(
        None, description="How much of the task is done."
    )


class SubtaskRequest(Strict):
    """A task that a run makes. What is not said here is as in the run's own task."""

    name: Name = Field(description="Lower-case letters, digits, `-`, `_` and `.`.")
    instructions: Prose = Field(min_length=1, max_length=20_000, pattern=r"\S", description="What to do.")
    specialist: Name | None = Field(
        None, description="Who does it, by the id of its card. Default: it is routed by its text."
    )
    skill: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="The skill asked of the specialist, by its id."
    )
    expected_output: Prose | None = Field(None, max_length=20_000, description="What to hand back.")


class Progress(BaseModel):
    """What a run said last of how far it is."""

    model_config = ConfigDict(frozen=True)

    text: str
    percent: int | None = None
    at_ms: int
    """Since when it says so, in epoch milliseconds."""
    events: int = 0
    """How often that became an event."""
