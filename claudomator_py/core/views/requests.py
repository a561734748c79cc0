"""What a request may ask for: the bodies that the API takes besides task documents."""

from typing import Annotated

from pydantic import ConfigDict, Field

from claudomator_py.core.agent import Tier
from claudomator_py.core.budget import Budget
from claudomator_py.core.task import Instant as GivenInstant
from claudomator_py.core.view import View


class DrainRequest(View):
    """Why nothing is to be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=2_000)


Family = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class HoldRequest(View):
    """Nothing is to be started on an agent. until: None: until it is released. family: only on its models of it.

    account: nor on the others that draw on its account.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: GivenInstant | None = Field(default=None, description="RFC 3339, with an offset; missing: until released.")
    family: Family | None = Field(
        default=None, description="Only models with this in their name, such as `opus`; missing: all."
    )
    account: bool = Field(default=False, description="All agents of its kind that draw on the same account, too.")
    reason: str | None = Field(default=None, max_length=500, description="Why; shown to whoever asks.")


class ReleaseRequest(View):
    """Which holds of an agent are to end. family: only those on this family of models; None: all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family | None = Field(default=None, description="Only holds on this family of models; missing: all holds.")


class RestartRequest(View):
    """What a restart changes. What the task's content pins stays pinned where a field is None.

    budget: what it names replaces what the content has. force: a running task is cancelled first. resume: go on in the
    last conversation instead of a fresh one, on the agent that has it. reason: kept with the task; a conversation that
    goes on is told it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str | None = None
    specialist: str | None = None
    tier: Tier | None = None
    model: str | None = None
    budget: Budget | None = None
    force: bool = False
    resume: bool = False
    reason: str | None = Field(default=None, max_length=2_000)


class AnswerRequest(View):
    """What a person answers: its agent is told, in the conversation in which it asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=20_000, pattern=r"\S", description="The answer, in plain words.")


class ApproveRequest(View):
    """What a person allows. tools: instead of what each denied call needs, these, as the agent's CLI names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: tuple[Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")], ...] = Field(
        default=(), max_length=100, description="Instead of what each denied call needs: rules, as its CLI names them."
    )


class RejectRequest(View):
    """Why a task is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=2_000, description="Why; kept with the task.")
