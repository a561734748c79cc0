"""Parts of a decision that are stored, and shown, as they are."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WrapValidator

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.personal import Impersonal
from claudomator_py.domain.wording import Coded, WordedCode, known_or_none


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


_MESSAGE = "message:"


def message_ref(channel_id: str, message_id: int | None) -> str:
    """Return the reference by which a decision names the message that it is about."""
    return f"{_MESSAGE}{channel_id}/{message_id}"


def message_of(input_ref: str | None) -> tuple[str, int] | None:
    """Return id of the channel and of the message that a decision is about; None: it is about none."""
    if input_ref is None or not input_ref.startswith(_MESSAGE):
        return None
    channel_id, _, message_id = input_ref.removeprefix(_MESSAGE).rpartition("/")
    return (channel_id, int(message_id)) if channel_id and message_id.isdigit() else None


def task_revision_of(input_ref: str | None) -> int | None:
    """Return the revision of the task that a decision is about; None: it is about something else."""
    kind, _, rest = (input_ref or "").partition(":")
    revision = rest.rpartition("/")[2]
    return int(revision) if kind == "task" and revision.isdigit() else None


class Classification(BaseModel):
    """Where the tier comes from."""

    model_config = ConfigDict(frozen=True)

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    """Why it is no answer."""
    reason: Impersonal | None = None
    """The classifier's own words or those of its fault."""
    asked_about: str | None = None
    """The agent that was picked when it was asked, which need not be the one that started the task."""
    said_agent: str | None = None
    """The agent that the answer spoke of, if that was another one; it changes nothing."""
    clamped_from: Tier | None = None
    """The tier that it would be without the floor or ceiling that its constraints set."""


class PolicyCheck(BaseModel):
    """What one rule said."""

    model_config = ConfigDict(frozen=True)

    rule: str
    """Its name."""
    allowed: bool
    """Whether the task may continue as far as this rule is concerned."""
    matched: bool | None = True
    """Whether its condition was true; None: it could not be evaluated."""
    effect: str | None = None
    """What it demands, by the names of its keys, such as ``approve, tier``."""
    detail: str | None = None
    """Why, in words: the operator's message, or what is wrong with the rule."""


class Versions(BaseModel):
    """By what it was decided, so that decisions made by the same can be told apart from others; None: not involved."""

    model_config = ConfigDict(frozen=True)

    configuration: str | None = None
    """Hash of the settings."""
    classifier: str | None = None
    """Its model and the version of the question, as ``<model>/<version>``."""
    policy: str | None = None
    """Hash of the rules."""
    registry: str | None = None
    """Hash of the specialists' cards."""
    encoder: str | None = None
    """Its id and version."""
    calibration: str | None = None
    """Hash of the weights and thresholds that were fitted for the encoder."""
