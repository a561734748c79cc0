"""Conversations that continue in a later run: who names them, which one a task is in, and what it has used so far."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Outcome, Tokens


class Conversations(StrEnum):
    """What a kind of agent makes of conversations.

    NONE: it holds none. GIVEN: each has the id that it is given. NAMED: it names each itself, and says so.
    """

    NONE = "none"
    GIVEN = "given"
    NAMED = "named"


class Exchange(BaseModel):
    """What an agent asked, and what it heard of the operator: an answer, or which tools it may use (allowed)."""

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
    """See ``agent``."""
    tier: str | None
    """The tier of its last run."""
    revision: int
    """The content that the conversation is certain to know."""
    words: str | None = None
    """What the operator adds to the prompt."""
    given_up: bool = False
    """It cannot or must not be continued after all; a fresh one begins, and gets the words."""
    optional: bool = False
    """Whoever can start first takes the task, its holder in this conversation, anybody else in a fresh one."""
    follows: str | None = None
    """The run of the task that this one continues; until a run of its own continues in the conversation, run_id is
    the same."""
    heard: tuple[Exchange, ...] = ()
    """What was asked in this generation and heard from the operator, which a fresh conversation is told."""
    answering: bool = False
    """The last exchange is new to this conversation."""
    confirms: bool = False
    """A run in it succeeded while a window of its account was nearly used up, so the next one is asked to finish, or to
    confirm that the task is done; no other is."""
    asked: bool = False
    """The operator asked for this conversation, so nobody else takes over however long its agent is out of reach."""

    @property
    def holder(self) -> str | None:
        """The agent that the next run waits for, if not whatever happens to that; None: it waits for none."""
        return None if self.given_up or self.optional else self.agent


class Usage(BaseModel):
    """What a conversation has used, as far as its runs have said. cost_usd: US dollars."""

    model_config = ConfigDict(frozen=True)

    tokens: Tokens = Tokens(input=0, output=0)
    cost_usd: float = 0.0

    def after(self, outcome: Outcome | None) -> "Usage":
        """Return it with what that run used.

        What a run has not said counts as nothing, so that it is counted with the next run of an agent that tells
        totals, and the sum over the runs is right.
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
