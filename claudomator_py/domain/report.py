"""What a host says of a run: while it lives, and how it ended. Values, which may come from another machine."""

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claudomator_py.domain.outcome import AgentText, Outcome
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.run import ExitRecord


@dataclass(frozen=True, slots=True)
class Said:
    """What a live run has said, as far as its output has been read; the first five as in ``OutputReader``."""

    stuck_until: int | None = None
    stuck_since: int | None = None
    answered: bool = False
    terminal: bool = False
    used: Used = field(default_factory=Used)
    #: The bytes between there and the end of the output, whether or not they were kept.
    unread: int = 0
    #: Whether it has printed nothing since. Looked for only where it is stuck; else False.
    is_current: bool = False

    def is_news_after(self, earlier: "Said") -> bool:
        """Whether a tick may have something to do because of it. What was used is asked for at a pace of its own."""
        return self._news() != earlier._news()

    def _news(self) -> tuple[int | None, bool, bool, bool]:
        return self.stuck_until, self.stuck_since is not None, self.answered, self.terminal


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a run has printed and nobody has read. ended: it prints no more, and is told of once all is read."""

    unread: int
    ended: bool


class RunReport(BaseModel):
    """All that has to be known of the end. Secrets are taken out, and costs are reckoned.

    Whoever applies it needs neither the run's files nor the reader of its agent. Raises ValueError for a report that
    says neither what the agent's run came to nor that it is gone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    step: int = Field(default=0, ge=0)
    """0: the agent's run; n: the n-th time that its check was begun."""
    exit: ExitRecord | None = None
    """How it ended; None: its supervisor left no record."""
    outcome: Outcome | None = None
    """What the agent's run came to, by the exit record; None for a check."""
    undisturbed: Outcome | None = None
    """As if nothing had ended the run; None: the same as ``outcome``."""
    answered: bool = False
    """Whether the agent's model said or did anything."""
    check_output: AgentText | None = None
    """The end of what the check wrote, if it failed."""
    gone: bool = False
    """Whether nothing is left of the run from which its end could be told."""

    @model_validator(mode="after")
    def _says_what_became_of_the_run(self) -> "RunReport":
        if self.step == 0 and self.outcome is None and not self.gone:
            raise ValueError("a report of an agent's run needs an outcome, unless the run is gone")
        return self
