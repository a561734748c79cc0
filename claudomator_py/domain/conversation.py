"""Conversations that continue in a later run: who assigns their ids, which one a task is in, and what it has used so
far."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Outcome, Tokens


class Conversations(StrEnum):
    """How a kind of agent supports conversations.

    NONE: not at all. GIVEN: Claudomator assigns the id. NAMED: the agent assigns the id and reports it.
    """

    NONE = "none"
    GIVEN = "given"
    NAMED = "named"


class Exchange(BaseModel):
    """What an agent asked and what the operator replied: an answer, or the tools it may use (allowed)."""

    model_config = ConfigDict(frozen=True)

    kind: InputKind
    asked: str
    answer: str | None = None
    allowed: tuple[str, ...] = ()


class ResumedConversation(BaseModel):
    """The conversation that the next run of a task continues: that of the run ``run_id``."""

    model_config = ConfigDict(frozen=True)

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
    def holder(self) -> str | None:
        """The agent that the next run waits for, though not in all circumstances; None if it waits for none."""
        return None if self.given_up or self.optional else self.agent


class Usage(BaseModel):
    """What a conversation has used, as far as its runs have reported. cost_usd: US dollars."""

    model_config = ConfigDict(frozen=True)

    tokens: Tokens = Tokens(input=0, output=0)
    cost_usd: float = 0.0

    def after(self, outcome: Outcome | None) -> "Usage":
        """Return the usage plus that of the run.

        Anything a run has not reported counts as zero. With an agent that reports totals it is then counted with the
        next run, so that the sum over all runs is right.
        """
        if outcome is None:
            return self
        return Usage(
            tokens=Tokens(
                input=(self.tokens.input or 0) + (outcome.tokens.input or 0),
                output=(self.tokens.output or 0) + (outcome.tokens.output or 0),
            ),
            cost_usd=self.cost_usd + (outcome.agent_cost_usd or 0.0),
        )
