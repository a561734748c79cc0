"""What was decided for in the place of what should have been: another model, or an agent that is limited."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WrapValidator

from claudomator_py.domain.coded import Coded, WordedCode, known_or_none
from claudomator_py.domain.outcome import Reason


class StandIn(Coded):
    """A model that is used in place of another one, which was not to be had."""

    fallback: str = Field(description="The agent's ``fallback_model``, which is used.")
    model: str | None = Field(None, description="The model in whose place it is; missing: the agent's CLI decides.")
    after: Reason = Field(description="How the run on that model ended.")

    @property
    def text(self) -> str:
        """Such as ``haiku is its fallback_model after overloaded of opus``."""
        return f"{self.fallback} is its fallback_model after {self.after}" + (f" of {self.model}" if self.model else "")


ShownStandIn = Annotated[StandIn | None, WrapValidator(known_or_none)]
"""The value in a shape of the API."""


class Fallback(WordedCode):
    """Why it was decided for what should not have been, with its words. Values are stored: they are never renamed."""

    ALL_LIMITED = "all_limited", "every agent is limited; one was tried anyway"


def _fallback_from_words(value: object) -> object:
    """Earlier versions have stored words, of which there were no others."""
    return Fallback.ALL_LIMITED if isinstance(value, str) and " " in value else value


StoredFallback = Annotated[Fallback, BeforeValidator(_fallback_from_words)]
"""The value in a row."""
ShownFallback = Annotated[Fallback | None, WrapValidator(known_or_none)]
"""The value in a shape of the API."""
