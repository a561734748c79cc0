"""Parts of a decision that are stored and shown as they are."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.personal import Impersonal
from claudomator_py.domain.wording import Coded, WordedCode


class StandIn(Coded):
    """A model used in place of another one that was unavailable."""

    fallback: str = Field(description="The agent's ``fallback_model``, which is used.")
    model: str | None = Field(None, description="The model in whose place it is; missing: the agent's CLI decides.")
    after: Reason = Field(description="How the run on that model ended.")

    @property
    def text(self) -> str:
        """Text such as ``haiku is its fallback_model after overloaded of opus``."""
        return f"{self.fallback} is its fallback_model after {self.after}" + (f" of {self.model}" if self.model else "")


class Fallback(WordedCode):
    """Why a decision fell back to something it should normally avoid, with its words. Values are stored: never rename
    them."""

    ALL_LIMITED = "all_limited", "every agent is limited; one was tried anyway"


def _fallback_from_words(value: object) -> object:
    """Earlier versions stored words, and only these."""
    return Fallback.ALL_LIMITED if isinstance(value, str) and " " in value else value


StoredFallback = Annotated[Fallback, BeforeValidator(_fallback_from_words)]
"""The value in a row."""


_MESSAGE = "message:"


def message_ref(channel_id: str, message_id: int | None) -> str:
    """Return the reference by which a decision identifies the message that it is about."""
    return f"{_MESSAGE}{channel_id}/{message_id}"


def message_of(input_ref: str | None) -> tuple[str, int] | None:
    """Return the ids of the channel and the message that a decision is about; None if it is about something else."""
    if input_ref is None or not input_ref.startswith(_MESSAGE):
        return None
    channel_id, _, message_id = input_ref.removeprefix(_MESSAGE).rpartition("/")
    return (channel_id, int(message_id)) if channel_id and message_id.isdigit() else None


def task_revision_of(input_ref: str | None) -> int | None:
    """Return the revision of the task that a decision is about; None if it is about something else."""
    kind, _, rest = (input_ref or "").partition(":")
    revision = rest.rpartition("/")[2]
    return int(revision) if kind == "task" and revision.isdigit() else None


class Classification(BaseModel, frozen=True):
    """Where the tier comes from."""

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    """Why there is no answer from the classifier."""
    reason: Impersonal | None = None
    """The classifier's own words, or those of its fault."""
    asked_about: str | None = None
    """The agent picked when the classifier was asked, not necessarily the one that started the task."""
    said_agent: str | None = None
    """The agent that the answer named, if it was a different one; has no effect."""
    clamped_from: Tier | None = None
    """The tier before the floor or ceiling of the constraints was applied."""


class PolicyCheck(BaseModel, frozen=True):
    """The result of one rule."""

    rule: str
    """Name of the rule."""
    allowed: bool
    """True if the task may continue as far as this rule is concerned."""
    matched: bool | None = True
    """True if the rule's condition was true; None if it could not be evaluated."""
    effect: str | None = None
    """What the rule demands, by the names of its keys, such as ``approve, tier``."""
    detail: str | None = None
    """The reason in words: the operator's message, or what is wrong with the rule."""


class Versions(BaseModel, frozen=True):
    """What a decision was based on, so that decisions with the same basis can be told apart from others; None if not
    involved."""

    configuration: str | None = None
    """Hash of the settings."""
    classifier: str | None = None
    """Model and version of the question, as ``<model>/<version>``."""
    policy: str | None = None
    """Hash of the rules."""
    registry: str | None = None
    """Hash of the specialists' cards."""
    encoder: str | None = None
    """Id and version of the encoder."""
    calibration: str | None = None
    """Hash of the weights and thresholds fitted for the encoder."""
